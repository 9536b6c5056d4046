// Lucid's profiler: a few nodes on which new jobs first run for a short time, so that it is known
// how they use a GPU; most short and broken jobs end there. Fewest GPUs first. The part grows by a
// node when many wait and shrinks when few do and little is forecast.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "policies/common/reserved_nodes.h"
#include "policies/kit/job_timers.h"
#include "policies/kit/pass.h"

namespace berth::lucid {

struct ProfilerOptions {
  std::optional<std::int32_t> nodes;  // none: one in twenty, if the cluster has eight or more
  std::int32_t largest = 8;           // GPUs of a job that is profiled
  Duration longest = std::chrono::minutes{5};
};

class Profiler {
 public:
  explicit Profiler(const ProfilerOptions& options) : options_(options) {}
  void begin(const Cluster& cluster);
  [[nodiscard]] bool is_on() const noexcept { return !nodes_.nodes().empty(); }
  /// Its part of the cluster; the rest is the main part.
  [[nodiscard]] ReservedNodes& nodes() noexcept { return nodes_; }
  /// Does the job pass through the profiler at all?
  [[nodiscard]] bool takes(const Shape& shape) const noexcept;

  void push(const View& view, JobId job);
  /// The job waits or profiles no longer.
  void forget(JobId job);
  [[nodiscard]] bool has_waiting() const noexcept { return !waiting_.empty(); }
  /// When the next profiling run ends; kNever if there is none.
  [[nodiscard]] Time next_end() const noexcept { return ends_.next(); }
  /// Jobs whose time is up; they are the caller's now.
  [[nodiscard]] std::vector<JobId> take_due(Time now);
  /// Starts what fits, fewest GPUs first, and answers who that is.
  [[nodiscard]] std::vector<JobId> start_waiting(Pass& pass);
  void resize(double expected_arrivals);

 private:
  struct Waiting {
    std::int32_t gpus;
    JobId job;
    friend auto operator<=>(const Waiting&, const Waiting&) = default;
  };

  ProfilerOptions options_;
  ReservedNodes nodes_;
  std::size_t initial_ = 0;       // nodes at the beginning
  std::int32_t node_gpus_ = 0;    // of the smallest candidate
  std::vector<Waiting> waiting_;  // rising
  JobTimers ends_;                // of profiling runs
};

}  // namespace berth::lucid
