// Gandiva (OSDI 2018): early feedback for all jobs first, efficiency second. Nothing is predicted;
// jobs are put somewhere, their progress is measured, and what helps is kept.
//
//   time slices   servers take more jobs than they have GPUs, up to max_height times; residents of
//                 such a server take turns (ring.h), suspended on the host in between
//   packing       two jobs of a server that take turns are put on the same GPUs for a while and
//   stay
//                 there if their rates together beat taking turns
//   migration     to where a neighbour left, away from neighbours that slow a job down, and to
//   empty
//                 loosely used servers
//   grow-shrink   a job that may grow takes the idle GPUs of its server, and gives them back to
//                 whoever comes
//
// Knows nothing of durations; utilisation and memory of a model are known from watching it. A job
// of up to one server's GPUs lives on one server, a larger gang on whole servers of its own. The
// run's placement has no say: affinity decides.
//
// An event costs O(log n) plus the residents of the servers it touches; a slice change costs the
// residents of its server; nothing is done for servers that are not over-subscribed.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/rounds.h"
#include "core/policy.h"
#include "policies/gandiva/introspection.h"
#include "policies/gandiva/ring.h"
#include "policies/gandiva/servers.h"
#include "policies/kit/waiting_jobs.h"
#include "policies/policy_entry.h"

namespace berth::gandiva {

enum class Mechanism : std::uint8_t { Off, On };

struct Options {
  Duration slice = std::chrono::seconds{60};
  Duration switch_cost = std::chrono::seconds{1};
  Duration migration_cost = std::chrono::seconds{2};
  Duration resize_cost = std::chrono::seconds{5};
  Duration tick = std::chrono::seconds{60};
  Duration pack_probe = std::chrono::seconds{120};
  Duration rebalance = std::chrono::minutes{10};
  Duration idle_period = std::chrono::minutes{5};
  Duration migrate_cooldown = std::chrono::minutes{10};
  Duration horizon = std::chrono::minutes{10};
  ServerLimits limits;
  double defrag_threshold = 0.75;  // share of a server's GPUs that is free
  std::size_t max_probe = 64;
  GrowStep grow_step = GrowStep::Double;
  Mechanism packing = Mechanism::On;
  Mechanism migration = Mechanism::On;
  Mechanism growing = Mechanism::On;
};

class Gandiva final : public Policy {
 public:
  Gandiva(std::string name, const Options& options);
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
  enum class Where : std::uint8_t { Nowhere, Queue, Unit };
  enum class Line : std::uint8_t { Head, Tail };
  struct Home {
    PoolId pool;
    UnitId unit;
    friend auto operator<=>(const Home&, const Home&) = default;
  };
  struct JobRow {
    Where where = Where::Nowhere;
    Home home;
    std::optional<Time> moved;  // last migration
    SeenRate isolated;          // when it last ran alone on its GPUs
    SeenRate packed;            // beside the job it shares them with
    SeenRate best;              // the best seen
    std::int32_t looks = 0;     // at its rate alone on its GPUs, before that was measured
    Duration start_cost{};      // what its next start costs
  };
  struct UnitRow {
    Ring ring;
    Time slice_end = kNever;    // kNever: all residents run
    Time idle_since = kNever;   // idle GPUs and a job that may take them since then
    std::vector<JobId> grown;   // hold more GPUs than they asked for
    AffinityClass left_by = 0;  // class of the unit when somebody left it in this instant
    bool slice_over = false;    // its slice ends in this instant
    bool is_dirty = false;
    bool is_touched = false;  // since the last tick
  };
  struct PoolRow {
    Servers servers;
    std::vector<UnitRow> units;
    std::map<AffinityClass, std::int64_t> queued;  // GPUs waiting for this pool first
  };
  struct Timer {
    Time at;
    Home home;
    friend auto operator<=>(const Timer&, const Timer&) = default;
  };
  struct Probe {
    JobId host;
    JobId guest;
    Time since;
  };
  using Pair = std::pair<ProfileId, ProfileId>;

  // gandiva.cpp: who lives where
  [[nodiscard]] UnitRow& row(Home home) { return pools_[home.pool.value].units[home.unit.value]; }
  [[nodiscard]] Servers& servers(Home home) { return pools_[home.pool.value].servers; }
  [[nodiscard]] const Servers::Unit& unit(Home home) { return servers(home)[home.unit]; }
  [[nodiscard]] Demand demand_of(const View& view, JobId job) const;
  void touch(const View& view, Home home);
  void enqueue(const View& view, JobId job, Line line);
  void settle_in(const View& view, JobId job, Home home);
  void move_out(const View& view, JobId job);
  void lose_server(const View& view, NodeId node);
  void settle_found(const View& view, const Plan& plan);
  [[nodiscard]] std::optional<Home> home_found(const View& view, const Plan& plan, JobId job) const;
  void place_queue(const View& view, std::optional<AffinityClass> only);
  [[nodiscard]] bool try_place(const View& view, JobId job);
  [[nodiscard]] std::optional<UnitId> try_step(PoolId pool, Step step, const Demand& demand);
  void end_due_slices(const View& view);

  // turns.cpp: who runs
  void take_turns(const View& view, Plan& plan);
  void watch_rates(const View& view, const UnitRow& here);
  [[nodiscard]] SeenRate rate_seen(const View& view, JobId job) const;
  void see_alone(const View& view, JobId job, const SeenRate& rate);
  void stop_turns(const View& view, Plan& plan, Home home);
  void start_turns(const View& view, Plan& plan, Home home);
  void stop_seat(Plan& plan, Home home, const Ring::Seat& seat);
  [[nodiscard]] bool start_seat(const View& view, Plan& plan, Home home, const Ring::Seat& seat);
  [[nodiscard]] bool start_job(const View& view, Plan& plan, Home home, JobId job);
  [[nodiscard]] bool share_with(Plan& plan, Home home, JobId host, JobId guest);
  void suspend(Plan& plan, JobId job, Reason reason);
  void split_seats(Plan& plan, Home home);
  void shrink_if_needed(const View& view, Plan& plan, Home home);
  void set_clock(Home home);
  void start_clocks(const View& view);
  void watch_idle(const View& view, const Plan& plan, Home home);
  [[nodiscard]] bool pick_devices(const View& view, Home home, JobId job);

  // moves.cpp: migration
  [[nodiscard]] bool may_move(const View& view, JobId job);
  void rehouse(const View& view, Plan& plan, JobId job, Home to, Reason reason);
  void migrate(const View& view, Plan& plan, JobId job, Home to, Reason reason);
  void pull_after_departures(const View& view, Plan& plan);
  [[nodiscard]] std::optional<JobId> job_that_lowers(const View& view, Home from,
                                                     std::int32_t room);
  void leave_bad_company(const View& view, Plan& plan, Home home);
  [[nodiscard]] std::vector<Occupied> loose_servers(const View& view, PoolId pool);
  void append_targets(PoolId pool, std::size_t moves, std::vector<Occupied>& occupied);
  void defragment_pool(const View& view, Plan& plan, PoolId pool);
  void rebalance(const View& view, Plan& plan);
  void rebalance_pool(const View& view, Plan& plan, PoolId pool);
  void relieve(const View& view, Plan& plan, PoolId pool, AffinityClass affinity);
  [[nodiscard]] bool empty_a_server(const View& view, Plan& plan, Home home);

  // introspect.cpp: what is tried and measured
  void on_tick(const View& view, Plan& plan);
  void judge_probes(const View& view, Plan& plan);
  [[nodiscard]] bool is_decided(const View& view, Plan& plan, const Probe& probe);
  void see_alone_first(const View& view, const Probe& probe);
  void take_apart(const View& view, Plan& plan, const Ring::Seat& seat);
  void start_probes(const View& view, Plan& plan);
  [[nodiscard]] bool is_candidate(const Ring::Seat& seat) const;
  [[nodiscard]] std::optional<JobId> partner_for(const View& view, JobId job);
  void pack(const View& view, Plan& plan, JobId target, JobId job);
  [[nodiscard]] Pair pair_of(const View& view, JobId a, JobId b) const;
  [[nodiscard]] double utilisation(const View& view, JobId job) const;
  void grow_idle(const View& view, Plan& plan);
  void grow(const View& view, Plan& plan, Home home);

  std::string name_;
  Options options_;
  std::vector<PoolRow> pools_;
  std::vector<JobRow> jobs_;  // by JobId
  WaitingByShape queue_;
  std::vector<bool> blocked_;     // by ShapeId: no place for its head until somebody leaves
  std::vector<Home> dirty_;       // to be settled in this instant
  std::vector<Home> touched_;     // changed since the last tick
  std::vector<JobId> newcomers_;  // since the last instant
  std::vector<JobId> orphans_;    // lost a server of their set but still hold the others
  std::set<Timer> slices_;        // ends of slices, of over-subscribed units alone
  std::vector<Home> new_slices_;  // begin in this instant
  std::set<Timer> idle_;          // units with idle GPUs and a job that may grow
  std::vector<Probe> probes_;
  std::set<Pair> bad_pairs_;
  Rounds ticks_;
  Rounds rebalances_;
  std::vector<Slice> picked_;  // scratch
};

}  // namespace berth::gandiva

namespace berth {

[[nodiscard]] PolicyEntry gandiva_entry();

}  // namespace berth
