// Where jobs run: leases in aligned blocks (common/buddy_servers.h), from which they push
// best-effort jobs aside; best-effort jobs by the run's placement. Reports every start and stop to
// the roster. If padding is kept free, the GPUs that rounding up to blocks leaves idle stay idle
// until the next term.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "policies/chronus/promises.h"
#include "policies/chronus/roster.h"
#include "policies/kit/pass.h"

namespace berth::chronus {

class Placing {
 public:
  Placing(const Options& options, const Promises& promises, Roster& roster)
      : options_(options), promises_(promises), roster_(roster) {}
  void begin(const View& view);

  /// Leases of the coming term; those that stay where they are cost nothing.
  void place_leases(Pass& pass, const std::vector<JobId>& leased);
  /// Wherever the run's placement puts it.
  bool start(Pass& pass, JobId job, Reason reason);
  /// A promised job before its lease comes, in the pool of its promise.
  [[nodiscard]] bool start_early(Pass& pass, JobId job);
  void stop(Pass& pass, JobId job);
  /// Free devices of a node that best-effort jobs may have.
  [[nodiscard]] std::uint64_t lendable(const Plan& plan, NodeId node) const noexcept {
    const std::uint64_t free = plan.cluster().free_mask(node);
    return keeps_padding() ? free & ~padding_[node] : free;
  }

 private:
  using Places = std::vector<std::optional<BuddyBlocks>>;  // by job
  [[nodiscard]] bool keeps_padding() const noexcept { return !padding_.empty(); }
  void place_in(Pass& pass, PoolId pool, const std::vector<JobId>& jobs);
  [[nodiscard]] Places make_places(Pass& pass, PoolId pool, const std::vector<JobId>& jobs);
  void push_aside(Pass& pass);
  void start_lease(Pass& pass, PoolId pool, JobId job, const std::optional<BuddyBlocks>& place);
  [[nodiscard]] bool start_in(Pass& pass, JobId job, PoolId pool, Reason reason);

  const Options& options_;
  const Promises& promises_;
  Roster& roster_;
  Column<NodeId, std::uint64_t> padding_;  // kept free in this term; empty if all is lent
  Column<NodeId, std::uint64_t> needed_;   // scratch: devices that leases are about to take
  std::vector<Slice> slices_;              // scratch
};

}  // namespace berth::chronus
