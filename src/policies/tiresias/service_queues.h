// The queues of Tiresias: which job is in which by the service it has attained, who waits in what
// order, who runs, and how many GPUs each queue holds. A job sinks when it has had the service of
// its queue; inside a queue jobs wait in order of their entry, or by Gittins index once enough jobs
// have finished.
//
// grant() and stop() are steps of a pass and can be taken back, the last first. Nothing here
// touches the plan.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "core/view.h"
#include "policies/kit/waiting_jobs.h"
#include "policies/tiresias/gittins.h"
#include "policies/tiresias/runner_list.h"

namespace berth::tiresias {

struct GittinsOptions {
  std::size_t history = 5000;
  std::size_t min_samples = 30;  // finished jobs until queues go by index
  std::vector<double> samples;   // history known before the run
  Duration interval = std::chrono::seconds{60};
};

class ServiceQueues {
 public:
  struct Row {
    Duration base{};         // attained time at the last promotion
    std::int64_t entry = 0;  // place in the queue while waiting
    PoolId pool;             // while it runs
    std::uint8_t queue = 0;
    bool runs = false;  // member of its queue's runners, unless it is firm
    bool firm = false;  // while it runs: not to be preempted, so that it is in no queue
  };

  /// `thresholds` in GPU-seconds, rising.
  ServiceQueues(const std::vector<double>& thresholds,
                const std::optional<GittinsOptions>& gittins);
  void begin(const View& view);

  [[nodiscard]] std::size_t size() const noexcept { return queues_.size(); }
  [[nodiscard]] const Row& row(JobId job) const noexcept { return rows_[job]; }
  /// GPU-microseconds since its last promotion.
  [[nodiscard]] Int128 service(const View& view, JobId job) const;
  /// What it still has to get until it sinks; nothing in the last queue.
  [[nodiscard]] std::optional<Int128> service_left(const View& view, JobId job) const;
  /// Queues but the last go by index, once there are enough samples.
  [[nodiscard]] bool is_ranked(std::size_t queue) const noexcept {
    return ranked_ && queue + 1 < queues_.size();
  }
  /// Where it stands in its queue.
  [[nodiscard]] OrderKey key_of(const View& view, JobId job) const;
  /// It comes before a runner: from a higher queue, or where the index ranks them by that.
  [[nodiscard]] bool outranks(const View& view, JobId job, JobId runner) const;

  [[nodiscard]] bool anybody_waits(std::size_t queue) const noexcept {
    return !queues_[queue].waiting.empty() || !queues_[queue].unseen.empty();
  }
  /// Calls visit(key, shape) for the first waiting job of each shape.
  template <class Visit>
  void for_each_head(const View& view, std::size_t queue, Visit visit) const {
    const Queue& here = queues_[queue];
    for (const ShapeId shape : here.waiting.active()) visit(here.waiting.top(shape), shape);
    for (const ShapeId shape : here.unseen.active())
      visit(index_key(view, here.unseen.top(shape).job), shape);
  }
  [[nodiscard]] const RunnerLists& runners() const noexcept { return runners_; }
  /// GPUs granted to the queue's runners, by pool.
  [[nodiscard]] std::int64_t used(std::size_t queue, PoolId pool) const noexcept {
    return queues_[queue].used[pool.value];
  }
  /// GPUs of jobs that are not to be preempted.
  [[nodiscard]] std::int64_t firm_used(PoolId pool) const noexcept {
    return firm_used_[pool.value];
  }

  // --- what happens to a job
  void arrive(const View& view, JobId job);
  void depart(const View& view, JobId job);
  /// No longer a runner; it is in the queue that its service belongs to, behind all others, but
  /// does not wait there yet.
  void sink(const View& view, JobId job);
  /// A waiting job goes back to the first queue and begins to count anew.
  void promote(const View& view, JobId job);
  void wait(const View& view, JobId job);
  /// Jobs of the queue that have stopped wait ahead of everybody in it, in this order.
  void wait_ahead(const View& view, std::size_t queue, std::span<const JobId> jobs);
  /// New samples change the index of jobs that have run; the first switch to ranking touches all.
  void refresh_ranks(const View& view);

  // --- steps of a pass
  enum class From : std::uint8_t { Queue, Devices };  // it waits, or holds devices still
  void grant(const View& view, JobId job, PoolId pool, From from);
  /// It is no runner of its queue any more, or no firm one. Evicts, or takes a grant back.
  void stop(const View& view, JobId job);
  /// A runner that has stopped in this pass goes on where it was in the order of its queue.
  void resume(const View& view, JobId job);
  /// The walk by index begins with nothing granted: runners that stay add up again.
  void forget_used(std::size_t queue);
  void add_used(JobId runner, std::int64_t gpus);

 private:
  struct Queue {
    WaitingByShape waiting;  // by entry number; when ranked by index, jobs that have run
    WaitingByShape unseen;   // when ranked by index: jobs with no service yet share one index
    std::vector<std::int64_t> used;  // GPUs granted, by pool
    std::int64_t tail = 0;           // next entry number
    std::int64_t front = 0;          // lowest number given to an evicted runner
  };
  [[nodiscard]] OrderKey index_key(const View& view, JobId job) const;
  [[nodiscard]] Queue& queue_of(JobId job) noexcept { return queues_[rows_[job].queue]; }
  void stop_waiting(const View& view, JobId job);

  std::vector<double> thresholds_;
  std::vector<Int128> limits_;  // thresholds in GPU-microseconds
  std::optional<GittinsOptions> gittins_;
  GittinsTable table_;
  bool ranked_ = false;
  std::vector<Queue> queues_;
  RunnerLists runners_;  // by queue, in order of grants
  Column<JobId, Row> rows_;
  std::vector<std::int64_t> firm_used_;  // by pool
  std::vector<JobId> drained_;           // scratch
};

}  // namespace berth::tiresias
