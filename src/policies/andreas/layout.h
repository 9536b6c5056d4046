// A solution under construction: who runs where by which choice, and what that costs. Placing and
// removing a job touches its nodes only: O(jobs of a node). Nodes of a type with the same number of
// free GPUs form a bucket, so the best fit is found without looking at nodes.
//
// cost = what all jobs would cost if they waited
//        + for each placed job: its own energy, tardiness and restart, less what waiting costs it
//        + for each node with a job: its idle rate until the last one ends.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "base/rng.h"
#include "core/bit_set.h"
#include "policies/andreas/instance.h"

namespace berth::andreas {

/// Less is better: cost first, then postponed jobs. Costs are rounded so that equal ones compare
/// equal whatever the order of their sums.
struct Score {
  double cost = 0;
  std::size_t postponed = 0;
  friend auto operator<=>(const Score&, const Score&) = default;
};

/// A choice and the node it is on; of a gang the first one.
struct Spot {
  std::uint32_t choice = kNone;
  std::uint32_t node = kNone;
  friend bool operator==(const Spot&, const Spot&) = default;
};

/// What a layout comes to. Jobs count as in the instance.
struct Solution {
  Score score;
  std::vector<Spot> spots;
  std::vector<std::pair<std::uint32_t, std::vector<Share>>> gangs;  // job, its nodes
};

class Layout {
 public:
  explicit Layout(const Instance& instance);

  void clear();
  [[nodiscard]] const Instance& instance() const noexcept { return *instance_; }
  [[nodiscard]] bool is_placed(std::uint32_t job) const noexcept {
    return spots_[job].choice != kNone;
  }
  [[nodiscard]] const Spot& spot(std::uint32_t job) const noexcept { return spots_[job]; }
  [[nodiscard]] const Choice& choice_of(std::uint32_t job) const noexcept {
    return (*instance_->jobs[job].choices)[spots_[job].choice];
  }
  [[nodiscard]] bool is_gang(std::uint32_t job) const noexcept { return !gangs_[job].empty(); }
  [[nodiscard]] std::int64_t free_gpus() const noexcept { return free_gpus_; }
  [[nodiscard]] std::int32_t free_on(std::uint32_t node) const noexcept { return rows_[node].free; }
  [[nodiscard]] std::span<const std::uint32_t> jobs_on(std::uint32_t node) const noexcept {
    return rows_[node].jobs;
  }
  [[nodiscard]] Score score() const noexcept;
  [[nodiscard]] double cost() const noexcept { return cost_; }

  /// On the node with a job whose room it leaves smallest (`rng`: any of those, otherwise the one
  /// that changed last), or else on an empty one. A gang takes empty nodes. False: no room.
  [[nodiscard]] bool try_place(std::uint32_t job, std::uint32_t choice, Rng* rng);
  /// Where it is at home, by the choice it runs by.
  [[nodiscard]] bool try_stay(std::uint32_t job);
  /// On this node, which has room; not for gangs.
  void place(std::uint32_t job, std::uint32_t choice, std::uint32_t node);
  void remove(std::uint32_t job);

  /// Nodes with a job and free GPUs, ascending.
  void nodes_with_room(std::vector<std::uint32_t>& nodes) const;
  /// Some nodes of the type with room for so many GPUs: at most `limit` with a job, the tightest
  /// first, and one without.
  void candidates(std::uint32_t type, std::int32_t gpus, std::size_t limit,
                  std::vector<std::uint32_t>& nodes) const;

  [[nodiscard]] Solution solution() const;
  void restore(const Solution& solution);

 private:
  struct Row {
    std::int32_t free = 0;
    double last = 0;                  // when its last job ends
    std::vector<std::uint32_t> jobs;  // on it
    std::uint32_t at = 0;             // position in its bucket
  };
  [[nodiscard]] std::uint32_t first_empty(std::uint32_t type, std::uint32_t from) const noexcept;
  [[nodiscard]] bool find_gang_nodes(const Choice& choice, std::vector<Share>& shares) const;
  void place_gang(std::uint32_t job, std::uint32_t choice, std::vector<Share> shares);
  [[nodiscard]] double own_cost(const Job& job, std::uint32_t choice, double ready,
                                bool stays) const noexcept;
  void settle(std::uint32_t job, std::uint32_t choice, double ready, bool stays);
  void occupy(std::uint32_t node, std::uint32_t job, std::int32_t gpus);
  void vacate(std::uint32_t node, std::uint32_t job, std::int32_t gpus);
  void enter_bucket(std::uint32_t node);
  void leave_bucket(std::uint32_t node);
  [[nodiscard]] std::vector<std::uint32_t>& bucket(std::uint32_t type, std::int32_t free) noexcept {
    return buckets_[type][static_cast<std::size_t>(free)];
  }

  const Instance* instance_;
  std::vector<Row> rows_;                  // by node
  std::vector<Spot> spots_;                // by job
  std::vector<double> ends_;               // by job, while placed
  std::vector<double> owns_;               // by job, while placed: its part of the cost
  std::vector<std::vector<Share>> gangs_;  // by job
  std::vector<std::vector<std::vector<std::uint32_t>>> buckets_;  // by type, free GPUs
  std::vector<std::uint64_t> filled_;                             // by type: buckets with nodes
  NodeSet empty_;                                                 // nodes without a job
  double cost_ = 0;
  std::size_t placed_ = 0;
  std::int64_t free_gpus_ = 0;
  std::int64_t all_gpus_ = 0;
};

}  // namespace berth::andreas
