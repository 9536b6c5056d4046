// Checks of the Gantt chart: pixels, zoom, pan, hover, pin, search.
import { close, equal, median, ok, settle } from './harness.mjs';

export const view = (page) => page.evaluate(() => window.__berth.gantt.view());
const rect = (page, i) => page.evaluate((k) => window.__berth.gantt.rect(k), i);

async function canvasBox(page) {
  const canvas = page.locator('.gantt-canvas');
  await canvas.scrollIntoViewIfNeeded();
  return canvas.boundingBox();
}

/** Compares the pixel inside many visible intervals with the colour of their job. */
export async function checkPixels(page, name, least) {
  const result = await page.evaluate(() => {
    const { gantt } = window.__berth;
    const { plot } = gantt.view();
    const wrong = [];
    let checked = 0;
    const n = gantt.size();
    const step = Math.max(1, Math.floor(n / 20000));
    for (let i = 0; i < n && checked < 400; i += step) {
      const r = gantt.rect(i);
      if (r.width < 5 || r.height < 4 || r.x < plot.left || r.x + 4 > plot.left + plot.width || r.y < plot.top || r.y + r.height > plot.top + plot.height) continue;
      const seen = gantt.pixel({ x: r.x + 2.5, y: r.y + 1.5 });
      const want = gantt.color(i);
      checked++;
      if (seen.some((v, c) => Math.abs(v - want[c]) > 2)) wrong.push(`${i}: ${seen} instead of ${want}`);
    }
    return { checked, wrong };
  });
  ok(result.checked >= least, `${name}: enough intervals to look at`, `${result.checked}`);
  ok(result.wrong.length === 0, `${name}: ${result.checked} intervals have the colour of their job`, result.wrong.slice(0, 3).join('; '));
}

/** Places without any interval must show the empty-lane colour. */
export async function checkIdle(page, data) {
  const { lane, start, end } = data;
  const last = new Map();
  let spot = null;
  const order = lane.map((_, i) => i).sort((a, b) => lane[a] - lane[b] || start[a] - start[b]);
  let widest = 0;
  for (const i of order) {
    const before = last.get(lane[i]) ?? 0;
    if (start[i] - before > widest) {
      widest = start[i] - before;
      spot = { lane: lane[i], t: (start[i] + before) / 2 };
    }
    last.set(lane[i], Math.max(before, end[i]));
  }
  const seen = await page.evaluate(({ lane: l, t }) => {
    const v = window.__berth.gantt.view();
    const x = v.plot.left + ((t - v.t0) / (v.t1 - v.t0)) * v.plot.width;
    const y = v.plot.top + (l - v.top + 0.5) * v.laneHeight;
    const hex = getComputedStyle(document.documentElement).getPropertyValue('--lane').trim();
    return { pixel: window.__berth.gantt.pixel({ x, y }), want: [1, 3, 5].map((k) => parseInt(hex.slice(k, k + 2), 16)) };
  }, spot);
  equal(seen.pixel, seen.want, 'an idle stretch shows the empty lane');
}

/** A visible interval that is easy to hit. */
async function target(page) {
  return page.evaluate(() => {
    const { gantt } = window.__berth;
    const { plot } = gantt.view();
    let best = -1;
    let size = 0;
    const n = gantt.size();
    for (let i = 0; i < n; i += Math.max(1, Math.floor(n / 5000))) {
      const r = gantt.rect(i);
      const inside = r.x >= plot.left && r.x + r.width <= plot.left + plot.width && r.y >= plot.top && r.y + r.height <= plot.top + plot.height;
      if (inside && r.width * Math.min(r.height, 8) > size) [best, size] = [i, r.width * Math.min(r.height, 8)];
    }
    return best;
  });
}

export async function checkHoverAndPin(page, data) {
  const box = await canvasBox(page);
  const i = await target(page);
  const r = await rect(page, i);
  const job = data.jobs[data.job[i]];
  const at = [box.x + r.x + r.width / 2, box.y + r.y + r.height / 2];
  await page.mouse.move(at[0], at[1]);
  await settle(page);
  const tip = await page.locator('.tip').innerText();
  ok(tip.includes(`Job ${job.id}`), 'the tooltip names the job', tip);
  if (job.user) ok(tip.includes(job.user), 'the tooltip names the user', tip);
  ok(/GPUs\s+\d/.test(tip) && /Start/.test(tip) && /End/.test(tip), 'the tooltip tells GPUs, start and end', tip);

  await page.mouse.click(at[0], at[1]);
  await settle(page);
  equal(await page.evaluate(() => window.__berth.gantt.pinned()), String(job.id), 'a click pins the job');
  ok((await page.locator('.pinned').innerText()).includes(`Job ${job.id}`), 'the pinned job is described');
  const pixels = await page.evaluate(({ mine, other }) => {
    const { gantt } = window.__berth;
    const look = (k) => {
      const q = gantt.rect(k);
      return { seen: gantt.pixel({ x: q.x + q.width / 2, y: q.y + q.height / 2 }), color: gantt.color(k) };
    };
    return { mine: mine.map(look), other: other.map(look) };
  }, {
    mine: data.job.flatMap((j, k) => (j === data.job[i] ? [k] : [])).slice(0, 40),
    other: await otherTargets(page, data, data.job[i]),
  });
  ok(pixels.mine.every((p) => String(p.seen) === String(p.color)), 'all intervals of the pinned job are highlighted', JSON.stringify(pixels.mine[0]));
  ok(pixels.other.length > 0 && pixels.other.every((p) => String(p.seen) !== String(p.color)), 'the others are dimmed', JSON.stringify(pixels.other[0]));

  await page.locator('.gantt-canvas').focus();
  await page.keyboard.press('Escape');
  await settle(page);
  equal(await page.evaluate(() => window.__berth.gantt.pinned()), null, 'Escape releases the job');
}

const otherTargets = (page, data, job) => page.evaluate(({ jobs, mine }) => {
  const { gantt } = window.__berth;
  const { plot } = gantt.view();
  return jobs.map((_, k) => k).filter((k) => {
    const r = gantt.rect(k);
    return jobs[k] !== mine && r.width > 12 && r.height > 3 && r.y >= plot.top && r.y + r.height <= plot.top + plot.height && r.x > plot.left && r.x + r.width < plot.left + plot.width;
  }).slice(0, 20);
}, { jobs: data.job.slice(0, 3000), mine: job });

export async function checkZoomAndPan(page) {
  const box = await canvasBox(page);
  const whole = await view(page);
  const x = box.x + whole.plot.left + whole.plot.width * 0.4;
  const y = box.y + whole.plot.height * 0.5;
  const timeAt = (v) => v.t0 + ((x - box.x - v.plot.left) / v.plot.width) * (v.t1 - v.t0);
  await page.waitForTimeout(300);
  await page.mouse.move(x, y);
  await page.mouse.wheel(0, -600);
  await settle(page);
  const near = await view(page);
  ok(near.t1 - near.t0 < (whole.t1 - whole.t0) * 0.6, 'the wheel zooms time', JSON.stringify(near));
  close(timeAt(near), timeAt(whole), (whole.t1 - whole.t0) / whole.plot.width, 'the time under the cursor stays');
  await page.keyboard.down('Shift');
  await page.mouse.wheel(0, -600);
  await page.keyboard.up('Shift');
  await settle(page);
  const tall = await view(page);
  const lanes = await page.evaluate(() => window.__berth.gantt.lanes());
  if (lanes >= 24) ok(tall.laneHeight > near.laneHeight * 1.2, 'Shift and wheel make lanes taller', `${near.laneHeight} to ${tall.laneHeight}`);

  await page.mouse.down();
  await page.mouse.move(x - 120, y - 40, { steps: 6 });
  await page.mouse.up();
  await settle(page);
  const moved = await view(page);
  close(moved.t0 - tall.t0, (120 / tall.plot.width) * (tall.t1 - tall.t0), (tall.t1 - tall.t0) * 0.01, 'dragging pans time');
  if (lanes >= 24) close(moved.top - tall.top, 40 / tall.laneHeight, 1, 'dragging pans lanes');
  equal(await page.evaluate(() => window.__berth.gantt.pinned()), null, 'dragging pins nothing');

  await page.click('#gantt-zoom-in');
  const closer = await view(page);
  ok(closer.t1 - closer.t0 < moved.t1 - moved.t0, 'the button + zooms in');
  await page.click('#gantt-zoom-out');
  await page.locator('.gantt-canvas').focus();
  const before = await view(page);
  await page.keyboard.press('ArrowRight');
  await page.keyboard.press('+');
  const after = await view(page);
  ok(after.t0 > before.t0 && after.t1 - after.t0 < before.t1 - before.t0, 'keys pan and zoom');
  await page.click('#gantt-reset');
  await settle(page);
  const reset = await view(page);
  equal([reset.t0, reset.t1, reset.top, reset.zoomed], [whole.t0, whole.t1, 0, false], 'Reset shows everything');
}

export async function checkSearch(page, data) {
  const used = data.job[Math.floor(data.job.length / 2)];
  const id = String(data.jobs[used].id);
  await page.fill('#gantt-search', id);
  await page.press('#gantt-search', 'Enter');
  await settle(page);
  equal(await page.evaluate(() => window.__berth.gantt.pinned()), id, 'the search pins the job');
  const visible = await page.evaluate((k) => {
    const { gantt } = window.__berth;
    const r = gantt.rect(k);
    const { plot } = gantt.view();
    return r.x >= plot.left - 1 && r.x + r.width <= plot.left + plot.width + 1 && r.y >= plot.top - 1 && r.y + r.height <= plot.top + plot.height + 1;
  }, data.job.indexOf(used));
  ok(visible, 'the search brings the job into view');
  const drawn = await page.evaluate((k) => {
    const { gantt } = window.__berth;
    const r = gantt.rect(k);
    const big = r.width >= 4 && r.height >= 4;
    return { big, seen: gantt.pixel({ x: r.x + r.width / 2, y: r.y + r.height / 2 }), want: gantt.color(k) };
  }, data.job.indexOf(used));
  if (drawn.big) equal(drawn.seen, drawn.want, 'the found job has its colour');
  await page.fill('#gantt-search', 'no-such-job');
  await page.press('#gantt-search', 'Enter');
  ok((await page.locator('.search-message').innerText()).includes('no-such-job'), 'an unknown job is reported');
  await page.fill('#gantt-search', '');
  await page.click('#gantt-unpin');
  await page.click('#gantt-reset');
  await settle(page);
}

/** Two fingers moving apart, through the browser's own touch events. */
export async function checkPinch(page) {
  const box = await canvasBox(page);
  const before = await view(page);
  const client = await page.context().newCDPSession(page);
  const y = box.y + 60;
  const mid = box.x + before.plot.left + before.plot.width / 2;
  const touch = (type, d) => client.send('Input.dispatchTouchEvent', {
    type, touchPoints: type === 'touchEnd' ? [] : [{ x: mid - d, y, id: 1 }, { x: mid + d, y: y + 10, id: 2 }],
  });
  await touch('touchStart', 30);
  for (const d of [40, 55, 70, 85, 100]) await touch('touchMove', d);
  await touch('touchEnd', 0);
  await settle(page);
  const after = await view(page);
  ok(after.t1 - after.t0 < (before.t1 - before.t0) * 0.6, 'a pinch zooms time', `${(after.t1 - after.t0) / (before.t1 - before.t0)}`);
}

export async function measure(page, name, limit) {
  const times = await page.evaluate(() => window.__berth.gantt.measure(21));
  const visited = await page.evaluate(() => window.__berth.gantt.visited());
  const ms = median(times);
  ok(ms < limit, `${name}: redraw ${ms.toFixed(1)} ms (median of ${times.length}, worst ${Math.max(...times).toFixed(1)} ms, ${visited} interval visits), limit ${limit} ms`);
  return ms;
}
