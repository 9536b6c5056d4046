// Groups of jobs by size and by user: bars for one metric and a table of all.
import { h, section, fill } from '../dom';
import { finite } from '../data';
import { columnFormat, metric, orderedKeys, show } from '../metrics';
import { bars } from '../ui/bars';
import { tabs } from '../ui/tabs';
import type { State } from '../state';
import type * as Told from '../types';

type Side = 'by_size' | 'by_user';
// Its numbers by name: whatever stands there is shown.
type Group = Told.Group & Record<string, number | string | undefined>;

const groupsOf = (run: Told.Run, side: Side): Group[] => (Array.isArray(run[side]) ? (run[side] as Group[]) : []);

export function breakdownSection(state: State): HTMLElement | null {
  const sides = ([['by_size', 'By job size'], ['by_user', 'By user']] as const)
    .filter(([side]) => state.runs.some((r) => groupsOf(r, side).length > 0))
    .map(([id, label]) => ({ id, label }));
  let side = sides[0]?.id as Side;
  if (!side) return null;
  let key = 'avg_jct';
  const choice = tabs('Grouping', sides, side, (id) => {
    side = id as Side;
    draw();
  });
  const select = h('select', { id: 'breakdown-metric', 'aria-label': 'Metric of the bars', on: { change: () => { key = select.value; draw(); } } });
  const chart = h('div', { class: 'breakdown-bars' });
  const box = h('div', { class: 'scroll-box', tabindex: '0', role: 'region', 'aria-label': 'Breakdown table, scrolls sideways' });
  const element = section('breakdown', 'Breakdown', null,
    h('div', { class: 'controls' }, choice.element, h('label', { class: 'field' }, 'Bars show ', select)),
    h('div', { class: 'split' }, chart, box));

  function draw(): void {
    const groups = groupsOf(state.run, side);
    element.hidden = groups.length === 0 && sides.every((s) => groupsOf(state.run, s.id).length === 0);
    const keys = orderedKeys(groups.flatMap((g) => Object.keys(g).filter((k) => finite(g[k]))));
    if (!keys.includes(key)) key = keys[0] ?? key;
    fill(select, keys.map((k) => h('option', { value: k, selected: k === key }, metric(k).label)));
    const m = metric(key);
    const name = (g: Group): string => (side === 'by_size' && /^\d+$/.test(String(g.label)) ? `${g.label} GPU${g.label === '1' ? '' : 's'}` : String(g.label));
    fill(chart, bars(groups.map((g) => {
      const value = g[key];
      return { label: name(g), value: finite(value) ? value : null, text: show(m, value) };
    }), { label: `${m.label} ${side === 'by_size' ? 'by job size' : 'by user'}` }));
    fill(box, table(groups, keys, side === 'by_size' ? 'GPUs' : 'User'));
  }
  draw();
  state.onRun(draw);
  return element;
}

function table(groups: Group[], keys: string[], first: string): HTMLElement {
  const formats = keys.map((k) => columnFormat(metric(k), groups.map((g) => g[k])));
  return h('table', { class: 'data', id: 'breakdown-table' },
    h('thead', null, h('tr', null, h('th', { scope: 'col' }, first),
      keys.map((k, i) => h('th', { scope: 'col' }, metric(k).label, formats[i]?.unit ? h('span', { class: 'unit' }, ` ${formats[i]?.unit}`) : null)))),
    h('tbody', null, groups.map((g) => h('tr', null, h('th', { scope: 'row' }, String(g.label)),
      keys.map((k, i) => h('td', null, formats[i]?.text(g[k])))))));
}
