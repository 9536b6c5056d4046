// Finish-time fairness and evenness.
import { h, section, fill } from '../dom';
import { cdfOf, finite, lastAtMost } from '../data';
import { percent } from '../format';
import { metric, show } from '../metrics';
import { cdfChart } from './cdf';
import type { LineChart } from '../ui/chart';
import type { State } from '../state';
import type { Run } from '../types';

function fairShare(run: Run): number | null {
  const c = cdfOf(run, 'ftf');
  if (!c) return null;
  const at = lastAtMost(c.x, 1);
  return at < 0 ? 0 : (c.p[at] as number);
}

export function fairnessSection(state: State): HTMLElement | null {
  const hasCurve = state.runs.some((r) => cdfOf(r, 'ftf'));
  const hasNumber = state.runs.some((r) => ['jain', 'avg_ftf', 'max_ftf'].some((k) => finite(r.summary[k])));
  if (!hasCurve && !hasNumber) return null;
  const figures = h('dl', { class: 'figures' });
  const host = h('div', { class: 'chart-host', id: 'fairness-chart' });
  const element = section('fairness', 'Fairness',
    'ρ is a job’s completion time over the time it would take with an equal share of the cluster; left of the dashed line (ρ = 1) a job was treated fairly.',
    h('div', { class: 'split fairness-split' }, host, figures));
  const hidden = new Set<string>();
  let chart: LineChart | null = null;

  function figure(name: string, value: string, hint = ''): HTMLElement {
    return h('div', { title: hint || undefined }, h('dt', null, name), h('dd', null, value));
  }

  function draw(): void {
    const s = state.run.summary;
    const share = fairShare(state.run);
    fill(figures,
      state.several ? h('div', { class: 'figures-of' }, state.run.label) : null,
      share !== null ? figure('Jobs with ρ ≤ 1', percent(share)) : null,
      ...['avg_ftf', 'max_ftf', 'jain'].filter((k) => finite(s[k])).map((k) => figure(metric(k).label, show(metric(k), s[k]), metric(k).hint)));
    chart?.destroy();
    chart = hasCurve ? cdfChart(state, host, 'ftf', 'fairness', hidden, 260) : null;
    host.hidden = !hasCurve;
  }
  requestAnimationFrame(draw);
  state.onRun(draw);
  state.onTheme(draw);
  return element;
}
