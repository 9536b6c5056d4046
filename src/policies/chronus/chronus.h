// Chronus (SoCC 2021): jobs with a deadline are promised leases that meet it, or refused at once;
// jobs without one share what is left, shortest first.
//
// Time is cut into terms of equal length. Who runs is decided where a term begins: jobs whose plan
// (lease_plan.h) has a lease there, then best-effort jobs by least work left. A lease that is
// renewed costs nothing; in between, idle GPUs go to whoever fits. Leases are placed in aligned
// blocks (common/buddy_servers.h) and push best-effort jobs aside, which may move; those are placed
// by the run's placement and, if distance costs speed, moved closer together (local_search.h).
//
// Assumes: run times are estimated, and stopping and starting again costs at most `restart`, which
// every lease has room for. A strict job that turns out longer than promised goes on as best
// effort; a soft one gets the next later deadline that can be promised. A boundary costs O(promised
// jobs x terms) at worst, usually O(jobs that change).
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "base/rounds.h"
#include "core/policy.h"
#include "policies/chronus/lease_plan.h"
#include "policies/chronus/local_search.h"
#include "policies/common/buddy_servers.h"
#include "policies/kit/waiting_jobs.h"
#include "policies/policy_entry.h"

namespace berth::chronus {

enum class BestEffortKey : std::uint8_t { Remaining, Attained };

struct ChronusOptions {
  Duration lease = std::chrono::minutes{20};
  Duration restart = std::chrono::seconds{30};
  double slack = 1.05;                     // on the believed work left
  Duration grace = std::chrono::hours{1};  // lateness at which a soft job has lost its value
  bool refuses = true;                     // otherwise what cannot be promised is best effort
  bool kills_late = false;                 // a strict job that cannot be in time any more
  BestEffortKey key = BestEffortKey::Remaining;
  std::int64_t starve_leases = 36;      // waits this many: goes first
  bool best_effort_in_program = false;  // leases are moved out of the way of short jobs
  bool lends_padding = true;            // GPUs that rounding up leaves idle
  std::int32_t search_steps = 1000;     // of the local search
  double move_cost = 0.025;             // speed that moving a job must gain there
  SearchEffort effort;
};

class Chronus final : public Policy {
 public:
  explicit Chronus(const ChronusOptions& options) : options_(options), rounds_(options.lease) {}
  [[nodiscard]] std::string_view name() const noexcept override { return "chronus"; }
  [[nodiscard]] PolicyTraits traits() const noexcept override {
    return {.needs = Need::RunTime | Need::Deadline | Need::Profile,
            .preempts = true,
            .may_refuse = options_.refuses};
  }
  void begin(const View& view) override;
  [[nodiscard]] std::optional<Refusal> admit(const View& view, JobId job) override;
  void on_arrival(const View& view, JobId job) override;
  void on_departure(const View& view, JobId job) override;
  void on_requeue(const View& view, JobId job) override;
  void on_capacity_change(const View& view, NodeId node) override;
  void decide(const View& view, Plan& plan, Rng& rng) override;
  [[nodiscard]] std::optional<Time> next_wakeup(const View& view) override;

 private:
  struct Row {
    bool is_promised = false;
    bool holds = false;
    bool is_starved = false;
    bool is_broken = false;  // was promised what cannot be kept
    bool is_killed = false;  // for that
    bool is_chosen = false;  // scratch of a pass: has a lease or leftover GPUs in the coming term
    PoolId pool;             // of its promise
    Term end = 0;            // by which it was promised
    Time waits_since{};
  };
  struct Pool {
    BuddyServers servers;
    LeasePlan plan;
  };

  // Promises (promises.cpp).
  [[nodiscard]] Term end_of(Time deadline) const noexcept;
  [[nodiscard]] Term last_end(const View& view, JobId job) const;
  [[nodiscard]] std::int64_t leases_needed(const View& view, JobId job, PoolId pool) const;
  [[nodiscard]] LeaseRequest request(const View& view, JobId job, PoolId pool, Term end) const;
  [[nodiscard]] Verdict try_promise(const View& view, JobId job, Term end);
  [[nodiscard]] Refusal refusal(const View& view, JobId job, Verdict verdict) const;
  [[nodiscard]] std::int64_t capacity(const View& view, PoolId pool) const;
  void refresh_promises(const View& view, Plan& plan);
  void be_late(const View& view, Plan& plan, JobId job);
  void break_promise(const View& view, JobId job);
  void forget_promise(JobId job);

  // Who holds devices and who waits (chronus.cpp).
  [[nodiscard]] OrderKey key_of(const View& view, JobId job) const;
  void enqueue(const View& view, JobId job);
  void dequeue(const View& view, JobId job);
  void set_holding(const View& view, JobId job, bool holds);
  void stop(const View& view, Plan& plan, JobId job);
  /// With no promise to keep, nobody waiting and no closer place in sight, a term changes nothing.
  [[nodiscard]] bool needs_term() const noexcept {
    return !promised_.empty() || !waits_.empty() || !starved_.empty() ||
           (may_improve_ && !best_effort_.empty());
  }
  [[nodiscard]] bool start(const View& view, Plan& plan, JobId job, Reason reason);
  [[nodiscard]] bool start_in(const View& view, Plan& plan, JobId job, PoolId pool, Reason reason);
  void fill(const View& view, Plan& plan);
  void fill_from(const View& view, Plan& plan, WaitingByShape& queue);

  // Where a term begins (boundary.cpp).
  void begin_term(const View& view, Plan& plan);
  void choose_leases(const View& view);
  void choose_best_effort(const View& view, const Plan& plan);
  void choose_from(const View& view, WaitingByShape& queue, const OrderKey* before);
  [[nodiscard]] bool choose(const View& view, JobId job, std::optional<PoolId> preferred);
  void note_starved(const View& view);
  void invite(const View& view, const Plan& plan);
  void invite_to(const View& view, const Plan& plan, PoolId pool);
  [[nodiscard]] std::vector<JobId> shortest_in(const View& view, const Plan& plan, PoolId pool);
  using Places = std::vector<std::optional<BuddyBlocks>>;  // by job
  void place_leases(const View& view, Plan& plan, PoolId pool);
  [[nodiscard]] Places make_places(const View& view, Plan& plan, PoolId pool,
                                   const std::vector<JobId>& jobs);
  void start_lease(const View& view, Plan& plan, JobId job,
                   const std::optional<BuddyBlocks>& place);
  void push_aside(const View& view, Plan& plan);
  [[nodiscard]] BuddyServers::Map map_of(const Plan& plan, const BuddyServers& servers,
                                         const std::vector<JobId>& jobs) const;

  // Best-effort jobs closer together (improve.cpp).
  [[nodiscard]] Resident resident(const View& view, const Plan& plan, JobId job, PoolId pool) const;
  [[nodiscard]] std::vector<Resident> residents(const View& view, const Plan& plan,
                                                PoolId pool) const;
  [[nodiscard]] std::vector<Resident> candidates(const View& view, const Plan& plan,
                                                 PoolId pool) const;
  void improve(const View& view, Plan& plan, PoolId pool);
  void carry_out(const View& view, Plan& plan, PoolId pool, const std::vector<Resident>& before,
                 const LocalSearch& search, std::vector<std::uint64_t> free);

  ChronusOptions options_;
  Rounds rounds_;        // terms
  bool counts_ = false;  // no nodes, only totals
  std::vector<Pool> pools_;
  std::vector<Row> rows_;  // by JobId
  std::size_t active_ = 0;
  bool may_improve_ = false;  // distance costs speed, and devices came back since the last term

  std::set<JobId> promised_;
  std::set<std::pair<Term, JobId>> idle_;   // promised and without devices, by end
  std::set<JobId> best_effort_;             // running without a promise
  WaitingByShape waiting_;                  // best effort
  WaitingByShape starved_;                  // those that waited too long, by since when
  std::set<std::pair<Time, JobId>> waits_;  // of waiting_, by since when

  std::vector<std::uint64_t> padding_;  // by NodeId: not lent in this term; empty if all is lent
  std::vector<JobId> leased_;           // scratch: have a lease in the coming term
  std::vector<JobId> chosen_;           // scratch: best effort that runs in the coming term
  std::vector<JobId> invited_;          // scratch: best effort for whom leases made way, ascending
  std::vector<std::int64_t> room_;      // scratch: GPUs by pool
  std::vector<std::uint64_t> needed_;   // scratch: devices by NodeId that leases are about to take
  std::vector<OrderKey> order_;         // scratch
  std::vector<bool> blocked_;           // scratch: shapes that found no place
  std::vector<Slice> slices_;           // scratch
};

/// `gpus` devices of the pool out of those in `free` (by NodeId): the fullest node that holds all
/// of them, otherwise the emptiest nodes. False: there are not as many.
[[nodiscard]] bool pick_devices(const Cluster& cluster, PoolId pool, std::int32_t gpus,
                                const std::vector<std::uint64_t>& free, std::vector<Slice>& slices);

}  // namespace berth::chronus

namespace berth {

[[nodiscard]] PolicyEntry chronus_entry();

}  // namespace berth
