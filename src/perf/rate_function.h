// The one rate function: how long an iteration takes under given conditions. Everything that makes
// a job fast or slow here or there is an argument of it.
//
//   t_grad = (alpha + beta m) / speed
//   t_sync = 0 for one GPU, else 2(K-1)/K * bytes/bandwidth + 2(K-1) * latency        (ring)
//   t_gpu  = s t_grad + (t_grad^gamma + t_sync^gamma)^(1/gamma)      (s sub-batches before the
//   last) t_cpu  = m (s+1) / feed(C) t_data = m (s+1) / fetched(M) (M of cache for the data set)
//   t_iter = max(t_gpu, t_cpu, t_data) * xi_gpu * xi_server
#pragma once

#include <cstdint>

#include "model/level.h"
#include "perf/profile.h"

namespace berth {

struct Conditions {
  double device_speed = 1;     // of this model on this device type, V100 = 1
  std::int32_t gpus = 1;       // K
  Link link{};                 // of the gang's level, as much of it as the job gets
  double cores = 0;            // per worker; 0 = as many as it wants
  double host_memory_mib = 0;  // per worker, caches its data set; 0 = as much as it wants
  Phase phase = Phase::Training;
  double sub_batch = 0;          // m, samples per GPU and sub-step; 0 = the profile's batch
  std::int32_t extra_steps = 0;  // s, gradient accumulation steps before the last one
  double gpu_slowdown = 1;       // xi_gpu: who shares its GPUs
  double server_slowdown = 1;    // xi_server: who shares its servers
};

struct IterationTime {
  double compute = 0;  // t_grad of one sub-batch
  double sync = 0;
  double gpu = 0;
  double cpu = 0;
  double data = 0;
  double total = 0;
};

/// The ring all-reduce of `bytes` over `gpus` devices.
[[nodiscard]] double sync_time(double bytes, std::int32_t gpus, const Link& link) noexcept;
/// s t + (t^gamma + sync^gamma)^(1/gamma); gamma of 1 is no overlap, infinite is full overlap.
[[nodiscard]] double overlapped(double compute, double sync, double gamma,
                                std::int32_t extra_steps) noexcept;
[[nodiscard]] IterationTime iteration_time(const Profile& profile,
                                           const Conditions& conditions) noexcept;
/// Samples per second of the whole gang.
[[nodiscard]] double throughput(const Profile& profile, const Conditions& conditions) noexcept;

/// What a neighbour on the server costs: min(1.4, 1 + 0.4 * sum of max(0, mine + theirs - 1)).
class BusPressure {
 public:
  explicit BusPressure(double mine) noexcept : mine_(mine) {}
  void add_neighbour(double bus) noexcept { excess_ += bus + mine_ > 1 ? bus + mine_ - 1 : 0; }
  [[nodiscard]] double slowdown() const noexcept {
    const double times = 1 + 0.4 * excess_;
    return times < 1.4 ? times : 1.4;
  }

 private:
  double mine_;
  double excess_ = 0;
};

}  // namespace berth
