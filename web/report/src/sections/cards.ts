// Headline numbers of the selected run.
import { h, section, fill, type Child } from '../dom';
import { finite } from '../data';
import { grouped } from '../format';
import { metric, show, versus } from '../metrics';
import type { State } from '../state';

const KEYS = ['avg_jct', 'median_jct', 'p95_jct', 'p99_jct', 'avg_queue_time', 'makespan', 'gpu_utilization',
  'avg_slowdown', 'avg_ftf', 'jain', 'preemptions', 'migrations', 'fragmentation', 'deadline_misses', 'energy_kwh', 'overhead_gpu_hours'];

export function cardsSection(state: State): HTMLElement {
  const grid = h('div', { class: 'cards' });
  const status = h('p', { class: 'status' });
  const element = section('summary', 'Summary', null, status, grid);
  const title = element.querySelector('h2') as HTMLElement;

  function draw(): void {
    const { summary } = state.run;
    if (state.several) fill(title, 'Summary ', h('span', { class: 'of' }, state.run.label));
    fill(status, statusText(state));
    fill(grid, KEYS.map((key) => card(state, key)));
    grid.hidden = grid.childElementCount === 0;
    element.classList.toggle('is-empty', summary.jobs === 0);
  }
  draw();
  state.onRun(draw);
  return element;
}

function statusText(state: State): Child[] {
  const s = state.run.summary;
  if (s.jobs === 0) return ['This run contains no jobs, so there is nothing to measure or to draw.'];
  const out: Child[] = [];
  for (const [key, word] of [['jobs', 'jobs'], ['finished', 'finished'], ['failed', 'failed'], ['cancelled', 'cancelled'], ['rejected', 'rejected']] as const) {
    const value = s[key];
    if (finite(value) && (value > 0 || key === 'finished')) out.push(h('span', { class: `count-${key}` }, h('b', null, grouped(value)), ` ${word}`));
  }
  return out;
}

function card(state: State, key: string): HTMLElement | null {
  const run = state.run;
  const value = run.summary[key];
  if (!finite(value)) return null;
  const m = metric(key);
  const reference = state.reference;
  const base = reference && reference !== run ? reference.summary[key] : null;
  const against = versus(m, value, base);
  const interval = run.confidence?.[key];
  const of = key === 'deadline_misses' && finite(run.summary.deadline_jobs) ? ` of ${grouped(run.summary.deadline_jobs)}` : '';
  return h('div', { class: 'card', 'data-metric': key, title: m.hint },
    h('div', { class: 'card-name' }, m.label),
    h('div', { class: 'card-value', 'data-raw': value }, show(m, value), of ? h('small', null, of) : null),
    h('div', { class: 'card-more' },
      against && reference ? h('span', { class: against.class, title: against.words }, `${against.text} ${reference.label}`) : null,
      interval && finite(interval[0]) && finite(interval[1])
        ? h('span', { class: 'interval', title: '95 % confidence interval' }, `${show(m, interval[0])} – ${show(m, interval[1])}`)
        : null));
}
