// A few nodes on which short debug jobs start at once. The pool opens with the first such job, with
// one node in twenty (at most half of them), and changes by a node a minute with its queue
// (rules.h); a node that changes sides keeps the jobs it has, but best-effort jobs make room if no
// node is idle. First come, first served; a job over the limit is stopped. Jobs without a class
// begin here, too: those that outlive the first minutes leave for the rest of the cluster.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/plan.h"
#include "core/view.h"
#include "policies/hpo/rules.h"

namespace berth::hpo {

struct DebugPoolOptions {
  Duration limit = std::chrono::minutes{30};
  std::int32_t largest = 8;                 // GPUs of a job that is served here
  std::string best_effort = "best-effort";  // queue whose jobs make room
  std::string production;                   // queue of jobs that have a class; empty: all have one
  Duration screen = std::chrono::minutes{5};  // how long jobs without one stay here
};

class DebugPool {
 public:
  explicit DebugPool(DebugPoolOptions options) : options_(std::move(options)) {}
  void begin(const Cluster& cluster);

  [[nodiscard]] bool takes(const View& view, JobId job) const;
  /// A plain training job outside studies and outside the queues that say what it is.
  [[nodiscard]] bool has_no_class(const View& view, JobId job) const;
  [[nodiscard]] bool is_open() const noexcept { return !nodes_.empty(); }
  /// By NodeId.
  [[nodiscard]] const std::vector<bool>& reserved() const noexcept { return reserved_; }
  [[nodiscard]] std::size_t nodes() const noexcept { return nodes_.size(); }

  void push(const View& view, JobId job);
  /// The job waits or runs here no longer.
  void forget(JobId job);
  struct Stopped {
    std::vector<JobId> evicted;   // had to make room
    std::vector<JobId> killed;    // over their limit, for good
    std::vector<JobId> outlived;  // without a class, to go on elsewhere
  };
  /// Stops what is over its time, changes its size once a minute, starts what fits. `running` are
  /// all jobs that hold devices.
  [[nodiscard]] Stopped run(const View& view, Plan& plan, const std::set<JobId>& running);
  [[nodiscard]] Time next_wakeup() const noexcept;

 private:
  void open(const View& view);
  void change_size(const View& view, Plan& plan, const std::set<JobId>& running,
                   std::vector<JobId>& evicted);
  void grow(const View& view, Plan& plan, const std::set<JobId>& running,
            std::vector<JobId>& evicted);
  [[nodiscard]] bool is_idle(const ClusterState& state, NodeId node) const;
  [[nodiscard]] std::optional<NodeId> cheapest_node(const View& view, const Plan& plan,
                                                    const std::set<JobId>& running) const;
  [[nodiscard]] bool try_start(const View& view, Plan& plan, JobId job) const;

  DebugPoolOptions options_;
  PoolId pool_;
  std::vector<NodeId> candidates_;  // nodes of the largest pool, last first
  DebugPoolSize size_;
  std::vector<bool> reserved_;
  std::vector<NodeId> nodes_;
  std::deque<JobId> waiting_;
  std::set<std::pair<Time, JobId>> ends_;  // of the time of those that run
  Time next_look_ = kNever;
};

}  // namespace berth::hpo
