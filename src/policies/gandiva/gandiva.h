// Gandiva (OSDI 2018): early feedback for all jobs first, efficiency second. Nothing is predicted;
// jobs are put somewhere, their progress is measured, and what helps is kept.
//
//   time slices   servers take more jobs than they have GPUs, up to max_height times; residents of
//                 such a server take turns (ring.h, turns.h), suspended on the host in between
//   packing       two jobs of a server that take turns are put on the same GPUs for a while and
//                 stay there if their rates together beat taking turns (packing.h)
//   migration     to where a neighbour left, away from neighbours that slow a job down, and to
//                 empty loosely used servers (migration.h)
//   grow-shrink   a job that may grow takes the idle GPUs of its server, and gives them back when
//                 another job needs them (growth.h)
//
// Knows nothing of durations; utilisation and memory of a model are known from watching it. A job
// of up to one server's GPUs lives on one server, a larger gang on whole servers of its own. The
// run's placement has no say: affinity decides (servers.h, housing.h).
//
// An event costs O(log n) plus the residents of the servers it touches; a slice change costs the
// residents of its server; nothing is done for servers that are not over-subscribed.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/rounds.h"
#include "core/policy.h"
#include "policies/gandiva/migration.h"
#include "policies/gandiva/packing.h"
#include "policies/policy_entry.h"

namespace berth::gandiva {

class Gandiva final : public Policy {
 public:
  Gandiva(std::string name, const Options& options) : name_(std::move(name)), options_(options) {}
  Gandiva(const Gandiva&) = delete;  // its parts refer to each other
  Gandiva& operator=(const Gandiva&) = delete;

  [[nodiscard]] std::string_view name() const noexcept override { return name_; }
  [[nodiscard]] PolicyTraits traits() const noexcept override {
    return {.needs = Need::Profile,
            .preempts = true,
            .shares_devices = true,
            .also_uses = Ability::Suspend};
  }
  void begin(const View& view) override;
  void on_arrival(const View& view, JobId job) override;
  void on_departure(const View& view, JobId job) override;
  void on_requeue(const View& view, JobId job) override;
  void on_capacity_change(const View& view, NodeId node) override;
  void decide(const View& view, Plan& plan, Rng& rng) override;
  [[nodiscard]] std::optional<Time> next_wakeup(const View& view) override;

 private:
  void on_tick(Pass& pass);

  std::string name_;
  Options options_;
  Housing housing_{options_};
  Observations observations_;
  Growth growth_{options_, housing_};
  Turns turns_{options_, housing_, growth_};
  Packing packing_{options_, housing_, turns_, observations_};
  Migration migration_{options_, housing_, turns_, observations_};
  Rounds ticks_{options_.tick};
  Rounds rebalances_{options_.rebalance};
  std::vector<JobId> newcomers_;  // since the last instant
  std::vector<JobId> orphans_;    // lost a server of their set but still hold the others
};

}  // namespace berth::gandiva

namespace berth {

[[nodiscard]] PolicyEntry gandiva_entry();

}  // namespace berth
