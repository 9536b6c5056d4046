#include "policies/andreas/search.h"

#include <algorithm>

#include "base/digest.h"

namespace berth::andreas {

void construct(Layout& layout, std::uint64_t seed, std::int64_t iteration, double best_share) {
  const bool somebody_runs =
      std::ranges::any_of(layout.instance().jobs, [](const Job& job) { return job.kept != kNone; });
  const Movers movers =
      somebody_runs && iteration % 2 == 1 ? Movers::WaitingJobsOnly : Movers::Everybody;
  if (iteration == 0 || (iteration == 1 && somebody_runs)) {
    build(layout, movers, nullptr);
    return;
  }
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
  improve(layout, options.local);
  if (layout.score() < best.score) best = layout.solution();
  return best;
}

}  // namespace berth::andreas
