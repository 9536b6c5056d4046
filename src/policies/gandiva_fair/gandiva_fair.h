// Gandiva_fair (EuroSys 2020): fair shares of every device type per user, by tickets, in quanta of
// 60 s; users whose jobs gain little from fast devices trade them for slow ones.
//
// A user owns its tickets' part of each type (users.h); after trading, what it owns of a type is
// split over those of its jobs that live there, as their tickets. Each quantum the jobs of a type
// are looked at by stride (stride.h). A job that fits into a server has one as its home and takes
// its turns there, so that a turn costs a suspension and no migration; larger ones take whatever
// servers are free when it is their turn. Devices left over go to jobs that wait, which makes
// the place its home. While jobs wait, one job per type and quantum moves from the server with the
// most tickets per GPU to the one with the fewest.
//
// Assumes: suspending is cheap (`switch_cost`), moving dearer (`migration_cost`). A quantum costs
// O(J log J), and nothing happens while everybody runs. Deviations: docs/policies/gandiva-fair.md.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/rounds.h"
#include "core/policy.h"
#include "policies/gandiva_fair/homes.h"
#include "policies/gandiva_fair/quantum.h"
#include "policies/kit/blocked_set.h"
#include "policies/kit/pass.h"
#include "policies/policy_entry.h"

namespace berth::gandiva_fair {

class GandivaFair final : public Policy {
 public:
  GandivaFair(std::string name, Options options)
      : name_(std::move(name)), options_(std::move(options)) {}
  GandivaFair(const GandivaFair&) = delete;  // its parts refer to each other
  GandivaFair& operator=(const GandivaFair&) = delete;

  [[nodiscard]] std::string_view name() const noexcept override { return name_; }
  [[nodiscard]] PolicyTraits traits() const noexcept override {
    return {.needs = Need::Profile, .preempts = true, .also_uses = Ability::Suspend};
  }
  void begin(const View& view) override;
  void on_arrival(const View& view, JobId job) override;
  void on_departure(const View& view, JobId job) override;
  void on_requeue(const View& view, JobId job) override;
  void on_capacity_change(const View& view, NodeId node) override;
  void decide(const View& view, Plan& plan, Rng& rng) override;
  [[nodiscard]] std::optional<Time> next_wakeup(const View& view) override;

 private:
  void drop_stale_newcomers();
  void take_turns(Pass& pass);
  void start_newcomers(Pass& pass);
  void start_waiting(Pass& pass);
  void fill(Pass& pass);
  bool try_anywhere(Pass& pass, JobId job);
  [[nodiscard]] bool start_anywhere(Pass& pass, JobId job);
  template <class Each>
  void for_all(const Each& each);

  std::string name_;
  Options options_;
  Homes homes_{options_};
  Quantum quantum_{options_, homes_};
  Rounds rounds_{options_.quantum};  // settled while everybody runs, or nobody can
  std::vector<JobId> newcomers_;     // since the last quantum; some may have left
  std::size_t active_ = 0;
  bool is_changed_ = false;      // jobs or nodes came or went since shares were set
  BlockedSet<ShapeId> blocked_;  // in a pass
};

}  // namespace berth::gandiva_fair

namespace berth {

[[nodiscard]] PolicyEntry gandiva_fair_entry();

}  // namespace berth
