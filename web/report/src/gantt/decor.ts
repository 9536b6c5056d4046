// What is drawn with strokes and text around and above the intervals.
import { linearTicks, timeLabel, timeStep } from '../ticks';
import { cssVar } from '../theme';
import { css, textOn, type Colors } from './colors';
import { endStartingBefore, firstEndingAfter, type Model } from './model';
import type { View } from './view';

type Context = CanvasRenderingContext2D;
const LABEL_ROOM = 13;

export function drawAxis(ctx: Context, view: View): void {
  const { left, top, width, height } = view.plot;
  const step = timeStep(view.t1 - view.t0, Math.max(2, Math.floor(width / 90)));
  ctx.font = `11px ${cssVar('--font')}`;
  ctx.textAlign = 'center';
  ctx.textBaseline = 'top';
  ctx.fillStyle = cssVar('--ink-3');
  ctx.strokeStyle = cssVar('--line');
  ctx.lineWidth = 1;
  ctx.beginPath();
  for (const t of linearTicks(view.t0, view.t1, step)) {
    const x = Math.round(view.x(t)) + 0.5;
    ctx.moveTo(x, top + height);
    ctx.lineTo(x, top + height + 4);
    const label = timeLabel(t, step);
    const half = ctx.measureText(label).width / 2;
    ctx.fillText(label, Math.min(Math.max(x, left + half), left + width - half), top + height + 7);
  }
  ctx.stroke();
}

interface Band {
  name: string;
  first: number;
  count: number;
}

function racks(m: Model): Band[] {
  const out: Band[] = [];
  for (const n of m.nodes) {
    const last = out[out.length - 1];
    if (last && last.name === n.rack) last.count += n.count;
    else out.push({ name: n.rack, first: n.first, count: n.count });
  }
  return out;
}

/** Lines between racks and nodes, and the names in the left margin. */
export function drawLanes(ctx: Context, view: View, m: Model): void {
  const { left, top, width, height } = view.plot;
  const visible = (b: Band): boolean => view.y(b.first + b.count) > top && view.y(b.first) < top + height;
  const rule = (bands: Band[], color: string, least: number): void => {
    ctx.strokeStyle = color;
    ctx.beginPath();
    for (const b of bands) {
      if (b.first === 0 || b.count * view.laneHeight < least || !visible(b)) continue;
      const y = Math.round(view.y(b.first)) - 0.5;
      if (y < top) continue;
      ctx.moveTo(left, y);
      ctx.lineTo(left + width, y);
    }
    ctx.stroke();
  };
  const groups = racks(m);
  const hasRacks = groups.length > 1 && groups.every((g) => g.name !== '');
  ctx.lineWidth = 1;
  rule(m.nodes, cssVar('--node-line'), 9);
  if (hasRacks) rule(groups, cssVar('--rack-line'), 24);

  ctx.font = `11px ${cssVar('--font')}`;
  ctx.textAlign = 'right';
  ctx.textBaseline = 'middle';
  ctx.fillStyle = cssVar('--ink-3');
  const name = (text: string, first: number, count: number, most: number): void => {
    const y0 = Math.max(top, view.y(first));
    const y1 = Math.min(top + height, view.y(first + count));
    if (y1 - y0 < Math.min(LABEL_ROOM, most) - 1) return;
    ctx.fillText(clip(ctx, text, left - 12), left - 8, (y0 + y1) / 2);
  };
  if (view.laneHeight >= LABEL_ROOM) {
    m.lanes.forEach((lane, i) => {
      if (view.y(i + 1) <= top || view.y(i) >= top + height) return;
      name(`${m.nodes[lane.node]?.name}:${lane.device}`, i, 1, view.laneHeight);
    });
    return;
  }
  const roomy = (b: Band): boolean => b.count * view.laneHeight >= LABEL_ROOM;
  const bands: Band[] = m.nodes.some(roomy) ? m.nodes : hasRacks && groups.some(roomy) ? groups : steps(m, view);
  for (const b of bands) if (visible(b)) name(b.name, b.first, b.count, b.count * view.laneHeight);
}

/** Without room for names: the number of the GPU at regular distances. */
function steps(m: Model, view: View): Band[] {
  const lanes = m.lanes.length;
  const every = [10, 20, 50, 100, 200, 500, 1000, 2000, 5000].find((s) => s * view.laneHeight >= 44) ?? 10000;
  const out: Band[] = [];
  const half = LABEL_ROOM / view.laneHeight / 2;
  for (let i = 0; i < lanes; i += every) out.push({ name: `GPU ${i}`, first: i === 0 ? 0 : i - half, count: half * 2 });
  return out;
}

function clip(ctx: Context, text: string, room: number): string {
  if (ctx.measureText(text).width <= room) return text;
  let n = text.length - 1;
  while (n > 1 && ctx.measureText(`${text.slice(0, n)}…`).width > room) n--;
  return `${text.slice(0, n)}…`;
}

/** Job names inside the bars; once per block of neighbouring lanes. */
export function drawNames(ctx: Context, view: View, m: Model, colors: Colors, dim: boolean): void {
  if (view.laneHeight < 12 || dim) return;
  const { left, top, width, height } = view.plot;
  ctx.save();
  ctx.beginPath();
  ctx.rect(left, top, width, height);
  ctx.clip();
  ctx.font = `10px ${cssVar('--font')}`;
  ctx.textAlign = 'left';
  ctx.textBaseline = 'middle';
  const above = new Map<number, number>();
  const last = Math.min(m.lanes.length, Math.ceil(view.lane(top + height)));
  let drawn = 0;
  for (let lane = Math.max(0, Math.floor(view.top)); lane < last; lane++) {
    const end = endStartingBefore(m, lane, view.t1);
    const y = view.y(lane) + view.laneHeight / 2;
    if (y < top + 6 || y > top + height - 6) continue;
    for (let k = firstEndingAfter(m, lane, view.t0); k < end && drawn < 1500; k++) {
      const x0 = Math.max(left, view.x(m.start[k]!));
      const x1 = Math.min(left + width, view.x(m.end[k]!));
      const job = m.job[k]!;
      const text = m.jobs[job]?.id ?? '';
      if (x1 - x0 < text.length * 6 + 14 || m.kind[k] === 1) continue;
      const repeated = above.get(job) === lane - 1;
      above.set(job, lane);
      if (repeated) continue;
      ctx.fillStyle = textOn(colors.palette[colors.ofJob[job]!]!);
      ctx.fillText(text, x0 + 6, y);
      drawn++;
    }
  }
  ctx.restore();
}

/** All intervals of one job, at least two pixels each way. */
export function drawPinned(ctx: Context, view: View, m: Model, colors: Colors, job: number): void {
  const { left, top, width, height } = view.plot;
  ctx.save();
  ctx.beginPath();
  ctx.rect(left, top, width, height);
  ctx.clip();
  ctx.strokeStyle = cssVar('--ink');
  ctx.lineWidth = 1;
  for (let i = m.jobRows[job]!; i < m.jobRows[job + 1]!; i++) {
    const k = m.ofJob[i]!;
    const r = intervalRect(view, m, k);
    if (r.x + r.width < left || r.x > left + width || r.y + r.height < top || r.y > top + height) continue;
    const w = Math.max(2, r.width);
    const h = Math.max(2, r.height);
    ctx.fillStyle = css(colors.palette[m.kind[k] === 1 ? colors.overhead : colors.ofJob[job]!]!);
    ctx.fillRect(r.x, r.y, w, h);
    if (w > 6 && h > 5) ctx.strokeRect(r.x + 0.5, r.y + 0.5, w - 1, h - 1);
  }
  ctx.restore();
}

export function intervalRect(view: View, m: Model, k: number): { x: number; y: number; width: number; height: number } {
  const x = view.x(m.start[k]!);
  const y = view.y(m.laneOf[k]!);
  const gap = view.laneHeight >= 5 ? 1 : 0;
  return { x, y, width: view.x(m.end[k]!) - x, height: view.laneHeight - gap };
}
