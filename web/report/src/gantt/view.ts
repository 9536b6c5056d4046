// The part of the chart on screen: a time range and a range of lanes.
export const MAX_LANE = 28;

export interface Plot {
  left: number;
  top: number;
  width: number;
  height: number;
}

export class View {
  t0: number;
  t1: number;
  /** Zero until the first layout, which then fits all lanes. */
  laneHeight = 0;
  /** First visible lane, with fraction. */
  top = 0;
  plot: Plot = { left: 0, top: 0, width: 1, height: 1 };

  constructor(readonly from: number, readonly to: number, readonly lanes: number) {
    this.t0 = from;
    this.t1 = to;
  }

  get fitLane(): number {
    return this.plot.height / Math.max(1, this.lanes);
  }

  get zoomed(): boolean {
    const slack = (this.to - this.from) * 1e-6;
    return this.t0 > this.from + slack || this.t1 < this.to - slack || this.laneHeight > this.fitLane * 1.001;
  }

  setPlot(plot: Plot): void {
    const wasFit = this.laneHeight <= this.fitLane * 1.001;
    this.plot = plot;
    if (wasFit) this.laneHeight = this.fitLane;
    this.clamp();
  }

  x(t: number): number {
    return this.plot.left + ((t - this.t0) / (this.t1 - this.t0)) * this.plot.width;
  }

  y(lane: number): number {
    return this.plot.top + (lane - this.top) * this.laneHeight;
  }

  time(x: number): number {
    return this.t0 + ((x - this.plot.left) / this.plot.width) * (this.t1 - this.t0);
  }

  lane(y: number): number {
    return this.top + (y - this.plot.top) / this.laneHeight;
  }

  reset(): void {
    this.t0 = this.from;
    this.t1 = this.to;
    this.top = 0;
    this.laneHeight = this.fitLane;
  }

  /** Factors above 1 show more detail; the point (x, y) stays where it is. */
  zoom(timeFactor: number, laneFactor: number, x: number, y: number): void {
    const t = this.time(x);
    const lane = this.lane(y);
    const least = Math.max((this.to - this.from) * 1e-7, 1e-6);
    const span = Math.min(this.to - this.from, Math.max(least, (this.t1 - this.t0) / timeFactor));
    this.t0 = t - ((x - this.plot.left) / this.plot.width) * span;
    this.t1 = this.t0 + span;
    this.laneHeight = Math.min(Math.max(MAX_LANE, this.fitLane), Math.max(this.fitLane, this.laneHeight * laneFactor));
    this.top = lane - (y - this.plot.top) / this.laneHeight;
    this.clamp();
  }

  pan(dx: number, dy: number): void {
    const dt = (dx / this.plot.width) * (this.t1 - this.t0);
    this.t0 -= dt;
    this.t1 -= dt;
    this.top -= dy / this.laneHeight;
    this.clamp();
  }

  /** Shows the given ranges with some room around them. */
  show(t0: number, t1: number, lane0: number, lane1: number): void {
    const total = this.to - this.from;
    const span = Math.min(total, Math.max((t1 - t0) * 1.3, total / 5000));
    this.t0 = (t0 + t1) / 2 - span / 2;
    this.t1 = this.t0 + span;
    const wanted = this.plot.height / Math.max(8, (lane1 - lane0 + 1) * 1.3);
    this.laneHeight = Math.min(MAX_LANE, Math.max(this.fitLane, Math.min(wanted, 18)));
    if (this.fitLane > this.laneHeight) this.laneHeight = this.fitLane;
    this.top = (lane0 + lane1 + 1) / 2 - this.plot.height / this.laneHeight / 2;
    this.clamp();
  }

  private clamp(): void {
    const span = Math.min(this.t1 - this.t0, this.to - this.from);
    this.t0 = Math.min(Math.max(this.t0, this.from), this.to - span);
    this.t1 = this.t0 + span;
    this.laneHeight = Math.max(this.laneHeight, this.fitLane);
    const room = this.lanes - this.plot.height / this.laneHeight;
    this.top = Math.min(Math.max(0, this.top), Math.max(0, room));
  }
}
