// Capacity queues as a tree: names with '/', each with a guaranteed and a largest share of its
// parent. Shares are kept in millionths and GPUs in millionths of a GPU, so that "equally full" is
// exact and ties can go by name. Every inner queue, the root too, has a leaf "default" with the
// share its listed children leave over: jobs of queues that nobody listed have a place.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"

namespace berth::capacity {

/// NAME and its numbers: share[, largest share], as --set queues gives them.
using QueueList = std::vector<std::pair<std::string, std::vector<double>>>;

class QueueTree {
 public:
  using QueueId = std::uint32_t;
  static constexpr QueueId kRoot = 0;

  [[nodiscard]] static Result<QueueTree> make(const QueueList& list);

  /// Turns shares into GPUs; before the first question about either.
  void set_capacity(std::int64_t gpus);
  /// The leaf for a job whose queue is called so; an unlisted name goes to the nearest "default".
  [[nodiscard]] QueueId leaf_of(std::string_view name) const;

  [[nodiscard]] std::size_t size() const noexcept { return queues_.size(); }
  [[nodiscard]] bool is_leaf(QueueId queue) const noexcept {
    return queues_[queue].children.empty();
  }
  [[nodiscard]] const std::string& name(QueueId queue) const noexcept {
    return queues_[queue].name;
  }
  [[nodiscard]] double guaranteed_gpus(QueueId queue) const noexcept;
  [[nodiscard]] double largest_gpus(QueueId queue) const noexcept;

  /// Counts GPUs on a leaf and everything above it; below zero: they come back.
  void use(QueueId leaf, std::int64_t gpus) noexcept;
  [[nodiscard]] std::int64_t used(QueueId queue) const noexcept { return queues_[queue].used; }
  /// Would the leaf and everything above it stay within their largest share with so many GPUs more?
  [[nodiscard]] bool stays_within_largest(QueueId leaf, std::int64_t more) const noexcept;
  /// The same on an idle cluster: whether a gang of this size can ever start.
  [[nodiscard]] bool can_ever_hold(QueueId leaf, std::int64_t gpus) const noexcept;
  [[nodiscard]] bool is_within_guarantee(QueueId leaf, std::int64_t used) const noexcept;
  [[nodiscard]] bool is_below_guarantee(QueueId leaf, std::int64_t used) const noexcept;

  /// The eligible leaf reached by going, at each level, to the queue that is least full of those
  /// with an eligible leaf below; kRoot if there is none.
  template <class IsEligible>
  [[nodiscard]] QueueId least_full_leaf(QueueId queue, IsEligible is_eligible) const {
    QueueId best = kRoot;
    QueueId best_leaf = kRoot;
    for (const QueueId child : queues_[queue].children) {
      if (best != kRoot && !is_less_full(child, best)) continue;
      const QueueId leaf = !is_leaf(child)      ? least_full_leaf(child, is_eligible)
                           : is_eligible(child) ? child
                                                : kRoot;
      if (leaf == kRoot) continue;
      best = child;
      best_leaf = leaf;
    }
    return best_leaf;
  }

 private:
  struct Queue {
    std::string name;  // the whole path
    QueueId parent = kRoot;
    std::int64_t share = 0;  // guaranteed part of the parent, in millionths
    std::int64_t largest = 0;
    std::int64_t guarantee_micro = 0;  // GPUs, in millionths
    std::int64_t largest_micro = 0;
    std::int64_t used = 0;
    std::vector<QueueId> children;
  };
  QueueId add(std::string name, QueueId parent, std::int64_t share, std::int64_t largest);
  [[nodiscard]] Result<void> add_listed(const std::string& name,
                                        const std::vector<double>& numbers);
  [[nodiscard]] Result<void> add_default(QueueId parent);
  [[nodiscard]] bool is_less_full(QueueId a, QueueId b) const noexcept;

  std::vector<Queue> queues_;  // parents before children
  std::map<std::string, QueueId, std::less<>> ids_;
};

}  // namespace berth::capacity
