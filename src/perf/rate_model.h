// How fast a job runs where it stands, relative to the reference its traced duration stands for:
// its own number of GPUs, as close together as they can be, on the device type it names (the
// cluster's only one, or a V100 if it may go anywhere), with cores enough and nobody beside it.
//
// A run has two of these: the truth, which the simulator alone knows, and what the scheduler
// believes, which may err. Effects are switched one by one; by default only sharing a device has
// one, and for everything else the trace's duration is the truth.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/result.h"
#include "model/cluster.h"
#include "model/topology.h"
#include "perf/profile.h"
#include "perf/rate_function.h"
#include "perf/terms.h"

namespace berth {

struct Effects {
  bool sharing = true;      // who shares its GPUs
  bool locality = false;    // how far its GPUs are apart, and who shares the links between them
  bool server = false;      // who shares its servers
  bool cpu = false;         // how many cores feed it
  bool memory = false;      // how much host memory caches its data set
  bool device = false;      // which device type it is on
  bool efficiency = false;  // that a sample is worth less in a larger batch
  friend bool operator==(const Effects&, const Effects&) = default;
};
/// "none", "all", or names joined by commas: sharing,locality,server,cpu,memory,device,efficiency.
[[nodiscard]] Result<Effects> parse_effects(std::string_view text);
[[nodiscard]] std::string to_string(const Effects& effects);

inline constexpr PoolId kNoPool{0xffffffffU};

/// Where a job stands and how it runs there, without its neighbours.
struct Standing {
  ProfileId profile;
  PoolId pool;
  PoolId reference = kNoPool;  // the type its traced duration stands for; kNoPool: a V100
  std::int32_t gpus = 1;       // it was given
  std::int32_t wanted = 1;     // it asked for
  std::int32_t batch = 0;      // its own, per GPU; 0 = the profile's
  Level level = Level::Device;
  std::int32_t link_jobs = 1;  // jobs over which the gang's link is shared
  Phase phase = Phase::Training;
  Terms terms{};
  std::int32_t noise = 0;  // the gradient's noise scale by now, in samples; 0 = not known
  friend bool operator==(const Standing&, const Standing&) = default;
};

/// Somebody on the same device.
struct CoRunner {
  ProfileId profile;
  Terms terms{};
};

/// How a profile gets on beside one that was there before it.
struct PairSlowdown {
  ProfileId other;
  std::optional<double> of{};        // of the new one beside the other; nothing: as the rules say
  std::optional<double> of_other{};  // of the other beside the new one
};

class RateModel {
 public:
  RateModel(ProfileSet profiles, const Cluster& cluster, Effects effects);

  /// One more profile, learnt during a run. What is there already stays as it is: ids keep their
  /// meaning, and what was believed with them.
  ProfileId add(Profile profile, std::span<const PairSlowdown> pairs);

  [[nodiscard]] const ProfileSet& profiles() const noexcept { return profiles_; }
  [[nodiscard]] const Profile& profile(ProfileId id) const noexcept { return profiles_[id]; }
  [[nodiscard]] const Effects& effects() const noexcept { return effects_; }
  [[nodiscard]] const Cluster& cluster() const noexcept { return *cluster_; }
  /// How far apart devices are.
  [[nodiscard]] const ServerBuilds& servers() const noexcept { return servers_; }

  /// Relative to a V100; 1 while device types have no effect.
  [[nodiscard]] double speed(ProfileId profile, PoolId pool) const noexcept;
  /// The lowest level that could hold so many devices of the pool.
  [[nodiscard]] Level best_level(PoolId pool, std::int32_t gpus) const noexcept;
  /// Samples per GPU and iteration where it stands.
  [[nodiscard]] std::int32_t batch_of(const Standing& standing) const noexcept {
    return standing.terms.batch > 0 ? standing.terms.batch : own_batch(standing);
  }
  /// Seconds of one iteration where it stands, alone there.
  [[nodiscard]] IterationTime iteration(const Standing& standing) const noexcept;
  /// Rate against the reference, alone there. Looked up once it is known.
  [[nodiscard]] double alone(const Standing& standing) const;
  /// What is left of that rate, at most 1, beside `others` on one device; a gang goes at the pace
  /// of its slowest worker.
  [[nodiscard]] double beside(ProfileId of, const Terms& terms, PoolId pool,
                              std::span<const CoRunner> others) const noexcept;
  /// Device memory of one worker under its terms; `batch` per GPU, 0 = the profile's.
  [[nodiscard]] std::int32_t memory_mib(ProfileId profile, std::int32_t batch,
                                        const Terms& terms) const noexcept;
  /// 0 = not described.
  [[nodiscard]] std::int64_t device_memory_mib(PoolId pool) const noexcept {
    return cluster_->pools[pool.value].memory_mib;
  }

 private:
  struct Hash {
    std::size_t operator()(const Standing& standing) const noexcept;
  };
  [[nodiscard]] double interleaved(ProfileId of, std::span<const CoRunner> others) const noexcept;
  [[nodiscard]] double as_guest_or_host(ProfileId of, const Terms& terms, PoolId pool,
                                        std::span<const CoRunner> others) const noexcept;
  [[nodiscard]] std::int32_t own_batch(const Standing& standing) const noexcept {
    return standing.batch > 0 ? standing.batch : profiles_[standing.profile].batch;
  }
  [[nodiscard]] double compute_alone(const Standing& standing) const noexcept;
  [[nodiscard]] Conditions conditions(const Standing& standing) const noexcept;
  [[nodiscard]] const MeasuredTime* measured(const Standing& standing) const noexcept;

  ProfileSet profiles_;
  const Cluster* cluster_;
  ServerBuilds servers_;
  Effects effects_;
  std::vector<std::vector<double>> speeds_;        // by profile, pool
  std::vector<std::vector<Level>> level_of_size_;  // by pool, GPUs of a gang in one server
  std::vector<std::int64_t> rack_size_;            // by pool: devices of the largest rack
  mutable std::unordered_map<Standing, double, Hash> known_;  // lookup only
};

}  // namespace berth
