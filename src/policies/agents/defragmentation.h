// Room for a gang that is held back: devices enough are free, but nowhere as close together as it
// accepts. Of all servers (racks, if no server could hold it) the one is emptied, as far as is
// needed, that costs the least GPU-seconds of moving, if its jobs fit elsewhere no farther apart
// than they are and the wait this saves is worth twice that (common/migration.h). Jobs that moved a
// while ago stay.
//
// The wait that is saved: until the running jobs leave that much room by themselves, as they are
// believed to, or until the gang settles for less and what it loses then.
//
// An attempt costs a look at all leases and servers of the arbiter, and a few searches.
#pragma once

#include <vector>

#include "core/policy.h"
#include "policies/agents/grants.h"
#include "policies/common/migration.h"

namespace berth::agents {

class Defragmentation {
 public:
  Defragmentation(const Options& options, Arbiters& arbiters, JobAgents& agents, Grants& grants)
      : options_(options), arbiters_(arbiters), agents_(agents), grants_(grants) {}

  /// For the worst off of those the arbiter holds back.
  void run(Pass& pass, PodId pod);

 private:
  /// Who waits for what.
  struct Wish {
    JobId job;
    PodId pod;
    PoolId pool;
    std::int32_t gpus = 0;
    Level level = Level::CrossRack;
  };
  /// A job on the servers of a cell.
  struct Occupant {
    Tenant tenant;
    std::int32_t here = 0;    // devices it holds in the cell
    double seconds_left = 0;  // until it is believed to end
    bool may_move = false;
  };
  struct Cell {
    std::uint32_t id = 0;
    std::vector<NodeId> nodes;
    std::int32_t free = 0;
    std::vector<Occupant> occupants;
  };

  [[nodiscard]] std::optional<Wish> worst_off(const Pass& pass, PodId pod) const;
  void make_cells(const Pass& pass, const Wish& wish);
  void add_occupants(const Pass& pass);
  void add_occupant(const Pass& pass, JobId job);
  [[nodiscard]] EmptyingChoice choice_of(const Cell& cell, std::int32_t gpus) const;
  [[nodiscard]] double wait_saved(const View& view, const Wish& wish) const;
  [[nodiscard]] bool carry_out(Pass& pass, const Wish& wish, const Cell& cell,
                               std::span<const JobId> moves);
  [[nodiscard]] bool place_again(Pass& pass, const Holding& holding);

  const Options& options_;
  Arbiters& arbiters_;
  JobAgents& agents_;
  Grants& grants_;
  std::vector<Cell> cells_;             // scratch
  std::vector<std::uint32_t> cell_of_;  // scratch, by node: index + 1 into cells_
  std::vector<JobId> holders_;          // scratch
};

}  // namespace berth::agents
