// Who runs where, or will once its nodes have booted: a decision stands until the next one, so a
// job has its seat before it has its devices. Starts those whose nodes are up, and knows which
// nodes nobody needs.
#pragma once

#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "base/id.h"
#include "core/plan.h"
#include "policies/andreas/instance.h"

namespace berth::andreas {

struct Seat {
  std::uint32_t choice = kNone;
  std::vector<Share> shares;  // by NodeId
  friend bool operator==(const Seat&, const Seat&) = default;
};

class Seats {
 public:
  void begin(std::size_t jobs, std::size_t nodes);
  [[nodiscard]] bool empty() const noexcept { return seated_.empty(); }
  [[nodiscard]] std::span<const JobId> jobs() const noexcept { return seated_; }  // in no order
  [[nodiscard]] bool has(JobId job) const noexcept { return at_[job] != 0; }
  [[nodiscard]] const Seat& of(JobId job) const { return seats_.find(job)->second; }

  /// The job is yet to start.
  void give(JobId job, Seat seat);
  /// The job runs there already.
  void give_running(JobId job, Seat seat);
  void leave(JobId job);
  /// Stops it if it runs. Where it starts again in this pass, it prefers the devices it had.
  void release(Plan& plan, JobId job);
  /// New decisions follow: devices that others had before the last one do not count any more.
  void begin_pass() { released_.clear(); }
  /// Starts those whose nodes are up, in the order in which they got their seats.
  void start(Plan& plan);
  /// Decisions of one pass are carried out by JobId.
  void sort_pending();

  [[nodiscard]] bool is_needed(NodeId node) const noexcept { return users_[node] > 0; }
  /// Since when a node without a seat has been seen without one, at the latest now.
  [[nodiscard]] Time idle_since(NodeId node, Time now);

 private:
  [[nodiscard]] bool try_start(Plan& plan, JobId job);
  [[nodiscard]] Slice choose_devices(const Plan& plan, JobId job, const Share& share) const;

  std::vector<JobId> seated_;
  Column<JobId, std::uint32_t> at_;        // position there + 1
  std::unordered_map<JobId, Seat> seats_;  // lookup only
  std::vector<JobId> pending_;             // seated, not started yet
  Column<NodeId, std::int32_t> users_;     // seats on it
  Column<NodeId, Time> idle_since_;        // kNever: somebody has a seat on it, or had
  std::unordered_map<JobId, std::vector<Slice>> released_;  // in this pass; lookup only
  std::vector<Slice> slices_;                               // scratch
};

}  // namespace berth::andreas
