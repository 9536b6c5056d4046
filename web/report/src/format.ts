// Numbers for people.
const THIN = '\u202f';
const DASH = '–';

export const MINUTE = 60;
export const HOUR = 3600;
export const DAY = 86400;

export function grouped(value: number, decimals = 0): string {
  const [whole = '', fraction] = Math.abs(value).toFixed(decimals).split('.');
  const sign = value < 0 && Number(value.toFixed(decimals)) !== 0 ? '−' : '';
  const body = whole.replace(/\B(?=(\d{3})+$)/g, ',');
  return sign + (fraction ? `${body}.${fraction}` : body);
}

/** About three significant digits, never in exponent form for usual sizes. */
export function significant(value: number): string {
  const a = Math.abs(value);
  if (a === 0) return '0';
  if (a < 0.001 || a >= 1e15) return value.toExponential(1);
  if (a < 0.1) return value.toFixed(4);
  if (a < 1) return value.toFixed(3);
  if (a < 10) return grouped(value, 2);
  if (a < 100) return grouped(value, 1);
  return grouped(value);
}

export interface Unit {
  name: string;
  size: number;
}

const TIME_UNITS: Unit[] = [
  { name: 'd', size: DAY },
  { name: 'h', size: HOUR },
  { name: 'min', size: MINUTE },
  { name: 's', size: 1 },
];

export function timeUnit(seconds: number): Unit {
  const a = Math.abs(seconds);
  const limit: Record<string, number> = { d: 2 * DAY, h: HOUR, min: MINUTE, s: 0 };
  return TIME_UNITS.find((u) => a >= (limit[u.name] as number)) ?? { name: 's', size: 1 };
}

export function duration(seconds: number): string {
  const a = Math.abs(seconds);
  if (a === 0) return `0${THIN}s`;
  if (a < 1) return `${significant(seconds * 1000)}${THIN}ms`;
  const unit = timeUnit(seconds);
  return `${significant(seconds / unit.size)}${THIN}${unit.name}`;
}

const SCALES: [number, string][] = [[1e12, 'T'], [1e9, 'G'], [1e6, 'M'], [1e3, 'k']];

export function count(value: number): string {
  const a = Math.abs(value);
  if (a < 1e5) return Number.isInteger(value) ? grouped(value) : significant(value);
  for (const [size, name] of SCALES) {
    if (a >= size) return `${significant(value / size)}${THIN}${name}`;
  }
  return grouped(value);
}

export const percent = (fraction: number): string => `${(fraction * 100).toFixed(1)}${THIN}%`;

/** As the command line writes it. */
export const energy = (kwh: number): string => (kwh < 1 ? `${Number((kwh * 1000).toPrecision(3))}${THIN}Wh` : `${kwh.toFixed(3)}${THIN}kWh`);

export function ratio(value: number): string {
  return `${value >= 100 ? grouped(value) : value >= 10 ? value.toFixed(1) : value.toFixed(2)}×`;
}

/** A point in time since the start of the run: 3 d 06:12:45. */
export function clock(seconds: number, withSeconds = true): string {
  const total = Math.round(Math.abs(seconds));
  const pad = (n: number): string => String(n).padStart(2, '0');
  const d = Math.floor(total / DAY);
  const hm = `${pad(Math.floor((total % DAY) / HOUR))}:${pad(Math.floor((total % HOUR) / MINUTE))}`;
  const text = withSeconds ? `${hm}:${pad(total % MINUTE)}` : hm;
  return (seconds < 0 ? '−' : '') + (d > 0 ? `${d}${THIN}d ${text}` : text);
}

export const orDash = (value: unknown, format: (v: number) => string): string =>
  typeof value === 'number' && Number.isFinite(value) ? format(value) : DASH;
