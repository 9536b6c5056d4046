// Energy of a live scheduler: by user, by node and what it was doing, by job.
import { h, section } from '../dom';
import { finite } from '../data';
import { energy } from '../format';
import { bars } from '../ui/bars';
import type { LiveEnergy } from '../types';

const USES = ['busy', 'idle', 'booting', 'off'] as const;
const MOST_JOBS = 1000;

const cell = (kwh: unknown): HTMLElement =>
  h('td', { 'data-raw': finite(kwh) ? String(kwh) : null }, finite(kwh) ? energy(kwh) : '');

function table(id: string, head: string[], rows: { name: string; text: string[]; kwh: unknown[] }[]): HTMLElement {
  return h('div', { class: 'scroll-box', tabindex: '0', role: 'region', 'aria-label': `${head[0]} table, scrolls sideways` },
    h('table', { class: 'data', id },
      h('thead', null, h('tr', null, head.map((name) => h('th', { scope: 'col' }, name)))),
      h('tbody', null, rows.map((row) => h('tr', null, h('th', { scope: 'row' }, row.name),
        row.text.map((text) => h('td', null, text)), row.kwh.map(cell))))));
}

export function energySections(live: LiveEnergy): HTMLElement[] {
  const users = live.users ?? [];
  const nodes = live.nodes ?? [];
  const jobs = live.jobs ?? [];
  const of = (use: string): number => nodes.reduce((sum, node) => sum + (node.kwh?.[use] ?? 0), 0);
  const shown = [...jobs].sort((a, b) => (b.kwh ?? 0) - (a.kwh ?? 0)).slice(0, MOST_JOBS);
  return [
    section('energy-users', 'Energy by user', `${energy(live.nobody ?? 0)} are nobody's`,
      h('div', { class: 'split' },
        bars(users.map((user) => ({ label: user.name, value: user.kwh, text: energy(user.kwh) })), { label: 'Energy by user' }),
        table('energy-user-table', ['User', 'Energy'], users.map((user) => ({ name: user.name, text: [], kwh: [user.kwh] }))))),
    section('energy-nodes', 'Energy by node and what it was doing', null,
      h('div', { class: 'split' },
        bars(USES.map((use) => ({ label: use, value: of(use), text: energy(of(use)) })), { label: 'Energy by what nodes were doing' }),
        table('energy-node-table', ['Node', ...USES],
          nodes.map((node) => ({ name: node.name, text: [], kwh: USES.map((use) => node.kwh?.[use] ?? 0) }))))),
    section('energy-jobs', 'Energy by job', shown.length < jobs.length ? `the ${MOST_JOBS} that used most of ${jobs.length}` : null,
      table('energy-job-table', ['Job', 'Name', 'User', 'State', 'Energy'],
        shown.map((job) => ({ name: job.id, text: [job.name, job.user, job.state], kwh: [job.kwh] })))),
  ];
}
