// The scheduling pass of Tiresias: down the queues, runners and waiters of each, against what the
// higher queues left; then onto devices.
//
// Counting decides who runs where GPUs are only counted. Elsewhere a gang that is granted by count
// but finds no devices takes those of runners it outranks, least work lost first (make_way.h).
// Whoever of them is not in the way after all keeps its devices; the others look for another place
// when it is their turn, and wait at the head of their queue if there is none.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "core/plan.h"
#include "policies/common/make_way.h"
#include "policies/common/place_limits.h"
#include "policies/tiresias/service_queues.h"

namespace berth::tiresias {

/// What a gang does that finds no nodes.
enum class NoNodes : std::uint8_t { Wait, EvictLower };

class QueuePass {
 public:
  QueuePass(ServiceQueues& queues, NoNodes rule) : queues_(queues), rule_(rule) {}
  void begin(const View& view);

  struct Step {
    JobId job;
    bool granted;              // otherwise evicted
    ServiceQueues::From from;  // a grant to a job that was demoted in this instant: Devices
  };
  /// `demoted` have just sunk: they do not wait yet and still hold their devices.
  void run(const View& view, Plan& plan, std::span<const JobId> demoted);
  /// Of the last run: who was granted devices or lost them, in order.
  [[nodiscard]] std::span<const Step> steps() const noexcept { return log_; }
  /// Of the last run: who holds other devices than before.
  [[nodiscard]] std::span<const JobId> moved() const noexcept { return moved_; }
  /// Of the last run: the demoted who lost their devices and wait.
  [[nodiscard]] std::span<const JobId> lost() const noexcept { return lost_; }

 private:
  struct Candidate {
    OrderKey key;
    PoolId pool;
    ServiceQueues::From from;
  };
  struct Rank {  // over all queues
    std::size_t queue = 0;
    OrderKey key;
    friend auto operator<=>(const Rank&, const Rank&) = default;
  };

  [[nodiscard]] bool has_room(std::size_t queue, PoolId pool, std::int64_t gpus) const {
    return room_[pool.value] - queues_.used(queue, pool) >= gpus;
  }
  [[nodiscard]] bool is_over_room(std::size_t queue) const;
  void schedule(const View& view);
  void schedule_in_order(const View& view, std::size_t queue);
  void schedule_by_index(const View& view, std::size_t queue);
  [[nodiscard]] std::optional<PoolId> pool_with_room(const View& view, const Rank& rank,
                                                     ShapeId shape) const;
  [[nodiscard]] std::optional<Candidate> best_waiter(const View& view, std::size_t queue) const;
  void grant(const View& view, const Candidate& candidate);
  void grant_waiters(const View& view, std::size_t queue);
  void evict(const View& view, JobId job);
  void undo(const View& view, std::size_t kept);

  [[nodiscard]] bool carry_out(const View& view, Plan& plan);
  [[nodiscard]] bool try_make_way(const View& view, Plan& plan, JobId job);
  void replace_displaced(const View& view, Plan& plan, std::optional<JobId> before);
  void settle_demoted(const View& view);
  [[nodiscard]] bool goes_on_elsewhere(const View& view) const;

  ServiceQueues& queues_;
  NoNodes rule_;
  // of a run
  std::vector<Step> log_;
  std::vector<JobId> moved_;
  std::vector<JobId> lost_;
  std::vector<JobId> demoted_;
  PlaceLimits<Rank> limits_;
  // of a round
  std::vector<Step> steps_;
  std::vector<JobId> displaced_;    // made way, looking for another place; who lost least is last
  bool has_left_ = false;           // somebody made way and found no other place
  std::vector<std::int64_t> room_;  // by pool, what higher queues leave
  std::vector<JobId> evicted_;      // from the queue being walked
  // scratch
  WayMaker way_;
  std::vector<std::int64_t> left_;
  std::vector<OrderKey> order_;
};

}  // namespace berth::tiresias
