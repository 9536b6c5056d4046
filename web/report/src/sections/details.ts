// Preemption histogram, rejected jobs and the table with every metric.
import { h, section, fill } from '../dom';
import { finite } from '../data';
import { grouped, percent } from '../format';
import { metric, orderedKeys, show } from '../metrics';
import { bars, type Bar } from '../ui/bars';
import type { State } from '../state';

const MOST_BINS = 12;

/** Joins the tail of a long histogram into ranges that double in width. */
export function binned(histogram: [number, number][]): { label: string; jobs: number }[] {
  const clean = histogram.filter((b) => Array.isArray(b) && finite(b[0]) && finite(b[1])).sort((a, b) => a[0] - b[0]);
  if (clean.length <= MOST_BINS) return clean.map(([n, jobs]) => ({ label: String(n), jobs }));
  const out: { label: string; jobs: number }[] = [];
  const last = (clean[clean.length - 1] as [number, number])[0];
  for (let lo = 0, width = 1; lo <= last; lo += width) {
    if (lo >= 4) width = 2 ** Math.floor(Math.log2(lo));
    const hi = lo + width - 1;
    const jobs = clean.reduce((sum, [n, j]) => (n >= lo && n <= hi ? sum + j : sum), 0);
    out.push({ label: width === 1 ? String(lo) : `${lo}–${hi}`, jobs });
  }
  return out;
}

export function preemptionSection(state: State): HTMLElement | null {
  const has = (i: number): boolean => (state.runs[i]?.preemption_histogram?.length ?? 0) > 0;
  if (!state.runs.some((_, i) => has(i))) return null;
  const host = h('div', null);
  const element = section('preemptions', 'Preemptions per job', null, host);
  const draw = (): void => {
    element.hidden = !has(state.index);
    const bins = binned(state.run.preemption_histogram ?? []);
    const total = bins.reduce((sum, b) => sum + b.jobs, 0);
    const items: Bar[] = bins.map((b) => ({
      label: b.label, value: b.jobs, text: grouped(b.jobs), title: total > 0 ? `${percent(b.jobs / total)} of the jobs` : undefined,
    }));
    fill(host, h('div', { class: 'bars-head', 'aria-hidden': 'true' }, h('span', null, 'Preempted'), h('span', null, 'Jobs')),
      bars(items, { label: 'Number of jobs by number of preemptions' }));
  };
  draw();
  state.onRun(draw);
  return element;
}

export function rejectedSection(state: State): HTMLElement | null {
  if (!state.runs.some((r) => (r.rejected?.length ?? 0) > 0)) return null;
  const host = h('div', { class: 'scroll-box tall', tabindex: '0', role: 'region', 'aria-label': 'Rejected jobs' });
  const more = h('p', { class: 'note' });
  const element = section('rejected', 'Rejected jobs', null, host, more);
  const draw = (): void => {
    const list = state.run.rejected ?? [];
    element.hidden = list.length === 0;
    const total = state.run.summary.rejected;
    more.textContent = finite(total) && total > list.length ? `The first ${grouped(list.length)} of ${grouped(total)}.` : '';
    more.hidden = more.textContent === '';
    fill(host, h('table', { class: 'data text', id: 'rejected-table' },
      h('thead', null, h('tr', null, h('th', { scope: 'col' }, 'Job'), h('th', { scope: 'col' }, 'Reason'))),
      h('tbody', null, list.map((r) => h('tr', null, h('th', { scope: 'row' }, String(r.job)), h('td', null, r.reason ?? ''))))));
  };
  draw();
  state.onRun(draw);
  return element;
}

export function metricsSection(state: State): HTMLElement | null {
  const keys = orderedKeys(state.runs.flatMap((r) => Object.keys(r.summary).filter((k) => finite(r.summary[k]))));
  if (keys.length === 0) return null;
  const host = h('div', { class: 'scroll-box', tabindex: '0', role: 'region', 'aria-label': 'All metrics, scrolls sideways' });
  const draw = (): void => fill(host, h('table', { class: 'data metrics', id: 'metrics-table' },
    h('thead', null, h('tr', null, h('th', { scope: 'col' }, 'Metric'),
      state.runs.map((r, i) => h('th', { scope: 'col', class: state.several && i === state.index ? 'selected' : undefined }, state.several ? r.label : 'Value')),
      state.several ? null : h('th', { scope: 'col' }, 'Exact'))),
    h('tbody', null, keys.map((key) => {
      const m = metric(key);
      return h('tr', { 'data-metric': key }, h('th', { scope: 'row', title: m.hint }, m.label, h('code', null, key)),
        state.runs.map((r, i) => h('td', {
          class: state.several && i === state.index ? 'selected' : undefined,
          title: finite(r.summary[key]) ? String(r.summary[key]) : undefined,
        }, show(m, r.summary[key]))),
        state.several ? null : h('td', { class: 'exact' }, String(state.run.summary[key] ?? '–')));
    }))));
  draw();
  state.onRun(draw);
  const body = h('details', { class: 'fold', open: keys.length <= 40 && !state.several }, h('summary', null, 'Show the table'), host);
  let wasOpen = body.open;
  window.addEventListener('beforeprint', () => {
    wasOpen = body.open;
    body.open = true;
  });
  window.addEventListener('afterprint', () => { body.open = wasOpen; });
  return section('metrics', 'All metrics', `${keys.length} values per run`, body);
}
