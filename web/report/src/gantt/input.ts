// Mouse, touch and keyboard on the chart.
import type { View } from './view';

export interface Actions {
  view(): View;
  changed(): void;
  hover(x: number, y: number, touch: boolean): void;
  leave(): void;
  click(x: number, y: number): void;
  unpin(): void;
}

interface Point {
  x: number;
  y: number;
}

export function attachInput(canvas: HTMLElement, act: Actions): void {
  const pointers = new Map<number, Point>();
  let moved = 0;
  let lastScroll = -1e9;
  let lastWheel = -1e9;

  const at = (e: MouseEvent): Point => {
    const box = canvas.getBoundingClientRect();
    return { x: e.clientX - box.left, y: e.clientY - box.top };
  };

  window.addEventListener('scroll', () => { lastScroll = performance.now(); }, { passive: true });

  canvas.addEventListener('wheel', (e) => {
    const now = performance.now();
    // A page scroll that passes over the chart keeps scrolling the page.
    if (!e.ctrlKey && now - lastScroll < 250 && now - lastWheel > 250) return;
    const view = act.view();
    const { x, y } = at(e);
    const lines = e.deltaMode === 1 ? 16 : 1;
    if (Math.abs(e.deltaX) > Math.abs(e.deltaY) && !e.shiftKey) {
      view.pan(-e.deltaX * lines, 0);
    } else {
      const delta = (e.deltaY || e.deltaX) * lines;
      if (delta > 0 && !view.zoomed) return;
      const factor = Math.exp(-delta * (e.ctrlKey ? 0.01 : 0.0018));
      view.zoom(e.shiftKey ? 1 : factor, e.shiftKey || e.ctrlKey ? factor : 1, x, y);
    }
    lastWheel = now;
    e.preventDefault();
    act.changed();
  }, { passive: false });

  canvas.addEventListener('pointerdown', (e) => {
    if (e.button !== 0) return;
    pointers.set(e.pointerId, at(e));
    moved = pointers.size > 1 ? 1e9 : 0;
    canvas.setPointerCapture(e.pointerId);
  });

  canvas.addEventListener('pointermove', (e) => {
    const p = at(e);
    const before = pointers.get(e.pointerId);
    if (!before) {
      act.hover(p.x, p.y, false);
      return;
    }
    const view = act.view();
    if (pointers.size === 1) {
      moved += Math.abs(p.x - before.x) + Math.abs(p.y - before.y);
      if (moved > 4) {
        view.pan(p.x - before.x, e.pointerType === 'touch' ? 0 : p.y - before.y);
        canvas.classList.add('dragging');
        act.leave();
        act.changed();
      }
    } else if (pointers.size === 2) {
      const other = [...pointers].find(([id]) => id !== e.pointerId)?.[1] as Point;
      pinch(view, before, p, other);
      act.leave();
      act.changed();
    }
    pointers.set(e.pointerId, p);
  });

  const finish = (e: PointerEvent): void => {
    const p = at(e);
    const had = pointers.delete(e.pointerId);
    canvas.classList.remove('dragging');
    if (had && e.type === 'pointerup' && moved <= 4) {
      act.click(p.x, p.y);
      act.hover(p.x, p.y, e.pointerType === 'touch');
    }
  };
  canvas.addEventListener('pointerup', finish);
  canvas.addEventListener('pointercancel', finish);
  canvas.addEventListener('pointerleave', () => { if (pointers.size === 0) act.leave(); });
  canvas.addEventListener('dblclick', () => {
    act.view().reset();
    act.changed();
  });

  canvas.addEventListener('keydown', (e) => {
    if (!handleKey(act, e)) return;
    e.preventDefault();
    act.changed();
  });
}

function pinch(view: View, before: Point, now: Point, other: Point): void {
  const ratio = (a: number, b: number): number => (Math.abs(b) < 24 || Math.abs(a) < 24 ? 1 : Math.abs(a / b));
  const fx = ratio(now.x - other.x, before.x - other.x);
  const fy = ratio(now.y - other.y, before.y - other.y);
  view.zoom(fx, fy, other.x, other.y);
  view.pan((now.x - before.x) / 2, (now.y - before.y) / 2);
}

function handleKey(act: Actions, e: KeyboardEvent): boolean {
  const view = act.view();
  const { left, top, width, height } = view.plot;
  const [x, y] = [left + width / 2, top + height / 2];
  const dx = width * 0.12;
  const dy = height * 0.12;
  switch (e.key) {
    case 'ArrowLeft': view.pan(dx, 0); return true;
    case 'ArrowRight': view.pan(-dx, 0); return true;
    case 'ArrowUp': view.pan(0, dy); return true;
    case 'ArrowDown': view.pan(0, -dy); return true;
    case '+': case '=': view.zoom(1.5, 1, x, y); return true;
    case '-': view.zoom(1 / 1.5, 1, x, y); return true;
    case '*': view.zoom(1, 1.5, x, y); return true;
    case '_': case '/': view.zoom(1, 1 / 1.5, x, y); return true;
    case '0': case 'Home': view.reset(); return true;
    case 'Escape': act.unpin(); return true;
    default: return false;
  }
}
