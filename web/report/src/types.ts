// What stands in the page, as src/report/run_fields.h describes it. Made by report_test, not
// by hand: BERTH_WRITE_GOLDEN=1 build/dev/tests/report_test --gtest_filter='Wire.*'

export interface Trace {
  name?: string;
  jobs?: number;
  /** seconds from the first submit to the last */
  span?: number;
  gpu_seconds?: number;
}

export interface GpuType {
  type?: string;
  gpus?: number;
}

export interface Cluster {
  name?: string;
  nodes?: number;
  gpus?: number;
  types?: GpuType[];
}

export interface UserEnergy {
  name: string;
  kwh: number;
}

export interface NodeEnergy {
  name: string;
  /** by what it was doing */
  kwh?: Record<string, number>;
}

export interface JobEnergy {
  id: string;
  name: string;
  user: string;
  state: string;
  kwh: number;
}

/** What a live scheduler has used, in kWh. */
export interface LiveEnergy {
  nobody?: number;
  users?: UserEnergy[];
  nodes?: NodeEnergy[];
  jobs?: JobEnergy[];
}

export interface Cdf {
  /** ascending */
  x: number[];
  /** from 0 to 1 */
  p: number[];
}

export interface Cdfs {
  jct?: Cdf;
  queue?: Cdf;
  slowdown?: Cdf;
  ftf?: Cdf;
}

/** Step functions over t. */
export interface Timeline {
  /** seconds */
  t: number[];
  /** jobs submitted and not running */
  queue?: number[];
  /** what they ask for */
  queued_gpus?: number[];
  /** GPUs granted */
  busy?: number[];
  /** jobs */
  running?: number[];
  /** GPUs of nodes that are up */
  capacity?: number[];
}

export interface GanttNode {
  name?: string;
  gpus?: number;
  type?: string;
  rack?: string;
}

export interface GanttJob {
  id?: string;
  gpus?: number;
  user?: string;
}

/** One bar in each row of the columns. */
export interface Gantt {
  nodes?: GanttNode[];
  jobs?: GanttJob[];
  /** running number of the device over all nodes */
  lane: number[];
  /** seconds */
  start: number[];
  /** seconds */
  end: number[];
  /** row of jobs */
  job: number[];
  /** 0: run, 1: overhead */
  kind?: number[];
  /** bars here */
  shown?: number;
  /** bars there would be without the limit */
  total?: number;
}

export interface Group {
  label: string;
  jobs?: number;
  avg_jct?: number;
  median_jct?: number;
  p95_jct?: number;
  avg_queue_time?: number;
  gpu_hours?: number;
  preemptions?: number;
}

export interface Rejection {
  job: string;
  reason?: string;
}

export interface Run {
  policy?: string;
  label: string;
  placement?: string;
  estimator?: string;
  seed?: number;
  digest?: string;
  /** metrics by name (docs/metrics.md) */
  summary: Record<string, number | null>;
  /** 95 % intervals by metric; null: a single seed */
  confidence?: Record<string, [number, number]> | null;
  cdf?: Cdfs;
  /** null: nothing was recorded */
  timeline?: Timeline | null;
  /** null: not recorded, or the page would be too large */
  gantt?: Gantt | null;
  by_size?: Group[];
  by_user?: Group[];
  /** preemptions, and how many jobs had so many */
  preemption_histogram?: [number, number][];
  rejected?: Rejection[];
}

/** What stands in the page. An older page or older data may lack any field. */
export interface Report {
  version?: number;
  title?: string;
  generated_by?: string;
  trace?: Trace;
  cluster?: Cluster;
  /** policy or label that ratios refer to */
  baseline?: string | null;
  live?: LiveEnergy;
  runs: Run[];
}
