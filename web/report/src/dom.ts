// Small helpers to build elements.
export type Child = Node | string | number | null | undefined | false;

export interface Props {
  class?: string;
  on?: Partial<{ [K in keyof HTMLElementEventMap]: (event: HTMLElementEventMap[K]) => void }>;
  style?: Record<string, string>;
  [attribute: string]: unknown;
}

export function h<K extends keyof HTMLElementTagNameMap>(tag: K, props: Props | null, ...children: (Child | Child[])[]): HTMLElementTagNameMap[K] {
  const element = document.createElement(tag);
  for (const [key, value] of Object.entries(props ?? {})) {
    if (value === undefined || value === null || value === false) continue;
    if (key === 'on') {
      for (const [type, listener] of Object.entries(value as object)) element.addEventListener(type, listener as EventListener);
    } else if (key === 'style') {
      for (const [name, v] of Object.entries(value as Record<string, string>)) element.style.setProperty(name, v);
    } else {
      element.setAttribute(key, value === true ? '' : String(value));
    }
  }
  append(element, children);
  return element;
}

export function append(parent: Node, children: (Child | Child[])[]): void {
  for (const child of children.flat()) {
    if (child === null || child === undefined || child === false) continue;
    parent.appendChild(child instanceof Node ? child : document.createTextNode(String(child)));
  }
}

export function fill(parent: Element, ...children: (Child | Child[])[]): void {
  parent.replaceChildren();
  append(parent, children);
}

/** A titled block of the page. */
export function section(id: string, title: string, note: Child, ...children: Child[]): HTMLElement {
  return h('section', { class: 'panel', id, 'aria-labelledby': `${id}-title` },
    h('div', { class: 'panel-head' },
      h('h2', { id: `${id}-title` }, title),
      note ? h('p', { class: 'note' }, note) : null),
    ...children);
}

/** A hint in words that fit the way the reader points at things. */
export function hint(mouse: string, touch: string): HTMLElement {
  return h('span', { class: 'hint' }, h('span', { class: 'for-mouse' }, mouse), h('span', { class: 'for-touch' }, touch));
}
