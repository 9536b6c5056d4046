#include "policies/oasis/guests.h"

#include <algorithm>

#include "policies/common/sized_start.h"

namespace berth::oasis {

void Guests::add(const View& view, JobId job) {
  if (view.jobs.is_running(job)) {
    running_.insert(job);
  } else {
    waiting_.push(view.jobs.shape[job], job);
  }
}

void Guests::remove(const View& view, JobId job) {
  running_.erase(job);
  waiting_.forget(view.jobs.shape[job], job);
}

void Guests::requeue(const View& view, JobId job) {
  running_.erase(job);
  waiting_.push(view.jobs.shape[job], job);
}

void Guests::start_waiting(Pass& pass) {
  if (waiting_.empty() || pass.view.cluster.free_gpus() == 0) return;
  const auto any_shape = [](ShapeId) { return true; };
  waiting_.pass(any_shape, [&](JobId job) {
    if (!try_start(pass, job)) return Tried::NoPlace;
    running_.insert(job);
    return Tried::Started;
  });
}

bool Guests::try_start(Pass& pass, JobId job) const {
  const View& view = pass.view;
  const std::int32_t wanted = view.jobs.is_running(job) ? view.jobs.granted[job] : view.gpus(job);
  for (const PoolId pool : view.shape(job).pools) {
    const ElasticRange range = range_in(view, job, pool, elastic_);
    const auto free = static_cast<std::int32_t>(pass.plan.cluster().free_gpus(pool));
    const std::int32_t gpus = std::min(std::clamp(wanted, range.least, range.most), free);
    if (gpus >= range.least &&
        try_start_up_to(pass.plan, view, job, pool, gpus, range, Reason::Backfill))
      return true;
  }
  return false;
}

}  // namespace berth::oasis
