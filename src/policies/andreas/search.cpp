#include "policies/andreas/search.h"

#include <algorithm>
#include <optional>
#include <tuple>
#include <vector>

#include "base/digest.h"

namespace berth::andreas {

namespace {

// In use, per type and size. Nodes in use differ in when their last job ends, which only costs the
// idle rate: a few of the tightest will do.
constexpr std::size_t kNodesTried = 8;

class LocalSearch {
 public:
  LocalSearch(Layout& layout, const LocalSearchOptions& options)
      : layout_(layout), instance_(layout.instance()), options_(options), budget_(options.budget) {}

  void run() {
    for (std::int64_t sweep = 0; sweep < options_.sweeps && budget_ > 0; ++sweep) {
      const Score before = layout_.score();
      serve_postponed();  // first: a postponed job counts rho times
      move_each();
      swap_pairs();
      if (options_.may_postpone) postpone_each();
      if (!(layout_.score() < before)) return;
    }
  }

 private:
  [[nodiscard]] std::uint32_t jobs() const {
    return static_cast<std::uint32_t>(instance_.jobs.size());
  }
  [[nodiscard]] bool is_movable(std::uint32_t job) const {
    return layout_.is_placed(job) && !layout_.is_gang(job);
  }
  [[nodiscard]] const ChoiceList& choices(std::uint32_t job) const {
    return *instance_.jobs[job].choices;
  }
  /// Counts a move that was tried; keeps its place if the layout is the best of this kind.
  bool note(Score& best) {
    --budget_;
    if (!(layout_.score() < best)) return false;
    best = layout_.score();
    return true;
  }

  /// The dearest first. Who cannot be placed takes the room of those that run.
  void serve_postponed() {
    std::vector<std::uint32_t> waiting;
    for (std::uint32_t job = 0; job < jobs(); ++job) {
      if (!layout_.is_placed(job) && !choices(job).fastest().is_gang()) waiting.push_back(job);
    }
    std::ranges::sort(waiting, {}, [&](std::uint32_t job) {
      return std::tuple(-instance_.jobs[job].postponed, job);
    });
    for (const std::uint32_t job : waiting) {
      if (budget_ <= 0) return;
      if (!move(job) && !squeeze_in(job)) replace_some(job);
    }
  }

  /// The best other place for a job, in use or waiting.
  bool move(std::uint32_t job) {
    const Spot before = layout_.spot(job);
    const bool was_placed = layout_.is_placed(job);
    Score best = layout_.score();
    Spot place = before;
    if (was_placed) layout_.remove(job);
    const auto list = choices(job).by_cost();
    for (std::uint32_t at = 0; at < list.size(); ++at) {
      layout_.candidates(list[at].type, list[at].gpus, kNodesTried, nodes_);
      for (const std::uint32_t node : nodes_) {
        if (Spot{at, node} == before) continue;
        layout_.place(job, at, node);
        if (note(best)) place = {at, node};
        layout_.remove(job);
      }
    }
    if (place.choice != kNone) layout_.place(job, place.choice, place.node);
    return place != before;
  }

  void move_each() {
    for (std::uint32_t job = 0; job < jobs() && budget_ > 0; ++job) {
      if (is_movable(job)) move(job);
    }
  }

  /// Looks at running jobs from where the last one was found on, so that those who have given all
  /// are not asked again by every job.
  template <class Try>
  bool ask_around(Try&& works) {
    for (std::uint32_t i = 0; i < jobs() && budget_ > 0; ++i) {
      const std::uint32_t other = (cursor_ + i) % jobs();
      if (!is_movable(other) || !works(other)) continue;
      cursor_ = other;
      return true;
    }
    return false;
  }

  bool squeeze_in(std::uint32_t job) {
    return ask_around([&](std::uint32_t other) { return shrink_for(other, job); });
  }
  bool replace_some(std::uint32_t job) {
    return ask_around([&](std::uint32_t other) { return replace(other, job); });
  }

  /// The best pair of sizes on the node of `other`, which keeps less than it has.
  bool shrink_for(std::uint32_t other, std::uint32_t job) {
    const Spot before = layout_.spot(other);
    const Choice own = layout_.choice_of(other);
    if (own.gpus == 1) return false;
    Score best = layout_.score();
    Spot keeps = before;
    Spot gets;
    const auto list = choices(other).by_cost();
    layout_.remove(other);
    for (std::uint32_t at = 0; at < list.size(); ++at) {
      if (list[at].type != own.type || list[at].gpus >= own.gpus) continue;
      layout_.place(other, at, before.node);
      if (const auto found = best_on(job, before.node, best)) {
        keeps = {at, before.node};
        gets = *found;
      }
      layout_.remove(other);
    }
    layout_.place(other, keeps.choice, keeps.node);
    if (gets.choice == kNone) return false;
    layout_.place(job, gets.choice, gets.node);
    return true;
  }

  /// `other` waits instead.
  bool replace(std::uint32_t other, std::uint32_t job) {
    const Spot before = layout_.spot(other);
    Score best = layout_.score();
    layout_.remove(other);
    const auto found = best_on(job, before.node, best);
    if (found) {
      layout_.place(job, found->choice, found->node);
    } else {
      layout_.place(other, before.choice, before.node);
    }
    return found.has_value();
  }

  /// The choice for a waiting job on this node that beats `best`, which it becomes.
  std::optional<Spot> best_on(std::uint32_t job, std::uint32_t node, Score& best) {
    std::optional<Spot> found;
    const auto list = choices(job).by_cost();
    for (std::uint32_t at = 0; at < list.size(); ++at) {
      if (list[at].type != instance_.nodes[node].type || list[at].gpus > layout_.free_on(node))
        continue;
      layout_.place(job, at, node);
      if (note(best)) found = Spot{at, node};
      layout_.remove(job);
    }
    return found;
  }

  void swap_pairs() {
    for (std::uint32_t a = 0; a < jobs(); ++a) {
      for (std::uint32_t b = a + 1; b < jobs() && is_movable(a); ++b) {
        if (budget_ <= 0) return;
        if (is_movable(b)) swap(a, b);
      }
    }
  }

  void swap(std::uint32_t a, std::uint32_t b) {
    const Spot at_a = layout_.spot(a);
    const Spot at_b = layout_.spot(b);
    const Choice of_a = layout_.choice_of(a);
    const Choice of_b = layout_.choice_of(b);
    if (at_a.node == at_b.node && of_a.gpus == of_b.gpus) return;
    const std::uint32_t for_a = choices(a).find(of_b.type, of_b.gpus);
    const std::uint32_t for_b = choices(b).find(of_a.type, of_a.gpus);
    if (for_a == kNone || for_b == kNone) return;
    Score best = layout_.score();
    layout_.remove(a);
    layout_.remove(b);
    layout_.place(a, for_a, at_b.node);
    layout_.place(b, for_b, at_a.node);
    if (note(best)) return;
    layout_.remove(a);
    layout_.remove(b);
    layout_.place(a, at_a.choice, at_a.node);
    layout_.place(b, at_b.choice, at_b.node);
  }

  void postpone_each() {
    for (std::uint32_t job = 0; job < jobs() && budget_ > 0; ++job) {
      if (!is_movable(job)) continue;
      const Spot before = layout_.spot(job);
      Score best = layout_.score();
      layout_.remove(job);
      if (!note(best)) layout_.place(job, before.choice, before.node);
    }
  }

  Layout& layout_;
  const Instance& instance_;
  LocalSearchOptions options_;
  std::int64_t budget_;
  std::uint32_t cursor_ = 0;
  std::vector<std::uint32_t> nodes_;  // scratch
};

}  // namespace

void construct(Layout& layout, std::uint64_t seed, std::int64_t iteration, double best_share) {
  const bool somebody_runs =
      std::ranges::any_of(layout.instance().jobs, [](const Job& job) { return job.kept != kNone; });
  const Movers movers =
      somebody_runs && iteration % 2 == 1 ? Movers::WaitingJobsOnly : Movers::Everybody;
  if (iteration == 0 || (iteration == 1 && somebody_runs)) {
    build(layout, movers, nullptr);
    return;
  }
  // Seeded by number, so that the order in which constructions are made does not matter.
  Digest digest;
  digest.add(seed);
  digest.add(iteration);
  Rng rng{digest.value()};
  build(layout, movers, &rng, best_share);
}

Solution search(Layout& layout, const SearchOptions& options) {
  Solution best;
  for (std::int64_t i = 0; i < std::max<std::int64_t>(1, options.iterations); ++i) {
    layout.clear();
    construct(layout, options.seed, i, options.best_share);
    if (i == 0 || layout.score() < best.score) best = layout.solution();
  }
  if (options.local.sweeps <= 0) return best;
  layout.restore(best);
  LocalSearch{layout, options.local}.run();
  if (layout.score() < best.score) best = layout.solution();
  return best;
}

}  // namespace berth::andreas
