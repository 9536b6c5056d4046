// Line charts: uPlot with the page's fonts, colours and legend.
import uPlot from 'uplot';
import { cssVar } from '../theme';
import { h } from '../dom';
import { linearTicks, logLabel, logTicks, timeLabel, timeStep } from '../ticks';

export interface Series {
  label: string;
  color: string;
  dash?: number[];
  width?: number;
  fill?: string;
  values: (number | null)[];
  hidden?: boolean;
}

export interface ChartOptions {
  name: string;
  describe: string;
  x: number[];
  series: Series[];
  height: number;
  xKind: 'time' | 'log-duration' | 'log-number';
  yFormat: (v: number) => string;
  xFormat: (v: number) => string;
  yMax?: number;
  marks?: number[];
  sync?: string;
  onToggle?: (label: string, visible: boolean) => void;
  onZoom?: (min: number, max: number, whole: boolean) => void;
}

/** Live charts by name, for the checks that look at what was drawn. */
export const charts = new Map<string, LineChart>();

export class LineChart {
  readonly plot: uPlot;
  private readonly observer: ResizeObserver;
  private readonly values: HTMLElement[] = [];
  private readonly at: HTMLElement;
  private readonly reset: HTMLButtonElement;
  private quiet = false;

  constructor(host: HTMLElement, readonly options: ChartOptions) {
    const o = options;
    const area = h('div', { class: 'chart', role: 'img', 'aria-label': o.describe });
    this.at = h('span', { class: 'legend-at', 'aria-hidden': 'true' });
    this.reset = h('button', { type: 'button', class: 'small-button', hidden: true, on: { click: () => this.resetZoom() } }, 'Reset zoom');
    const chips = o.series.map((s, i) => this.chip(s, i + 1));
    host.replaceChildren(area, h('div', { class: 'legend' }, chips, this.at, this.reset));
    const x0 = o.x[0] ?? 0;
    const x1 = o.x[o.x.length - 1] ?? 1;
    this.plot = new uPlot(this.settings(area, x0, x1 > x0 ? x1 : x0 + 1), [o.x, ...o.series.map((s) => s.values)] as uPlot.AlignedData, area);
    this.observer = new ResizeObserver(() => {
      const width = area.clientWidth;
      if (width > 0 && width !== this.plot.width) this.plot.setSize({ width, height: o.height });
    });
    this.observer.observe(area);
    charts.set(o.name, this);
  }

  destroy(): void {
    this.observer.disconnect();
    this.plot.destroy();
    if (charts.get(this.options.name) === this) charts.delete(this.options.name);
  }

  zoom(min: number, max: number): void {
    this.quiet = true;
    this.plot.batch(() => this.plot.setScale('x', { min, max }));
    this.quiet = false;
    this.showReset(min, max);
  }

  resetZoom(): void {
    const x = this.options.x;
    this.plot.setScale('x', { min: x[0] as number, max: x[x.length - 1] as number });
  }

  private chip(s: Series, index: number): HTMLElement {
    const value = h('span', { class: 'legend-value' });
    this.values[index] = value;
    const line = s.dash?.length ? `repeating-linear-gradient(90deg, ${s.color} 0 5px, transparent 5px 8px)` : s.color;
    const button = h('button', {
      type: 'button', class: 'chip', 'aria-pressed': String(!s.hidden), 'data-series': s.label, title: 'Show or hide this line',
      on: {
        click: () => {
          const visible = button.getAttribute('aria-pressed') !== 'true';
          button.setAttribute('aria-pressed', String(visible));
          this.plot.setSeries(index, { show: visible });
          this.options.onToggle?.(s.label, visible);
        },
      },
    }, h('span', { class: 'chip-line', 'aria-hidden': 'true', style: { background: line } }), h('span', { class: 'chip-label' }, s.label), value);
    return button;
  }

  private showReset(min: number, max: number): boolean {
    const x = this.options.x;
    const first = x[0] as number;
    const last = x[x.length - 1] as number;
    const slack = (last - first) * 1e-6;
    const whole = min <= first + slack && max >= last - slack;
    this.reset.hidden = whole;
    return whole;
  }

  private readout(u: uPlot): void {
    const at = u.cursor.idx;
    const x = this.options.x;
    const inside = at !== null && at !== undefined && (u.cursor.left ?? -1) >= 0;
    this.at.textContent = inside ? `at ${this.options.xFormat(x[at] as number)}` : '';
    this.options.series.forEach((s, i) => {
      const v = inside ? s.values[at] : null;
      const cell = this.values[i + 1];
      if (cell) cell.textContent = v === null || v === undefined ? '' : this.options.yFormat(v);
    });
  }

  private settings(area: HTMLElement, x0: number, x1: number): uPlot.Options {
    const o = this.options;
    const log = o.xKind !== 'time';
    const kind = o.xKind === 'log-number' ? 'number' : 'duration';
    const ink = cssVar('--ink-3');
    const grid = { stroke: cssVar('--grid'), width: 1 };
    const font = `11px ${cssVar('--font')}`;
    const most = (u: uPlot): number => Math.max(2, Math.floor(u.bbox.width / devicePixelRatio / (log ? 50 : 72)));
    const step = (u: uPlot, min: number, max: number): number => timeStep(max - min, most(u));
    return {
      width: Math.max(200, area.clientWidth),
      height: o.height,
      padding: [8, 16, 0, 0],
      legend: { show: false },
      cursor: {
        y: false,
        drag: { x: true, y: false, dist: 4 },
        points: { size: 6 },
        ...(o.sync ? { sync: { key: o.sync, scales: ['x', null] } } : {}),
      },
      scales: {
        x: { time: false, distr: log ? 3 : 1, range: (_u, min, max) => (min === null || max === null ? [x0, x1] : min < max ? [min, max] : [x0, x1]) },
        y: { range: (_u, _min, max) => [0, o.yMax ?? (max > 0 ? max * 1.06 : 1)] },
      },
      axes: [
        {
          stroke: ink, grid, font, ticks: { ...grid, size: 4 }, size: 30, gap: 4,
          splits: (u, _i, min, max) => (log ? logTicks(min, max, most(u), kind) : linearTicks(min, max, step(u, min, max))),
          filter: (_u, splits) => splits,
          values: (u, splits) => {
            const s = step(u, u.scales.x?.min ?? 0, u.scales.x?.max ?? 1);
            return splits.map((v) => (log ? logLabel(v, kind) : timeLabel(v, s)));
          },
        },
        { stroke: ink, grid, font, ticks: { ...grid, size: 4 }, size: 48, gap: 4, values: (_u, splits) => splits.map(o.yFormat) },
      ],
      series: [{}, ...o.series.map((s): uPlot.Series => ({
        label: s.label, stroke: s.color, width: s.width ?? 1.5, dash: s.dash ?? [], fill: s.fill, show: !s.hidden,
        points: { show: false }, paths: uPlot.paths.stepped?.({ align: 1 }),
      }))],
      hooks: {
        setCursor: [(u) => this.readout(u)],
        setScale: [(u, key) => {
          const { min, max } = u.scales[key] ?? {};
          if (key !== 'x' || this.quiet || min === undefined || max === undefined || min === null || max === null) return;
          const whole = this.showReset(min, max);
          o.onZoom?.(min, max, whole);
        }],
        draw: [(u) => this.drawMarks(u)],
      },
    };
  }

  private drawMarks(u: uPlot): void {
    const { ctx, bbox } = u;
    ctx.save();
    ctx.strokeStyle = cssVar('--ink-3');
    ctx.setLineDash([4 * devicePixelRatio, 3 * devicePixelRatio]);
    for (const mark of this.options.marks ?? []) {
      const x = Math.round(u.valToPos(mark, 'x', true)) + 0.5;
      if (x < bbox.left || x > bbox.left + bbox.width) continue;
      ctx.beginPath();
      ctx.moveTo(x, bbox.top);
      ctx.lineTo(x, bbox.top + bbox.height);
      ctx.stroke();
    }
    ctx.restore();
  }
}
