// Leases: for how long GPUs are granted, and which grants have ended. They end on a common grid, so
// that GPUs of several jobs come on offer together. Nothing is known here of apps or auctions.
#pragma once

#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "base/rounds.h"
#include "core/view.h"

namespace berth::themis {

/// Whether the job has made a quarter of a lease of progress since it had done `since`. A job that
/// has not is left alone: where a restart takes as long as a lease, jobs would otherwise preempt
/// each other for ever and none would progress.
[[nodiscard]] bool has_got_on(const View& view, JobId job, Duration since, Duration lease);

class Leases {
 public:
  Leases(Duration length, Duration align) : length_(length), grid_(align) {}
  void begin(const View& view) { rows_.resize(view.jobs.size()); }

  /// A lease from now on; replaces the present one.
  void grant(const View& view, JobId job);
  void drop(JobId job);
  [[nodiscard]] bool has(JobId job) const noexcept { return rows_[job].end != kNever; }
  [[nodiscard]] bool empty() const noexcept { return by_end_.empty(); }
  [[nodiscard]] Time first_end() const noexcept { return by_end_.begin()->first; }

  /// The jobs whose leases end now, earliest end first. A lease is extended instead if its job was
  /// busy restarting, or if it ended earlier and nobody wanted its GPUs then (`was_wanted(job)`).
  template <class WasWanted>
  [[nodiscard]] std::vector<JobId> take_ended(const View& view, const WasWanted& was_wanted) {
    std::vector<JobId> ended;
    while (!by_end_.empty() && by_end_.begin()->first <= view.now) {
      const JobId job = by_end_.begin()->second;
      if (const auto later = renewal(view, job, was_wanted(job))) {
        set_end(job, *later);
      } else {
        drop(job);
        ended.push_back(job);
      }
    }
    return ended;
  }

 private:
  struct Row {
    Time end = kNever;
    Duration work_at_start{};
  };
  [[nodiscard]] std::optional<Time> renewal(const View& view, JobId job, bool was_wanted) const;
  void set_end(JobId job, Time end);

  Duration length_;
  Grid grid_;
  Column<JobId, Row> rows_;
  std::set<std::pair<Time, JobId>> by_end_;
};

}  // namespace berth::themis
