// Decentralised scheduling: job agents bid, arbiters sell.
//
// Every job has an agent that knows its own speed and nothing of others (job_agents.h); arbiters
// know offers and bids and nothing of the inside of a job. The cluster is divided into pods with an
// arbiter each (pods.h, arbiters.h); a root arbiter sells to gangs larger than a pod. When devices
// are free or leases have ended, the arbiter shows the offer to the worst-off part of its
// agents, picks disjoint bids that minimise the product of how badly off all are, and gives what is
// left to anybody it helps (sale.h, auction.h). Grants are leases: when one ends, its holder bids
// again with a switching credit, and loses its devices only if somebody else gets them. Arbiters
// exchange summaries, so that nobody waits long beside free devices of another pod (exchange.h).
//
// Agents choose the level of the topology at which they accept devices: at first by the label of
// their kind, relaxed when waiting costs more than distance (perf/locality.h). For a gang that is
// held back so, an arbiter moves others together (defragmentation.h); jobs move to closer devices
// and away from disturbing neighbours when that pays (moves.h).
//
// Assumes estimates of run times and profiles. Gangs are rigid.
#pragma once

#include <optional>

#include "policies/agents/defragmentation.h"
#include "policies/agents/exchange.h"
#include "policies/agents/moves.h"
#include "policies/agents/sale.h"
#include "policies/policy_entry.h"

namespace berth::agents {

class Agents final : public Policy {
 public:
  explicit Agents(const Options& options) : options_(options) {}
  Agents(const Agents&) = delete;  // its parts refer to each other
  Agents& operator=(const Agents&) = delete;

  [[nodiscard]] std::string_view name() const noexcept override { return "agents"; }
  [[nodiscard]] PolicyTraits traits() const noexcept override {
    return {.needs = Need::RunTime | Need::Deadline | Need::Profile,
            .preempts = true,
            .wants_topology = true,
            .minds_neighbours = true};
  }

  void begin(const View& view) override;
  void on_arrival(const View& view, JobId job) override;
  void on_departure(const View& view, JobId job) override;
  void on_requeue(const View& view, JobId job) override;
  void on_capacity_change(const View& view, NodeId node) override;
  void decide(const View& view, Plan& plan, Rng& rng) override;
  [[nodiscard]] std::optional<Time> next_wakeup(const View& view) override;

 private:
  void hold_sales(Pass& pass);
  [[nodiscard]] bool wants_sale(const View& view, PodId pod);
  [[nodiscard]] bool has_ended_lease(Time now, PodId pod);
  void hold_exchange(Pass& pass);
  void make_room(Pass& pass);
  void move(Pass& pass);
  [[nodiscard]] Time next_sale(Time now, PodId pod);

  Options options_;
  Arbiters arbiters_;
  JobAgents agents_{options_};
  Grants grants_{options_, arbiters_, agents_};
  Sale sale_{options_, arbiters_, agents_, grants_};
  Exchange exchange_{arbiters_, agents_, grants_};
  Defragmentation defragmentation_{options_, arbiters_, agents_, grants_};
  Moves moves_{options_, arbiters_, agents_, grants_};
  Time next_exchange_{};
  bool exchange_wanted_ = false;  // something has changed since the last one
  Time next_move_{};
};

}  // namespace berth::agents

namespace berth {

[[nodiscard]] PolicyEntry agents_entry();

}  // namespace berth
