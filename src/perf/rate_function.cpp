#include "perf/rate_function.h"

#include <algorithm>
#include <cmath>

#include "base/portable_math.h"

namespace berth {

// Ring all-reduce: each GPU sends and receives 2 (k - 1) / k of the gradient in 2 (k - 1) messages.
double sync_time(double bytes, std::int32_t gpus, const Link& link) noexcept {
  if (gpus <= 1) return 0;
  const double k = gpus;
  return 2 * (k - 1) / k * bytes / link.bandwidth + 2 * (k - 1) * link.latency;
}

double overlapped(double compute, double sync, double gamma, std::int32_t extra_steps) noexcept {
  const double before = extra_steps * compute;
  if (sync <= 0) return before + compute;
  if (gamma == 1) return before + compute + sync;
  if (gamma == 2) return before + std::sqrt(compute * compute + sync * sync);
  // Scaled by the larger one, so that a large gamma neither overflows nor vanishes.
  const double larger = std::max(compute, sync);
  const double ratio = std::min(compute, sync) / larger;
  if (ratio <= 0 || std::isinf(gamma)) return before + larger;
  return before + larger * portable_pow(1 + portable_pow(ratio, gamma), 1 / gamma);
}

IterationTime iteration_time(const Profile& profile, const Conditions& conditions) noexcept {
  const double sub_batch = conditions.sub_batch > 0 ? conditions.sub_batch : profile.batch;
  const IterationParams& params = profile.iteration;
  IterationTime time;
  time.compute = (params.alpha + params.beta * sub_batch) / conditions.device_speed;
  time.sync = sync_time(params.gradient_bytes, conditions.gpus, conditions.link);
  time.gpu = overlapped(time.compute, time.sync, params.overlap, conditions.extra_steps);
  const double samples = sub_batch * (conditions.extra_steps + 1);
  const CpuCurve& cpu = profile.cpu_in(conditions.phase);
  if (conditions.cores > 0 && cpu.is_known()) time.cpu = samples / cpu.feed(conditions.cores);
  if (conditions.host_memory_mib > 0)
    time.data = samples / profile.data.samples_per_second(conditions.host_memory_mib);
  time.total = std::max({time.gpu, time.cpu, time.data}) * conditions.gpu_slowdown *
               conditions.server_slowdown;
  return time;
}

double throughput(const Profile& profile, const Conditions& conditions) noexcept {
  const double sub_batch = conditions.sub_batch > 0 ? conditions.sub_batch : profile.batch;
  return conditions.gpus * sub_batch * (conditions.extra_steps + 1) /
         iteration_time(profile, conditions).total;
}

}  // namespace berth
