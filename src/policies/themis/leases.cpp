#include "policies/themis/leases.h"

#include <algorithm>

namespace berth::themis {

bool has_got_on(const View& view, JobId job, Duration since, Duration lease) {
  const Duration done = view.jobs.work_done(job, view.now) - since;
  return done >= view.jobs.rate[job].work_in(lease / 4);
}

void Leases::grant(const View& view, JobId job) {
  set_end(job, grid_.at_or_after(view.now + length_));
  rows_[job].work_at_start = view.jobs.work_done(job, view.now);
}

void Leases::drop(JobId job) {
  by_end_.erase({rows_[job].end, job});
  rows_[job].end = kNever;
}

void Leases::set_end(JobId job, Time end) {
  drop(job);
  rows_[job].end = end;
  by_end_.emplace(end, job);
}

std::optional<Time> Leases::renewal(const View& view, JobId job, bool was_wanted) const {
  const Row& row = rows_[job];
  if (row.end < view.now && !was_wanted) {
    // Nothing woke the policy for these ends: the lease continues as if renewed at each of them.
    const Duration term = grid_.at_or_after(Time{length_}).time_since_epoch();
    return row.end + (view.now - row.end + term - Duration{1}) / term * term;
  }
  if (has_got_on(view, job, row.work_at_start, length_)) return std::nullopt;
  const Time at_work = std::max(view.now, view.jobs.work_from[job]);
  return grid_.at_or_after(at_work + length_ / 4 + Duration{1});
}

}  // namespace berth::themis
