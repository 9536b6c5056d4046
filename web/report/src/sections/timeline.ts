// Queue length and busy GPUs over time, with one cursor for both charts.
import { h, hint, section } from '../dom';
import { finite, lastAtMost, timelineOf } from '../data';
import { clock, count } from '../format';
import { cssVar, seriesStroke } from '../theme';
import { LineChart, type Series } from '../ui/chart';
import { tabs } from '../ui/tabs';
import type { State } from '../state';
import type { Run, Timeline } from '../types';

type Field = 'queue' | 'queued_gpus' | 'busy' | 'running' | 'capacity';
type Values = (number | null)[];
const GRID_POINTS = 3000;

const column = (t: Timeline | null, field: Field): Values | null => {
  const values = t?.[field];
  return Array.isArray(values) && values.some(finite) ? values : null;
};

function oneRun(state: State, t: Timeline): { x: number[]; queue: Series[]; gpus: Series[] } {
  const make = (label: string, field: Field, color: string, more: Partial<Series> = {}): Series[] => {
    const values = column(t, field);
    return values ? [{ label, color, values, ...more }] : [];
  };
  const [blue, orange, green, , , sky] = [0, 1, 2, 3, 4, 5].map((i) => seriesStroke(i).color) as string[];
  const total = state.report.cluster?.gpus;
  const capacity = column(t, 'capacity') ?? (finite(total) ? t.t.map(() => total) : null);
  const busy = column(t, 'busy');
  const gpus = make('GPUs busy', 'busy', blue as string, { fill: `${blue}38` });
  if (busy && capacity) {
    const free = busy.map((b, i) => (finite(b) && finite(capacity[i]) ? (capacity[i] as number) - b : null));
    gpus.push({ label: 'GPUs free', color: green as string, values: free, hidden: true });
    gpus.push({ label: 'Capacity', color: cssVar('--ink-3'), dash: [5, 4], values: capacity });
  }
  gpus.push(...make('Jobs running', 'running', sky as string, { hidden: true }));
  return {
    x: t.t,
    queue: [
      ...make('Jobs waiting', 'queue', orange as string, { fill: `${orange}30` }),
      ...make('GPUs they ask for', 'queued_gpus', seriesStroke(3).color, { hidden: true }),
    ],
    gpus,
  };
}

function allRuns(state: State): { x: number[]; queue: Series[]; gpus: Series[] } {
  const lines = state.runs.map(timelineOf);
  const ends = lines.map((t) => (t ? (t.t[t.t.length - 1] as number) : 0));
  const starts = lines.flatMap((t) => (t ? [t.t[0] as number] : []));
  const from = Math.min(...starts);
  const to = Math.max(...ends);
  const x = Array.from({ length: GRID_POINTS }, (_, i) => from + ((to - from) * i) / (GRID_POINTS - 1));
  const sample = (field: Field): Series[] => state.runs.flatMap((run: Run, i) => {
    const t = lines[i] ?? null;
    const values = column(t, field);
    if (!t || !values) return [];
    return [{
      label: run.label, ...seriesStroke(i), width: i === state.index ? 2.5 : 1.25,
      values: x.map((v) => (v > (ends[i] as number) ? null : (values[lastAtMost(t.t, v)] ?? null))),
    }];
  });
  return { x, queue: sample('queue'), gpus: sample('busy') };
}

export function timelineSection(state: State): HTMLElement | null {
  if (!state.runs.some(timelineOf)) return null;
  const boxes = { queue: block('queue', 'Queue'), gpus: block('gpus', 'GPUs') };
  let drawn: LineChart[] = [];
  let mode = 'one';
  const choice = state.several
    ? tabs('Runs shown', [{ id: 'one', label: 'Selected run' }, { id: 'all', label: 'All runs' }], mode, (id) => {
      mode = id;
      draw();
    })
    : null;
  const empty = h('p', { class: 'empty' }, 'No timeline was recorded for this run.');
  const element = section('timeline', 'Queue and GPUs over time', hint('Drag to zoom both charts, double-click to reset.', 'Tap a chart to read its values.'),
    choice?.element, boxes.queue.element, boxes.gpus.element, empty);

  function draw(): void {
    for (const chart of drawn) chart.destroy();
    drawn = [];
    const t = timelineOf(state.run);
    const data = mode === 'all' ? allRuns(state) : t ? oneRun(state, t) : null;
    empty.hidden = data !== null;
    for (const key of ['queue', 'gpus'] as const) {
      const series = data?.[key] ?? [];
      boxes[key].element.hidden = series.length === 0;
      if (!data || series.length === 0) continue;
      const chart: LineChart = new LineChart(boxes[key].host, {
        name: key, x: data.x, series, height: 210, xKind: 'time', sync: 'berth-time',
        describe: key === 'queue' ? 'Number of waiting jobs over time' : 'Number of busy GPUs over time',
        xFormat: (v) => clock(v), yFormat: count,
        onZoom: (min, max) => { for (const other of drawn) if (other !== chart) other.zoom(min, max); },
      });
      drawn.push(chart);
    }
  }
  requestAnimationFrame(draw);
  state.onRun(draw);
  state.onTheme(draw);
  return element;
}

function block(id: string, title: string): { element: HTMLElement; host: HTMLElement } {
  const host = h('div', { class: 'chart-host', id: `${id}-chart` });
  return { host, element: h('div', { class: 'sub-block' }, h('h3', null, title), host) };
}
