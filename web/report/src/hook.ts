// A small read-only window into the page for automatic checks.
import { charts } from './ui/chart';
import type { GanttHandle } from './sections/gantt';

interface Pixel { x: number; y: number }

export function installHook(gantt: GanttHandle | null): void {
  const chart = (): NonNullable<ReturnType<GanttHandle['chart']>> => {
    const c = gantt?.chart();
    if (!c) throw new Error('no Gantt chart on this page');
    return c;
  };
  const inverse = new WeakMap<object, Uint32Array>();
  const position = (i: number): number => {
    const m = chart().model;
    let map = inverse.get(m);
    if (!map) {
      map = new Uint32Array(Math.max(0, ...[m.source.reduce((a, b) => Math.max(a, b), 0)]) + 1);
      for (let k = 0; k < m.size; k++) map[m.source[k]!] = k;
      inverse.set(m, map);
    }
    return map[i]!;
  };
  const hook = {
    version: 1,
    ready: () => gantt === null || gantt.chart() !== null,
    chartNames: () => [...charts.keys()],
    gantt: {
      exists: () => Boolean(gantt?.chart()),
      size: () => chart().model.size,
      lanes: () => chart().model.lanes.length,
      /** Page position of the interval with this number in the data columns, in CSS pixels within the canvas. */
      rect: (i: number) => chart().rectOf(position(i)),
      color: (i: number) => chart().colorOf(position(i)),
      view: () => {
        const { t0, t1, top, laneHeight, zoomed, plot } = chart().view;
        return { t0, t1, top, laneHeight, zoomed, plot: { ...plot } };
      },
      pinned: () => (chart().pinned < 0 ? null : chart().model.jobs[chart().pinned]?.id),
      visited: () => chart().visited,
      lastMs: () => chart().lastMs,
      measure: (times: number) => Array.from({ length: times }, () => chart().draw(true)),
      pixel: ({ x, y }: Pixel) => {
        const { canvas } = chart();
        const s = canvas.width / canvas.clientWidth;
        return [...(canvas.getContext('2d')?.getImageData(Math.floor(x * s), Math.floor(y * s), 1, 1).data ?? [])].slice(0, 3);
      },
    },
    plot: {
      /** Pixels of the chart's canvas that have about the given series' colour. */
      inked: (name: string, series: number) => countInk(name, series),
      range: (name: string) => {
        const x = charts.get(name)?.plot.scales.x;
        return [x?.min, x?.max];
      },
      series: (name: string) => charts.get(name)?.options.series.map((s, i) => ({ label: s.label, shown: charts.get(name)?.plot.series[i + 1]?.show })),
    },
  };
  (window as unknown as { __berth: typeof hook }).__berth = hook;
}

function countInk(name: string, series: number): number {
  const chart = charts.get(name);
  const color = chart?.options.series[series]?.color;
  const canvas = chart?.plot.ctx.canvas;
  if (!chart || !color || !canvas) return -1;
  const n = parseInt(color.slice(1), 16);
  const { data } = chart.plot.ctx.getImageData(0, 0, canvas.width, canvas.height);
  let hits = 0;
  for (let i = 0; i < data.length; i += 4) {
    if (data[i + 3]! < 200) continue;
    const d = Math.abs(data[i]! - ((n >> 16) & 255)) + Math.abs(data[i + 1]! - ((n >> 8) & 255)) + Math.abs(data[i + 2]! - (n & 255));
    if (d < 12) hits++;
  }
  return hits;
}
