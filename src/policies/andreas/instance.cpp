#include "policies/andreas/instance.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <tuple>

#include "base/check.h"

namespace berth::andreas {

namespace {

double cost_of(const Choice& choice, const NodeType& type) {
  if (!choice.is_gang()) return choice.hours * type.rate(choice.gpus);
  const std::int32_t nodes = (choice.gpus + choice.per_node - 1) / choice.per_node;
  return choice.hours * (nodes * type.idle_rate + choice.gpus * type.gpu_rate);
}

/// Sorted by type and size, each is faster than all smaller ones that stay.
void drop_dominated(std::vector<Choice>& choices) {
  std::ranges::sort(choices, {}, [](const Choice& c) { return std::tuple(c.type, c.gpus); });
  std::vector<Choice> kept;
  for (const Choice& choice : choices) {
    const bool follows = !kept.empty() && kept.back().type == choice.type;
    if (!follows || choice.hours < kept.back().hours) kept.push_back(choice);
  }
  choices = std::move(kept);
}

/// What it will cost to run it later, on a node that has to be switched on for it.
double later_energy(const Instance& instance, const Job& job) {
  double least = std::numeric_limits<double>::infinity();
  for (const Choice& choice : job.choices->by_cost()) {
    const NodeType& type = instance.types[choice.type];
    double cost = job.cost(choice) + instance.boot * type.idle_rate;
    if (job.kept != kNone) cost += instance.restart * type.rate(choice.gpus);
    least = std::min(least, cost);
  }
  return least;
}

double postponed_cost(const Instance& instance, const Job& job) {
  const bool has_due = job.due < kNoDueDate;
  const double due = has_due ? job.due : job.submitted;
  const double weight = has_due ? job.weight : instance.aging * -job.submitted;
  const double late = instance.period + job.hours(job.choices->slowest()) - due;
  return instance.rho * weight * std::max(0.0, late) + later_energy(instance, job);
}

/// Jobs are bulky: their keys are sorted, and each job moved once.
void sort_by_pressure(std::vector<Job>& jobs) {
  using Key = std::tuple<double, double, double, std::uint32_t, std::size_t>;
  std::vector<Key> keys;
  keys.reserve(jobs.size());
  for (std::size_t i = 0; i < jobs.size(); ++i)
    keys.push_back({-jobs[i].pressure, -jobs[i].weight, jobs[i].submitted, jobs[i].id, i});
  std::ranges::sort(keys);
  std::vector<Job> sorted;
  sorted.reserve(jobs.size());
  for (const Key& key : keys) sorted.push_back(std::move(jobs[std::get<4>(key)]));
  jobs = std::move(sorted);
}

double mean_gap(std::span<const Job> jobs) {
  double sum = 0;
  std::size_t gaps = 0;
  for (std::size_t i = 1; i < jobs.size() && jobs[i].due < kNoDueDate; ++i, ++gaps)
    sum += jobs[i - 1].pressure - jobs[i].pressure;
  return gaps == 0 ? 0 : sum / static_cast<double>(gaps);
}

}  // namespace

ChoiceList::ChoiceList(std::vector<Choice> choices, std::span<const NodeType> types)
    : choices_(std::move(choices)) {
  drop_dominated(choices_);
  for (Choice& choice : choices_) choice.cost = cost_of(choice, types[choice.type]);
  std::ranges::sort(choices_, {},
                    [](const Choice& c) { return std::tuple(c.cost, c.gpus, c.type); });
  by_time_.resize(choices_.size());
  std::iota(by_time_.begin(), by_time_.end(), 0U);
  std::ranges::sort(by_time_, {},
                    [&](std::uint32_t at) { return std::tuple(choices_[at].hours, at); });
}

std::uint32_t ChoiceList::find(std::uint32_t type, std::int32_t gpus) const noexcept {
  for (std::uint32_t i = 0; i < choices_.size(); ++i) {
    if (choices_[i].type == type && choices_[i].gpus == gpus) return i;
  }
  return kNone;
}

void Instance::prepare() {
  first_node.assign(types.size() + 1, 0);
  for (const Node& node : nodes) ++first_node[node.type + 1];
  std::partial_sum(first_node.begin(), first_node.end(), first_node.begin());
  BERTH_DCHECK(
      std::ranges::is_sorted(nodes, {}, [](const Node& n) { return std::tuple(n.type, n.ready); }),
      "nodes stand by type, those ready first before others");
  postponed = 0;
  for (Job& job : jobs) {
    job.pressure = job.hours(job.choices->fastest()) - job.due;
    job.postponed = postponed_cost(*this, job);
  }
  sort_by_pressure(jobs);
  for (const Job& job : jobs) postponed += job.postponed;
  gap_scale = mean_gap(jobs);
}

}  // namespace berth::andreas
