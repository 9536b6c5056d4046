// A few nodes on which short debug jobs start at once. The pool opens with the first such job, with
// one node in twenty (at most half of them), and changes by a node a minute with its queue
// (rules.h): a node that changes sides keeps the jobs it has, but best-effort jobs make room if no
// node is idle. First come, first served; a job over the limit is stopped. Jobs without a class
// begin here, too: those that outlive the first minutes leave for the rest of the cluster.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "policies/common/reserved_nodes.h"
#include "policies/hpo/rules.h"
#include "policies/kit/job_timers.h"
#include "policies/kit/pass.h"

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
  [[nodiscard]] bool is_open() const noexcept { return !nodes_.nodes().empty(); }
  [[nodiscard]] ReservedNodes& nodes() noexcept { return nodes_; }

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
  [[nodiscard]] Stopped run(Pass& pass, const std::set<JobId>& running);
  [[nodiscard]] Time next_wakeup() const noexcept;

 private:
  void open(const View& view);
  void change_size(Pass& pass, const std::set<JobId>& running, std::vector<JobId>& evicted);
  void grow(Pass& pass, const std::set<JobId>& running, std::vector<JobId>& evicted);
  [[nodiscard]] std::optional<NodeId> cheapest_node(const Pass& pass,
                                                    const std::set<JobId>& running) const;

  DebugPoolOptions options_;
  ReservedNodes nodes_;
  DebugPoolSize size_;
  std::deque<JobId> waiting_;
  JobTimers ends_;  // of the time of those that run
  Time next_look_ = kNever;
};

}  // namespace berth::hpo
