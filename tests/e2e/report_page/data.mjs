// Synthetic report data with a seeded generator: the same bytes on every run.

export function rng(seed) {
  let s = seed >>> 0 || 1;
  return () => {
    s = (s + 0x9e3779b9) >>> 0;
    let x = s;
    x = Math.imul(x ^ (x >>> 16), 0x21f0aaad);
    x = Math.imul(x ^ (x >>> 15), 0x735a2d97);
    return ((x ^ (x >>> 15)) >>> 0) / 4294967296;
  };
}

const logNormal = (random, median, spread) => {
  const normal = Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random());
  return median * Math.exp(spread * normal);
};

/** Jobs packed on the GPUs of single nodes without overlaps. */
function schedule(random, { nodes, perNode, racks, intervals, users, median }) {
  const g = { nodes: [], jobs: [], lane: [], start: [], end: [], job: [], kind: [] };
  for (let n = 0; n < nodes; n++) {
    g.nodes.push({ name: `n${n}`, gpus: perNode, type: 'v100', rack: `r${Math.floor((n * racks) / nodes)}` });
  }
  const free = new Float64Array(nodes * perNode);
  const put = (lane, start, end, job, kind) => {
    g.lane.push(lane);
    g.start.push(Math.round(start * 10) / 10);
    g.end.push(Math.round(end * 10) / 10);
    g.job.push(job);
    g.kind.push(kind);
  };
  while (g.lane.length < intervals) {
    const gpus = Math.min([1, 1, 1, 2, 2, 4][Math.floor(random() * 6)], perNode);
    const job = g.jobs.push({ id: String(1000 + g.jobs.length), gpus, user: `u${Math.floor(random() ** 2 * users)}` }) - 1;
    const segments = random() < 0.15 ? 2 : 1;
    let ready = 0;
    for (let s = 0; s < segments; s++) {
      let first = -1;
      let best = Infinity;
      for (let tries = 0; tries < 12; tries++) {
        const node = Math.floor(random() * nodes);
        const offset = Math.floor(random() * (Math.floor(perNode / gpus))) * gpus;
        const lane = node * perNode + offset;
        const at = Math.max(...free.subarray(lane, lane + gpus));
        if (at < best) [best, first] = [at, lane];
      }
      const start = Math.max(best, ready) + (random() < 0.35 ? logNormal(random, median / 20, 1) : 0);
      const length = logNormal(random, median, 1.1) / segments + 1;
      const overhead = s > 0 ? 60 + random() * 240 : 0;
      for (let k = 0; k < gpus; k++) {
        if (overhead > 0) put(first + k, start, start + overhead, job, 1);
        put(first + k, start + overhead, start + overhead + length, job, 0);
        free[first + k] = start + overhead + length;
      }
      ready = start + overhead + length + 120;
    }
  }
  g.shown = g.lane.length;
  g.total = g.lane.length;
  return g;
}

function timelineOf(g, random) {
  const events = [];
  for (let i = 0; i < g.lane.length; i++) events.push([g.start[i], 1], [g.end[i], -1]);
  events.sort((a, b) => a[0] - b[0] || a[1] - b[1]);
  const lanes = g.nodes.reduce((s, n) => s + n.gpus, 0);
  const every = Math.max(1, Math.floor(events.length / 1900));
  const out = { t: [], queue: [], queued_gpus: [], busy: [], running: [], capacity: [] };
  let busy = 0;
  let queue = 0;
  const end = events[events.length - 1][0];
  events.forEach(([t, d], i) => {
    busy += d;
    if (i % every !== 0 && i !== events.length - 1) return;
    const day = 0.5 + 0.5 * Math.sin((t / 86400) * 2 * Math.PI);
    const left = Math.max(0, 1 - t / (0.9 * end));
    queue = left > 0 && busy > lanes / 2 ? Math.round(queue * 0.9 + day * 14 * random()) : 0;
    if (out.t[out.t.length - 1] === t) return;
    out.t.push(t);
    out.busy.push(busy);
    out.running.push(Math.round(busy / 1.8));
    out.queue.push(queue);
    out.queued_gpus.push(Math.round(queue * 2.1));
    out.capacity.push(lanes);
  });
  return out;
}

function cdfFrom(values) {
  const sorted = [...values].sort((a, b) => a - b);
  const n = Math.min(600, sorted.length);
  const x = [];
  const p = [];
  for (let i = 0; i < n; i++) {
    const at = n === 1 ? sorted.length - 1 : Math.round((i * (sorted.length - 1)) / (n - 1));
    x.push(sorted[at]);
    p.push((at + 1) / sorted.length);
  }
  return { x, p };
}

const mean = (v) => v.reduce((a, b) => a + b, 0) / v.length;
const quantile = (v, q) => [...v].sort((a, b) => a - b)[Math.min(v.length - 1, Math.floor(q * v.length))];

function makeRun(policy, seed, factor, shape, extra = {}) {
  const random = rng(seed);
  const gantt = schedule(random, shape);
  const jobs = gantt.jobs.length;
  const n = Math.min(jobs, 4000);
  const service = Array.from({ length: n }, () => logNormal(random, shape.median, 1.2) + 5);
  const queue = service.map(() => (random() < 0.25 ? 0 : logNormal(random, 900 * factor, 1.6)));
  const jct = service.map((s, i) => s + queue[i]);
  const slowdown = jct.map((v, i) => v / service[i]);
  const ftf = slowdown.map((s) => s * (0.45 + 0.3 * random()));
  const end = Math.max(...gantt.end.slice(-5000), 0);
  const busySeconds = gantt.start.reduce((sum, s, i) => sum + gantt.end[i] - s, 0);
  const lanes = shape.nodes * shape.perNode;
  const summary = {
    jobs: jobs + 3, finished: jobs - 4, failed: 3, cancelled: 1, rejected: 3,
    avg_jct: mean(jct), median_jct: quantile(jct, 0.5), p95_jct: quantile(jct, 0.95), p99_jct: quantile(jct, 0.99),
    avg_queue_time: mean(queue), median_queue_time: quantile(queue, 0.5), p95_queue_time: quantile(queue, 0.95),
    makespan: end, gpu_utilization: Math.min(0.99, busySeconds / lanes / end), gpu_allocation: Math.min(1, (busySeconds / lanes / end) * 1.02),
    preemptions: Math.round(400 * random()), migrations: Math.round(40 * random()),
    avg_slowdown: mean(slowdown), p95_slowdown: quantile(slowdown, 0.95), avg_ftf: mean(ftf), max_ftf: Math.max(...ftf),
    jain: 0.6 + 0.35 * random(), fragmentation: 0.2 * random(), deadline_misses: Math.round(30 * random()), deadline_jobs: 120,
    energy_kwh: 900 + 300 * random(), overhead_gpu_hours: 30 * random(), events: 12345678, wall_seconds: 0.84, custom_metric: 42.5,
  };
  const groups = (labels) => labels.map((label) => ({
    label, jobs: Math.round(10 + 500 * random()), avg_jct: logNormal(random, 9000, 0.5), median_jct: logNormal(random, 4000, 0.5),
    p95_jct: logNormal(random, 40000, 0.5), avg_queue_time: logNormal(random, 1500, 0.7), gpu_hours: logNormal(random, 2000, 1), preemptions: Math.round(60 * random()),
  }));
  return {
    policy, label: policy, placement: 'best-fit', estimator: 'oracle', seed, digest: `9f${seed.toString(16).padStart(14, '0')}`, summary,
    confidence: extra.confidence
      ? Object.fromEntries(['avg_jct', 'median_jct', 'p95_jct', 'avg_queue_time'].map((k) => [k, [summary[k] * 0.94, summary[k] * 1.07]]))
      : null,
    cdf: { jct: cdfFrom(jct), queue: cdfFrom(queue), slowdown: cdfFrom(slowdown), ftf: cdfFrom(ftf) },
    timeline: timelineOf(gantt, random),
    gantt,
    by_size: groups(['1', '2', '4', '8', '16']),
    by_user: groups([...Array.from({ length: 12 }, (_, i) => `user${i}`), 'others']),
    preemption_histogram: [[0, 1800], [1, 120], [2, 30], [3, 9], [5, 2]],
    rejected: [
      { job: '88', reason: 'needs 128 GPUs, the cluster has 64' },
      { job: '91', reason: 'needs 96 GPUs, the cluster has 64' },
      { job: '</script><b>x', reason: 'asks for type "h100" & the cluster has none' },
    ],
  };
}

const report = (title, runs, shape, baseline = null) => ({
  version: 1, title, generated_by: 'berth 0.1.0', baseline, runs,
  trace: { name: 'synthetic.csv', jobs: runs[0].summary.jobs, span: 864000, gpu_seconds: 1.2e8 },
  cluster: {
    name: `${shape.nodes}x${shape.perNode}`, nodes: shape.nodes, gpus: shape.nodes * shape.perNode,
    types: [{ type: 'v100', gpus: shape.nodes * shape.perNode }],
  },
});

const SMALL = { nodes: 16, perNode: 4, racks: 4, intervals: 3000, users: 20, median: 9000 };

export function single() {
  return report('fifo on synthetic', [makeRun('fifo', 7, 1, SMALL)], SMALL);
}

export function policies() {
  const factors = { fifo: 1, backfill: 0.62, sjf: 0.3, srtf: 0.22, las: 0.4, 'fair-share': 0.75 };
  const runs = Object.entries(factors).map(([name, f], i) => makeRun(name, 11 + i, f, { ...SMALL, intervals: 1500 }, { confidence: true }));
  runs[5].gantt = null;
  return report('Six policies on synthetic', runs, SMALL, 'fifo');
}

export function huge() {
  const shape = { nodes: 250, perNode: 8, racks: 25, intervals: 100000, users: 300, median: 9000 };
  const run = makeRun('srtf', 3, 0.5, shape);
  run.gantt.total = 240000;
  return report('srtf on a large cluster', [run], shape);
}

export function empty() {
  const none = { x: [], p: [] };
  const zero = { jobs: 0, finished: 0, failed: 0, cancelled: 0, rejected: 0, makespan: 0, avg_jct: null, gpu_utilization: 0, preemptions: 0 };
  return {
    version: 1, title: 'fifo on an empty trace', generated_by: 'berth 0.1.0', baseline: null,
    trace: { name: 'empty.csv', jobs: 0, span: 0, gpu_seconds: 0 }, cluster: { name: '2x4', nodes: 2, gpus: 8, types: null },
    runs: [{
      policy: 'fifo', label: 'fifo', summary: zero, confidence: null, cdf: { jct: none, queue: none }, timeline: { t: [], queue: [], busy: [] },
      gantt: { nodes: [{ name: 'n0', gpus: 4 }], jobs: [], lane: [], start: [], end: [], job: [], kind: [], shown: 0, total: 0 },
      by_size: [], by_user: [], preemption_histogram: [], rejected: [],
    }],
  };
}

/** Forty runs with almost everything missing. */
export function sparse() {
  return {
    runs: Array.from({ length: 40 }, (_, i) => ({ policy: `policy-with-a-long-name-${i % 20}`, summary: { avg_jct: 1000 + 37 * i, jobs: 10 } })),
  };
}

/** The page with the data in place, escaped the way the simulator does it. */
export function inject(page, data) {
  const json = JSON.stringify(data).replaceAll('<', '\\u003c');
  return page.split('__BERTH_DATA__').join(json);
}
