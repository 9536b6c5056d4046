#include "metrics/recorded.h"

#include <algorithm>

#include "metrics/derive.h"

namespace berth {

namespace {

JobState recorded_state(const TraceJob& job) {
  if (!job.recorded) return JobState::Unknown;
  switch (job.status) {
    case TraceStatus::Completed: return JobState::Completed;
    case TraceStatus::Failed: return JobState::Failed;
    case TraceStatus::Killed: return JobState::Cancelled;
  }
  return JobState::Completed;
}

JobOutcome recorded_outcome(const TraceJob& job) {
  JobOutcome row;
  row.id = job.id;
  row.user = job.user;
  row.group = job.group;
  row.queue = job.queue;
  row.model = job.model;
  row.state = recorded_state(job);
  row.gpus = devices_of(job);
  row.submit = job.submit;
  row.duration = job.duration;
  row.deadline = job.deadline;
  row.soft_deadline = job.soft_deadline;
  if (!job.recorded) return row;
  row.start = job.recorded->start;
  row.finish = job.recorded->end;
  row.run_time = job.recorded->held;
  row.service = job.recorded->held * row.gpus;
  row.work = job.duration;
  row.preemptions = static_cast<std::uint32_t>(job.recorded->restarts);
  return row;
}

/// A change of the levels. A job that was put back counts as running in between: nobody says when
/// it waited again.
struct Change {
  Time at;
  std::int64_t queue = 0, running = 0, gpus = 0;
};

std::vector<Change> changes_of(const std::vector<JobOutcome>& rows) {
  std::vector<Change> changes;
  for (const JobOutcome& row : rows) {
    if (!row.ran_to_an_end()) continue;
    changes.push_back({.at = row.submit, .queue = 1, .gpus = row.gpus});
    changes.push_back({.at = *row.start, .queue = -1, .running = 1, .gpus = row.gpus});
    changes.push_back({.at = *row.finish, .running = -1, .gpus = row.gpus});
  }
  std::ranges::stable_sort(changes, {}, &Change::at);
  return changes;
}

std::vector<TimelinePoint> timeline_of(const std::vector<JobOutcome>& rows,
                                       std::int64_t cluster_gpus) {
  Timeline timeline;
  Levels levels{.capacity = static_cast<double>(cluster_gpus)};
  for (const Change& change : changes_of(rows)) {
    levels.queue += static_cast<double>(change.queue);
    levels.queued_gpus += static_cast<double>(change.queue * change.gpus);
    levels.running += static_cast<double>(change.running);
    levels.busy += static_cast<double>(change.running * change.gpus);
    timeline.add(change.at, levels);
  }
  return timeline.points();
}

/// A lower bound: jobs with a gap of unknown place are not counted, and who ends makes room first.
std::int64_t most_gpus_of(std::vector<JobOutcome> rows) {
  std::erase_if(rows, [](const JobOutcome& row) { return row.preemptions > 0; });
  std::vector<Change> changes = changes_of(rows);
  std::ranges::stable_sort(changes, {}, [](const Change& change) {
    return std::pair(change.at, change.running);  // -1 before +1
  });
  std::int64_t held = 0;
  std::int64_t most = 0;
  for (const Change& change : changes) {
    held += change.running * change.gpus;
    most = std::max(most, held);
  }
  return most;
}

}  // namespace

std::optional<Recorded> recorded_run(const Trace& trace, const Cluster& cluster,
                                     const std::vector<bool>& rejected) {
  Recorded recorded;
  RunData& run = recorded.run;
  run.jobs.names = trace.names;
  run.jobs.rows.reserve(trace.jobs.size());
  for (std::size_t i = 0; i < trace.jobs.size(); ++i) {
    const TraceJob& job = trace.jobs[i];
    JobOutcome row = recorded_outcome(job);
    if (i < rejected.size() && rejected[i]) {
      row.state = JobState::Rejected;
      row.reason = run.jobs.names.intern("every policy rejects it on this cluster");
      row.run_time = row.service = row.work = Duration{};
    } else if (job.recorded) {
      recorded.cut += job.recorded->is_cut ? 1U : 0U;
      recorded.restarted += job.recorded->restarts > 0 ? 1U : 0U;
    } else {
      ++recorded.unknown;
    }
    run.jobs.rows.push_back(row);
  }
  if (std::ranges::none_of(run.jobs.rows, &JobOutcome::ran_to_an_end)) return std::nullopt;
  count_neighbours(run.jobs.rows);
  run.summary.policy = kRecordedPolicy;
  run.summary.label = kRecordedLabel;
  run.summary.is_recorded = true;
  describe_jobs(run.summary, run.jobs, static_cast<double>(cluster.total_gpus()));
  run.trace = facts_of(trace);
  run.cluster = facts_of(cluster);
  derive_from_jobs(run);
  run.timeline = timeline_of(run.jobs.rows, cluster.total_gpus());
  recorded.most_gpus = most_gpus_of(run.jobs.rows);
  return recorded;
}

}  // namespace berth
