// Gandiva_fair (EuroSys 2020): fair shares of every device type per user, by tickets, in quanta of
// 60 s; users whose jobs gain little from fast devices trade them for slow ones.
//
// A user owns its tickets' part of each type (users.h); after trading, what it owns of a type is
// split over those of its jobs that live there, as their tickets. Each quantum the jobs of a type
// are looked at by stride (stride.h). A job that fits into a server has one as its home and takes
// its turns there, so that a turn costs a suspension and no migration; larger ones take whatever
// servers are free when it is their turn. Devices left over go to anybody who waits, which makes
// the place its home. While jobs wait, one job per type and quantum moves from the server with the
// most tickets per GPU to the one with the fewest.
//
// Assumes: suspending is cheap (`switch_cost`), moving dearer (`migration_cost`). A quantum costs
// O(J log J), and nothing happens while everybody runs. Deviations: docs/policies/gandiva-fair.md.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "base/rounds.h"
#include "core/policy.h"
#include "policies/gandiva_fair/stride.h"
#include "policies/gandiva_fair/users.h"
#include "policies/policy_entry.h"

namespace berth::gandiva_fair {

struct Options {
  Duration quantum = std::chrono::seconds{60};
  StartRule start = StartRule::InRounds;
  Duration switch_cost = std::chrono::seconds{1};
  Duration migration_cost = std::chrono::seconds{2};
  bool trading = true;
  bool balancing = true;
  std::vector<std::pair<std::string, double>> tickets;  // of users; others have 1
};

class GandivaFair final : public Policy {
 public:
  GandivaFair(std::string name, Options options)
      : name_(std::move(name)), options_(std::move(options)), rounds_(options_.quantum) {}
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
  struct Row {
    std::uint32_t user = 0;
    const std::vector<double>* rates = nullptr;  // by pool; believed
    std::optional<PoolId> pool;                  // where it lives
    std::optional<NodeId> home;                  // the server, if it fits into one
    double tickets = 0;                          // on its type
    std::vector<Slice> plan{};  // scratch: devices by server in this quantum, masks empty
    Duration start_cost{};      // when it next starts
    bool is_waiting = true;     // as of the last quantum
    bool is_chosen = false;     // scratch
  };

  [[nodiscard]] const std::vector<double>& rates_of(const View& view, JobId job);
  [[nodiscard]] std::uint32_t user_of(const View& view, JobId job);

  // Shares.
  void update_shares(const View& view);
  [[nodiscard]] PoolId best_pool(JobId job) const;
  void house(const View& view, JobId job);
  void move_between_types(const View& view);
  void set_tickets();

  // Where jobs live.
  void live_in(const View& view, JobId job, PoolId pool, std::optional<NodeId> home);
  void move_out(const View& view, JobId job);
  void set_home(JobId job, std::optional<NodeId> home);
  [[nodiscard]] double tickets_of(const User& user, PoolId pool) const noexcept;
  [[nodiscard]] double load_of(const View& view, NodeId node) const;
  [[nodiscard]] std::optional<NodeId> least_loaded(const View& view, PoolId pool,
                                                   std::int32_t gpus) const;
  void balance(const View& view, PoolId pool);

  // A quantum.
  void take_turns(const View& view, Plan& plan);
  void count_free(const View& view);
  [[nodiscard]] bool try_choose(const View& view, const Plan& plan, JobId job);
  [[nodiscard]] bool try_choose_spread(const View& view, const Plan& plan, JobId job);
  void start_as_planned(const View& view, Plan& plan, JobId job);
  [[nodiscard]] bool try_anywhere(const View& view, Plan& plan, JobId job);
  [[nodiscard]] bool try_shape(const View& view, Plan& plan, JobId job);
  void start_newcomers(const View& view, Plan& plan);
  void fill(const View& view, Plan& plan);
  void charge(const Plan& plan);
  void start_waiting(const View& view, Plan& plan);
  void drop_stale_newcomers();
  void stop_others(Plan& plan);

  std::string name_;
  Options options_;
  Rounds rounds_;  // settled while everybody runs, or nobody can
  std::map<std::tuple<ProfileId, PoolId, std::int32_t, ShapeId>, std::vector<double>> rates_;
  std::vector<User> users_;
  std::map<NameId, std::uint32_t> user_index_;
  std::vector<Row> rows_;                   // by JobId
  std::vector<GangStride> pools_;           // by PoolId: who lives there
  std::vector<std::vector<NodeId>> nodes_;  // by PoolId
  std::vector<std::vector<JobId>> homed_;   // by NodeId
  std::vector<double> node_tickets_;        // by NodeId: of those homed there
  std::vector<std::size_t> fastest_first_;  // types
  std::vector<JobId> newcomers_;            // since the last quantum; some may have left
  std::size_t active_ = 0;
  std::size_t waiting_ = 0;              // after the last quantum, newcomers not counted
  bool is_changed_ = false;              // jobs or nodes came or went since shares were set
  std::vector<std::int64_t> node_free_;  // scratch, by NodeId
  std::vector<std::int64_t> pool_free_;  // scratch, by PoolId
  std::vector<bool> blocked_;            // scratch, by ShapeId
};

}  // namespace berth::gandiva_fair

namespace berth {

[[nodiscard]] PolicyEntry gandiva_fair_entry();

}  // namespace berth
