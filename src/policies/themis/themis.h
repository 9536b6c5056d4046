// Themis (NSDI 2020): finish-time fairness by partial-allocation auctions.
//
// The unit of fairness is the app: the jobs of one study or group, or a job by itself. Its rho is
// when it will end here over when it would have ended on a private share of the cluster
// (fairness.h). GPUs are granted as leases. When some are free, those of ended leases included,
// they are offered to the worst-off part of the apps; each bids what any number of them is worth to
// it, the auction shares them out (common/partial_allocation.h, or placed_auction.h where distance
// counts), and hidden payments make it pay to tell the truth. What is left goes to other apps at
// random, then to the bidders that are worst off. An app splits its GPUs among its jobs; GPUs that
// stay with a job cost nothing. A gang that found no room for a few leases has GPUs held back.
//
// Assumes estimates of run times and, for elastic jobs and distances, profiles. An event costs the
// bidders and GPUs of its auction, not the apps that exist: those without GPUs wait in a FIFO, the
// others in the order of their rho as it was last known.
#pragma once

#include <optional>

#include "core/policy.h"
#include "policies/policy_entry.h"
#include "policies/themis/apps.h"
#include "policies/themis/auction.h"
#include "policies/themis/grants.h"
#include "policies/themis/leases.h"
#include "policies/themis/options.h"

namespace berth::themis {

class Themis final : public Policy {
 public:
  explicit Themis(const Options& options) : options_(options) {}
  Themis(const Themis&) = delete;  // its parts refer to each other
  Themis& operator=(const Themis&) = delete;

  [[nodiscard]] std::string_view name() const noexcept override { return "themis"; }
  [[nodiscard]] PolicyTraits traits() const noexcept override {
    return {.needs = Need::RunTime | Need::Profile, .preempts = true, .resizes = true};
  }

  void begin(const View& view) override;
  void on_arrival(const View& view, JobId job) override;
  void on_departure(const View& view, JobId job) override;
  void on_requeue(const View& view, JobId job) override;
  void on_capacity_change(const View& view, NodeId node) override;
  void decide(const View& view, Plan& plan, Rng& rng) override;
  [[nodiscard]] std::optional<Time> next_wakeup(const View& view) override;

 private:
  struct PoolRow {
    bool has_changed = false;  // GPUs came back or jobs came
    bool was_wanted = false;   // after the last pass
  };
  void note_freed(JobId job);
  void hold_auction(Pass& pass, PoolId pool);

  Options options_;
  Apps apps_{options_};
  Leases leases_{options_.lease, options_.align};
  Auction auction_{options_, apps_};
  Grants grants_{apps_, leases_};
  Column<PoolId, PoolRow> pools_;
};

}  // namespace berth::themis

namespace berth {

[[nodiscard]] PolicyEntry themis_entry();
[[nodiscard]] PolicyEntry ftf_fractional_entry();

}  // namespace berth
