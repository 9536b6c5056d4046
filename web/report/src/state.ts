// What the sections share: the chosen run and a way to hear about changes.
import { baselineIndex } from './data';
import type { Report, Run } from './types';

type Listener = () => void;

export class State {
  readonly baseline: number;
  private selected = 0;
  private readonly runListeners: Listener[] = [];
  private readonly themeListeners: Listener[] = [];

  constructor(readonly report: Report) {
    this.baseline = baselineIndex(report);
  }

  get runs(): Run[] {
    return this.report.runs;
  }

  get several(): boolean {
    return this.runs.length > 1;
  }

  get index(): number {
    return this.selected;
  }

  get run(): Run {
    return this.runs[this.selected] as Run;
  }

  get reference(): Run | null {
    return this.runs[this.baseline] ?? null;
  }

  select(index: number): void {
    if (index === this.selected || !this.runs[index]) return;
    this.selected = index;
    for (const listener of this.runListeners) listener();
  }

  onRun(listener: Listener): void {
    this.runListeners.push(listener);
  }

  onTheme(listener: Listener): void {
    this.themeListeners.push(listener);
  }

  themeChanged(): void {
    for (const listener of this.themeListeners) listener();
  }
}
