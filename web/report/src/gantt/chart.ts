// The canvas: draws the current view, answers what is where, pins jobs.
import { h } from '../dom';
import { cssVar } from '../theme';
import { css, makeColors, type ColorBy, type Colors } from './colors';
import { drawAxis, drawLanes, drawNames, drawPinned, intervalRect } from './decor';
import { attachInput } from './input';
import { intervalAt, type Model } from './model';
import { Raster } from './raster';
import { View } from './view';

const AXIS = 26;
const TALLEST = 480;

export interface GanttEvents {
  hover(interval: number, x: number, y: number): void;
  pin(job: number): void;
  view(zoomed: boolean): void;
}

export class GanttChart {
  readonly element: HTMLElement;
  readonly canvas = h('canvas', {
    class: 'gantt-canvas', tabindex: '0', role: 'img',
    'aria-label': 'Gantt chart of GPUs over time. Arrow keys move, plus and minus zoom, zero resets, Escape releases the pinned job.',
  });
  readonly view: View;
  pinned = -1;
  lastMs = 0;
  private readonly raster = new Raster();
  private readonly scratch = document.createElement('canvas');
  private readonly observer: ResizeObserver;
  private colors: Colors;
  private by: ColorBy = 'job';
  private frame = 0;

  constructor(readonly model: Model, private readonly events: GanttEvents) {
    this.view = new View(model.from, model.to, model.lanes.length);
    this.colors = makeColors(model, this.by);
    this.element = h('div', { class: 'gantt-box' }, this.canvas);
    attachInput(this.canvas, {
      view: () => this.view,
      changed: () => this.changed(),
      hover: (x, y) => this.hoverAt(x, y),
      leave: () => this.events.hover(-1, 0, 0),
      click: (x, y) => {
        const k = this.at(x, y);
        this.pin(k < 0 || this.model.job[k] === this.pinned ? -1 : this.model.job[k]!);
      },
      unpin: () => this.pin(-1),
    });
    this.observer = new ResizeObserver(() => this.resize());
    this.observer.observe(this.element);
  }

  destroy(): void {
    this.observer.disconnect();
    cancelAnimationFrame(this.frame);
  }

  colorBy(by: ColorBy): void {
    this.by = by;
    this.refreshColors();
  }

  refreshColors(): void {
    this.colors = makeColors(this.model, this.by);
    this.request();
  }

  pin(job: number): void {
    this.pinned = job;
    this.events.pin(job);
    this.request();
  }

  /** Moves the view so that all intervals of the job can be seen. */
  reveal(job: number): void {
    const m = this.model;
    let [t0, t1, l0, l1] = [Infinity, -Infinity, Infinity, -Infinity];
    for (let i = m.jobRows[job]!; i < m.jobRows[job + 1]!; i++) {
      const k = m.ofJob[i]!;
      t0 = Math.min(t0, m.start[k]!);
      t1 = Math.max(t1, m.end[k]!);
      l0 = Math.min(l0, m.laneOf[k]!);
      l1 = Math.max(l1, m.laneOf[k]!);
    }
    if (t1 < t0) return;
    this.view.show(t0, t1, l0, l1);
    this.changed();
  }

  zoomBy(time: number, lanes: number): void {
    const { left, top, width, height } = this.view.plot;
    this.view.zoom(time, lanes, left + width / 2, top + height / 2);
    this.changed();
  }

  resetView(): void {
    this.view.reset();
    this.changed();
  }

  changed(): void {
    this.events.view(this.view.zoomed);
    this.request();
  }

  colorOf(k: number): [number, number, number] {
    return this.colors.palette[this.model.kind[k] === 1 ? this.colors.overhead : this.colors.ofJob[this.model.job[k]!]!]!;
  }

  rectOf(k: number): ReturnType<typeof intervalRect> {
    return intervalRect(this.view, this.model, k);
  }

  get visited(): number {
    return this.raster.visited;
  }

  at(x: number, y: number): number {
    const { left, top, width, height } = this.view.plot;
    if (x < left || x > left + width || y < top || y > top + height) return -1;
    const slack = (3 / width) * (this.view.t1 - this.view.t0);
    return intervalAt(this.model, Math.floor(this.view.lane(y)), this.view.time(x), slack);
  }

  resize(): void {
    const width = this.element.clientWidth;
    if (width <= 0) return;
    const narrow = width < 520;
    const lanes = this.model.lanes.length;
    const plotHeight = Math.round(Math.min(narrow ? 360 : TALLEST, Math.max(60, lanes * 20)));
    const left = narrow ? 46 : 68;
    const scale = this.scale;
    this.canvas.style.height = `${plotHeight + AXIS}px`;
    this.canvas.width = Math.round(width * scale);
    this.canvas.height = Math.round((plotHeight + AXIS) * scale);
    this.view.setPlot({ left, top: 0, width: Math.max(50, width - left - 1), height: plotHeight });
    this.draw();
  }

  request(): void {
    if (this.frame) return;
    this.frame = requestAnimationFrame(() => {
      this.frame = 0;
      this.draw();
    });
  }

  /** Draws now; with `flush` the time includes the pixels reaching the canvas. */
  draw(flush = false): number {
    const ctx = this.canvas.getContext('2d');
    if (!ctx || this.canvas.width === 0) return 0;
    const began = performance.now();
    const scale = this.scale;
    const dim = this.pinned >= 0;
    ctx.setTransform(1, 0, 0, 1, 0, 0);
    ctx.clearRect(0, 0, this.canvas.width, this.canvas.height);
    this.drawIntervals(ctx, dim);
    ctx.setTransform(scale, 0, 0, scale, 0, 0);
    drawLanes(ctx, this.view, this.model);
    drawNames(ctx, this.view, this.model, this.colors, dim);
    if (dim) drawPinned(ctx, this.view, this.model, this.colors, this.pinned);
    drawAxis(ctx, this.view);
    this.drawPosition(ctx);
    if (flush) ctx.getImageData(0, 0, 1, 1);
    this.lastMs = performance.now() - began;
    return this.lastMs;
  }

  overheadColor(): string {
    return css(this.colors.palette[this.colors.overhead]!);
  }

  private get scale(): number {
    return Math.min(2, window.devicePixelRatio || 1);
  }

  /** Where pixels hold the mean of several lanes, screen pixels finer than CSS pixels add nothing but work. */
  private drawIntervals(ctx: CanvasRenderingContext2D, dim: boolean): void {
    const { left, top, width, height } = this.view.plot;
    const scale = this.scale;
    const coarse = scale > 1 && this.view.laneHeight < 1.5;
    const image = this.raster.fill(this.model, this.view, this.colors, dim, coarse ? 1 : scale);
    if (!coarse) {
      ctx.putImageData(image, Math.round(left * scale), Math.round(top * scale));
      return;
    }
    if (this.scratch.width !== image.width) this.scratch.width = image.width;
    if (this.scratch.height !== image.height) this.scratch.height = image.height;
    this.scratch.getContext('2d')?.putImageData(image, 0, 0);
    ctx.imageSmoothingEnabled = false;
    ctx.drawImage(this.scratch, Math.round(left * scale), Math.round(top * scale), Math.round(width * scale), Math.round(height * scale));
  }

  private hoverAt(x: number, y: number): void {
    this.events.hover(this.at(x, y), x, y);
  }

  /** Thin marks that tell which part of the whole is visible. */
  private drawPosition(ctx: CanvasRenderingContext2D): void {
    const v = this.view;
    if (!v.zoomed) return;
    const { left, top, width, height } = v.plot;
    ctx.fillStyle = cssVar('--ink-3');
    const whole = v.to - v.from;
    ctx.fillRect(left + ((v.t0 - v.from) / whole) * width, top + height, Math.max(8, ((v.t1 - v.t0) / whole) * width), 2);
    const rows = height / v.laneHeight;
    if (rows < v.lanes) ctx.fillRect(left - 3, top + (v.top / v.lanes) * height, 2, Math.max(8, (rows / v.lanes) * height));
  }
}
