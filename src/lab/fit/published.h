// Readers of published measurements, laid out as their authors' files are
// (docs/performance-model.md names them): each turns one source into the points that perf/fit.h
// takes. Rows that say "not measured" in their own way (empty, zero, nan) are left out; a missing
// file is an error.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "perf/cpu_fit.h"
#include "perf/fit.h"

namespace berth {

/// Step times by placement and by number of nodes, on five device types.
[[nodiscard]] Result<std::vector<StepPoint>> sia_steps(const std::string& directory,
                                                       std::string_view model);
/// What trainings with several batch sizes said of their gradients, and the batches that were run.
struct SiaTraining {
  std::vector<NoisePoint> noise;
  std::int32_t first_batch = 1;
  BatchLimits limits;  // per GPU: what every device type ran
};
[[nodiscard]] Result<SiaTraining> sia_training(const std::string& directory,
                                               std::string_view model);
/// Iterations per second at a fixed global batch on up to 64 A100.
[[nodiscard]] Result<std::vector<StepPoint>> elasticflow_steps(const std::string& directory,
                                                               std::string_view model);
/// The best plan for each gang of A100s. Data parallel plans work on one global batch whatever the
/// gang; of models that only run sharded every replica works on a batch of its own. Neither size is
/// published: samples here are nominal.
[[nodiscard]] Result<std::vector<StepPoint>> rubick_steps(const std::string& directory,
                                                          std::string_view model);
inline constexpr double kRubickGlobalBatch = 64;
inline constexpr double kRubickReplicaBatch = 8;

/// Speed of spread gangs beside gangs in one server.
[[nodiscard]] Result<std::vector<LocalityPoint>> chronus_locality(const std::string& directory,
                                                                  std::string_view model);

struct MuriModel {
  std::vector<StepPoint> steps;    // V100, eight per server
  std::array<double, 4> stages{};  // seconds on storage, CPU, GPU, network; of one server
  double gpu_share = 0;            // of an iteration on one GPU
};
[[nodiscard]] Result<MuriModel> muri_model(const std::string& directory, std::string_view model);

struct SynergyModel {
  std::vector<CpuPoint> speeds;  // samples per second of one worker, with memory enough
  double batch = 0;
  double seconds = 0;  // of an iteration with cores enough
};
[[nodiscard]] Result<SynergyModel> synergy_model(const std::string& directory,
                                                 std::string_view model);

/// One row of isolated and pairwise throughputs, loaded once and asked often.
class GavelThroughputs {
 public:
  [[nodiscard]] static Result<GavelThroughputs> load(const std::string& directory);

  /// V100 gangs of eight in one server are left out: they are faster than eight times one.
  [[nodiscard]] std::vector<StepPoint> steps(std::string_view model) const;
  /// Pairs of single GPUs of a V100, for models under `names` (theirs, ours).
  [[nodiscard]] std::vector<PairPoint> pairs(
      std::span<const std::pair<std::string, std::string>> names) const;

  /// Two jobs on one device: whether its memory held both.
  struct Fitting {
    std::string device;
    std::string a, b;  // models
    double batch_a = 1, batch_b = 1;
    bool fits = false;
  };
  [[nodiscard]] std::vector<Fitting> fittings() const;

 private:
  struct JobType {
    std::string model;
    double batch = 1;
    std::int32_t gpus = 1;
    friend bool operator==(const JobType&, const JobType&) = default;
  };
  struct Alone {
    std::string device;
    bool spread = false;
    JobType type;
    double steps_per_second = 0;
  };
  struct Beside {
    std::string device;
    JobType type, other;
    double mine = 0, alone = 0;
  };
  static JobType parse_type(const std::string& key);

  std::vector<Alone> alone_;
  std::vector<Beside> beside_;  // single GPUs
};

/// What single jobs use of a GPU, at full precision.
struct LucidModel {
  std::vector<StepPoint> steps;
  std::vector<MemoryPoint> memory;
  double gpu_utilisation = 0;
  double memory_utilisation = 0;
};
[[nodiscard]] Result<LucidModel> lucid_model(const std::string& directory, std::string_view model);
/// Pairs at full precision, with the utilisation of each alone, for models under `names` (theirs,
/// ours).
[[nodiscard]] Result<std::vector<PairPoint>> lucid_pairs(
    const std::string& directory, std::span<const std::pair<std::string, std::string>> names);

/// Seconds of an all-reduce with several jobs on one link.
[[nodiscard]] Result<std::vector<LinkPoint>> contention_points(const std::string& directory);

}  // namespace berth
