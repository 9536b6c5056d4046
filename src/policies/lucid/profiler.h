// Lucid's profiler: a few nodes on which new jobs first run for a short time, so that it is known
// how they use a GPU; most short and broken jobs end there. Fewest GPUs first. The part grows by a
// node when many wait and shrinks when few do and little is forecast; a node that changes sides
// keeps the jobs it has.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <vector>

#include "core/plan.h"
#include "core/view.h"

namespace berth {

struct ProfilerOptions {
  std::optional<std::int32_t> nodes;  // none: one in twenty, if the cluster has eight or more
  std::int32_t largest = 8;           // GPUs of a job that is profiled
  Duration longest = std::chrono::minutes{5};
};

class Profiler {
 public:
  explicit Profiler(const ProfilerOptions& options) : options_(options) {}
  void begin(const Cluster& cluster);
  [[nodiscard]] bool is_on() const noexcept { return size_ > 0; }
  /// Does the job pass through the profiler at all?
  [[nodiscard]] bool takes(const Shape& shape) const noexcept;
  /// A consolidated place for a gang in the main part: the node with the smallest rest, else the
  /// roomiest nodes.
  [[nodiscard]] bool place_outside(const ClusterState& state, const Shape& shape, PoolId pool,
                                   std::vector<Slice>& slices) const;
  /// Does the main part have as many devices at all?
  [[nodiscard]] bool is_outside_large_enough(const Cluster& cluster, const Shape& shape) const;

  void push(const View& view, JobId job);
  /// The job waits or profiles no longer.
  void forget(JobId job);
  /// The time of the next end of a profiling run; kNever if there is none.
  [[nodiscard]] std::size_t waiting() const noexcept { return waiting_.size(); }
  [[nodiscard]] Time next_end() const noexcept { return runs_.empty() ? kNever : runs_[0].end; }
  /// Jobs whose time is up; they are the caller's now.
  void take_due(Time now, std::vector<JobId>& due);
  /// Starts what fits, fewest GPUs first; appends those started.
  void start_waiting(const View& view, Plan& plan, std::vector<JobId>& started);
  void resize(double expected_arrivals);

 private:
  struct Run {
    Time end;
    JobId job;
  };
  struct Waiting {
    std::int32_t gpus;
    JobId job;
    friend auto operator<=>(const Waiting&, const Waiting&) = default;
  };
  [[nodiscard]] bool try_start(const View& view, Plan& plan, JobId job);

  ProfilerOptions options_;
  std::vector<bool> is_profiling_;  // by NodeId
  std::vector<NodeId> candidates_;  // nodes of the largest pool, last first
  std::size_t size_ = 0;            // how many of them profile
  std::size_t initial_ = 0;
  PoolId pool_;
  std::int32_t node_gpus_ = 0;    // of the smallest candidate
  std::vector<Waiting> waiting_;  // rising
  std::deque<Run> runs_;          // rising
};

}  // namespace berth
