// How well a job gets on with another on its GPUs (Lucid, ASPLOS 2023): a sharing score from 0 (it
// hardly notices) to 2 (it suffers), predicted from what a short profiling run shows by a decision
// tree small enough to read.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

namespace berth::lucid {

enum class SharingScore : std::uint8_t { Tiny = 0, Medium = 1, Jumbo = 2 };
inline constexpr std::size_t kSharingScores = 3;

/// What the profiler measures of a job alone on its devices.
struct UsageFeatures {
  double gpu_utilisation = 0;     // 0..1
  double memory_utilisation = 0;  // share of the memory bandwidth, 0..1
  double memory_mib = 0;
  bool mixed_precision = false;
};

/// The score that a measured mean speed beside all partners (1 = as alone) stands for.
[[nodiscard]] SharingScore score_from_speed(double mean_packed_speed) noexcept;

/// A binary tree: at each inner node one feature against a threshold.
class SharingTree {
 public:
  struct Sample {
    UsageFeatures features;
    SharingScore score;
  };
  struct Limits {  // deeper trees learn 66 measured jobs by heart and predict others worse
    int depth = 2;
    std::size_t smallest_leaf = 4;
  };
  /// The tree used where nothing was measured: quiet jobs (GPU below 30 %, memory below 10 %) are
  /// Tiny, busy ones (GPU above 75 % or memory above 45 %) Jumbo.
  [[nodiscard]] static SharingTree untrained();
  /// Splits by Gini impurity; ties go to the first feature and the lower threshold. The default
  /// tree if there is nothing to learn from.
  [[nodiscard]] static SharingTree trained(std::span<const Sample> samples, Limits limits);
  [[nodiscard]] static SharingTree trained(std::span<const Sample> samples) {
    return trained(samples, Limits{});
  }

  [[nodiscard]] SharingScore predict(const UsageFeatures& features) const noexcept;
  [[nodiscard]] std::size_t nodes() const noexcept { return nodes_.size(); }

 private:
  static constexpr std::uint8_t kLeaf = 0xff;
  struct Node {
    std::uint8_t feature = kLeaf;
    SharingScore score = SharingScore::Medium;  // of a leaf
    double threshold = 0;                       // at most this: below, otherwise above
    std::uint32_t below = 0;
    std::uint32_t above = 0;
  };
  std::uint32_t grow(std::span<Sample> samples, const Limits& limits, int depth);

  std::vector<Node> nodes_;  // the root comes first
};

}  // namespace berth::lucid
