// Horizontal bars made of plain elements, so that they print and read well.
import { h } from '../dom';

export interface Bar {
  label: string;
  value: number | null;
  text: string;
  color?: string;
  interval?: [number, number] | null;
  strong?: boolean;
  title?: string;
}

export interface BarOptions {
  reference?: number | null;
  max?: number;
  label: string;
}

export function bars(items: Bar[], options: BarOptions): HTMLElement {
  const peak = Math.max(0, ...items.map((b) => Math.max(b.value ?? 0, b.interval?.[1] ?? 0)), options.max ?? 0);
  const share = (v: number): string => `${peak > 0 ? Math.max(0, Math.min(100, (v / peak) * 100)).toFixed(3) : 0}%`;
  const reference = options.reference;
  return h('div', { class: 'bars', role: 'list', 'aria-label': options.label },
    items.map((bar) => h('div', { class: `bar-row${bar.strong ? ' strong' : ''}`, role: 'listitem', title: bar.title },
      h('span', { class: 'bar-label' }, bar.label),
      h('span', { class: 'bar-track', 'aria-hidden': 'true' },
        h('span', { class: 'bar-fill', style: { width: share(bar.value ?? 0), ...(bar.color ? { background: bar.color } : {}) } }),
        bar.interval ? h('span', {
          class: 'bar-interval',
          style: { left: share(bar.interval[0]), width: `calc(${share(bar.interval[1])} - ${share(bar.interval[0])})` },
        }) : null,
        reference !== null && reference !== undefined ? h('span', { class: 'bar-reference', style: { left: share(reference) } }) : null),
      h('span', { class: 'bar-value' }, bar.text))));
}
