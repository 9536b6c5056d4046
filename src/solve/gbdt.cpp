// Gradient boosting with histograms, as LightGBM does it: features are binned once, and a split
// looks at bins instead of rows. Rows held back at the end decide how many trees are kept.

#include "solve/gbdt.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/check.h"

namespace berth {

/// What fitting needs and predicting does not: binned features, residuals, the rows of each leaf.
class GbdtBuilder {
 public:
  GbdtBuilder(std::span<const double> rows, std::size_t features, std::span<const double> targets,
              const GbdtOptions& options)
      : rows_(rows), features_(features), targets_(targets), options_(options) {
    const auto held =
        static_cast<std::size_t>(options.held_back * static_cast<double>(targets.size()));
    trained_ = targets.size() - held;
    make_bins();
  }

  Gbdt run() {
    if (trained_ == 0) return std::move(model_);
    model_.base_ = std::accumulate(targets_.begin(), targets_.begin() + distance(trained_), 0.0) /
                   static_cast<double>(trained_);
    left_over_.resize(targets_.size());
    for (std::size_t i = 0; i < targets_.size(); ++i) left_over_[i] = targets_[i] - model_.base_;
    double best_error = held_error();
    std::size_t best_trees = 0;
    for (std::int32_t tree = 0; tree < options_.trees; ++tree) {
      if (!grow()) break;
      if (trained_ == targets_.size()) continue;
      const double error = held_error();
      if (error < best_error) {
        best_error = error;
        best_trees = model_.roots_.size();
      } else if (model_.roots_.size() >= best_trees + static_cast<std::size_t>(options_.patience)) {
        break;
      }
    }
    if (trained_ < targets_.size()) forget_after(best_trees);
    return std::move(model_);
  }

 private:
  struct Cell {
    double sum = 0;
    std::int32_t count = 0;
  };
  struct Leaf {
    std::uint32_t node = 0;
    std::size_t begin = 0, end = 0;  // in order_
  };
  struct Split {
    double gain = 0;
    std::size_t feature = 0;
    std::size_t bin = 0;  // the last one that goes left
  };

  static std::ptrdiff_t distance(std::size_t n) { return static_cast<std::ptrdiff_t>(n); }

  /// Cuts at quantiles of the trained rows; equal values always share a bin.
  void make_bins() {
    cuts_.resize(features_);
    binned_.resize(targets_.size() * features_);
    std::vector<double> values(trained_);
    for (std::size_t f = 0; f < features_; ++f) {
      for (std::size_t i = 0; i < trained_; ++i) values[i] = rows_[i * features_ + f];
      std::ranges::sort(values);
      std::vector<double>& cuts = cuts_[f];
      for (std::int32_t b = 1; b < options_.bins && trained_ > 0; ++b) {
        const std::size_t at =
            trained_ * static_cast<std::size_t>(b) / static_cast<std::size_t>(options_.bins);
        const auto largest = std::ranges::lower_bound(values, values.back());
        if (largest == values.begin()) break;  // all equal
        // Never at the largest value: such a cut would put every row on one side.
        const double cut = std::min(values[at], *(largest - 1));
        if (cuts.empty() || cut > cuts.back()) cuts.push_back(cut);
      }
      for (std::size_t i = 0; i < targets_.size(); ++i) {
        binned_[i * features_ + f] = static_cast<std::uint8_t>(
            std::ranges::lower_bound(cuts, rows_[i * features_ + f]) - cuts.begin());
      }
    }
  }

  // On the rows at the end: time series must be judged on what comes after the training.
  [[nodiscard]] double held_error() const {
    double error = 0;
    for (std::size_t i = trained_; i < left_over_.size(); ++i)
      error += left_over_[i] * left_over_[i];
    return error;
  }

  /// Adds one tree; false if even its root cannot be split.
  bool grow() {
    order_.resize(trained_);
    std::iota(order_.begin(), order_.end(), std::uint32_t{0});
    const auto root = static_cast<std::uint32_t>(model_.nodes_.size());
    model_.nodes_.emplace_back();
    std::vector<Leaf> level{{root, 0, trained_}};
    std::vector<Leaf> next;
    bool has_split = false;
    for (std::int32_t depth = 0; depth < options_.depth && !level.empty(); ++depth) {
      next.clear();
      for (const Leaf& leaf : level) {
        const Split split = best_split(leaf);
        if (split.gain <= 0) {
          close(leaf);
          continue;
        }
        has_split = true;
        divide(leaf, split, next);
      }
      std::swap(level, next);
    }
    for (const Leaf& leaf : level) close(leaf);
    if (!has_split) {
      model_.nodes_.resize(root);
      return false;
    }
    model_.roots_.push_back(root);
    for (std::size_t i = 0; i < left_over_.size(); ++i)
      left_over_[i] -=
          options_.rate * model_.tree_value(root, rows_.subspan(i * features_, features_));
    return true;
  }

  // Gain of a split: what the sum of squared residuals falls by when both sides get their own mean.
  Split best_split(const Leaf& leaf) {
    const std::size_t rows = leaf.end - leaf.begin;
    const auto least = static_cast<std::size_t>(std::max(1, options_.min_leaf));
    Split best;
    if (rows < 2 * least) return best;
    const auto bins = static_cast<std::size_t>(options_.bins);
    histogram_.assign(features_ * bins, {});
    double total = 0;
    for (std::size_t k = leaf.begin; k < leaf.end; ++k) {
      const std::size_t row = order_[k];
      total += left_over_[row];
      for (std::size_t f = 0; f < features_; ++f) {
        Cell& cell = histogram_[f * bins + binned_[row * features_ + f]];
        cell.sum += left_over_[row];
        ++cell.count;
      }
    }
    const double whole = total * total / static_cast<double>(rows);
    for (std::size_t f = 0; f < features_; ++f) {
      double sum = 0;
      std::size_t count = 0;
      for (std::size_t b = 0; b < cuts_[f].size(); ++b) {
        sum += histogram_[f * bins + b].sum;
        count += static_cast<std::size_t>(histogram_[f * bins + b].count);
        if (count < least || rows - count < least) continue;
        const double rest = total - sum;
        const double gain = sum * sum / static_cast<double>(count) +
                            rest * rest / static_cast<double>(rows - count) - whole;
        // The margin keeps the first of equal splits, so that rounding cannot change a tree.
        if (gain > best.gain + 1e-12) best = {gain, f, b};
      }
    }
    return best;
  }

  void divide(const Leaf& leaf, const Split& split, std::vector<Leaf>& next) {
    const auto goes_left = [&](std::uint32_t row) {
      return binned_[row * features_ + split.feature] <= split.bin;
    };
    // Stable: sums of floats run in the same order on every machine.
    const auto middle = std::stable_partition(order_.begin() + distance(leaf.begin),
                                              order_.begin() + distance(leaf.end), goes_left);
    const auto at = static_cast<std::size_t>(middle - order_.begin());
    const auto left = static_cast<std::uint32_t>(model_.nodes_.size());
    model_.nodes_.resize(left + 2);
    model_.nodes_[leaf.node].feature = static_cast<std::int32_t>(split.feature);
    model_.nodes_[leaf.node].limit = cuts_[split.feature][split.bin];
    model_.nodes_[leaf.node].left = left;
    next.push_back({left, leaf.begin, at});
    next.push_back({left + 1, at, leaf.end});
  }

  void close(const Leaf& leaf) {
    double sum = 0;
    for (std::size_t k = leaf.begin; k < leaf.end; ++k) sum += left_over_[order_[k]];
    model_.nodes_[leaf.node].value = sum / static_cast<double>(leaf.end - leaf.begin);
  }

  // Nodes are stored tree by tree, so that later trees can be cut off.
  void forget_after(std::size_t trees) {
    if (trees == model_.roots_.size()) return;
    model_.nodes_.resize(model_.roots_[trees]);
    model_.roots_.resize(trees);
  }

  std::span<const double> rows_;
  std::size_t features_;
  std::span<const double> targets_;
  GbdtOptions options_;
  std::size_t trained_ = 0;
  Gbdt model_;
  std::vector<std::vector<double>> cuts_;  // by feature, ascending
  std::vector<std::uint8_t> binned_;
  std::vector<double> left_over_;
  std::vector<std::uint32_t> order_;
  std::vector<Cell> histogram_;
};

Gbdt Gbdt::fit(std::span<const double> rows, std::size_t features, std::span<const double> targets,
               const GbdtOptions& options) {
  BERTH_CHECK(rows.size() == targets.size() * features, "a row has all its features");
  BERTH_CHECK(options.bins >= 2 && options.bins <= 255, "a bin is a byte");
  Gbdt model = GbdtBuilder{rows, features, targets, options}.run();
  // During fitting the rate is applied outside the trees; now it becomes part of them.
  for (Node& node : model.nodes_) node.value *= options.rate;
  return model;
}

double Gbdt::tree_value(std::uint32_t root, std::span<const double> row) const noexcept {
  const Node* node = &nodes_[root];
  while (node->feature >= 0) {
    const bool left = row[static_cast<std::size_t>(node->feature)] <= node->limit;
    node = &nodes_[node->left + (left ? 0U : 1U)];
  }
  return node->value;
}

double Gbdt::predict(std::span<const double> row) const noexcept {
  double value = base_;
  for (const std::uint32_t root : roots_) value += tree_value(root, row);
  return value;
}

}  // namespace berth
