// Free GPUs of a pool over the time to come, as far as it is believed: a step function. Adding over
// a stretch of time and asking for a minimum are O(log P) in the number of steps; the earliest fit
// visits O(log P) nodes and those between high and low stretches before it. A treap over the steps
// with minimum, maximum and pending change per subtree; nodes live in an arena with a free list, so
// once warm nothing is allocated. Priorities come from a fixed generator: the tree is the same in
// every run, and no answer depends on its shape.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "base/time.h"

namespace berth::conservative {

class CapacityProfile {
 public:
  explicit CapacityProfile(std::int64_t free = 0);

  /// Changes the level in [from, to), as far as that is not past; `to` may be kNever.
  void add(Time from, Time to, std::int64_t change);
  /// The past is of no interest any more: the function begins at `now`.
  void forget_before(Time now);

  [[nodiscard]] std::int64_t at(Time time) const noexcept;
  /// Over all the time that is left.
  [[nodiscard]] std::int64_t least() const noexcept { return nodes_[root_].least; }
  /// First start in [from, before) with `gpus` free during the whole `length`; kNever if there is
  /// none.
  [[nodiscard]] Time earliest_fit(Time from, Time before, Duration length,
                                  std::int64_t gpus) const noexcept {
    return earliest_run({.from = from, .before = before, .length = length, .gpus = gpus});
  }
  /// The same for somebody who holds `gpus` in [held, held + length) already and wants to start
  /// before that: from `held` on its own GPUs are enough. Spares taking the holding out to try.
  [[nodiscard]] Time earlier_fit(Time from, Time held, Duration length,
                                 std::int64_t gpus) const noexcept {
    return earliest_run(
        {.from = from, .before = held, .length = length, .gpus = gpus, .enough = held});
  }
  [[nodiscard]] std::size_t steps() const noexcept { return live_; }

 private:
  using Index = std::uint32_t;
  static constexpr Index kNone = 0;
  struct Node {
    Time at;
    std::int64_t level = 0;
    std::int64_t least = 0;  // of the subtree
    std::int64_t most = 0;
    std::int64_t pending = 0;  // to be added to the children
    std::uint32_t priority = 0;
    Index left = kNone;
    Index right = kNone;
  };
  /// A walk along the function in search of a run of enough free GPUs.
  struct Search {
    Time from;
    Time before;
    Duration length;
    std::int64_t gpus = 0;
    Time enough = kNever;  // a run that reaches this moment is long enough
    Time start = kNever;   // of the run the walk is in
    bool done = false;     // either `start` is the answer, or it is kNever and there is none
    void see(Time at, bool is_high) noexcept;
  };

  [[nodiscard]] Index make(Time at, std::int64_t level);
  void release(Index tree);
  void apply(Index tree, std::int64_t change) noexcept;
  void push(Index tree) noexcept;
  void pull(Index tree) noexcept;
  [[nodiscard]] std::pair<Index, Index> split(Index tree,
                                              Time at) noexcept;  // before, from `at` on
  [[nodiscard]] Index merge(Index left, Index right) noexcept;
  [[nodiscard]] Index join(Index left, Index right) noexcept;
  [[nodiscard]] Index drop_first(Index tree) noexcept;
  [[nodiscard]] std::pair<Time, std::int64_t> first(Index tree) const noexcept;
  [[nodiscard]] std::int64_t last_level(Index tree) const noexcept;
  [[nodiscard]] Time earliest_run(Search search) const noexcept;
  void walk(Index tree, std::int64_t pending, Search& search) const noexcept;

  std::vector<Node> nodes_;  // nodes_[0] is nobody
  std::vector<Index> spare_;
  Index root_ = kNone;
  Time begin_ = kTimeZero;  // there is always a step here
  std::size_t live_ = 0;
  std::uint64_t random_ = 0x9e3779b97f4a7c15ULL;
};

}  // namespace berth::conservative
