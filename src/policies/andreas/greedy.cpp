#include "policies/andreas/greedy.h"

#include <algorithm>
#include <utility>

#include "base/portable_math.h"

namespace berth::andreas {

namespace {

constexpr double kSwapShare = 0.5;  // how often two neighbours of equal pressure change places

/// Jobs without due date all have the same pressure, infinitely far behind the others.
bool changes_places(const Instance& instance, const Job& ahead, const Job& behind, Rng& rng) {
  const bool both_lax = behind.due == kNoDueDate && ahead.due == kNoDueDate;
  if (!both_lax && behind.due == kNoDueDate) return false;
  const double gap = both_lax ? 0 : ahead.pressure - behind.pressure;
  const double near = instance.gap_scale > 0 ? portable_exp(-gap / instance.gap_scale) : 1;
  return rng.uniform() < kSwapShare * near;
}

class Construction {
 public:
  Construction(Layout& layout, Rng* rng, double best_share)
      : layout_(layout), instance_(layout.instance()), rng_(rng), best_share_(best_share) {}

  void keep_present() {
    for (std::uint32_t job = 0; job < instance_.jobs.size(); ++job)
      static_cast<void>(layout_.try_stay(job));
  }

  /// In order of pressure; with a generator one job at a time may fall behind its follower.
  void place_all() {
    const auto count = static_cast<std::uint32_t>(instance_.jobs.size());
    std::uint32_t ahead = 0;
    for (std::uint32_t next = 1; next <= count && layout_.free_gpus() > 0; ++next) {
      const bool swaps =
          rng_ != nullptr && next < count &&
          changes_places(instance_, instance_.jobs[ahead], instance_.jobs[next], *rng_);
      place(swaps ? next : ahead);
      if (!swaps) ahead = next;
    }
    if (ahead < count && layout_.free_gpus() > 0) place(ahead);
  }

 private:
  void place(std::uint32_t job) {
    if (layout_.is_placed(job)) return;
    const Job& row = instance_.jobs[job];
    const std::uint32_t first = rng_ == nullptr ? preferred_choice(instance_, row) : drawn(row);
    if (try_choice(job, first)) return;
    // What is in time goes by cost, what is late by how late: then every hour costs.
    const auto choices = row.choices->by_cost();
    for (std::uint32_t at = 0; at < choices.size(); ++at) {
      if (at != first && row.is_on_time(choices[at]) && try_choice(job, at)) return;
    }
    for (const std::uint32_t at : row.choices->by_time()) {
      if (at != first && !row.is_on_time(choices[at]) && try_choice(job, at)) return;
    }
  }

  bool try_choice(std::uint32_t job, std::uint32_t choice) {
    if (choice == instance_.jobs[job].kept && layout_.try_stay(job)) return true;
    return layout_.try_place(job, choice, rng_);
  }

  /// In proportion to 1/cost of those in time, or 1/time if none is.
  std::uint32_t drawn(const Job& job) {
    if (rng_->uniform() < best_share_) return preferred_choice(instance_, job);
    const bool can_be_on_time = job.is_on_time(job.choices->fastest());
    weights_.clear();
    for (const Choice& choice : job.choices->by_cost()) {
      const bool counts = !can_be_on_time || job.is_on_time(choice);
      const double value = can_be_on_time ? choice.cost : choice.hours;
      weights_.push_back(counts ? 1 / std::max(value, 1e-12) : 0);
    }
    return static_cast<std::uint32_t>(rng_->weighted(weights_));
  }

  Layout& layout_;
  const Instance& instance_;
  Rng* rng_;
  double best_share_;
  std::vector<double> weights_;  // scratch
};

/// The larger choice of its type, within the room of its node, that lowers the cost most.
bool grow(Layout& layout, std::uint32_t job) {
  const Spot before = layout.spot(job);
  const Choice& own = layout.choice_of(job);
  const std::int32_t most = own.gpus + layout.free_on(before.node);
  const auto choices = layout.instance().jobs[job].choices->by_cost();
  Spot best = before;
  double least = layout.cost() - 1e-9;
  for (std::uint32_t at = 0; at < choices.size(); ++at) {
    const Choice& choice = choices[at];
    if (choice.type != own.type || choice.gpus <= own.gpus || choice.gpus > most) continue;
    layout.remove(job);
    layout.place(job, at, before.node);
    if (layout.cost() >= least) continue;
    least = layout.cost();
    best.choice = at;
  }
  if (layout.spot(job) == best) return best != before;
  layout.remove(job);
  layout.place(job, best.choice, best.node);
  return best != before;
}

}  // namespace

std::uint32_t preferred_choice(const Instance& instance, const Job& job) {
  const ChoiceList& list = *job.choices;
  const bool can_be_on_time = job.is_on_time(list.fastest());
  std::uint32_t best = list.by_time().front();
  if (can_be_on_time) {
    best = 0;
    while (!job.is_on_time(list[best])) ++best;
  }
  if (job.kept == kNone || best == job.kept) return best;
  const Choice& kept = list[job.kept];
  const double restart = instance.restart * instance.types[list[best].type].rate(list[best].gpus);
  const bool keeps = can_be_on_time
                         ? job.is_on_time(kept) && job.cost(kept) <= job.cost(list[best]) + restart
                         : job.hours(kept) <= job.hours(list[best]) + instance.restart;
  return keeps ? job.kept : best;
}

void take_leftovers(Layout& layout) {
  std::vector<std::uint32_t> nodes;
  std::vector<std::uint32_t> jobs;
  layout.nodes_with_room(nodes);
  for (const std::uint32_t node : nodes) {
    const auto here = layout.jobs_on(node);
    jobs.assign(here.begin(), here.end());
    std::ranges::sort(jobs);
    for (const std::uint32_t job : jobs) {
      if (layout.free_on(node) == 0) break;
      if (!layout.is_gang(job)) static_cast<void>(grow(layout, job));
    }
  }
}

void build(Layout& layout, Movers movers, Rng* rng, double best_share) {
  Construction construction{layout, rng, best_share};
  if (movers == Movers::WaitingJobsOnly) construction.keep_present();
  construction.place_all();
  take_leftovers(layout);
}

}  // namespace berth::andreas
