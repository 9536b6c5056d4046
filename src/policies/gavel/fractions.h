// Which fraction of its time each job should spend on each device type: Gavel's allocation matrix.
// From the jobs at hand to classes of equal jobs (census.h), through the objective's program
// (objective.h), to a claim for each candidate. Knows what the programs need of a job beyond the
// view: its speeds, its entity, and what it would have had in isolation so far.
//
// A computation costs O(J log J) and programs whose size depends on the classes, not on the jobs.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "core/view.h"
#include "policies/gavel/candidates.h"
#include "policies/gavel/objective.h"
#include "policies/kit/beliefs.h"
#include "policies/kit/groups.h"

namespace berth::gavel {

/// Who gets equal parts first in a hierarchy.
enum class Entity : std::uint8_t { User, Group, Queue };
/// Aware of what each job gains on each type, or all types taken as equal.
enum class Speeds : std::uint8_t { Aware, Agnostic };

struct FractionOptions {
  Objective objective = Objective::Las;
  CostForm cost = CostForm::Sum;
  Entity entity = Entity::User;
  std::vector<std::pair<std::string, double>> weights = {};  // of entities; others have 1
  Speeds speeds = Speeds::Aware;
  std::size_t max_classes = 400;
  int max_levels = 32;
  std::size_t pair_jobs = 0;  // with more jobs than this nobody shares devices; 0: nobody ever
  double carry = 0;           // part of the time received that counts after a computation
};

class Fractions {
 public:
  explicit Fractions(FractionOptions options) : options_(std::move(options)) {}
  [[nodiscard]] Need needs() const noexcept;
  void begin(const View& view);
  /// The job may run from now on; until the next computation it only fills what is left.
  void add(const View& view, JobId job, Candidates& candidates);
  /// Sets every claim anew, and makes a candidate of each pair that should share devices.
  void compute(const View& view, Candidates& candidates);

 private:
  /// What finish-time fairness remembers of a job.
  struct Isolated {
    double time = 0;  // that what it did would have taken with its part of the cluster to itself
    double left = 0;  // work, at the last computation
    double rate = 0;  // in isolation, then; 0: never computed
  };
  [[nodiscard]] bool shares_devices() const noexcept { return facts_.size() <= options_.pair_jobs; }
  [[nodiscard]] std::uint32_t entity_of(const View& view, JobId job);
  [[nodiscard]] const std::vector<double>& rates(const View& view, JobId job);
  [[nodiscard]] FluidClass fluid_class(const View& view, JobId job);
  void collect_facts(const View& view, const Candidates& candidates);
  void rank_facts(const View& view);
  void add_finish_facts(const View& view);
  [[nodiscard]] Fluid fluid_of(const View& view, std::span<const JobClass> classes);
  void add_pairs(const View& view, Fluid& fluid) const;
  void set_claims(const Fluid& fluid, std::span<const JobClass> classes, const Shares& shares,
                  Candidates& candidates) const;
  void split_in_order(const FluidClass& one, std::span<const std::uint32_t> members,
                      std::vector<double> time, Candidates& candidates) const;
  void add_pair_candidates(const Fluid& fluid, const Shares& shares, Candidates& candidates) const;

  FractionOptions options_;
  ObjectiveRule rule_;
  Beliefs beliefs_;
  Memo<KindId, std::vector<double>> equal_speeds_;  // 1 wherever the kind can go
  Groups<NameId> entities_;
  Column<JobId, std::uint32_t> entity_;
  Column<JobId, Isolated> isolated_;
  std::vector<JobFacts> facts_;  // scratch, by JobId
};

}  // namespace berth::gavel
