// Puts the page together.
import { h, type Child } from './dom';
import { loadReport } from './data';
import { installHook } from './hook';
import { State } from './state';
import { initTheme } from './theme';
import { breakdownSection } from './sections/breakdown';
import { cardsSection } from './sections/cards';
import { cdfSection } from './sections/cdf';
import { compareSection } from './sections/compare';
import { metricsSection, preemptionSection, rejectedSection } from './sections/details';
import { fairnessSection } from './sections/fairness';
import { ganttSection } from './sections/gantt';
import { footerSection, headerSection, runBar } from './sections/header';
import { timelineSection } from './sections/timeline';

function start(): void {
  const app = document.getElementById('app') as HTMLElement;
  const loaded = loadReport();
  if (!loaded.ok) {
    initTheme(() => undefined);
    app.append(h('main', { class: 'page' }, h('h1', null, 'Berth report'), h('p', { class: 'notice' }, loaded.message)));
    installHook(null);
    return;
  }
  const state = new State(loaded.report);
  initTheme(() => state.themeChanged());
  document.title = loaded.report.title ? `${loaded.report.title} – Berth report` : 'Berth report';
  const gantt = ganttSection(state);
  const preemptions = preemptionSection(state);
  const rejected = rejectedSection(state);
  const pair = [preemptions, rejected].filter((s): s is HTMLElement => s !== null);
  const sections: Child[] = [
    cardsSection(state), compareSection(state), cdfSection(state), timelineSection(state), gantt?.element,
    breakdownSection(state), fairnessSection(state),
    pair.length > 0 ? h('div', { class: 'pair' }, pair) : null,
    metricsSection(state),
  ];
  app.append(h('div', { class: 'page' }, headerSection(state)));
  const bar = runBar(state);
  if (bar) app.append(bar);
  app.append(h('main', { class: 'page' }, sections), h('div', { class: 'page' }, footerSection(state)));
  installHook(gantt);
}

start();
