// Tiresias (NSDI 2019): discretized two-dimensional attained service. Jobs sink through K queues as
// the GPU-seconds they have held cross thresholds; a higher queue runs first.
//
//   tiresias-l  inside a queue first come first served, and a runner is never evicted by a waiter
//   of its
//               own queue: that is what keeps preemptions few
//   tiresias-g  inside every queue but the last by decreasing Gittins index against the service of
//   past
//               jobs; falls back to the first rule until `min_samples` jobs have finished
//
// Knows nothing of durations. Never resizes, migrates or shares. A job that has waited
// `promote_knob` times as long as it has run since its last promotion goes back to the first queue
// (off by default).
//
// The pass is the incremental form: per queue the GPUs granted, the runners in order of their
// grants, and the waiters by shape; it equals a walk over all queues from an empty cluster.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "core/policy.h"
#include "policies/common/shape_queues.h"
#include "policies/tiresias/gittins.h"
#include "policies/tiresias/runner_list.h"

namespace berth {

struct TiresiasOptions {
  bool gittins = false;
  std::vector<double> thresholds{3200};  // GPU-seconds, rising
  double promote_knob = std::numeric_limits<double>::infinity();
  std::size_t history = 5000;
  std::size_t min_samples = 30;
  std::vector<double> samples;  // history known before the run
  Duration gittins_interval = std::chrono::seconds{60};
  Duration min_interval{};
  bool evict_for_consolidation = false;  // a gang that finds no nodes takes those of lower queues
};

class Tiresias final : public Policy {
 public:
  Tiresias(std::string name, const TiresiasOptions& options);
  [[nodiscard]] std::string_view name() const noexcept override { return name_; }
  [[nodiscard]] Need needs() const noexcept override {
    return options_.gittins ? Need::History : Need::Nothing;
  }
  void begin(const View& view) override;
  void on_arrival(const View& view, JobId job) override;
  void on_departure(const View& view, JobId job) override;
  void on_requeue(const View& view, JobId job) override;
  void decide(const View& view, Plan& plan, Rng& rng) override;
  [[nodiscard]] std::optional<Time> next_wakeup(const View& view) override;

 private:
  struct JobRow {
    Duration base{};    // attained time at the last promotion
    Duration waited{};  // waiting since then, after the first run
    Time waits_since{};
    std::int64_t entry = 0;   // place in the queue while waiting
    std::uint32_t timer = 0;  // generation of its timers
    PoolId pool;              // while it runs
    std::uint8_t queue = 0;
    bool runs = false;  // member of its queue's runner list
  };
  struct Queue {
    ShapeQueues waiting;  // by entry number; when ranked by index, jobs that have run
    ShapeQueues unseen;   // when ranked by index: jobs with no service yet share one index
    std::vector<std::int64_t> used;  // GPUs granted, by pool
    std::int64_t tail = 0;           // next entry number
    std::int64_t front = 0;          // lowest number given to an evicted runner
  };
  struct Timer {
    Time at;
    JobId job;
    std::uint32_t generation;
    friend auto operator<=>(const Timer&, const Timer&) = default;
  };
  struct Step {  // log of a pass, for carrying it out or undoing it
    JobId job;
    bool granted;  // otherwise evicted
    bool held;     // a grant to a job that was demoted in this instant
  };
  struct Displaced {  // a runner that may have to make room, and where it was
    JobId job;
    std::vector<Slice> slices;
  };
  struct Candidate {
    OrderKey key;
    PoolId pool;
    ShapeId shape;
    ShapeQueues* source = nullptr;  // null: one of holders_
  };

  [[nodiscard]] Int128 service(const View& view,
                               JobId job) const;  // GPU-microseconds since promotion
  [[nodiscard]] bool is_ranked(std::size_t queue) const noexcept {
    return ranked_ && queue + 1 < queues_.size();
  }
  [[nodiscard]] OrderKey index_key(const View& view, JobId job, std::size_t queue) const;
  void enqueue(const View& view, JobId job);
  void leave_queue(const View& view, JobId job);
  void refresh_ranks(const View& view);

  void fire_timers(const View& view);
  void collect_due(std::vector<Timer>& timers, Time now);
  void demote(const View& view, JobId job);
  void promote(const View& view, JobId job);
  void set_timers(const View& view);

  void schedule(const View& view, const Plan& plan);
  void schedule_in_order(const View& view, std::size_t q);
  void schedule_by_index(const View& view, std::size_t q);
  [[nodiscard]] std::optional<Candidate> best_waiter(const View& view, std::size_t q);
  [[nodiscard]] std::optional<PoolId> pool_with_room(const Queue& queue, const Shape& shape) const;
  void grant(const View& view, std::size_t q, const Candidate& candidate);
  void evict(const View& view, std::size_t q, JobId job);
  void queue_evicted(const View& view, std::size_t q);
  [[nodiscard]] bool carry_out(const View& view, Plan& plan);
  void find_lower_runners(const View& view, std::size_t q, PoolId pool);
  [[nodiscard]] bool try_start_evicting(const View& view, Plan& plan, JobId job);
  void displace(const View& view, JobId job);
  void undo(const View& view, std::size_t kept);
  void settle(const View& view);

  std::string name_;
  TiresiasOptions options_;
  std::vector<Int128> limits_;  // thresholds in GPU-microseconds
  GittinsTable table_;
  bool ranked_ = false;  // enough samples: queues but the last go by index
  std::vector<Queue> queues_;
  RunnerLists runners_;           // by queue, in order of grants
  std::vector<JobRow> rows_;      // by JobId
  std::vector<Timer> demotions_;  // heaps, earliest first; stale generations are dropped
  std::vector<Timer> promotions_;
  std::vector<JobId> fresh_;  // started or kept by the last pass: timers follow once that is known
  std::vector<JobId> stopped_;  // preempted by the last pass
  std::optional<Time> last_pass_;
  std::vector<JobId>
      holders_;  // demoted in this instant: wait at the tail, still hold their devices
  std::vector<Step> steps_;
  bool displaced_ = false;           // somebody lost its place in this pass: another one follows
  bool has_room_elsewhere_ = false;  // somebody evicted in this pass: in a pool it was not in
  std::vector<Displaced> lower_;     // scratch: runners that may have to make room
  std::vector<JobId> evicted_;       // from the queue being walked
  std::vector<std::int64_t> room_;   // by pool, what higher queues leave
  std::vector<std::int64_t> left_;   // scratch of one queue's walk
  std::vector<bool> blocked_;        // shapes that found no place in this pass
  std::vector<JobId> due_;
  std::vector<OrderKey> order_;
};

}  // namespace berth
