// One round of one arbiter: what is free in its pod and what is held on leases that have ended is
// shown to the worst-off part of the agents that wait with it and to the old holders; the auction
// picks disjoint bids; old holders keep what nobody took, and what is left then goes to anybody it
// helps. The root sells the whole cluster to gangs that are larger than a pod.
//
// Waiting jobs of one kind stand in a FIFO, of which only the first few bid: a round costs what
// there are kinds, not jobs.
#pragma once

#include <span>
#include <vector>

#include "core/policy.h"
#include "policies/agents/grants.h"

namespace berth::agents {

class Sale {
 public:
  Sale(const Options& options, Arbiters& arbiters, JobAgents& agents, Grants& grants)
      : options_(options), arbiters_(arbiters), agents_(agents), grants_(grants) {}

  void hold(Pass& pass, PodId pod);

 private:
  struct Candidate {
    JobId job;
    PoolId pool;
    Bidder bidder;
    double hardship = 0;
    std::size_t holding = kNewcomer;  // of an old holder: its place in holdings_
    [[nodiscard]] bool is_holder() const noexcept { return holding != kNewcomer; }
  };
  struct Leftover {
    double harm = 0;
    double hardship = 0;
    JobId head;
    KindId kind;
  };
  enum class Renewal : std::uint8_t { Here, ByThePod };
  static constexpr std::size_t kNewcomer = static_cast<std::size_t>(-1);

  [[nodiscard]] Candidate candidate(const View& view, JobId job, PoolId pool) const;
  void end_leases(Pass& pass, Arbiter& arbiter);
  void add_waiting(const Pass& pass, PodId pod);
  void hide_offers();
  void sell_pool(Pass& pass, PodId pod, PoolId pool);
  [[nodiscard]] Duration lease_for(double part) const;
  [[nodiscard]] Duration renewal(double part) const;
  void give_back(Pass& pass);
  void give_leftovers(Pass& pass, PodId pod);
  [[nodiscard]] double harm_of(const Pass& pass, JobId job, PodId pod);

  const Options& options_;
  Arbiters& arbiters_;
  JobAgents& agents_;
  Grants& grants_;
  Renewal renewed_ = Renewal::Here;    // who gives old holders their next lease
  std::vector<Candidate> candidates_;  // scratch
  std::vector<Holding> holdings_;      // scratch
  std::vector<std::size_t> losers_;    // scratch: of holdings_
  std::vector<Leftover> leftovers_;    // scratch
};

}  // namespace berth::agents
