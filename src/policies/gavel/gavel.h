// Gavel (OSDI 2020): policies as programs over the time each job spends on each device type, made
// real by rounds.
//
// Rounds of 360 s, aligned to time zero. At each, jobs are chosen by how much of their fraction
// they still lack (rounds.h); a job chosen for the type it is on keeps its devices and pays
// nothing, the others give theirs back by checkpoint. Fractions are computed anew when jobs came or
// went, at most every other round. Between rounds nothing starts, unless `start` says so.
//
// Speeds are the believed rates of each job's model on each type at its own number of GPUs, placed
// as close together as the type allows; `agnostic` takes all types as equal, which is what the
// paper compares with. Deviations from the paper are listed in docs/policies/gavel.md.
//
// A round costs O(J R log(J R)); a computation O(J log J) and programs over classes of equal jobs.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "base/rounds.h"
#include "core/policy.h"
#include "policies/gavel/objective.h"
#include "policies/gavel/rounds.h"
#include "policies/policy_entry.h"

namespace berth::gavel {

enum class Entity : std::uint8_t { User, Group, Queue };

struct Options {
  Objective objective = Objective::Las;
  Duration round = std::chrono::minutes{6};
  StartRule start = StartRule::InRounds;
  std::int64_t recompute_rounds = 2;
  double carry = 0;  // of the counters over a computation
  bool agnostic = false;
  std::size_t max_classes = 400;
  int max_levels = 32;
  bool space_sharing = false;
  std::size_t pair_jobs = 64;  // with more jobs nobody shares
  CostForm cost = CostForm::Sum;
  Entity entity = Entity::User;
  std::vector<std::pair<std::string, double>> weights;  // of entities; others have 1
};

class Gavel final : public Policy {
 public:
  Gavel(std::string name, Options options)
      : name_(std::move(name)), options_(std::move(options)), rounds_(options_.round), book_(0) {}
  [[nodiscard]] std::string_view name() const noexcept override { return name_; }
  [[nodiscard]] PolicyTraits traits() const noexcept override {
    return {.needs = needs(), .preempts = true, .shares_devices = options_.space_sharing};
  }
  void begin(const View& view) override;
  void on_arrival(const View& view, JobId job) override;
  void on_departure(const View& view, JobId job) override;
  void on_requeue(const View& view, JobId job) override;
  void on_capacity_change(const View& view, NodeId) override { note_change(view); }
  void decide(const View& view, Plan& plan, Rng& rng) override;
  [[nodiscard]] std::optional<Time> next_wakeup(const View& view) override;

 private:
  [[nodiscard]] Need needs() const noexcept;
  /// Jobs that are equally fast everywhere.
  struct Kind {
    std::int32_t gpus = 1;
    std::vector<double> rates;  // by pool, believed
  };
  struct Row {
    std::uint32_t kind = 0;
    std::uint32_t entity = 0;
    std::uint32_t at = 0;  // its place in the book
    std::optional<PoolId> pool;
    std::optional<JobId> partner;  // in this round
    Duration attained{};           // when time was last counted
    // Finish-time fairness: time it would have taken for what it did with a part of its own.
    double isolated = 0;
    double left = 0;           // at the last computation
    double isolated_rate = 0;  // then; 0 = never computed
  };
  struct Placing {
    Pick pick;
    JobId leader;
    bool stays = false;
  };

  [[nodiscard]] std::uint32_t kind_of(const View& view, JobId job);
  [[nodiscard]] std::uint32_t entity_of(const View& view, JobId job);
  [[nodiscard]] double rate(const View& view, const Kind& kind, std::size_t type) const;
  void remove_candidate(std::uint32_t at);
  void index_candidates();

  // Time.
  void note_change(const View& view) {
    is_changed_ = true;
    rounds_.stir(view.now);
  }
  void count_time(const View& view);
  void count_time(const View& view, JobId job);
  [[nodiscard]] bool is_due(const View& view) const;
  [[nodiscard]] std::vector<Pick> still_starting(const View& view) const;

  // Fractions.
  void compute_shares(const View& view);
  void collect_facts(const View& view);
  void rank_facts(const View& view);
  void add_finish_facts(const View& view);
  [[nodiscard]] Fluid fluid_of(const View& view, std::span<const JobClass> classes) const;
  void add_pairs(const View& view, Fluid& fluid) const;
  void set_claims(const View& view, const Fluid& fluid, std::span<const JobClass> classes,
                  const Shares& shares);
  void split_in_order(const Fluid& fluid, const JobClass& one, std::size_t at,
                      const Shares& shares);
  void add_pair_candidates(const Fluid& fluid, std::span<const JobClass> classes,
                           const Shares& shares);

  // Turns.
  void carry_out(const View& view, Plan& plan, std::span<const Pick> picks);
  [[nodiscard]] std::vector<Placing> placings(const Plan& plan, std::span<const Pick> picks) const;
  [[nodiscard]] std::int64_t place(Plan& plan, std::span<const Placing> order);
  void fill_rest(const View& view, Plan& plan, std::span<const Placing> order);
  void remember_turns(const View& view, const Plan& plan);
  void start_waiting(const View& view, Plan& plan);
  [[nodiscard]] bool nothing_would_change(const View& view) const;

  std::string name_;
  Options options_;
  Rounds rounds_;  // settled while no round would change anything before the next event
  ObjectiveRule rule_;
  std::vector<Row> rows_;  // by JobId
  std::vector<Kind> kinds_;
  std::map<std::tuple<ProfileId, PoolId, std::int32_t, ShapeId>, std::uint32_t> kind_index_;
  std::map<NameId, std::uint32_t> entity_index_;
  RoundBook book_;
  std::vector<JobId> running_;  // after the last round; some may have left since
  Time last_round_{};
  std::optional<std::int64_t> computed_;  // the round in which fractions were
  bool is_changed_ = false;               // jobs or nodes came or went since then
  std::vector<JobFacts> facts_;           // scratch
  std::vector<bool> blocked_;             // scratch, by ShapeId
};

}  // namespace berth::gavel

namespace berth {

/// gavel-las, gavel-ftf, gavel-makespan, gavel-cost, gavel-slo, gavel-hierarchical, gavel-fifo,
/// gavel-sjf, gavel-throughput.
[[nodiscard]] std::vector<PolicyEntry> gavel_entries();

}  // namespace berth
