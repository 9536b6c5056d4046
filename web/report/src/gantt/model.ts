// Intervals in compressed rows per device, so that a view touches only what it shows.
import { finite } from '../data';
import type { Gantt } from '../types';

export interface Lane {
  node: number;
  device: number;
}

export interface Model {
  lanes: Lane[];
  nodes: { name: string; type: string; rack: string; first: number; count: number }[];
  jobs: { id: string; user: string; gpus: number | null }[];
  from: number;
  to: number;
  size: number;
  shown: number;
  total: number;
  /** Intervals of lane l are rows[l] .. rows[l + 1] - 1, ordered by start. */
  rows: Uint32Array;
  start: Float64Array;
  end: Float64Array;
  /** Largest end so far within the lane: non-decreasing even when intervals overlap. */
  reach: Float64Array;
  job: Uint32Array;
  kind: Uint8Array;
  /** Position of an interval in the input columns. */
  source: Uint32Array;
  laneOf: Uint32Array;
  /** Intervals of job j are ofJob[jobRows[j]] .. ofJob[jobRows[j + 1] - 1]. */
  jobRows: Uint32Array;
  ofJob: Uint32Array;
}

function describeLanes(g: Gantt, needed: number): Pick<Model, 'lanes' | 'nodes'> {
  const lanes: Lane[] = [];
  const nodes: Model['nodes'] = [];
  const add = (name: string, gpus: number, type: string, rack: string): void => {
    nodes.push({ name, type, rack, first: lanes.length, count: gpus });
    for (let device = 0; device < gpus; device++) lanes.push({ node: nodes.length - 1, device });
  };
  for (const [i, n] of (g.nodes ?? []).entries()) {
    const gpus = finite(n.gpus) ? Math.max(0, Math.floor(n.gpus)) : 1;
    add(String(n.name ?? `n${i}`), gpus, n.type ?? '', n.rack ?? '');
  }
  if (lanes.length < needed) add('other', needed - lanes.length, '', '');
  return { lanes, nodes };
}

/** Stable grouping of 0 .. n-1 by key: offsets per group and the members in order. */
function group(keys: Uint32Array, groups: number): { rows: Uint32Array; members: Uint32Array } {
  const rows = new Uint32Array(groups + 1);
  for (const k of keys) rows[k + 1]!++;
  for (let g = 0; g < groups; g++) rows[g + 1]! += rows[g]!;
  const next = rows.slice();
  const members = new Uint32Array(keys.length);
  for (let i = 0; i < keys.length; i++) members[next[keys[i]!]!++] = i;
  return { rows, members };
}

export function buildModel(g: Gantt): Model | null {
  const n = Math.min(g.lane?.length ?? 0, g.start?.length ?? 0, g.end?.length ?? 0, g.job?.length ?? 0);
  const keep: number[] = [];
  let topLane = -1;
  let topJob = -1;
  for (let i = 0; i < n; i++) {
    if (!finite(g.lane[i]) || !finite(g.start[i]) || !finite(g.end[i]) || !finite(g.job[i])) continue;
    if (g.lane[i]! < 0 || g.job[i]! < 0) continue;
    keep.push(i);
    if (g.lane[i]! > topLane) topLane = g.lane[i]!;
    if (g.job[i]! > topJob) topJob = g.job[i]!;
  }
  if (keep.length === 0) return null;
  const { lanes, nodes } = describeLanes(g, topLane + 1);
  const jobs: Model['jobs'] = [];
  for (let j = 0; j <= Math.max(topJob, (g.jobs?.length ?? 0) - 1); j++) {
    const job = g.jobs?.[j];
    jobs.push({ id: String(job?.id ?? j), user: job?.user ?? '', gpus: finite(job?.gpus) ? job.gpus : null });
  }

  const byLane = group(Uint32Array.from(keep, (i) => g.lane[i]!), lanes.length);
  const source = byLane.members.map((k) => keep[k]!);
  sortRows(source, byLane.rows, g.start);
  const size = source.length;
  const model: Model = {
    lanes, nodes, jobs, size, rows: byLane.rows, source,
    from: Infinity, to: -Infinity, shown: size, total: finite(g.total) ? g.total : size,
    start: new Float64Array(size), end: new Float64Array(size), reach: new Float64Array(size),
    job: new Uint32Array(size), kind: new Uint8Array(size), laneOf: new Uint32Array(size),
    jobRows: new Uint32Array(0), ofJob: new Uint32Array(0),
  };
  for (let lane = 0; lane < lanes.length; lane++) {
    let reach = -Infinity;
    for (let k = model.rows[lane]!; k < model.rows[lane + 1]!; k++) {
      const i = source[k]!;
      model.start[k] = g.start[i]!;
      model.end[k] = Math.max(g.start[i]!, g.end[i]!);
      model.job[k] = g.job[i]!;
      model.kind[k] = g.kind?.[i] ?? 0;
      model.laneOf[k] = lane;
      reach = Math.max(reach, model.end[k]!);
      model.reach[k] = reach;
      if (model.start[k]! < model.from) model.from = model.start[k]!;
    }
    if (reach > model.to) model.to = reach;
  }
  if (model.from > 0 && model.from < 0.25 * model.to) model.from = 0;
  if (model.to <= model.from) model.to = model.from + 1;
  const perJob = group(model.job, jobs.length);
  model.jobRows = perJob.rows;
  model.ofJob = perJob.members;
  return model;
}

function sortRows(source: Uint32Array, rows: Uint32Array, start: number[]): void {
  for (let lane = 0; lane + 1 < rows.length; lane++) {
    const part = source.subarray(rows[lane]!, rows[lane + 1]!);
    let ordered = true;
    for (let k = 1; k < part.length && ordered; k++) ordered = start[part[k - 1]!]! <= start[part[k]!]!;
    if (!ordered) part.sort((a, b) => start[a]! - start[b]! || a - b);
  }
}

/** First interval of the lane that ends after t. */
export function firstEndingAfter(m: Model, lane: number, t: number): number {
  let lo = m.rows[lane]!;
  let hi = m.rows[lane + 1]!;
  while (lo < hi) {
    const mid = (lo + hi) >>> 1;
    if (m.reach[mid]! > t) hi = mid;
    else lo = mid + 1;
  }
  return lo;
}

/** One past the last interval of the lane that starts before t. */
export function endStartingBefore(m: Model, lane: number, t: number): number {
  let lo = m.rows[lane]!;
  let hi = m.rows[lane + 1]!;
  while (lo < hi) {
    const mid = (lo + hi) >>> 1;
    if (m.start[mid]! < t) lo = mid + 1;
    else hi = mid;
  }
  return lo;
}

/** The interval of the lane at t, or within `slack` of it; -1 when there is none. */
export function intervalAt(m: Model, lane: number, t: number, slack: number): number {
  if (lane < 0 || lane >= m.lanes.length) return -1;
  let best = -1;
  let distance = slack;
  for (let k = endStartingBefore(m, lane, t + slack) - 1; k >= m.rows[lane]! && m.reach[k]! >= t - slack; k--) {
    const d = t < m.start[k]! ? m.start[k]! - t : t > m.end[k]! ? t - m.end[k]! : 0;
    if (d === 0) return k;
    if (d <= distance) [best, distance] = [k, d];
  }
  return best;
}
