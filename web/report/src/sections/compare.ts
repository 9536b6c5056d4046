// All runs side by side: a sortable table.
import { h, section, fill } from '../dom';
import { finite } from '../data';
import { grouped } from '../format';
import { columnFormat, metric, show, versus, type ColumnFormat, type Metric } from '../metrics';
import { seriesStroke } from '../theme';
import { compareBars } from './comparebars';
import type { State } from '../state';
import type { Run } from '../types';

const KEYS = ['avg_jct', 'median_jct', 'p95_jct', 'p99_jct', 'avg_queue_time', 'makespan', 'gpu_utilization', 'preemptions',
  'avg_slowdown', 'avg_ftf', 'max_ftf', 'jain', 'fragmentation', 'deadline_misses', 'energy_kwh'];

interface Column {
  metric: Metric;
  format: ColumnFormat;
  best: number | null;
}

interface Order {
  key: string | null;
  down: boolean;
}

export function compareSection(state: State): HTMLElement | null {
  if (!state.several) return null;
  const columns = makeColumns(state);
  const order: Order = { key: null, down: false };
  const long = state.runs.length > 12;
  const box = h('div', { class: `scroll-box${long ? ' long' : ''}`, tabindex: '0', role: 'region', 'aria-label': 'Comparison table, scrolls sideways' });
  const smalls = h('div', { class: `small-multiples${long ? ' long' : ''}` });
  const reference = state.reference;
  const note = reference
    ? `Small figures: value relative to ${reference.label}. The best value of each column is bold.`
    : 'The best value of each column is bold.';
  const element = section('compare', 'Policies compared', note, box, smalls);

  function draw(): void {
    const rows = sortedRows(state, order);
    fill(box, table(state, columns, rows, order, (key) => {
      if (order.key === key) order.down = !order.down;
      else [order.key, order.down] = [key, metric(key).better === 'high'];
      draw();
      box.querySelector<HTMLElement>(`th[data-key="${CSS.escape(key)}"] button`)?.focus();
    }));
    fill(smalls, ...compareBars(state, rows));
  }
  draw();
  state.onRun(draw);
  state.onTheme(draw);
  return element;
}

function makeColumns(state: State): Column[] {
  return KEYS.filter((key) => state.runs.some((r) => finite(r.summary[key]))).map((key) => {
    const m = metric(key);
    const values = state.runs.map((r) => r.summary[key]).filter(finite);
    const best = !m.better || values.length < 2 ? null : m.better === 'low' ? Math.min(...values) : Math.max(...values);
    const distinct = new Set(values).size > 1;
    return { metric: m, format: columnFormat(m, values), best: distinct ? best : null };
  });
}

function sortedRows(state: State, order: Order): number[] {
  const rows = state.runs.map((_, i) => i);
  const key = order.key;
  if (key === null) return rows;
  if (key === 'label') {
    rows.sort((a, b) => (state.runs[a] as Run).label.localeCompare((state.runs[b] as Run).label, 'en', { numeric: true }));
    return order.down ? rows.reverse() : rows;
  }
  const value = (i: number): number | null => {
    const v = state.runs[i]?.summary[key];
    return finite(v) ? v : null;
  };
  return rows.sort((a, b) => {
    const va = value(a);
    const vb = value(b);
    if (va === null || vb === null) return va === vb ? a - b : va === null ? 1 : -1;
    return (order.down ? vb - va : va - vb) || a - b;
  });
}

function head(key: string, label: string, unit: string, hint: string | undefined, order: Order, onSort: (key: string) => void): HTMLElement {
  const sorted = order.key === key;
  return h('th', { scope: 'col', 'data-key': key, 'aria-sort': sorted ? (order.down ? 'descending' : 'ascending') : 'none' },
    h('button', { type: 'button', title: hint ? `${hint}. Click to sort.` : 'Click to sort', on: { click: () => onSort(key) } },
      label, h('span', { class: 'sort-mark', 'aria-hidden': 'true' }, sorted ? (order.down ? '↓' : '↑') : ''),
      unit ? h('span', { class: 'unit' }, unit) : null));
}

function table(state: State, columns: Column[], rows: number[], order: Order, onSort: (key: string) => void): HTMLElement {
  const varied = (pick: (r: Run) => unknown): boolean => new Set(state.runs.map(pick)).size > 1;
  const details: ((r: Run) => string)[] = [];
  if (varied((r) => r.placement)) details.push((r) => r.placement ?? '');
  if (varied((r) => r.estimator)) details.push((r) => r.estimator ?? '');
  return h('table', { class: 'data compare', id: 'compare-table' },
    h('thead', null, h('tr', null,
      head('label', 'Policy', '', undefined, order, onSort),
      columns.map((c) => head(c.metric.key, c.metric.label, c.format.unit, c.metric.hint, order, onSort)))),
    h('tbody', null, rows.map((i) => {
      const run = state.runs[i] as Run;
      const { color } = seriesStroke(i);
      const more = details.map((d) => d(run)).filter(Boolean).join(' · ');
      return h('tr', { 'data-run': i, class: i === state.index ? 'selected' : undefined },
        h('th', { scope: 'row' },
          h('button', { type: 'button', class: 'run-name', title: 'Show this run below', on: { click: () => state.select(i) } },
            h('span', { class: 'swatch', 'aria-hidden': 'true', style: { background: color } }), run.label,
            i === state.baseline ? h('span', { class: 'badge' }, 'baseline') : null),
          more ? h('span', { class: 'sub' }, more) : null),
        columns.map((c) => cell(state, run, c)));
    })));
}

function cell(state: State, run: Run, column: Column): HTMLElement {
  const m = column.metric;
  const value = run.summary[m.key];
  const reference = state.reference;
  const base = reference && reference !== run ? reference.summary[m.key] : null;
  const against = versus(m, value, base);
  const interval = run.confidence?.[m.key];
  const best = finite(value) && value === column.best;
  return h('td', {
    class: best ? 'best' : undefined, 'data-metric': m.key,
    title: finite(value) ? `${m.label}: ${show(m, value)}${m.kind === 'duration' ? ` (${grouped(value, 1)} s)` : ''}${best ? ', best of all runs' : ''}` : undefined,
  },
    h('span', { class: 'value' }, column.format.text(value)),
    against ? h('span', { class: against.class, title: against.words }, against.text) : null,
    interval && finite(interval[0]) && finite(interval[1])
      ? h('span', { class: 'interval', title: '95 % confidence interval' }, `${column.format.text(interval[0])}–${column.format.text(interval[1])}`)
      : null);
}
