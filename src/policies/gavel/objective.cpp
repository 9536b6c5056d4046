#include "policies/gavel/objective.h"

#include <algorithm>

#include "policies/gavel/programs.h"
#include "policies/gavel/water_fill.h"

namespace berth::gavel {

namespace {

using Classes = std::span<const JobClass>;
using Jobs = std::span<const JobFacts>;

const JobFacts& of(const JobClass& one, Jobs jobs) { return jobs[one.members.front()]; }

/// A rate's worth to a job that measures itself by an equal part of the cluster.
std::vector<double> fair_values(const Fluid& fluid) {
  std::vector<double> values = equal_rates(fluid);
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] = values[i] > 0 ? fluid.classes[i].gpus / values[i] : 1;
  return values;
}

Shares las(const ObjectiveRule& rule, const Fluid& fluid, Classes classes, Jobs jobs) {
  FillRule fill{.value = fair_values(fluid)};
  for (std::size_t i = 0; i < classes.size(); ++i)
    fill.value[i] /= std::max(of(classes[i], jobs).weight, 1e-6);
  fill.max_levels = rule.max_levels;
  return water_fill(fluid, fill);
}

Shares makespan(const ObjectiveRule& rule, const Fluid& fluid, Classes classes) {
  FillRule fill;
  for (const JobClass& one : classes) fill.value.push_back(1 / std::max(one.first, 1e-6));
  fill.max_levels = rule.max_levels;
  return water_fill(fluid, fill);
}

Shares finish_time(const ObjectiveRule& rule, const Fluid& fluid, Classes classes) {
  std::vector<FinishTerms> terms;
  for (const JobClass& one : classes)
    terms.push_back({.elapsed = one.second, .left = 1, .isolated = std::max(one.first, 1e-9)});
  return fair_finish(fluid, terms, rule.max_levels);
}

/// An entity's weight is split over those of its jobs that can still use more.
Shares hierarchical(const ObjectiveRule& rule, const Fluid& fluid, Classes classes, Jobs jobs) {
  FillRule fill{.value = fair_values(fluid)};
  fill.max_levels = rule.max_levels;
  fill.reweigh = [&](const std::vector<bool>& frozen, std::vector<double>& weight) {
    std::vector<double> members(rule.entity_weights.size());
    for (std::size_t i = 0; i < classes.size(); ++i) {
      const JobFacts& facts = of(classes[i], jobs);
      if (!frozen[i]) members[facts.entity] += fluid.classes[i].count * facts.weight;
    }
    for (std::size_t i = 0; i < classes.size(); ++i) {
      const JobFacts& facts = of(classes[i], jobs);
      weight[i] = frozen[i] ? 0
                            : rule.entity_weights[facts.entity] * facts.weight /
                                  std::max(members[facts.entity], 1e-9);
    }
  };
  return water_fill(fluid, fill);
}

/// The worth of a job's rate: `of_rate(class, type)` times it.
template <class OfRate>
std::vector<double> worths(const Fluid& fluid, OfRate&& of_rate) {
  std::vector<double> worth;
  worth.reserve(fluid.classes.size() * fluid.types());
  for (std::size_t i = 0; i < fluid.classes.size(); ++i) {
    for (std::size_t type = 0; type < fluid.types(); ++type)
      worth.push_back(fluid.classes[i].rates[type] * of_rate(i, type));
  }
  return worth;
}

/// The largest sum of speeds relative to the best one, where each place further ahead in the order
/// weighs one more: a program that prefers the front without starving cheap gains behind it.
Shares in_order(const Fluid& fluid, Classes classes, Jobs jobs) {
  const auto count = static_cast<double>(jobs.size());
  return maximise(fluid, worths(fluid, [&](std::size_t i, std::size_t) {
                    const double best = fluid.classes[i].best_rate();
                    return best > 0 ? (count - classes[i].rank) / best : 0;
                  }));
}

Shares cheapest(const ObjectiveRule& rule, const Fluid& fluid, std::span<const double> floors) {
  if (rule.cost == CostForm::Ratio) return best_ratio(fluid, rule.prices, floors);
  const auto worth =
      worths(fluid, [&](std::size_t, std::size_t type) { return 1 / rule.prices[type]; });
  return maximise(fluid, worth, floors);
}

/// Deadlines that cannot all be met fall short by the least first; a floor beyond reach would make
/// the program infeasible and serve nobody.
Shares promised(const ObjectiveRule& rule, const Fluid& fluid, Classes classes) {
  std::vector<double> wanted;
  for (std::size_t i = 0; i < classes.size(); ++i)
    wanted.push_back(std::min(classes[i].first, fluid.classes[i].best_rate()));
  const bool none = std::ranges::none_of(wanted, [](double rate) { return rate > 0; });
  return cheapest(rule, fluid, none ? std::vector<double>{} : reachable(fluid, wanted));
}

}  // namespace

Shares shares_for(const ObjectiveRule& rule, const Fluid& fluid, Classes classes, Jobs jobs) {
  if (std::ranges::none_of(fluid.classes, &FluidClass::can_run)) return Shares{fluid};
  switch (rule.objective) {
    case Objective::Las: return las(rule, fluid, classes, jobs);
    case Objective::Ftf: return finish_time(rule, fluid, classes);
    case Objective::Makespan: return makespan(rule, fluid, classes);
    case Objective::Hierarchical: return hierarchical(rule, fluid, classes, jobs);
    case Objective::Cost: return cheapest(rule, fluid, {});
    case Objective::Slo: return promised(rule, fluid, classes);
    case Objective::Fifo:
    case Objective::Sjf: return in_order(fluid, classes, jobs);
    case Objective::Throughput: break;
  }
  return maximise(fluid, worths(fluid, [](std::size_t, std::size_t) { return 1.0; }));
}

}  // namespace berth::gavel
