// The exact batch step. Every plan worth looking at starts its jobs one after the other, each as
// early as those before it allow: whoever could start earlier would, and nobody later would mind.
// So the search goes over sequences of (job, configuration) with starts that never fall.
#include <algorithm>
#include <limits>
#include <utility>

#include "policies/aonline/batch.h"

namespace berth::aonline {

namespace {

class Search {
 public:
  Search(Room room, const std::vector<BatchJob>& jobs, BatchPlan known, std::int64_t steps)
      : room_(std::move(room)), jobs_(jobs), best_(std::move(known)), steps_(steps) {
    plan_.choices.resize(jobs.size());
    for (const BatchJob& job : jobs) {
      std::int64_t shortest = std::numeric_limits<std::int64_t>::max();
      for (const Configuration& way : job.ways) shortest = std::min(shortest, way.slots);
      shortest_.push_back(shortest);
    }
  }

  BatchPlan run() {
    extend(0, 0);
    return std::move(best_);
  }

 private:
  /// What can still be reached from here is no better than what is known.
  [[nodiscard]] bool is_hopeless(std::int64_t from) const {
    double weight = plan_.weight;
    std::int64_t completions = plan_.completions;
    for (std::size_t i = 0; i < jobs_.size(); ++i) {
      if (plan_.choices[i] || from + shortest_[i] > room_.slots()) continue;
      weight += jobs_[i].weight;
      completions += from + shortest_[i];
    }
    // With less than all of the rest the weight is below this bound, so it can only tie with all.
    return weight < best_.weight || (weight == best_.weight && completions >= best_.completions);
  }
  void keep_if_better() {
    const bool better = plan_.weight > best_.weight ||
                        (plan_.weight == best_.weight && plan_.completions < best_.completions);
    if (better) best_ = plan_;
  }
  /// Adds one job that starts at `from` or later; jobs of the same start go by their number.
  void extend(std::int64_t from, std::size_t next_of_same_start) {
    for (std::size_t i = 0; i < jobs_.size(); ++i) {
      if (plan_.choices[i]) continue;
      for (std::size_t w = 0; w < jobs_[i].ways.size(); ++w) {
        if (steps_-- <= 0) return;
        const std::int64_t first = i < next_of_same_start ? from + 1 : from;
        const Configuration& way = jobs_[i].ways[w];
        if (const auto start = room_.earliest(way, first)) try_with(i, {w, *start});
      }
    }
  }
  void try_with(std::size_t i, const Choice& choice) {
    const Configuration& way = jobs_[i].ways[choice.way];
    const double weight_before = plan_.weight;
    room_.take(way, choice.start);
    plan_.choices[i] = choice;
    plan_.weight += jobs_[i].weight;
    plan_.completions += choice.start + way.slots;
    keep_if_better();
    if (!is_hopeless(choice.start)) extend(choice.start, i + 1);
    plan_.completions -= choice.start + way.slots;
    plan_.weight = weight_before;
    plan_.choices[i].reset();
    room_.give(way, choice.start);
  }

  Room room_;
  const std::vector<BatchJob>& jobs_;
  BatchPlan best_;
  std::int64_t steps_;
  BatchPlan plan_;
  std::vector<std::int64_t> shortest_;  // by job
};

}  // namespace

BatchPlan plan_exactly(const Room& room, const std::vector<BatchJob>& jobs, BatchPlan known,
                       std::int64_t steps) {
  return Search{room, jobs, std::move(known), steps}.run();
}

}  // namespace berth::aonline
