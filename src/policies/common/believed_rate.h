// How fast a job is believed to run by itself on so many devices of a pool so far apart: reference
// seconds of work per second, relative to the run time it was estimated with.
#pragma once

#include <cstdint>

#include "core/view.h"

namespace berth {

[[nodiscard]] inline double believed_rate(const View& view, JobId job, PoolId pool,
                                          std::int32_t gpus, Level level) {
  return view.believed().alone({.profile = view.jobs.profile[job],
                                .pool = pool,
                                .reference = view.jobs.reference[job],
                                .gpus = gpus,
                                .wanted = view.gpus(job),
                                .batch = view.jobs.batch[job],
                                .level = level,
                                .link_jobs = 1,
                                .terms = {}});
}
/// As close together as so many can be.
[[nodiscard]] inline double believed_rate(const View& view, JobId job, PoolId pool,
                                          std::int32_t gpus) {
  return believed_rate(view, job, pool, gpus, view.believed().best_level(pool, gpus));
}

}  // namespace berth
