// What the page knows about the keys of a summary.
import { count, duration, percent, ratio, significant, timeUnit, grouped } from './format';
import { finite } from './data';

export type Kind = 'duration' | 'count' | 'percent' | 'number' | 'energy' | 'gpuhours';

export interface Metric {
  key: string;
  label: string;
  kind: Kind;
  better?: 'low' | 'high';
  hint?: string;
}

const list: Metric[] = [
  { key: 'jobs', label: 'Jobs', kind: 'count' },
  { key: 'finished', label: 'Finished', kind: 'count' },
  { key: 'failed', label: 'Failed', kind: 'count' },
  { key: 'cancelled', label: 'Cancelled', kind: 'count' },
  { key: 'rejected', label: 'Rejected', kind: 'count' },
  { key: 'avg_jct', label: 'Average JCT', kind: 'duration', better: 'low', hint: 'Mean job completion time, from submission to the end' },
  { key: 'median_jct', label: 'Median JCT', kind: 'duration', better: 'low', hint: 'Half of the jobs complete within this time' },
  { key: 'p95_jct', label: 'p95 JCT', kind: 'duration', better: 'low', hint: '95 % of the jobs complete within this time' },
  { key: 'p99_jct', label: 'p99 JCT', kind: 'duration', better: 'low', hint: '99 % of the jobs complete within this time' },
  { key: 'avg_queue_time', label: 'Average queueing', kind: 'duration', better: 'low', hint: 'Mean time spent waiting for GPUs' },
  { key: 'median_queue_time', label: 'Median queueing', kind: 'duration', better: 'low' },
  { key: 'p95_queue_time', label: 'p95 queueing', kind: 'duration', better: 'low' },
  { key: 'makespan', label: 'Makespan', kind: 'duration', better: 'low', hint: 'From the first submission to the last completion' },
  { key: 'gpu_utilization', label: 'GPU utilisation', kind: 'percent', better: 'high', hint: 'GPU time doing useful work over GPU time available' },
  { key: 'gpu_allocation', label: 'GPU allocation', kind: 'percent', better: 'high', hint: 'GPU time assigned to jobs over GPU time available' },
  { key: 'preemptions', label: 'Preemptions', kind: 'count', better: 'low' },
  { key: 'migrations', label: 'Migrations', kind: 'count', better: 'low' },
  { key: 'avg_slowdown', label: 'Average slowdown', kind: 'number', better: 'low', hint: 'JCT over the time the job needs on its own' },
  { key: 'p95_slowdown', label: 'p95 slowdown', kind: 'number', better: 'low' },
  { key: 'avg_ftf', label: 'Average ρ', kind: 'number', better: 'low', hint: 'Finish-time fairness: JCT over the time with an equal share; at most 1 is fair' },
  { key: 'max_ftf', label: 'Worst ρ', kind: 'number', better: 'low', hint: 'Largest finish-time fairness over all jobs' },
  { key: 'jain', label: 'Jain index', kind: 'number', better: 'high', hint: 'Evenness over users or jobs; 1 is perfectly even' },
  { key: 'fragmentation', label: 'Fragmentation', kind: 'percent', better: 'low', hint: 'Share of free GPU time that waiting jobs could not use' },
  { key: 'deadline_misses', label: 'Deadline misses', kind: 'count', better: 'low' },
  { key: 'deadline_jobs', label: 'Jobs with a deadline', kind: 'count' },
  { key: 'energy_kwh', label: 'Energy', kind: 'energy', better: 'low' },
  { key: 'overhead_gpu_hours', label: 'Overhead GPU time', kind: 'gpuhours', better: 'low', hint: 'GPU time lost to checkpoints and restarts' },
  { key: 'events', label: 'Events simulated', kind: 'count' },
  { key: 'wall_seconds', label: 'Simulation wall time', kind: 'duration' },
  { key: 'gpu_hours', label: 'GPU hours', kind: 'gpuhours' },
];

const known = new Map(list.map((m) => [m.key, m]));
const order = new Map(list.map((m, i) => [m.key, i]));

/** The catalogue entry, or one made up from the key for metrics added later. */
export function metric(key: string): Metric {
  const found = known.get(key);
  if (found) return found;
  const words = key.replace(/_/g, ' ').trim();
  const kind: Kind = /(_time|_jct|_seconds)$/.test(key) ? 'duration' : /_gpu_hours$/.test(key) ? 'gpuhours' : 'number';
  return { key, label: words.charAt(0).toUpperCase() + words.slice(1), kind };
}

export function orderedKeys(keys: Iterable<string>): string[] {
  const rank = (k: string): number => order.get(k) ?? list.length;
  return [...new Set(keys)].sort((a, b) => rank(a) - rank(b) || (a < b ? -1 : 1));
}

export function show(m: Metric, value: unknown): string {
  if (!finite(value)) return '–';
  switch (m.kind) {
    case 'duration': return duration(value);
    case 'percent': return percent(value);
    case 'count': return count(value);
    case 'energy': return value >= 1e5 ? `${significant(value / 1000)}\u202fMWh` : `${significant(value)}\u202fkWh`;
    case 'gpuhours': return `${count(value)}\u202fh`;
    default: return Number.isInteger(value) ? grouped(value) : significant(value);
  }
}

export interface ColumnFormat {
  unit: string;
  text: (value: unknown) => string;
}

/** One unit and one number of decimals for a whole column, so that digits line up. */
export function columnFormat(m: Metric, values: unknown[]): ColumnFormat {
  const usable = values.filter(finite);
  const sorted = usable.map(Math.abs).sort((a, b) => a - b);
  const middle = sorted[sorted.length >> 1] ?? 0;
  let unit = '';
  let size = 1;
  if (m.kind === 'duration') ({ name: unit, size } = timeUnit(middle));
  else if (m.kind === 'percent') [unit, size] = ['%', 0.01];
  else if (m.kind === 'energy') unit = 'kWh';
  else if (m.kind === 'gpuhours') unit = 'h';
  else if (m.kind === 'count' && middle >= 1e6) [unit, size] = ['M', 1e6];
  const scaled = middle / size;
  const whole = size === 1 && usable.every(Number.isInteger);
  const decimals = whole ? 0 : m.kind === 'percent' ? 1 : scaled >= 100 ? (scaled >= 1000 ? 0 : 1) : scaled >= 1 ? 2 : 3;
  return { unit, text: (v) => (finite(v) ? grouped(v / size, decimals) : '–') };
}

/** -1 worse, 0 about the same, 1 better than the reference. */
export function verdict(m: Metric, value: number, reference: number): -1 | 0 | 1 {
  if (!m.better || Math.abs(value - reference) <= 0.005 * Math.abs(reference)) return 0;
  return (value < reference) === (m.better === 'low') ? 1 : -1;
}

/** How a value relates to that of the baseline, as text with a class and words. */
export function versus(m: Metric, value: unknown, reference: unknown): { text: string; class: string; words: string } | null {
  const times = ratioTo(value, reference);
  if (times === null) return null;
  const sense = verdict(m, value as number, reference as number);
  const arrow = sense === 0 ? '' : times > 1 ? '↑\u2009' : '↓\u2009';
  return {
    text: `${arrow}${ratio(times)}`,
    class: `versus ${sense > 0 ? 'good' : sense < 0 ? 'bad' : 'same'}`,
    words: sense > 0 ? 'better than the baseline' : sense < 0 ? 'worse than the baseline' : 'about the same as the baseline',
  };
}

export function ratioTo(value: unknown, reference: unknown): number | null {
  if (!finite(value) || !finite(reference)) return null;
  if (reference === 0) return value === 0 ? 1 : null;
  return value / reference;
}
