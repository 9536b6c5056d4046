#include "policies/lucid/sharing_score.h"

#include <algorithm>
#include <cmath>
#include <optional>

namespace berth::lucid {

namespace {

constexpr std::uint8_t kFeatures = 4;

double value_of(const UsageFeatures& features, std::uint8_t which) noexcept {
  switch (which) {
    case 0: return features.gpu_utilisation;
    case 1: return features.memory_utilisation;
    case 2: return features.memory_mib;
    default: return features.mixed_precision ? 1 : 0;
  }
}

using Counts = std::array<std::size_t, kSharingScores>;

Counts counts_of(std::span<const SharingTree::Sample> samples) noexcept {
  Counts counts{};
  for (const auto& sample : samples) ++counts[static_cast<std::size_t>(sample.score)];
  return counts;
}

/// Samples times Gini impurity: what a split makes smaller.
double impurity(const Counts& counts) noexcept {
  double total = 0, squares = 0;
  for (const std::size_t count : counts) {
    total += static_cast<double>(count);
    squares += static_cast<double>(count) * static_cast<double>(count);
  }
  return total > 0 ? total - squares / total : 0;
}

SharingScore most_common(const Counts& counts) noexcept {
  const auto best = std::ranges::max_element(counts);  // the first of equals: the kinder score
  return static_cast<SharingScore>(best - counts.begin());
}

struct Split {
  std::uint8_t feature = 0;
  double threshold = 0;
  double impurity = 0;
};

void sort_by(std::span<SharingTree::Sample> samples, std::uint8_t feature) {
  std::ranges::stable_sort(samples, {},
                           [&](const auto& sample) { return value_of(sample.features, feature); });
}

/// The best threshold of one feature, if some split leaves enough samples on both sides.
std::optional<Split> best_threshold(std::span<SharingTree::Sample> samples, std::uint8_t feature,
                                    std::size_t smallest_leaf) {
  sort_by(samples, feature);
  Counts below{};
  Counts above = counts_of(samples);
  std::optional<Split> best;
  for (std::size_t i = 0; i + 1 < samples.size(); ++i) {
    ++below[static_cast<std::size_t>(samples[i].score)];
    --above[static_cast<std::size_t>(samples[i].score)];
    const double here = value_of(samples[i].features, feature);
    const double next = value_of(samples[i + 1].features, feature);
    if (here == next || i + 1 < smallest_leaf || samples.size() - i - 1 < smallest_leaf) continue;
    const double sum = impurity(below) + impurity(above);
    if (!best || sum < best->impurity) best = Split{feature, (here + next) / 2, sum};
  }
  return best;
}

}  // namespace

SharingScore score_from_speed(double mean_packed_speed) noexcept {
  if (mean_packed_speed >= 0.95) return SharingScore::Tiny;
  return mean_packed_speed >= 0.85 ? SharingScore::Medium : SharingScore::Jumbo;
}

SharingTree SharingTree::untrained() {
  // "at most" the number just below is "less than": 30 % and 10 % themselves are not quiet
  const auto less_than = [](double limit) { return std::nextafter(limit, 0.0); };
  const auto leaf = [](SharingScore score) { return Node{.score = score}; };
  SharingTree tree;
  tree.nodes_ = {{.feature = 0, .threshold = less_than(0.30), .below = 1, .above = 2},
                 {.feature = 1, .threshold = less_than(0.10), .below = 5, .above = 3},
                 {.feature = 0, .threshold = 0.75, .below = 3, .above = 4},
                 {.feature = 1, .threshold = 0.45, .below = 6, .above = 4},
                 leaf(SharingScore::Jumbo),
                 leaf(SharingScore::Tiny),
                 leaf(SharingScore::Medium)};
  return tree;
}

SharingTree SharingTree::trained(std::span<const Sample> samples, Limits limits) {
  if (samples.empty()) return untrained();
  SharingTree tree;
  std::vector<Sample> own(samples.begin(), samples.end());
  tree.grow(own, limits, 0);
  return tree;
}

std::uint32_t SharingTree::grow(std::span<Sample> samples, const Limits& limits, int depth) {
  const auto at = static_cast<std::uint32_t>(nodes_.size());
  const Counts counts = counts_of(samples);
  nodes_.push_back({.score = most_common(counts)});
  const double before = impurity(counts);
  if (depth == limits.depth || before == 0) return at;

  std::optional<Split> best;
  for (std::uint8_t feature = 0; feature < kFeatures; ++feature) {
    const auto split = best_threshold(samples, feature, limits.smallest_leaf);
    if (split && split->impurity < (best ? best->impurity : before)) best = split;
  }
  if (!best) return at;
  sort_by(samples, best->feature);
  const auto middle = std::ranges::find_if(samples, [&](const Sample& sample) {
    return value_of(sample.features, best->feature) > best->threshold;
  });
  const auto split_at = static_cast<std::size_t>(middle - samples.begin());
  const std::uint32_t below = grow(samples.first(split_at), limits, depth + 1);
  const std::uint32_t above = grow(samples.subspan(split_at), limits, depth + 1);
  nodes_[at].feature = best->feature;
  nodes_[at].threshold = best->threshold;
  nodes_[at].below = below;
  nodes_[at].above = above;
  return at;
}

SharingScore SharingTree::predict(const UsageFeatures& features) const noexcept {
  const Node* node = &nodes_[0];
  while (node->feature != kLeaf)
    node =
        &nodes_[value_of(features, node->feature) <= node->threshold ? node->below : node->above];
  return node->score;
}

}  // namespace berth::lucid
