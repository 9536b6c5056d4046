#include "policies/themis/leases.h"

#include <algorithm>

namespace berth::themis {

bool has_progressed(const View& view, JobId job, Duration since, Duration lease) {
  const Duration done = view.jobs.work_done(job, view.now) - since;
  return done >= view.jobs.rate[job].work_in(lease / 4);
}

void Leases::grant(const View& view, JobId job) {
  ends_.set(job, grid_.at_or_after(view.now + length_));
  work_at_start_[job] = view.jobs.work_done(job, view.now);
}

/// Of the lease that ends first.
std::optional<Time> Leases::extension(const View& view, JobId job, bool was_wanted) const {
  const Time end = ends_.next();
  if (end < view.now && !was_wanted) {
    // Nothing woke the policy for these ends: the lease continues as if renewed at each of them.
    const Duration term = grid_.at_or_after(Time{length_}).time_since_epoch();
    return end + (view.now - end + term - Duration{1}) / term * term;
  }
  if (has_progressed(view, job, work_at_start_[job], length_)) return std::nullopt;
  const Time at_work = std::max(view.now, view.jobs.work_from[job]);
  return grid_.at_or_after(at_work + length_ / 4 + Duration{1});
}

}  // namespace berth::themis
