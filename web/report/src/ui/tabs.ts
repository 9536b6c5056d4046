// A row of tabs with arrow-key support.
import { h } from '../dom';

export interface TabItem {
  id: string;
  label: string;
  color?: string;
}

export interface Tabs {
  element: HTMLElement;
  select(id: string): void;
  recolor(colors: string[]): void;
}

export function tabs(name: string, items: TabItem[], active: string, onSelect: (id: string) => void, kind = 'segmented'): Tabs {
  const buttons = items.map((item) =>
    h('button', {
      type: 'button', role: 'tab', class: 'tab', 'data-tab': item.id,
      on: { click: () => choose(item.id, true) },
    }, item.color ? h('span', { class: 'swatch', 'aria-hidden': 'true', style: { background: item.color } }) : null, item.label));

  function choose(id: string, tell: boolean): void {
    buttons.forEach((button, i) => {
      const on = items[i]?.id === id;
      button.setAttribute('aria-selected', String(on));
      button.tabIndex = on ? 0 : -1;
      if (on && tell) keepInView(button);
    });
    if (tell) onSelect(id);
  }

  function keepInView(button: HTMLElement): void {
    const box = button.parentElement;
    if (!box || box.scrollWidth <= box.clientWidth) return;
    const left = button.offsetLeft - box.offsetLeft;
    if (left < box.scrollLeft) box.scrollLeft = left - 12;
    else if (left + button.offsetWidth > box.scrollLeft + box.clientWidth) box.scrollLeft = left + button.offsetWidth - box.clientWidth + 12;
  }

  const element = h('div', {
    class: `tabs ${kind}`, role: 'tablist', 'aria-label': name,
    on: {
      keydown: (event) => {
        const at = buttons.indexOf(document.activeElement as HTMLButtonElement);
        const step = event.key === 'ArrowRight' ? 1 : event.key === 'ArrowLeft' ? -1 : 0;
        const next = buttons[(at + step + buttons.length) % buttons.length];
        if (!step || at < 0 || !next) return;
        event.preventDefault();
        next.focus();
        next.click();
      },
    },
  }, buttons);
  choose(active, false);
  return {
    element,
    select: (id) => choose(id, false),
    recolor: (colors) => buttons.forEach((b, i) => {
      const swatch = b.querySelector<HTMLElement>('.swatch');
      if (swatch && colors[i]) swatch.style.background = colors[i] as string;
    }),
  };
}
