// Small decision problems for the tests of ANDREAS: the two nodes of its specification's example,
// the ways to solve them, and brute force beside.
#pragma once

#include <algorithm>
#include <optional>
#include <vector>

#include "policies/andreas/greedy.h"
#include "policies/andreas/search.h"

namespace berth::andreas {

inline constexpr std::uint32_t kFast = 0;  // N1 of the example: speed 2, 0.50 / 0.80 EUR/h
inline constexpr std::uint32_t kSlow = 1;  // N2: speed 1, 0.20 / 0.30 EUR/h

[[nodiscard]] inline std::vector<NodeType> two_types() {
  return {{.pool = 0, .gpus = 2, .idle_rate = 0.2, .gpu_rate = 0.3},
          {.pool = 1, .gpus = 2, .idle_rate = 0.1, .gpu_rate = 0.1}};
}

/// One unit of work is an hour on one slow GPU; two give 1.8 times the speed.
[[nodiscard]] inline const ChoiceList& both_types() {
  static const ChoiceList kList{{{.type = kFast, .gpus = 1, .hours = 0.5},
                                 {.type = kFast, .gpus = 2, .hours = 0.5 / 1.8},
                                 {.type = kSlow, .gpus = 1, .hours = 1},
                                 {.type = kSlow, .gpus = 2, .hours = 1 / 1.8}},
                                two_types()};
  return kList;
}

struct Wanted {
  double work = 1;
  double due = kNoDueDate;
  double weight = 1;
};

/// On the two nodes of the example; jobs are numbered from 0 as given.
[[nodiscard]] inline Instance instance_of(const std::vector<Wanted>& jobs) {
  Instance instance;
  instance.types = two_types();
  instance.nodes = {{.type = kFast}, {.type = kSlow}};
  for (std::uint32_t i = 0; i < jobs.size(); ++i) {
    instance.jobs.push_back({.id = i,
                             .choices = &both_types(),
                             .work = jobs[i].work,
                             .due = jobs[i].due,
                             .weight = jobs[i].weight});
  }
  instance.prepare();
  return instance;
}

[[nodiscard]] inline std::uint32_t at(const Instance& instance, std::uint32_t id) {
  return static_cast<std::uint32_t>(std::ranges::find(instance.jobs, id, &Job::id) -
                                    instance.jobs.begin());
}

struct Place {
  std::uint32_t type = kNone;  // kNone: postponed
  std::int32_t gpus = 0;
  friend bool operator==(const Place&, const Place&) = default;
};
inline constexpr Place kPostponed{};

[[nodiscard]] inline std::vector<Place> places(const Instance& instance, const Solution& solution) {
  std::vector<Place> places(instance.jobs.size());
  for (std::size_t i = 0; i < instance.jobs.size(); ++i) {
    const Job& job = instance.jobs[i];
    if (solution.spots[i].choice == kNone) continue;
    const Choice& choice = (*job.choices)[solution.spots[i].choice];
    places[job.id] = {choice.type, choice.gpus};
  }
  return places;
}

[[nodiscard]] inline Solution greedy(const Instance& instance) {
  Layout layout{instance};
  build(layout, Movers::Everybody, nullptr);
  return layout.solution();
}

[[nodiscard]] inline Solution randomised(const Instance& instance, std::int64_t iterations,
                                         std::uint64_t seed = 1) {
  Layout layout{instance};
  return search(layout, {.iterations = iterations, .local = {.sweeps = 0}, .seed = seed});
}

[[nodiscard]] inline Solution improved(const Instance& instance, std::int64_t iterations,
                                       bool may_postpone) {
  Layout layout{instance};
  return search(layout,
                {.iterations = iterations,
                 .local = {.sweeps = 100, .budget = 1'000'000, .may_postpone = may_postpone},
                 .seed = 1});
}

/// Every assignment of jobs to single nodes.
template <class Visit>
void each_assignment(Layout& layout, std::uint32_t job, Visit&& visit) {
  const Instance& instance = layout.instance();
  if (job == instance.jobs.size()) {
    visit(layout);
    return;
  }
  each_assignment(layout, job + 1, visit);
  const auto list = instance.jobs[job].choices->by_cost();
  for (std::uint32_t choice = 0; choice < list.size(); ++choice) {
    for (std::uint32_t node = 0; node < instance.nodes.size(); ++node) {
      if (instance.nodes[node].type != list[choice].type ||
          layout.free_on(node) < list[choice].gpus)
        continue;
      layout.place(job, choice, node);
      each_assignment(layout, job + 1, visit);
      layout.remove(job);
    }
  }
}

[[nodiscard]] inline Solution optimum(const Instance& instance) {
  Layout layout{instance};
  std::optional<Solution> best;
  each_assignment(layout, 0, [&](const Layout& now) {
    if (!best || now.score() < best->score) best = now.solution();
  });
  return *best;
}

}  // namespace berth::andreas
