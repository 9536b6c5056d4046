// Light and dark, and the colours that scripts draw with.
export type Theme = 'light' | 'dark';

const query = window.matchMedia('(prefers-color-scheme: dark)');
let chosen: Theme | null = null;
let printing = false;
let notify: () => void = () => undefined;

export function currentTheme(): Theme {
  if (printing) return 'light';
  return chosen ?? (query.matches ? 'dark' : 'light');
}

function apply(): void {
  document.documentElement.dataset.theme = currentTheme();
  notify();
}

export function initTheme(onChange: () => void): void {
  document.documentElement.dataset.theme = currentTheme();
  notify = onChange;
  query.addEventListener('change', apply);
  window.addEventListener('beforeprint', () => {
    printing = true;
    apply();
  });
  window.addEventListener('afterprint', () => {
    printing = false;
    apply();
  });
}

export function toggleTheme(): void {
  chosen = currentTheme() === 'dark' ? 'light' : 'dark';
  apply();
}

// Hues that stay apart under the common colour-vision deficiencies; beyond
// eight series the dash pattern tells them apart.
const SERIES: Record<Theme, string[]> = {
  light: ['#0072b2', '#d55e00', '#009e73', '#b5539c', '#b8860b', '#3aa0d8', '#7a4b2a', '#5b6670'],
  dark: ['#4aa8e8', '#f0813a', '#2fc79a', '#e08cc6', '#e6b33c', '#8fd0f5', '#c49a78', '#a9b4be'],
};
const DASHES: number[][] = [[], [7, 4], [2, 3], [9, 3, 2, 3], [4, 2]];

export interface Stroke {
  color: string;
  dash: number[];
}

export function seriesStroke(index: number): Stroke {
  const colors = SERIES[currentTheme()];
  return {
    color: colors[index % colors.length] as string,
    dash: DASHES[Math.floor(index / colors.length) % DASHES.length] as number[],
  };
}

export const cssVar = (name: string): string =>
  getComputedStyle(document.documentElement).getPropertyValue(name).trim();

export type Rgb = [number, number, number];

export function parseHex(hex: string): Rgb {
  const n = parseInt(hex.slice(1), 16);
  return [(n >> 16) & 255, (n >> 8) & 255, n & 255];
}
