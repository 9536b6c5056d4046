// Moves of running jobs for their own sake, looked at every few minutes: to devices that are closer
// together, and away from a neighbour with which they slow each other down by more than a fifth.
// A move must pay by the rule of common/migration.h and comes at most once in a while for a job.
//
// Who parts: of two that match badly the one with the smaller gang goes to where all concerned are
// better off, or, where nothing is free, changes places with a job of its size. All jobs whose
// speed the move changes are weighed, with the work they have left.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "core/policy.h"
#include "policies/agents/grants.h"
#include "policies/common/migration.h"

namespace berth::agents {

class Moves {
 public:
  Moves(const Options& options, Arbiters& arbiters, JobAgents& agents, Grants& grants)
      : options_(options), arbiters_(arbiters), agents_(agents), grants_(grants) {}

  /// Is there anything that could make a move pay?
  [[nodiscard]] static bool may_pay(const View& view) {
    return view.believed().effects().locality || view.believed().effects().server;
  }
  /// True: somebody moved.
  bool run(Pass& pass);

 private:
  /// A job and where it goes.
  struct Step {
    JobId job;
    PoolId pool;
    std::vector<Slice> from;
    std::vector<Slice> to;
  };
  struct Concern {
    JobId job;
    double seconds_left = 0;
    double slowdown_before = 1;
  };

  [[nodiscard]] bool may_move(const Pass& pass, JobId job) const;
  [[nodiscard]] bool go_closer(Pass& pass, JobId job);
  [[nodiscard]] bool part(Pass& pass, JobId job);
  [[nodiscard]] bool has_bad_match(const Pass& pass, JobId job) const;
  [[nodiscard]] bool move_away(Pass& pass, JobId job);
  [[nodiscard]] bool swap_away(Pass& pass, JobId job);
  [[nodiscard]] bool is_swap_partner(const Pass& pass, JobId job, JobId other) const;
  /// Carries the steps out if they pay for all concerned together.
  [[nodiscard]] bool try_steps(Pass& pass, std::span<const Step> steps);
  [[nodiscard]] bool pays_for_all(const Pass& pass, std::size_t moves) const;
  void collect_concerned(const Pass& pass, std::span<const Step> steps);
  [[nodiscard]] double slowdown(const Pass& pass, JobId job) const;
  void book(Pass& pass, JobId job);

  const Options& options_;
  Arbiters& arbiters_;
  JobAgents& agents_;
  Grants& grants_;
  std::vector<JobId> holders_;      // scratch
  std::vector<Concern> concerned_;  // scratch
};

}  // namespace berth::agents
