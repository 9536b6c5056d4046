// Fair share of GPU time over groups and users, with priorities.
//
// Order: class of the job, largest first; then the standing of its account (decayed GPU seconds
// per share, policies/fair_share/accounts.h): of its group or of a user without one, then of the
// user inside the group; then size if asked for; then submission. Waiting may raise the class.
//
// The first job that cannot start holds a reservation, so that large gangs do not starve; others
// go before it only if they do not delay it by the estimates (policies/common/reservation.h).
//
// Only that first job may take GPUs from others, and only as told:
//   by class  from jobs of a lower class;
//   by share  from jobs of its class or a lower one whose account stands worse by a margin even
//             when the newcomer's GPUs are counted in advance.
// A victim may be preempted (interactive jobs and services never) and has run `min_run` since its
// last start; least work lost goes first. No loop: classes are fixed, and between equals a pair of
// accounts must pass each other by the margin twice before the first loses again what it took.
//
// Assumes estimates of run time for the reservation; preemption is by checkpoint.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "core/policy.h"
#include "policies/common/estimate_queue.h"
#include "policies/common/reservation.h"
#include "policies/common/victims.h"
#include "policies/fair_share/accounts.h"
#include "policies/policy_entry.h"

namespace berth {

enum class SizeRule : std::uint8_t { Neutral, Small, Large };  // which gangs go first

struct FairShareOptions {
  Accounts::Options accounts{};
  bool by_class = false;  // preempts
  bool by_share = false;
  Duration min_run = std::chrono::minutes{10};
  double margin = 0.25;
  Duration aging_interval{};  // zero: no aging
  std::int32_t max_class = 10;
  SizeRule size = SizeRule::Neutral;
};

class FairShare final : public Policy {
 public:
  explicit FairShare(const FairShareOptions& options)
      : options_(options), accounts_(options.accounts) {}
  [[nodiscard]] std::string_view name() const noexcept override { return "fair-share"; }
  [[nodiscard]] PolicyTraits traits() const noexcept override {
    return {.needs = Need::RunTime, .preempts = true, .shares_by_use = options_.accounts.half_life};
  }
  void begin(const View& view) override;
  void on_arrival(const View& view, JobId job) override;
  void on_entitlements(const View& view, const Entitlements& said) override;
  void on_departure(const View& view, JobId job) override;
  void on_requeue(const View& view, JobId job) override;
  void on_rate(const View&, JobId job) override { reservation_.ends().has_changed(job); }
  void decide(const View& view, Plan& plan, Rng& rng) override;
  [[nodiscard]] std::optional<Time> next_wakeup(const View& view) override;

  /// Shares and use from before: to be set before the first job comes.
  [[nodiscard]] Accounts& accounts() noexcept { return accounts_; }

 private:
  struct LaneKey {
    std::int32_t klass = 0;
    AccountId leaf = 0;
    ShapeId shape;
    friend auto operator<=>(const LaneKey&, const LaneKey&) = default;
  };
  /// Jobs that are alike but for their estimates.
  struct Lane {
    LaneKey key;
    EstimateQueue jobs;
    bool is_active = false;
    bool is_blocked = false;  // in this backfill
  };
  struct Rank {  // smaller first
    std::int64_t klass = 0;
    double top = 0, leaf = 0;
    std::int32_t size = 0;
    JobId job;
    friend bool operator<(const Rank& a, const Rank& b) noexcept {
      return std::tie(a.klass, a.top, a.leaf, a.size, a.job) <
             std::tie(b.klass, b.top, b.leaf, b.size, b.job);
    }
  };
  struct Candidate {
    std::uint32_t lane = 0;
    EstimateQueue::Found found;
    PoolId pool;
    Rank rank;
    bool outlasts = false;  // the reservation
  };
  struct Fresh {
    JobId job;
    Time at;
  };

  void begin_pass(const View& view);
  void drop_over(const View& view, Lane& lane);
  void charge_adopted(const View& view);
  [[nodiscard]] std::int32_t effective_class(const View& view, JobId job) const;
  [[nodiscard]] Rank rank_of(const View& view, const LaneKey& key, JobId job) const;
  [[nodiscard]] std::optional<std::uint32_t> first_lane(const View& view) const;
  [[nodiscard]] AccountId leaf_of(const View& view, JobId job);
  void push(const View& view, JobId job);
  void hold(const View& view, const Plan& plan, JobId job);
  void let_go(const View& view, JobId job);
  [[nodiscard]] bool start_first(const View& view, Plan& plan, std::uint32_t lane);
  [[nodiscard]] bool has_room_for_any(const View& view) const;
  void backfill(const View& view, Plan& plan, std::uint32_t head);
  [[nodiscard]] std::optional<Candidate> next_candidate(const View& view) const;
  void try_backfill(const View& view, Plan& plan, const Candidate& candidate);

  // preemption.cpp
  [[nodiscard]] bool preempts() const noexcept { return options_.by_class || options_.by_share; }
  [[nodiscard]] bool is_preemptible(const View& view, JobId job) const;
  [[nodiscard]] Accounts::Lead lead_over(const View& view, JobId job, JobId victim) const;
  [[nodiscard]] bool may_take(const View& view, JobId job, JobId victim) const;
  void find_victims(const View& view, const Plan& plan, JobId job);
  [[nodiscard]] bool try_preempt(const View& view, Plan& plan, JobId job);
  [[nodiscard]] std::optional<Time> takes_at(const View& view, JobId job, JobId victim) const;
  [[nodiscard]] std::optional<Time> next_taking(const View& view, JobId job) const;
  [[nodiscard]] std::optional<Time> next_overtaking(const View& view, const Lane& head) const;

  FairShareOptions options_;
  Accounts accounts_;
  std::map<LaneKey, std::uint32_t> lane_at_;
  std::vector<Lane> lanes_;
  std::vector<std::uint32_t> active_;
  std::vector<AccountId> leaf_;  // by JobId
  Reservation reservation_;
  RunningJobs running_;                   // one group
  std::vector<JobId> holders_;            // in no order
  std::vector<std::uint32_t> holder_at_;  // by JobId
  std::vector<Fresh> fresh_;              // started by the last pass
  std::vector<JobId> evicted_;            // in this pass: they may start again, not by preempting
  std::vector<JobId> candidates_;         // scratch: victims, first to give way first
  RoomMaker room_;                        // scratch
};

[[nodiscard]] PolicyEntry fair_share_entry();

}  // namespace berth
