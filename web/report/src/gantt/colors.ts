// Colours of the intervals: by job, by user or by number of GPUs.
import { cssVar, currentTheme, parseHex, type Rgb } from '../theme';
import type { Model } from './model';

export type ColorBy = 'job' | 'user' | 'size';

const HUES = {
  light: ['#4477aa', '#ee8866', '#44aa99', '#aa4499', '#ddcc77', '#88ccee', '#117733', '#cc6677', '#999933', '#882255'],
  dark: ['#5b8fc7', '#ee8866', '#44aa99', '#c267b3', '#ddcc77', '#88ccee', '#3a9a5c', '#dd7788', '#aaaa44', '#b0507c'],
};
const SIZES = {
  light: ['#f0c75e', '#e8934a', '#d1605e', '#a34f8c', '#5b4a9c', '#26406f'],
  dark: ['#f7dc8b', '#f0a860', '#e07a74', '#bd6faa', '#8272c4', '#5f86c4'],
};

export interface Colors {
  /** Red, green and blue of every palette entry; the last one is overhead. */
  palette: Rgb[];
  dimmed: Rgb[];
  /** Palette entry of each job. */
  ofJob: Uint8Array;
  overhead: number;
  background: Rgb;
}

function hash(text: string): number {
  let x = 2166136261;
  for (let i = 0; i < text.length; i++) x = Math.imul(x ^ text.charCodeAt(i), 16777619);
  x ^= x >>> 15;
  return Math.imul(x, 2246822519) >>> 8;
}

export const sizeClass = (gpus: number | null): number =>
  Math.min(5, Math.max(0, Math.ceil(Math.log2(Math.max(1, gpus ?? 1)))));

export const sizeLegend = (): { label: string; color: string }[] =>
  SIZES[currentTheme()].map((color, i) => ({ color, label: ['1', '2', '3–4', '5–8', '9–16', '17+'][i] as string }));

export function makeColors(m: Model, by: ColorBy): Colors {
  const background = parseHex(cssVar('--lane'));
  const hex = by === 'size' ? SIZES[currentTheme()] : HUES[currentTheme()];
  const palette = [...hex.map(parseHex), parseHex(cssVar('--overhead'))];
  const dimmed = palette.map((c) => c.map((v, i) => Math.round(v * 0.2 + (background[i] as number) * 0.8)) as Rgb);
  const ofJob = Uint8Array.from(m.jobs, (job, j) => {
    if (by === 'size') return sizeClass(job.gpus);
    if (by === 'user') return hash(job.user) % hex.length;
    return hash(`${j}`) % hex.length;
  });
  return { palette, dimmed, ofJob, overhead: palette.length - 1, background };
}

export const css = (c: Rgb): string => `rgb(${c[0]},${c[1]},${c[2]})`;

export function textOn(c: Rgb): string {
  return 0.299 * c[0] + 0.587 * c[1] + 0.114 * c[2] > 150 ? '#16191d' : '#ffffff';
}
