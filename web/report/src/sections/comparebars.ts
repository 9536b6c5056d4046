// Small bar charts under the comparison table, one per headline metric.
import { h } from '../dom';
import { finite } from '../data';
import { metric, show } from '../metrics';
import { seriesStroke } from '../theme';
import { bars } from '../ui/bars';
import type { State } from '../state';
import type { Run } from '../types';

const CANDIDATES = ['avg_jct', 'p99_jct', 'avg_queue_time', 'gpu_utilization', 'makespan', 'max_ftf', 'preemptions', 'energy_kwh'];
const MOST = 6;

export function compareBars(state: State, rows: number[]): HTMLElement[] {
  const varies = (key: string): boolean => {
    const values = state.runs.map((r) => r.summary[key]).filter(finite);
    return values.length > 1 && Math.max(...values) > 0;
  };
  return CANDIDATES.filter(varies).slice(0, MOST).map((key) => {
    const m = metric(key);
    const reference = state.reference?.summary[key];
    const items = rows.map((i) => {
      const run = state.runs[i] as Run;
      const value = run.summary[key];
      const interval = run.confidence?.[key];
      return {
        label: run.label,
        value: finite(value) ? value : null,
        text: show(m, value),
        color: seriesStroke(i).color,
        interval: interval && finite(interval[0]) && finite(interval[1]) ? interval : null,
        strong: i === state.index,
      };
    });
    return h('figure', { class: 'small-multiple', 'data-metric': key },
      h('figcaption', null, m.label, h('span', null, m.better === 'high' ? 'higher is better' : m.better === 'low' ? 'lower is better' : '')),
      bars(items, { label: `${m.label} by policy`, reference: finite(reference) ? reference : null, max: m.kind === 'percent' ? 1 : 0 }));
  });
}
