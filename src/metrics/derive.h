// From job rows to distributions and groups: shared by a fresh run and one read back from files.
#pragma once

#include "metrics/run_data.h"

namespace berth {

/// Counts, times, fairness and use of GPUs: everything that follows from the jobs alone.
void describe_jobs(Summary& summary, const Outcomes& jobs, double cluster_gpus);
[[nodiscard]] TraceFacts facts_of(const Trace& trace);
[[nodiscard]] ClusterFacts facts_of(const Cluster& cluster);
/// Fills the distributions, groups, histogram and rejections of `run` from run.jobs and
/// run.cluster.gpus.
void derive_from_jobs(RunData& run);
/// Size classes 1, 2, 3-4, 5-8, … >64 that have jobs.
[[nodiscard]] std::vector<GroupRow> groups_by_size(const Outcomes& jobs);
/// The 30 users with most GPU time, then "others".
[[nodiscard]] std::vector<GroupRow> groups_by_user(const Outcomes& jobs);
/// Device lanes for the longest intervals; in Count mode lanes are handed out greedily, lowest
/// first.
[[nodiscard]] Gantt gantt_of(const IntervalLog& intervals, const Outcomes& jobs,
                             const Cluster& cluster, std::size_t max_bars = kMaxGanttBars);

}  // namespace berth
