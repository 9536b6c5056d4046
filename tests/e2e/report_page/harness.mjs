// Counting of checks, and a browser page that notices errors and requests.
import { createRequire } from 'node:module';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';

const require = createRequire(join(process.env.BERTH_REPORT_DIR, 'package.json'));
const { chromium } = require('playwright-core');

let passed = 0;
let failed = 0;
let prefix = '';

export const inGroup = (name) => { prefix = name ? `${name}: ` : ''; };

export function ok(condition, name, detail = '') {
  if (condition) passed++;
  else failed++;
  console.log(`${condition ? 'ok' : 'not ok'} - ${prefix}${name}${!condition && detail !== '' ? ` (${detail})` : ''}`);
  return Boolean(condition);
}

export const equal = (actual, expected, name) =>
  ok(JSON.stringify(actual) === JSON.stringify(expected), name, `got ${JSON.stringify(actual)}, expected ${JSON.stringify(expected)}`);

export const close = (actual, expected, tolerance, name) =>
  ok(Math.abs(actual - expected) <= tolerance, name, `got ${actual}, expected ${expected} ± ${tolerance}`);

export function finish() {
  console.log(`${passed} passed, ${failed} failed`);
  return failed === 0 ? 0 : 1;
}

export const launch = () => chromium.launch({
  executablePath: process.env.BERTH_CHROMIUM,
  args: ['--headless', '--no-sandbox', '--disable-gpu', '--disable-background-networking', '--disable-component-update', '--disable-sync', '--no-first-run'],
});

export function writePage(name, html) {
  const file = join(process.env.BERTH_SCRATCH, `${name}.html`);
  writeFileSync(file, html);
  return file;
}

/** Opens a file; the result carries everything that must not have happened. */
export async function open(browser, file, { width = 1366, height = 900, dark = false, touch = false } = {}) {
  const context = await browser.newContext({ viewport: { width, height }, colorScheme: dark ? 'dark' : 'light', hasTouch: touch, reducedMotion: 'reduce' });
  const page = await context.newPage();
  const trouble = [];
  const own = pathToFileURL(file).href;
  page.on('console', (m) => { if (m.type() === 'error') trouble.push(`console: ${m.text()}`); });
  page.on('pageerror', (e) => trouble.push(`exception: ${e.message}`));
  page.on('request', (r) => { if (r.url() !== own && !r.url().startsWith('data:')) trouble.push(`request: ${r.url()}`); });
  await page.goto(own);
  await settle(page);
  return {
    page, trouble,
    done: async () => {
      ok(trouble.length === 0, 'no console errors and no requests', trouble.join('; '));
      await context.close();
    },
  };
}

/** Two frames: enough for everything the page schedules. */
export const settle = (page) => page.evaluate(() => new Promise((done) => {
  requestAnimationFrame(() => requestAnimationFrame(() => done(null)));
}));

export const overflow = (page) => page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);

export const median = (values) => [...values].sort((a, b) => a - b)[values.length >> 1];

/** The number in a text such as "2.31 h", in base units. */
export function parseHuman(text) {
  const m = /(-?[\d,.]+)\s*(kWh|MWh|ms|min|s|h|d|k|M|G|T|%|×)?/.exec(text.replace(/\u202f|\u2009/g, ' ').trim());
  if (!m) return NaN;
  const unit = { ms: 1e-3, s: 1, min: 60, h: 3600, d: 86400, k: 1e3, M: 1e6, G: 1e9, T: 1e12, MWh: 1000, '%': 0.01 }[m[2]] ?? 1;
  return Number(m[1].replaceAll(',', '')) * unit;
}
