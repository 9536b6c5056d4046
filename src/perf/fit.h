// From measurements to the parts of a profile: iteration time and overlap, locality, pairs, memory.
// Every fit holds back each fourth point in a fixed order, fits the others, and says how far it is
// from both. Relative errors count, large ones less than their square, so that a few bad
// measurements do not bend the rest. Nothing here reads files: see lab/fit/ and
// perf/profile_file.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "model/cluster.h"
#include "model/level.h"
#include "perf/profile.h"

namespace berth {

/// Mean absolute relative errors; NaN-free: no points, no error.
struct FitError {
  double training = 0;
  double held_back = 0;
  std::int32_t training_points = 0;
  std::int32_t held_back_points = 0;
};

/// Each fourth in order is held back; fewer than eight points are all used.
[[nodiscard]] constexpr bool is_held_back(std::size_t index, std::size_t count) noexcept {
  return count >= 8 && index % 4 == 3;
}

/// The mean of |predicted / measured - 1| over both halves, in one go.
class ErrorMeter {
 public:
  explicit ErrorMeter(std::size_t count) noexcept : count_(count) {}
  /// Points in their order.
  void add(double predicted, double measured) noexcept;
  [[nodiscard]] FitError result() const noexcept;

 private:
  std::size_t count_;
  std::size_t next_ = 0;
  double training_ = 0;
  double held_back_ = 0;
  std::int32_t held_back_points_ = 0;
};

/// One measured iteration.
struct StepPoint {
  std::string device;  // device type, lower case
  std::string site;    // where it was measured: links of one site are alike
  std::int32_t gpus = 1;
  Level level = Level::Device;
  double batch = 1;    // samples per GPU
  double seconds = 0;  // of the whole iteration
};

/// What a site's link at a level must have been like for the points to come out.
struct LinkFit {
  std::string site;
  Level level = Level::Server;
  Link link;
};

struct IterationFit {
  IterationParams params;
  std::vector<std::pair<std::string, double>> speeds;  // V100 = 1; without the reference device
  std::vector<LinkFit> links;                          // only when the gradient was given
  std::string reference;                               // the device whose speed was taken as known
  FitError error;
};

struct IterationFitOptions {
  /// Given: the links of each site are fitted. Otherwise `links` hold at every site and the bytes
  /// are fitted.
  std::optional<double> gradient_bytes;
  Links links;
};

/// alpha, beta, overlap, speeds per device type, and bytes or links. The reference device is the
/// V100, or without one the first type in the alphabet at its speed of the device catalogue. One
/// batch size only: alpha is zero. No gang among the points: bytes and overlap keep their defaults.
[[nodiscard]] Result<IterationFit> fit_iteration(std::vector<StepPoint> points,
                                                 const IterationFitOptions& options);

/// Speed of a gang beside the same gang in one server.
struct LocalityPoint {
  std::int32_t gpus = 2;
  Level level = Level::Rack;
  double relative_speed = 1;
};

struct LocalityFit {
  double compute = 0;  // seconds
  double gradient_bytes = 0;
  double overlap = 2;
  FitError error;  // of the slowdown
};
/// What is known of the model. Slowdowns depend on bytes over seconds, so one of the two is fitted
/// and the other known; with both known the overlap alone is fitted.
struct LocalityFitOptions {
  std::optional<double> compute;
  std::optional<double> gradient_bytes;
  Links links;
};
/// Neither known: an iteration that computes for 0.1 s.
[[nodiscard]] Result<LocalityFit> fit_locality(std::vector<LocalityPoint> points,
                                               const LocalityFitOptions& options);

/// One measured neighbourhood on one GPU.
struct PairPoint {
  std::string of;
  std::string beside;
  double slowdown = 1;  // as measured; below 1 counts as 1
  double of_utilisation = 0;
  double beside_utilisation = 0;
  double memory_utilisation = 0;  // of both together, alone summed
};

struct PairRow {
  std::string of;
  std::string beside;
  double slowdown = 1;  // geometric mean of its training points, at least 1
  std::int32_t points = 0;
};
struct PairFit {
  std::vector<PairRow> rows;  // by name
  std::int32_t clipped = 0;   // measurements below 1
  FitError error;             // of the table
  /// Where utilisations are known: slowdown = max(1, base + compute * (u1 + u2) + memory * m).
  double base = 1;
  double compute = 0;
  double memory = 0;
  FitError regression;
  FitError rule;  // of max(1, u1 + u2) / 0.95, what ProfileSet falls back to
};
[[nodiscard]] Result<PairFit> fit_pairs(std::vector<PairPoint> points);

/// Several jobs that send over one link at the same time.
struct LinkPoint {
  std::int32_t jobs = 1;
  double bytes = 0;  // of each job
  double seconds = 0;
};
struct LinkSharing {
  double bandwidth = 0;  // bytes per second, from the points of one job
  double latency = 0;
  FitError error;  // of the points of several
};
/// How far "each of k jobs gets 1/k of the bandwidth" is from the points.
[[nodiscard]] Result<LinkSharing> check_link_sharing(std::vector<LinkPoint> points);

struct MemoryPoint {
  double batch = 1;
  double mib = 0;
};
struct MemoryFit {
  MemoryParams params;
  FitError error;
};
[[nodiscard]] Result<MemoryFit> fit_memory(std::vector<MemoryPoint> points);

/// Two jobs tried on one device.
struct FittingPoint {
  std::string a, b;
  double batch_a = 1, batch_b = 1;
  double device_mib = 0;
  bool fits = false;
};
struct NamedMemory {
  std::string model;
  MemoryParams params;
};
struct FittingFit {
  std::vector<NamedMemory> models;  // by name; without the known ones
  FitError error;                   // share of pairs that come out the other way
};
/// The memory of each model that best tells the pairs that fit from those that do not, near
/// 3 GiB in all. Models in `known` keep theirs.
[[nodiscard]] Result<FittingFit> fit_memory_by_fitting(std::vector<FittingPoint> points,
                                                       std::span<const NamedMemory> known);

/// The noise scale by share of the whole training.
struct NoiseFit {
  std::vector<NoisePoint> points;
  FitError error;  // of what a sample is worth in a batch halfway (in ratio) from first to most
};
struct NoiseFitOptions {
  std::int32_t steps = 8;
  double first = 1, most = 1;  // batches the model was trained with
};
/// Steps of equal width, each the geometric mean of its points; a step without any keeps what was
/// before.
[[nodiscard]] Result<NoiseFit> fit_noise(std::vector<NoisePoint> measured,
                                         const NoiseFitOptions& options);

/// Geometric mean; nothing for no values.
[[nodiscard]] double geometric_mean(std::span<const double> values);

}  // namespace berth
