// Gradient-boosted regression trees on histograms: squared loss, each tree fitted to what the trees
// before it left over. Features are cut into at most 64 bins at their quantiles once, so that a
// level of a tree costs one walk over the rows. Deterministic: ties go to the lower feature, then
// the lower cut. O(trees * depth * rows * features) to fit, O(trees * depth) to predict.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace berth {

struct GbdtOptions {
  std::int32_t trees = 300;
  std::int32_t depth = 6;
  double rate = 0.05;          // how much of each tree counts
  std::int32_t min_leaf = 20;  // rows
  std::int32_t bins = 64;      // at most 255
  double held_back = 0;        // share of the last rows that decide when to stop; 0 = never early
  std::int32_t patience = 20;  // trees without a better error on them
};

class Gbdt {
 public:
  /// `rows` holds `targets.size()` rows of `features` finite numbers, one after the other.
  [[nodiscard]] static Gbdt fit(std::span<const double> rows, std::size_t features,
                                std::span<const double> targets, const GbdtOptions& options = {});

  [[nodiscard]] double predict(std::span<const double> row) const noexcept;
  [[nodiscard]] std::size_t trees() const noexcept { return roots_.size(); }

 private:
  friend class GbdtBuilder;
  struct Node {
    std::int32_t feature = -1;  // -1: a leaf
    double limit = 0;           // at most: left
    std::uint32_t left = 0;     // the right child follows it
    double value = 0;
  };
  [[nodiscard]] double tree_value(std::uint32_t root, std::span<const double> row) const noexcept;

  double base_ = 0;
  std::vector<Node> nodes_;
  std::vector<std::uint32_t> roots_;
};

}  // namespace berth
