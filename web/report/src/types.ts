// Shape of the data that the simulator writes into the page. Every field may
// be missing; the widgets that need it then stay away.

export type Num = number | null | undefined;
export type Summary = Record<string, Num>;

export interface Cdf {
  x: number[];
  p: number[];
}

export type CdfKind = 'jct' | 'queue' | 'slowdown' | 'ftf';

export interface Timeline {
  t: number[];
  queue?: (number | null)[];
  queued_gpus?: (number | null)[];
  busy?: (number | null)[];
  running?: (number | null)[];
  capacity?: (number | null)[];
}

export interface GanttNode {
  name?: string;
  gpus?: number;
  type?: string;
  rack?: string;
}

export interface GanttJob {
  id?: string | number;
  gpus?: number;
  user?: string;
}

export interface Gantt {
  nodes?: GanttNode[];
  jobs?: GanttJob[];
  lane: number[];
  start: number[];
  end: number[];
  job: number[];
  kind?: number[];
  shown?: number;
  total?: number;
}

export interface Group {
  label: string;
  [metric: string]: Num | string;
}

export interface Rejection {
  job: string | number;
  reason?: string;
}

export interface Run {
  policy?: string;
  label: string;
  placement?: string;
  estimator?: string;
  seed?: number | string;
  digest?: string;
  summary: Summary;
  confidence?: Record<string, [number, number] | null> | null;
  cdf?: Partial<Record<CdfKind, Cdf | null>> | null;
  timeline?: Timeline | null;
  gantt?: Gantt | null;
  by_size?: Group[] | null;
  by_user?: Group[] | null;
  preemption_histogram?: [number, number][] | null;
  rejected?: Rejection[] | null;
}

/** What a live scheduler has used, in kWh. */
export interface LiveEnergy {
  nobody?: number;
  users?: { name: string; kwh: number }[];
  nodes?: { name: string; kwh?: Record<string, number> }[];
  jobs?: { id: string; name: string; user: string; state: string; kwh: number }[];
}

export interface Report {
  version?: number;
  title?: string;
  generated_by?: string;
  trace?: { name?: string; jobs?: Num; span?: Num; gpu_seconds?: Num } | null;
  cluster?: { name?: string; nodes?: Num; gpus?: Num; types?: { type?: string; gpus?: Num }[] | null } | null;
  baseline?: string | null;
  live?: LiveEnergy | null;
  runs: Run[];
}
