// Fills a pixel buffer with the visible intervals. Edges are accumulated as
// differences and summed along each row, so the cost follows the number of
// visible intervals plus the number of pixels, at every zoom level, and a
// pixel shows the exact mean of everything below it.
import { endStartingBefore, firstEndingAfter, type Model } from './model';
import type { Colors } from './colors';
import type { View } from './view';

const CHANNELS = 4;

export class Raster {
  private image: ImageData | null = null;
  private sums = new Float32Array(0);
  private pixels = new Uint32Array(0);
  /** Intervals looked at during the last fill. */
  visited = 0;

  fill(m: Model, view: View, colors: Colors, dim: boolean, scale: number): ImageData {
    const width = Math.max(1, Math.round(view.plot.width * scale));
    const height = Math.max(1, Math.round(view.plot.height * scale));
    if (!this.image || this.image.width !== width || this.image.height !== height) {
      this.image = new ImageData(width, height);
      this.pixels = new Uint32Array(this.image.data.buffer);
    }
    const laneHeight = view.laneHeight * scale;
    this.visited = 0;
    const table = flatten(dim ? colors.dimmed : colors.palette);
    if (laneHeight >= 3) this.fillTall(m, view, colors, table, width, height, laneHeight);
    else this.fillThin(m, view, colors, table, width, height, laneHeight);
    return this.image;
  }

  private buffer(length: number): Float32Array {
    if (this.sums.length < length) this.sums = new Float32Array(length);
    else this.sums.fill(0, 0, length);
    return this.sums;
  }

  /** Lanes of several pixels: one row of sums per lane, copied downwards. */
  private fillTall(m: Model, view: View, colors: Colors, table: Float32Array, width: number, height: number, laneHeight: number): void {
    const background = pack(colors.background);
    this.pixels.fill(background);
    const stride = (width + 2) * CHANNELS;
    const last = Math.min(m.lanes.length, Math.ceil(view.top + height / laneHeight));
    const gap = laneHeight >= 5 ? Math.max(1, Math.round(laneHeight / 14)) : 0;
    for (let lane = Math.floor(view.top); lane < last; lane++) {
      const y0 = Math.round((lane - view.top) * laneHeight);
      const y1 = Math.min(height, Math.round((lane + 1 - view.top) * laneHeight) - gap);
      const top = Math.max(0, y0);
      if (y1 <= top) continue;
      const sums = this.buffer(stride);
      if (!this.addLane(m, view, colors, table, lane, width, sums, 0, 1)) continue;
      resolve(sums, 0, this.pixels, top * width, width, colors.background);
      for (let y = top + 1; y < y1; y++) this.pixels.copyWithin(y * width, top * width, (top + 1) * width);
    }
  }

  /** Lanes thinner than three pixels: every lane adds its share to the rows it covers. */
  private fillThin(m: Model, view: View, colors: Colors, table: Float32Array, width: number, height: number, laneHeight: number): void {
    const stride = (width + 2) * CHANNELS;
    const sums = this.buffer(stride * height);
    const last = Math.min(m.lanes.length, Math.ceil(view.top + height / laneHeight));
    for (let lane = Math.floor(view.top); lane < last; lane++) {
      const y0 = Math.max(0, (lane - view.top) * laneHeight);
      const y1 = Math.min(height, (lane + 1 - view.top) * laneHeight);
      for (let row = Math.floor(y0); row < y1; row++) {
        const share = Math.min(y1, row + 1) - Math.max(y0, row);
        if (share > 1e-4) this.addLane(m, view, colors, table, lane, width, sums, row * stride, share);
      }
    }
    for (let row = 0; row < height; row++) resolve(sums, row * stride, this.pixels, row * width, width, colors.background);
  }

  private addLane(m: Model, view: View, colors: Colors, table: Float32Array, lane: number, width: number, sums: Float32Array, base: number, share: number): boolean {
    const first = firstEndingAfter(m, lane, view.t0);
    const last = endStartingBefore(m, lane, view.t1);
    const perSecond = width / (view.t1 - view.t0);
    this.visited += Math.max(0, last - first);
    for (let k = first; k < last; k++) {
      let a = (m.start[k]! - view.t0) * perSecond;
      let b = (m.end[k]! - view.t0) * perSecond;
      if (b <= 0) continue;
      if (b - a > 5) b -= 1;
      if (a < 0) a = 0;
      if (b > width) b = width;
      if (b <= a) continue;
      const c = (m.kind[k] === 1 ? colors.overhead : colors.ofJob[m.job[k]!]!) * 3;
      edge(sums, base, a, table, c, share);
      edge(sums, base, b, table, c, -share);
    }
    return last > first;
  }
}

function edge(sums: Float32Array, base: number, x: number, table: Float32Array, c: number, weight: number): void {
  const i = Math.floor(x);
  const late = (x - i) * weight;
  const early = weight - late;
  const p = base + i * CHANNELS;
  const r = table[c]!;
  const g = table[c + 1]!;
  const b = table[c + 2]!;
  sums[p]! += early * r;
  sums[p + 1]! += early * g;
  sums[p + 2]! += early * b;
  sums[p + 3]! += early;
  sums[p + 4]! += late * r;
  sums[p + 5]! += late * g;
  sums[p + 6]! += late * b;
  sums[p + 7]! += late;
}

function resolve(sums: Float32Array, from: number, pixels: Uint32Array, to: number, width: number, background: [number, number, number]): void {
  const [br, bg, bb] = background;
  let r = 0;
  let g = 0;
  let b = 0;
  let cover = 0;
  for (let x = 0, p = from; x < width; x++, p += CHANNELS) {
    r += sums[p]!;
    g += sums[p + 1]!;
    b += sums[p + 2]!;
    cover += sums[p + 3]!;
    const free = cover < 1 ? 1 - cover : 0;
    const norm = cover > 1 ? 1 / cover : 1;
    const red = r * norm + br * free + 0.5;
    const green = g * norm + bg * free + 0.5;
    const blue = b * norm + bb * free + 0.5;
    pixels[to + x] = 0xff000000 | (clampByte(blue) << 16) | (clampByte(green) << 8) | clampByte(red);
  }
}

const clampByte = (v: number): number => (v < 0 ? 0 : v > 255 ? 255 : v | 0);

const pack = (c: [number, number, number]): number => (0xff000000 | (c[2] << 16) | (c[1] << 8) | c[0]) >>> 0;

function flatten(colors: [number, number, number][]): Float32Array {
  return Float32Array.from(colors.flat());
}
