// Reads the embedded JSON and irons out what may be missing or duplicated.
import type { Cdf, CdfKind, Report, Run, Timeline } from './types';

export type Loaded = { ok: true; report: Report } | { ok: false; message: string };

const isObject = (v: unknown): v is Record<string, unknown> =>
  typeof v === 'object' && v !== null && !Array.isArray(v);

export const finite = (v: unknown): v is number => typeof v === 'number' && Number.isFinite(v);

export function loadReport(): Loaded {
  const text = document.getElementById('berth-data')?.textContent ?? '';
  let raw: unknown;
  try {
    raw = JSON.parse(text);
  } catch {
    return { ok: false, message: 'This page holds no simulation results yet. Berth fills them in when it writes a report.' };
  }
  if (!isObject(raw)) return { ok: false, message: 'The embedded results are not in the expected form.' };
  const report = raw as unknown as Report;
  report.runs = (Array.isArray(raw.runs) ? raw.runs : []).filter(isObject).map((r, i) => normaliseRun(r as unknown as Run, i));
  makeLabelsUnique(report.runs);
  if (report.runs.length === 0 && !isObject(raw.live)) return { ok: false, message: 'The embedded results contain no runs.' };
  return { ok: true, report };
}

function normaliseRun(run: Run, index: number): Run {
  run.label = String(run.label || run.policy || `run ${index + 1}`);
  run.summary = isObject(run.summary) ? run.summary : {};
  return run;
}

function makeLabelsUnique(runs: Run[]): void {
  const count = new Map<string, number>();
  for (const run of runs) count.set(run.label, (count.get(run.label) ?? 0) + 1);
  const seen = new Map<string, number>();
  for (const run of runs) {
    if ((count.get(run.label) ?? 0) < 2) continue;
    const n = (seen.get(run.label) ?? 0) + 1;
    seen.set(run.label, n);
    run.label = `${run.label} (${n})`;
  }
}

/** Index of the run that ratios refer to, or -1. */
export function baselineIndex(report: Report): number {
  if (!report.baseline) return -1;
  const byPolicy = report.runs.findIndex((r) => r.policy === report.baseline);
  return byPolicy >= 0 ? byPolicy : report.runs.findIndex((r) => r.label === report.baseline);
}

/** The distribution with unusable points removed, or null when nothing is left. */
export function cdfOf(run: Run, kind: CdfKind): Cdf | null {
  const raw = run.cdf?.[kind];
  if (!raw || !Array.isArray(raw.x) || !Array.isArray(raw.p)) return null;
  const x: number[] = [];
  const p: number[] = [];
  for (let i = 0; i < Math.min(raw.x.length, raw.p.length); i++) {
    const xi = raw.x[i];
    const pi = raw.p[i];
    if (finite(xi) && finite(pi)) {
      x.push(xi);
      p.push(pi);
    }
  }
  return x.length > 0 ? { x, p } : null;
}

export function timelineOf(run: Run): Timeline | null {
  const t = run.timeline?.t;
  return Array.isArray(t) && t.length > 1 ? (run.timeline as Timeline) : null;
}

/** Index of the last element <= value in an ascending array, or -1. */
export function lastAtMost(sorted: ArrayLike<number>, value: number): number {
  let lo = 0;
  let hi = sorted.length;
  while (lo < hi) {
    const mid = (lo + hi) >>> 1;
    if ((sorted[mid] as number) <= value) lo = mid + 1;
    else hi = mid;
  }
  return lo - 1;
}
