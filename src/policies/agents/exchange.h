// What arbiters do for each other. From time to time they exchange summaries of what is free, and
// the heads of the kinds that wait, worst off first, are tried with other pods, the emptiest
// first, and then with the root, which finds a place anywhere and over several pods if it must: so
// what fits somewhere does not wait past one exchange. A head that fits nowhere goes over to a pod
// where nobody waits, to bid for the leases that end there.
//
// An exchange costs a look at every server and a search for every kind that fits by numbers.
#pragma once

#include <vector>

#include "core/policy.h"
#include "policies/agents/grants.h"

namespace berth::agents {

class Exchange {
 public:
  Exchange(Arbiters& arbiters, JobAgents& agents, Grants& grants)
      : arbiters_(arbiters), agents_(agents), grants_(grants) {}

  void hold(Pass& pass);

 private:
  struct Head {
    double hardship = 0;
    JobId job;
    KindId kind;
    PodId pod;  // where it waits
  };
  struct Offer {
    std::int64_t free = 0;
    PodId pod;
  };
  void collect_heads(const View& view);
  void summarise(const ClusterState& state, PodId pod);
  void summarise_all(const ClusterState& state);
  void collect_offers(const Shape& shape, PodId from);
  [[nodiscard]] bool start_elsewhere(Pass& pass, JobId job, PodId from);
  void send_to_idle_pod(const View& view, JobId job, PodId from);

  Arbiters& arbiters_;
  JobAgents& agents_;
  Grants& grants_;
  std::vector<Head> heads_;                         // scratch
  std::vector<std::vector<PodSummary>> summaries_;  // by pod, pool
  std::vector<Offer> offers_;                       // scratch
};

}  // namespace berth::agents
