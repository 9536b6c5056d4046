// Positions and labels of axis marks for durations.
import { clock, DAY, duration, HOUR, MINUTE, significant } from './format';

const STEPS = [1, 2, 5, 10, 15, 30, MINUTE, 2 * MINUTE, 5 * MINUTE, 10 * MINUTE, 15 * MINUTE, 30 * MINUTE,
  HOUR, 2 * HOUR, 3 * HOUR, 6 * HOUR, 12 * HOUR, DAY, 2 * DAY, 5 * DAY, 10 * DAY, 20 * DAY, 50 * DAY,
  100 * DAY, 200 * DAY, 500 * DAY, 1000 * DAY];

export function niceStep(rough: number): number {
  const base = 10 ** Math.floor(Math.log10(rough));
  return ([1, 2, 5, 10].find((m) => m * base >= rough * 0.999) ?? 10) * base;
}

/** Step of a linear time axis so that at most `most` marks fall into the span. */
export function timeStep(span: number, most: number): number {
  const rough = span / Math.max(1, most);
  if (rough <= 1) return niceStep(rough || 1e-9);
  return STEPS.find((s) => s >= rough) ?? niceStep(rough / DAY) * DAY;
}

export function linearTicks(min: number, max: number, step: number): number[] {
  const ticks: number[] = [];
  if (!(step > 0) || !(max >= min)) return ticks;
  const first = Math.ceil(min / step - 1e-9);
  for (let i = first; i * step <= max + step * 1e-9 && ticks.length < 200; i++) ticks.push(i * step);
  return ticks;
}

export function timeLabel(t: number, step: number): string {
  if (t === 0) return '0';
  if (step >= DAY) return `${Math.round(t / DAY)}\u202fd`;
  if (step < 1) return duration(t);
  if (step >= 3 * HOUR) return t % DAY === 0 ? `${t / DAY}\u202fd` : clock(t % DAY, false);
  return clock(t, step < MINUTE);
}

const COARSE = [1, 10, MINUTE, 10 * MINUTE, HOUR, 10 * HOUR, 4 * DAY, 40 * DAY, 400 * DAY];
const FINE = [1, 2, 5, 10, 20, 30, MINUTE, 2 * MINUTE, 5 * MINUTE, 10 * MINUTE, 20 * MINUTE, 30 * MINUTE,
  HOUR, 2 * HOUR, 4 * HOUR, 8 * HOUR, 16 * HOUR, 1.5 * DAY, 3 * DAY, 7 * DAY, 14 * DAY, 30 * DAY, 60 * DAY, 120 * DAY, 365 * DAY];

const MEDIUM = [1, 5, 20, MINUTE, 5 * MINUTE, 20 * MINUTE, HOUR, 4 * HOUR, 16 * HOUR, 3 * DAY, 14 * DAY, 60 * DAY, 365 * DAY];

/** Marks of a logarithmic axis; durations get round times, numbers powers of ten. */
export function logTicks(min: number, max: number, most: number, kind: 'duration' | 'number'): number[] {
  const inside = (list: number[]): number[] => list.filter((v) => v >= min * 0.999 && v <= max * 1.001);
  const powers = (multiples: number[]): number[] => {
    const out: number[] = [];
    for (let e = Math.floor(Math.log10(min)); e <= Math.ceil(Math.log10(max)); e++) {
      for (const m of multiples) out.push(m * 10 ** e);
    }
    return out;
  };
  const levels = kind === 'duration' && min >= 0.5
    ? [inside(FINE), inside(MEDIUM), inside(COARSE)]
    : [inside(powers([1, 2, 5])), inside(powers([1, 3])), inside(powers([1]))];
  // The finest level that fits; a level with a single mark gives way to a thinned finer one.
  const fits = levels.findIndex((l) => l.length <= most);
  let level = fits < 0 ? levels.length - 1 : fits;
  while (level > 0 && (levels[level] as number[]).length < 2) level--;
  const marks = levels[level] as number[];
  if (marks.length >= 2 && (marks.length >= 3 || max / min > 4)) {
    const every = Math.ceil(marks.length / Math.max(2, most));
    return marks.filter((_, i) => i % every === 0);
  }
  const step = kind === 'duration' ? timeStep(max - min, most) : niceStep((max - min) / Math.max(1, most));
  return linearTicks(min, max, step);
}

export function logLabel(v: number, kind: 'duration' | 'number'): string {
  const text = kind === 'duration' ? duration(v) : significant(v);
  return text.replace(/\.0+(?=\D|$)/, '').replace(/(\.\d*?)0+(?=\D|$)/, '$1');
}
