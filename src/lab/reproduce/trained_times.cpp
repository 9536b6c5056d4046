#include "lab/reproduce/trained_times.h"

#include <algorithm>

#include "perf/rate_model.h"

namespace berth {

namespace {

constexpr std::string_view kNominalDevice = "t4";

double speed_on(const Profile& profile, std::string_view device) {
  const auto found =
      std::ranges::find(profile.speeds, device, [](const auto& speed) { return speed.first; });
  return found == profile.speeds.end() ? 1 : found->second;
}

/// What is lost by the batch, averaged over the training: seconds for one second at no loss.
double mean_loss(const Profile& profile, double batch) {
  if (profile.noise.empty()) return 1;
  double sum = 0;
  for (std::size_t i = 0; i < profile.noise.size(); ++i) {
    const double end = i + 1 < profile.noise.size() ? profile.noise[i + 1].progress : 1;
    const double share = end - profile.noise[i].progress;
    sum += share / efficiency(profile.noise[i].scale, profile.batch, batch);
  }
  return std::max(sum, 1.0);
}

}  // namespace

double trained_seconds(const Profile& profile, double gpu_seconds, std::int32_t gpus, double batch,
                       const TrainedOn& on) {
  Conditions alone;
  alone.device_speed = speed_on(profile, kNominalDevice);
  // The nominal seconds of the workloads are those of the largest batch that was profiled.
  alone.sub_batch = std::max(profile.batch_limits.most_per_gpu, profile.batch);
  const double samples = gpu_seconds * throughput(profile, alone);
  Conditions gang;
  gang.device_speed = on.speed;
  gang.gpus = gpus;
  gang.link = on.link;
  gang.sub_batch = batch / gpus;
  return samples / throughput(profile, gang) * mean_loss(profile, batch);
}

void set_trained_times(Trace& trace, const Cluster& cluster, const ProfileSet& profiles) {
  Effects effects;
  effects.device = true;
  const RateModel rates(profiles, cluster, effects);
  const PoolId first{0};
  for (TraceJob& job : trace.jobs) {
    const auto id = profiles.find(trace.names.text(job.model));
    if (!id) continue;
    const Profile& profile = profiles[*id];
    const double batch =
        job.batch_size > 0 ? job.batch_size : static_cast<double>(profile.batch) * job.gpus;
    const TrainedOn on{.speed = cluster.pools.size() == 1 ? rates.speed(*id, first) : 1,
                       .link = cluster.links.at(rates.best_level(first, job.gpus))};
    job.duration = seconds_to_duration(
        trained_seconds(profile, to_seconds(job.duration) * job.gpus, job.gpus, batch, on));
  }
}

}  // namespace berth
