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
// Knows nothing of durations. Never resizes or shares. A gang that is granted by count but finds no
// devices takes those of jobs it outranks (lower queues; by index its own queue too), least work
// lost first, as few as make room (make_way.h); these go elsewhere at once, or wait ahead of their
// queue. A job that is not to be preempted keeps its devices. A job that has waited
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
#include "policies/common/make_way.h"
#include "policies/kit/waiting_jobs.h"
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
  bool evict_for_consolidation = true;  // a gang that finds no nodes takes those of lower queues
};

class Tiresias final : public Policy {
 public:
  Tiresias(std::string name, const TiresiasOptions& options);
  [[nodiscard]] std::string_view name() const noexcept override { return name_; }
  [[nodiscard]] PolicyTraits traits() const noexcept override {
    return {.needs = options_.gittins ? Need::History : Need::Nothing, .preempts = true};
  }
  void begin(const View& view) override;
  void on_arrival(const View& view, JobId job) override;
  void on_departure(const View& view, JobId job) override;
  void on_requeue(const View& view, JobId job) override;
  void on_rate(const View& view, JobId job) override;
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
    bool runs = false;  // member of its queue's runner list, unless it is firm
    bool firm = false;  // while it runs: not to be preempted, so that it is in no queue
  };
  struct Queue {
    WaitingByShape waiting;  // by entry number; when ranked by index, jobs that have run
    WaitingByShape unseen;   // when ranked by index: jobs with no service yet share one index
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
  struct Candidate {
    OrderKey key;
    PoolId pool;
    ShapeId shape;
    WaitingByShape* source = nullptr;  // null: one of holders_
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
  [[nodiscard]] std::optional<PoolId> pool_with_room(const View& view, std::size_t q, ShapeId shape,
                                                     const OrderKey& key) const;
  struct Limit {  // from whom on nobody of a shape finds a place
    std::size_t queue = 0;
    OrderKey key;
    friend auto operator<=>(const Limit&, const Limit&) = default;
  };
  [[nodiscard]] bool is_blocked(ShapeId shape, PoolId pool, const Limit& from) const {
    return !(from < limits_by_shape_[shape.value * room_.size() + pool.value]);
  }
  void grant(const View& view, std::size_t q, const Candidate& candidate);
  void evict(const View& view, std::size_t q, JobId job);
  void queue_evicted(const View& view, std::size_t q);
  [[nodiscard]] bool carry_out(const View& view, Plan& plan);
  void stop_running(const View& view, JobId job);
  [[nodiscard]] bool outranks(const View& view, JobId job, JobId runner) const;
  [[nodiscard]] bool try_make_way(const View& view, Plan& plan, JobId job);
  void replace_displaced(const View& view, Plan& plan, std::optional<JobId> before);
  void displace(const View& view, JobId job);
  [[nodiscard]] bool goes_on_elsewhere(const View& view) const;
  void undo(const View& view, std::size_t kept);
  void queue_demoted(const View& view);
  [[nodiscard]] bool has_room_elsewhere(const View& view, JobId job) const;
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
      holders_;               // demoted in this instant: wait at the tail, still hold their devices
  std::vector<Step> steps_;   // of one round
  std::vector<Step> log_;     // of all rounds of the pass
  std::vector<JobId> moved_;  // in this pass
  std::vector<JobId> displaced_;     // made way, looking for another place; who lost least is last
  bool has_left_ = false;            // somebody made way in this round and found no other place
  bool has_room_elsewhere_ = false;  // somebody evicted in this pass: in a pool it was not in
  WayMaker way_;                     // scratch
  std::vector<std::int64_t> firm_used_;  // by pool: GPUs of jobs that are not to be preempted
  std::vector<JobId> evicted_;           // from the queue being walked
  std::vector<std::int64_t> room_;       // by pool, what higher queues leave
  std::vector<std::int64_t> left_;       // scratch of one queue's walk
  std::vector<Limit> limits_by_shape_;   // and pool, in this pass
  bool has_blocked_ = false;             // some of them
  std::vector<JobId> due_;
  std::vector<OrderKey> order_;
};

}  // namespace berth
