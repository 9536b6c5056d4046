// What is known of how a model trains: iteration time, gradient size, memory, cores, and how it
// gets on with others on the same GPU or server. A profile belongs to a class of jobs (a model
// name). Each part says where it comes from; what is missing falls back to the class default, and a
// run counts the jobs that did.
//
// Override order: a measured iteration time, then the fitted curve, then the class default.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/id.h"
#include "model/level.h"
#include "perf/cpu_curve.h"
#include "perf/data_cache.h"
#include "perf/interleave.h"
#include "perf/terms.h"
#include "perf/training.h"

namespace berth {

using ProfileId = Id<struct ProfileTag>;

enum class Provenance : std::uint8_t { Default, Given, Fitted, Measured };

/// t_grad(m) = (alpha + beta m) / speed; the all-reduce moves `gradient_bytes`; `overlap` is the
/// exponent gamma with which computing and communicating overlap.
struct IterationParams {
  double alpha = 0.02;
  double beta = 0.005;
  double gradient_bytes = 100e6;
  double overlap = 2;
};

/// Device memory of one worker: fixed + per_sample * sub-batch, in MiB.
struct MemoryParams {
  double fixed_mib = 3000;
  double per_sample_mib = 64;
};

/// A job validates for `seconds` after every `every_seconds` of training, both of work at full
/// speed; cores feed it by a curve of its own then.
struct ValidationParams {
  double every_seconds = 0;  // 0 = it never does, or nobody knows
  double seconds = 0;
  CpuCurve cpu{};

  [[nodiscard]] bool is_known() const noexcept { return every_seconds > 0; }
};

/// An iteration time seen on real devices.
struct MeasuredTime {
  std::string device;
  std::int32_t gpus = 1;
  Level level = Level::Device;
  std::int32_t batch = 0;  // per GPU
  double seconds = 0;
};

/// Where one part of a profile comes from, and how far it is from points it has not seen.
struct PartSource {
  std::string part;  // "iteration", "locality", "memory", "cpu", "pairs", "stages", …
  Provenance provenance = Provenance::Given;
  std::string source;
  double error = 0;         // mean absolute relative error on held-back points; 0 = not applicable
  std::int32_t points = 0;  // held back
};

struct Profile {
  std::string name;
  std::vector<std::string> aliases{};
  std::int32_t batch = 32;  // samples per GPU and iteration if the job does not say
  IterationParams iteration{};
  MemoryParams memory{};
  CpuCurve cpu{};
  ValidationParams validation{};
  DataCache data{};
  double gpu_utilisation = 0.7;     // share of the device's compute used alone, 0..1
  double memory_utilisation = 0.3;  // share of the device's memory bandwidth used alone
  double bus = 0.3;                 // share of the server's PCIe and host memory bandwidth used
  std::array<double, 4>
      stages{};  // seconds per iteration on storage, CPU, GPU, network; 0 = unknown
  std::vector<std::pair<std::string, double>> speeds{};  // by device type, V100 = 1
  std::vector<MeasuredTime> measured{};
  std::vector<PartSource> sources{};
  LossCurve loss{};
  std::vector<NoisePoint> noise{};  // by progress; empty = not known
  BatchLimits batch_limits{};

  [[nodiscard]] bool has_stages() const noexcept {
    return stages[0] + stages[1] + stages[2] + stages[3] > 0;
  }
  [[nodiscard]] const CpuCurve& cpu_in(Phase phase) const noexcept {
    return phase == Phase::Validation && validation.is_known() ? validation.cpu : cpu;
  }
  [[nodiscard]] double memory_mib(double sub_batch) const noexcept {
    return memory.fixed_mib + memory.per_sample_mib * sub_batch;
  }
};

/// "ResNet-50", "resnet_50" and "resnet50" are one model.
[[nodiscard]] std::string plain_model_name(std::string_view model);

class ProfileSet {
 public:
  /// Starts with the class default alone, as ProfileId{0}.
  ProfileSet();

  /// Replaces a profile of the same name.
  ProfileId add(Profile profile);
  /// One more, whatever its name: found by its id alone, and nobody else's id means another one.
  ProfileId append(Profile profile);
  [[nodiscard]] std::size_t size() const noexcept { return profiles_.size(); }
  [[nodiscard]] const Profile& operator[](ProfileId id) const noexcept {
    return profiles_[id.value];
  }
  [[nodiscard]] Profile& edit(ProfileId id) noexcept { return profiles_[id.value]; }
  /// By name or alias, whatever the spelling.
  [[nodiscard]] std::optional<ProfileId> find(std::string_view model) const;
  [[nodiscard]] static constexpr ProfileId fallback() noexcept { return ProfileId{0}; }

  /// How many times longer an iteration of `of` takes beside `beside` on the same GPU: a measured
  /// pair; else max(1, u1 + u2) / 0.95 if both say their utilisation; else the default.
  [[nodiscard]] double slowdown(ProfileId of, ProfileId beside) const noexcept;
  [[nodiscard]] bool has_pair(ProfileId of, ProfileId beside) const noexcept;
  void set_slowdown(ProfileId of, ProfileId beside, double times);
  void set_default_slowdown(double times) noexcept { default_slowdown_ = times; }
  [[nodiscard]] double default_slowdown() const noexcept { return default_slowdown_; }
  /// Off: pairs that were not measured take the default even if utilisations are known.
  void set_pairs_from_utilisation(bool on) noexcept { pairs_from_utilisation_ = on; }

  /// What taking turns stage by stage costs beside the stages themselves (perf/interleave.h).
  void set_interleave_overhead(const InterleaveOverhead& overhead) noexcept {
    interleave_overhead_ = overhead;
  }
  [[nodiscard]] const InterleaveOverhead& interleave_overhead() const noexcept {
    return interleave_overhead_;
  }

  /// Every pair and every speed wrong by its own log-normal factor (on the part above 1 for pairs):
  /// what a scheduler believes when its profiles err.
  [[nodiscard]] ProfileSet with_error(double deviation, std::uint64_t seed) const;

 private:
  std::vector<Profile> profiles_;
  std::unordered_map<std::string, ProfileId> by_name_;  // lookup only
  std::unordered_map<std::uint64_t, double> pairs_;     // lookup only
  double default_slowdown_ = 1.5;
  bool pairs_from_utilisation_ = true;
  InterleaveOverhead interleave_overhead_;
};

/// The catalogue that comes with the project.
[[nodiscard]] const ProfileSet& built_in_profiles();

}  // namespace berth
