// Leases: for how long GPUs are granted, and which grants have ended. They end on a common grid, so
// that GPUs of several jobs come on offer together. Nothing is known here of apps or auctions.
#pragma once

#include <optional>
#include <vector>

#include "base/rounds.h"
#include "core/view.h"
#include "policies/kit/job_timers.h"

namespace berth::themis {

/// Whether the job has made a quarter of a lease of progress since it had done `since`. A job that
/// has not is left alone: where a restart takes as long as a lease, jobs would otherwise preempt
/// each other for ever and none would progress.
[[nodiscard]] bool has_progressed(const View& view, JobId job, Duration since, Duration lease);

class Leases {
 public:
  Leases(Duration length, Duration align) : length_(length), grid_(align) {}
  void begin(const View& view) { work_at_start_.resize(view.jobs.size()); }

  /// A lease from now on; replaces the present one.
  void grant(const View& view, JobId job);
  void drop(JobId job) { ends_.drop(job); }
  [[nodiscard]] bool has(JobId job) const noexcept { return ends_.is_set(job); }
  [[nodiscard]] bool empty() const noexcept { return ends_.empty(); }
  [[nodiscard]] Time first_end() const noexcept { return ends_.next(); }

  /// The jobs whose leases end now, earliest end first. A lease is extended instead if its job was
  /// busy restarting, or if it ended earlier and nobody wanted its GPUs then (`was_wanted(job)`).
  template <class WasWanted>
  [[nodiscard]] std::vector<JobId> take_ended(const View& view, const WasWanted& was_wanted) {
    std::vector<JobId> ended;
    while (ends_.next() <= view.now) {  // one by one: a lease may be extended to this very moment
      const JobId job = ends_.first();
      if (const auto later = extension(view, job, was_wanted(job))) {
        ends_.set(job, *later);
      } else {
        ends_.drop(job);
        ended.push_back(job);
      }
    }
    return ended;
  }

 private:
  [[nodiscard]] std::optional<Time> extension(const View& view, JobId job, bool was_wanted) const;

  Duration length_;
  Grid grid_;
  JobTimers ends_;
  Column<JobId, Duration> work_at_start_;
};

}  // namespace berth::themis
