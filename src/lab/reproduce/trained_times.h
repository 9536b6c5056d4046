// Run times for workloads that have none (Pollux, Sia): how long a job of its own size and batch
// trains, by the same model of throughput and efficiency that decides in the simulation.
#pragma once

#include "model/cluster.h"
#include "model/trace.h"
#include "perf/profile.h"

namespace berth {

/// Which device a job's time stands for.
struct TrainedOn {
  double speed = 1;  // V100 = 1
  Link link{};       // between the GPUs of its gang
};

/// Seconds of a job of `gpus` GPUs and `batch` samples in all, for as many useful samples as one T4
/// trains in `gpu_seconds` with its largest sub-batch and nothing lost by it. A batch beyond the
/// profile's own is worth less by the noise scale, which changes while the model learns.
[[nodiscard]] double trained_seconds(const Profile& profile, double gpu_seconds, std::int32_t gpus,
                                     double batch, const TrainedOn& on);

/// For every job whose model has a profile, from its nominal time; others keep theirs. On a cluster
/// of one device type times stand for this type, otherwise for a V100.
void set_trained_times(Trace& trace, const Cluster& cluster, const ProfileSet& profiles);

}  // namespace berth
