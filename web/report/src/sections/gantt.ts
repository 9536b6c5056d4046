// The Gantt block: toolbar, canvas, tooltip, search and the pinned job.
import { fill, h, hint, section } from '../dom';
import { clock, count, duration, grouped } from '../format';
import { GanttChart } from '../gantt/chart';
import { sizeLegend, type ColorBy } from '../gantt/colors';
import { buildModel, type Model } from '../gantt/model';
import type { State } from '../state';

export interface GanttHandle {
  element: HTMLElement;
  chart(): GanttChart | null;
}

export function ganttSection(state: State): GanttHandle | null {
  if (!state.runs.some((r) => (r.gantt?.lane?.length ?? 0) > 0)) return null;
  let chart: GanttChart | null = null;
  let by: ColorBy = 'job';
  const host = h('div', { class: 'gantt-host' });
  const tip = h('div', { class: 'tip', role: 'tooltip', hidden: true });
  const pinned = h('div', { class: 'pinned', hidden: true, 'aria-live': 'polite' });
  const legend = h('div', { class: 'gantt-legend' });
  const shown = h('span', { class: 'gantt-shown' });
  const message = h('span', { class: 'search-message', role: 'status' });
  const empty = h('p', { class: 'empty' }, 'No intervals were recorded for this run.');
  const search = h('input', { type: 'search', id: 'gantt-search', placeholder: 'Job id', 'aria-label': 'Find a job by its id', autocomplete: 'off', spellcheck: 'false' });
  const colorSelect = h('select', { id: 'gantt-color', 'aria-label': 'Colour the intervals by', on: { change: () => setColors(colorSelect.value as ColorBy) } },
    h('option', { value: 'job' }, 'job'), h('option', { value: 'user' }, 'user'), h('option', { value: 'size' }, 'GPUs'));
  const button = (id: string, text: string, label: string, act: (c: GanttChart) => void): HTMLElement =>
    h('button', { type: 'button', class: 'small-button', id, 'aria-label': label, title: label, on: { click: () => { if (chart) act(chart); } } }, text);

  const tools = h('div', { class: 'controls' },
    h('form', { class: 'search', role: 'search', on: { submit: (e) => { e.preventDefault(); find(search.value.trim()); } } },
      search, h('button', { type: 'submit', class: 'small-button' }, 'Find'), message),
    h('label', { class: 'field' }, 'Colour by ', colorSelect),
    h('div', { class: 'tool-group', role: 'group', 'aria-label': 'Zoom' },
      h('span', { class: 'tool-name' }, 'Time'),
      button('gantt-zoom-out', '−', 'Zoom out in time', (c) => c.zoomBy(1 / 1.6, 1)),
      button('gantt-zoom-in', '+', 'Zoom in in time', (c) => c.zoomBy(1.6, 1)),
      h('span', { class: 'tool-name' }, 'Lanes'),
      button('gantt-lanes-out', '−', 'Show more lanes', (c) => c.zoomBy(1, 1 / 1.6)),
      button('gantt-lanes-in', '+', 'Show taller lanes', (c) => c.zoomBy(1, 1.6)),
      button('gantt-reset', 'Reset', 'Show everything', (c) => c.resetView())));

  const element = section('gantt', 'Jobs on GPUs',
    hint('Wheel zooms time, Shift + wheel lanes, drag pans, click pins a job, double-click resets.', 'Pinch to zoom, drag sideways to pan, tap to pin a job.'),
    tools, host, pinned, h('div', { class: 'gantt-foot' }, legend, shown), empty);
  element.appendChild(tip);

  function setColors(value: ColorBy): void {
    by = value;
    chart?.colorBy(by);
    drawLegend();
  }

  function drawLegend(): void {
    if (!chart) return;
    const entry = (color: string, label: string): HTMLElement =>
      h('span', { class: 'key' }, h('span', { class: 'swatch', 'aria-hidden': 'true', style: { background: color } }), label);
    const overhead = chart.model.kind.includes(1);
    fill(legend,
      by === 'size' ? [h('span', { class: 'key' }, 'GPUs per job'), ...sizeLegend().map((s) => entry(s.color, s.label))] : null,
      overhead ? entry(chart.overheadColor(), 'restart or checkpoint') : null);
  }

  function find(id: string): void {
    message.textContent = '';
    if (!chart || id === '') return;
    const { jobs, jobRows } = chart.model;
    const has = (j: number): boolean => jobRows[j + 1]! > jobRows[j]!;
    const lower = id.replace(/^#/, '').toLowerCase();
    const exact = jobs.findIndex((j, i) => j.id.toLowerCase() === lower && has(i));
    const found = exact >= 0 ? exact : jobs.findIndex((j, i) => j.id.toLowerCase().startsWith(lower) && has(i));
    if (found < 0) {
      message.textContent = `No job ${id} in this chart`;
      return;
    }
    chart.pin(found);
    chart.reveal(found);
  }

  function showTip(k: number, x: number, y: number): void {
    tip.hidden = k < 0;
    if (k < 0 || !chart) return;
    const m = chart.model;
    const job = m.jobs[m.job[k]!]!;
    const lane = m.lanes[m.laneOf[k]!]!;
    const node = m.nodes[lane.node]!;
    const row = (name: string, value: string): HTMLElement | null => (value ? h('div', null, h('dt', null, name), h('dd', null, value)) : null);
    fill(tip, h('strong', null, `Job ${job.id}`, m.kind[k] === 1 ? h('span', { class: 'badge' }, 'overhead') : null),
      h('dl', null,
        row('User', job.user),
        row('GPUs', job.gpus === null ? '' : grouped(job.gpus)),
        row('Start', clock(m.start[k]!)),
        row('End', clock(m.end[k]!)),
        row('Length', duration(m.end[k]! - m.start[k]!)),
        row('Device', [`${node.name}:${lane.device}`, node.type, node.rack].filter(Boolean).join(' · '))));
    const box = element.getBoundingClientRect();
    const canvas = chart.canvas.getBoundingClientRect();
    const px = canvas.left - box.left + x;
    const left = px + 16 + tip.offsetWidth > box.width - 8 ? px - 16 - tip.offsetWidth : px + 16;
    tip.style.left = `${Math.max(8, left)}px`;
    tip.style.top = `${canvas.top - box.top + Math.min(y + 16, chart.canvas.clientHeight - tip.offsetHeight)}px`;
  }

  function showPinned(job: number): void {
    pinned.hidden = job < 0;
    if (job < 0 || !chart) return;
    fill(pinned, pinnedText(chart.model, job),
      h('button', { type: 'button', class: 'small-button', on: { click: () => chart?.reveal(job) } }, 'Show all of it'),
      h('button', { type: 'button', class: 'small-button', id: 'gantt-unpin', on: { click: () => chart?.pin(-1) } }, 'Release'));
  }

  function build(): void {
    chart?.destroy();
    tip.hidden = true;
    pinned.hidden = true;
    message.textContent = '';
    const data = state.run.gantt;
    const model = data && Array.isArray(data.lane) ? buildModel(data) : null;
    chart = model ? new GanttChart(model, { hover: showTip, pin: showPinned, view: () => undefined }) : null;
    tools.hidden = chart === null;
    empty.hidden = chart !== null;
    fill(host, chart?.element);
    shown.textContent = model
      ? `${count(model.shown)}${model.total > model.shown ? ` of ${count(model.total)}` : ''} intervals on ${count(model.lanes.length)} GPUs`
      : '';
    if (!chart) fill(legend);
    chart?.colorBy(by);
    chart?.resize();
    drawLegend();
  }
  requestAnimationFrame(build);
  state.onRun(build);
  state.onTheme(() => {
    chart?.refreshColors();
    drawLegend();
  });
  return { element, chart: () => chart };
}

function pinnedText(m: Model, job: number): HTMLElement {
  const info = m.jobs[job]!;
  let [first, last, segments, overhead] = [Infinity, -Infinity, new Set<number>(), 0];
  for (let i = m.jobRows[job]!; i < m.jobRows[job + 1]!; i++) {
    const k = m.ofJob[i]!;
    first = Math.min(first, m.start[k]!);
    last = Math.max(last, m.end[k]!);
    if (m.kind[k] === 1) overhead += m.end[k]! - m.start[k]!;
    else segments.add(m.start[k]!);
  }
  const parts = [
    info.user && `user ${info.user}`,
    info.gpus !== null && `${grouped(info.gpus)} GPU${info.gpus === 1 ? '' : 's'}`,
    `${clock(first)} to ${clock(last)}`,
    segments.size > 1 && `${segments.size} segments`,
    overhead > 0 && `${duration(overhead)} GPU time of overhead`,
  ].filter(Boolean);
  return h('span', { class: 'pinned-text' }, h('strong', null, `Job ${info.id}`), ` ${parts.join(' · ')}`);
}
