// Themis (NSDI 2020): finish-time fairness by partial-allocation auctions.
//
// The unit of fairness is the app: the jobs of one study or group, or a job by itself. Its rho is
// when it will end here over when it would have ended on a private share of the cluster
// (fairness.h). GPUs are granted as leases. When some are free, those of ended leases included,
// they are offered to the worst-off part of the apps; each says what so many of them are worth to
// it, the auction shares them out (common/partial_allocation.h, or placed_auction.h where distance
// counts), and hidden payments make it pay to tell the truth. What is left goes to other apps at
// random, then to the bidders that are worst off. An app splits its GPUs among its jobs; GPUs that
// stay with a job cost nothing. A gang that found no room for a few leases has GPUs held back.
//
// Assumes estimates of run times and, for elastic jobs and distances, profiles. An event costs the
// bidders and GPUs of its auction, not the apps that exist: those without GPUs wait in a FIFO, the
// others in the order of their rho as it was last known.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "core/policy.h"
#include "policies/common/elastic.h"
#include "policies/policy_entry.h"
#include "policies/themis/fairness.h"
#include "policies/themis/job_times.h"
#include "policies/themis/market.h"
#include "policies/themis/offer_map.h"

namespace berth::themis {

enum class AppOf : std::uint8_t { StudyOrGroup, Study, Job };

struct Options {
  double f = 0.8;  // part of the apps an offer is hidden from
  Duration lease = std::chrono::minutes{20};
  Duration align = std::chrono::seconds{60};  // leases end at multiples of this
  std::size_t max_bidders = 256;
  std::int32_t starve_leases = 3;
  bool auction_on_arrival = true;
  AppOf app = AppOf::StudyOrGroup;
  Slowdown slowdown = Slowdown::Believed;
  ElasticRule elastic;
};

class Themis final : public Policy {
 public:
  explicit Themis(const Options& options) : options_(options) {}
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
  struct JobRow {
    AppId app;
    std::int32_t unit = 1;
    std::int32_t most = 1;
    std::int32_t held = 0;  // GPUs, on offer or not
    PoolId pool;            // of those
    bool on_offer = false;  // its lease has ended in this instant
    Time lease_end = kNever;
    Time since{};               // without GPUs since then
    double alone = 0;           // seconds it takes by itself with all it can use
    Duration work_at_change{};  // done when it was last started or resized
    Duration work_at_lease{};   // done when its lease began
  };
  struct App {
    std::vector<JobId> jobs;  // unfinished, ascending
    Time start{};
    double integral_at_start = 0;
    double alone_done = 0;  // longest of its completed jobs
    Time since = kNever;    // without GPUs since then
    std::int32_t missed = 0;
    Time last_miss{};
    std::vector<Seat> seats;  // by pool
  };
  /// What an app has at stake in one auction: its GPUs that are not on offer and what it gets.
  struct Stake {
    AppId app;
    std::vector<JobId> jobs;  // longest without GPUs first
    std::unique_ptr<ViewedTimes> times;
    AppSplit split;                         // as it stands
    AppBid bid;                             // of a bidder: from what it has that is not on offer
    std::uint32_t row = 0;                  // of its bid that it has
    Pieces pieces = {};                     // of the offer, where distance counts
    std::vector<std::uint32_t> homes = {};  // machines of the offer its jobs are on
  };
  struct PoolRow {
    Market market;
    std::vector<JobId> ended;  // leases, in this instant
    bool is_dirty = false;     // something came back or somebody came
    bool was_wanted = false;   // after the last pass
  };
  struct Offer {
    PoolId pool;
    std::int32_t left = 0;
    std::vector<NodeId> nodes{};    // by number in the map
    std::optional<OfferMap> map{};  // only where distance counts
  };

  // themis.cpp: apps, seats, leases
  [[nodiscard]] AppId app_of(const View& view, JobId job);
  [[nodiscard]] App& app(AppId id) { return apps_[id.value]; }
  [[nodiscard]] std::int32_t firm(JobId job) const noexcept;
  [[nodiscard]] bool has_got_on(const View& view, JobId job, Duration since) const;
  [[nodiscard]] bool may_grow(const View& view, JobId job) const;
  void refresh(const View& view, AppId id);
  void withdraw(AppId id);
  void drop_lease(JobId job);
  void set_lease(const View& view, JobId job);
  void collect_ended(const View& view);
  [[nodiscard]] double ideal(const View& view, AppId id) const;
  [[nodiscard]] double elapsed(const View& view, AppId id) const;
  [[nodiscard]] double rho(const View& view, AppId id);

  // auction.cpp: one pool's auction
  void hold(const View& view, Plan& plan, PoolId pool, Rng& rng);
  [[nodiscard]] bool serve_starving(const View& view, Plan& plan, PoolId pool);
  [[nodiscard]] Stake make_stake(const View& view, AppId id, PoolId pool);
  [[nodiscard]] std::vector<AppId> invite(const View& view, PoolId pool, std::int32_t gpus);
  [[nodiscard]] std::vector<AppId> worst_off(const View& view, PoolId pool, std::size_t count);
  void note_miss(const View& view, PoolId pool, AppId id);
  void sell(const View& view, const Plan& plan, Offer& offer, std::span<Stake> bidders);
  void serve_outsiders(const View& view, const Plan& plan, Offer& offer, std::vector<Stake>& stakes,
                       Rng& rng);
  void serve_bidders(Offer& offer, std::span<Stake> bidders);
  void give_rows(Offer& offer, Stake& stake, std::uint32_t row);
  [[nodiscard]] bool give_unit(Offer& offer, Stake& stake);

  // placement.cpp: where distance counts
  class AppValues;
  void draw_map(const View& view, const Plan& plan, Offer& offer);
  void find_homes(const Plan& plan, const Offer& offer, Stake& stake) const;
  [[nodiscard]] std::vector<AppId> neighbours_of(const Plan& plan, const Offer& offer) const;
  void sell_placed(const View& view, const Plan& plan, Offer& offer, std::span<Stake> bidders);
  void take_near(Offer& offer, Stake& stake, std::int32_t gpus) const;
  [[nodiscard]] std::vector<Pieces> deal(const Plan& plan, const Offer& offer, const Stake& stake,
                                         const AppSplit& split,
                                         std::span<const Piece> pieces) const;

  // grants.cpp: from stakes to devices
  void grant(const View& view, Plan& plan, const Offer& offer, std::span<const Stake> stakes);
  void stop_ended(const View& view, Plan& plan, PoolId pool);
  [[nodiscard]] bool start(Plan& plan, const Offer& offer, JobId job, std::int32_t gpus,
                           const Pieces& added);
  [[nodiscard]] bool keeps_place(const Plan& plan, const Offer& offer, JobId job, std::int32_t gpus,
                                 const Pieces& pieces) const;
  void fill_gaps(const View& view, Plan& plan, PoolId pool);
  void note_held(const View& view, JobId job, PoolId pool, std::int32_t gpus);

  Options options_;
  std::vector<PoolRow> pools_;
  std::vector<JobRow> jobs_;  // by JobId
  std::vector<App> apps_;
  std::map<NameId, AppId> app_of_name_;
  ActiveApps active_;
  std::set<std::pair<Time, JobId>> leases_;
};

}  // namespace berth::themis

namespace berth {

[[nodiscard]] PolicyEntry themis_entry();
[[nodiscard]] PolicyEntry ftf_fractional_entry();

}  // namespace berth
