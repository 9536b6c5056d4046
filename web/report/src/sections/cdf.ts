// Cumulative distributions of all runs on one logarithmic axis.
import { h, hint, section } from '../dom';
import { cdfOf, lastAtMost } from '../data';
import { duration, percent, significant } from '../format';
import { seriesStroke } from '../theme';
import { LineChart } from '../ui/chart';
import { tabs } from '../ui/tabs';
import type { State } from '../state';
import type { CdfKind } from '../data';
import type { Cdf } from '../types';

const KINDS: { id: CdfKind; label: string; of: string }[] = [
  { id: 'jct', label: 'Completion time', of: 'job completion time' },
  { id: 'queue', label: 'Queueing time', of: 'queueing time' },
  { id: 'slowdown', label: 'Slowdown', of: 'slowdown' },
  { id: 'ftf', label: 'Finish-time fairness', of: 'finish-time fairness ρ' },
];
const GRID_POINTS = 1500;

/** Common ascending positions for all curves; exact unless there are very many. */
function commonX(curves: Cdf[], floor: number): number[] {
  const all = new Set<number>();
  for (const c of curves) for (const x of c.x) all.add(Math.max(x, floor));
  const sorted = [...all].sort((a, b) => a - b);
  const first = sorted[0] ?? floor;
  const last = sorted[sorted.length - 1] ?? floor;
  if (last <= first) return [first, first * 1.5];
  if (sorted.length <= 2 * GRID_POINTS) return sorted;
  const step = Math.log(last / first) / (GRID_POINTS - 1);
  return Array.from({ length: GRID_POINTS }, (_, i) => (i === GRID_POINTS - 1 ? last : first * Math.exp(i * step)));
}

/** Draws one kind of distribution of every run into the host; null without data. */
export function cdfChart(state: State, host: HTMLElement, kind: CdfKind, name: string, hidden: Set<string>, height: number): LineChart | null {
  const curves = state.runs.map((run) => cdfOf(run, kind));
  const usable = curves.filter((c): c is Cdf => c !== null);
  if (usable.length === 0) return null;
  const isTime = kind === 'jct' || kind === 'queue';
  const positive = Math.min(...usable.map((c) => c.x.find((x) => x > 0) ?? Infinity));
  const floor = isTime ? 1 : Math.min(0.1, Number.isFinite(positive) ? positive : 0.1);
  const x = commonX(usable, floor);
  const series = state.runs.flatMap((run, i) => {
    const c = curves[i];
    if (!c) return [];
    const selected = state.several && i === state.index;
    const values = x.map((v) => (c.p[lastAtMost(c.x, v)] ?? 0));
    return [{ label: run.label, ...seriesStroke(i), width: selected ? 3 : 1.75, values, hidden: hidden.has(run.label) }];
  });
  const what = KINDS.find((k) => k.id === kind)?.of ?? kind;
  return new LineChart(host, {
    name, x, series, height,
    describe: `Cumulative distribution of ${what} over jobs, ${series.length === 1 ? 'one run' : `${series.length} runs`}`,
    xKind: isTime ? 'log-duration' : 'log-number',
    xFormat: isTime ? duration : significant,
    yFormat: (v) => percent(v).replace('.0', ''),
    yMax: 1.02,
    marks: kind === 'ftf' ? [1] : [],
    onToggle: (label, visible) => (visible ? hidden.delete(label) : hidden.add(label)),
  });
}

export function cdfSection(state: State): HTMLElement | null {
  const available = KINDS.filter((k) => state.runs.some((run) => cdfOf(run, k.id)));
  const first = available[0];
  if (!first) return null;
  const hidden = new Set<string>();
  const host = h('div', { class: 'chart-host', id: 'cdf-chart' });
  let kind = first.id;
  let chart: LineChart | null = null;
  const draw = (): void => {
    chart?.destroy();
    chart = cdfChart(state, host, kind, 'cdf', hidden, 320);
  };
  const choice = tabs('Distribution', available, kind, (id) => {
    kind = id as CdfKind;
    draw();
  });
  const element = section('distributions', 'Distributions',
    hint('Share of jobs at or below a value. Drag to zoom, double-click to reset.', 'Share of jobs at or below a value. Tap to read values.'), choice.element, host);
  requestAnimationFrame(draw);
  state.onRun(draw);
  state.onTheme(draw);
  return element;
}
