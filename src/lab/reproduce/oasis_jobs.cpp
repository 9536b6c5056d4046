// Small instances that an integer program can solve to the end, to compare OASiS with the best
// schedule in hindsight. Only prices and admission are used here, without an engine.

#include "lab/reproduce/oasis_jobs.h"

#include <algorithm>

#include <fmt/format.h>

#include "policies/oasis/cheapest.h"
#include "policies/oasis/offline.h"
#include "policies/oasis/price_range.h"

namespace berth {

oasis::Utility draw_oasis_utility(const OasisMix& mix, Rng& rng) {
  oasis::Utility utility;
  utility.value = 1 + 99 * rng.uniform();
  utility.target = 1 + 14 * rng.uniform();
  const double kind = rng.uniform();
  utility.steepness = kind < mix.insensitive                  ? 0
                      : kind < mix.insensitive + mix.critical ? kHard
                                                              : kSoft;
  // A job that does not care when it ends has no target either.
  if (utility.steepness == 0) utility.target = 0;
  return utility;
}

namespace {

struct SmallJob {
  std::int64_t arrival = 0;
  std::int64_t work = 1;  // worker-slots
  std::int64_t workers = 1;
  oasis::Utility utility;
};
struct SmallInstance {
  std::int64_t gpus = 12;
  std::int64_t slots = 10;
  std::vector<SmallJob> jobs;
};

SmallInstance draw_small(std::uint64_t seed) {
  Rng rng = Rng{seed}.fork("small");
  SmallInstance small;
  for (int i = 0; i < 12; ++i) {
    SmallJob job;
    job.arrival = static_cast<std::int64_t>(rng.below(6));
    job.workers = 1 + static_cast<std::int64_t>(rng.below(4));
    job.work = job.workers * (1 + static_cast<std::int64_t>(rng.below(4)));
    job.utility = draw_oasis_utility({}, rng);
    small.jobs.push_back(job);
  }
  std::ranges::stable_sort(small.jobs, {}, &SmallJob::arrival);
  return small;
}

double worth(const SmallJob& job, std::int64_t slot) {
  return job.utility.steepness == 0 ? job.utility.value
                                    : job.utility.at(static_cast<double>(slot - job.arrival));
}

Result<double> offline_utility(const SmallInstance& small) {
  std::vector<oasis::OfflineJob> jobs;
  for (const SmallJob& job : small.jobs) {
    oasis::OfflineJob& added = jobs.emplace_back();
    added.arrival = job.arrival;
    added.work = job.work;
    added.workers = job.workers;
    for (std::int64_t slot = 0; slot < small.slots; ++slot)
      added.worth.push_back(worth(job, std::max(slot, job.arrival)));
  }
  return oasis::offline_optimum(small.gpus, small.slots, jobs);
}

double online_utility(const SmallInstance& small) {
  const oasis::Amounts one{1};
  oasis::PriceRange range{1, static_cast<double>(small.gpus * small.slots)};
  for (const SmallJob& job : small.jobs) {
    const std::int64_t soonest = job.arrival + (job.work + job.workers - 1) / job.workers - 1;
    // The worst a job can still be worth: the range of prices begins there.
    std::int64_t last = small.slots - 1;
    while (last > job.arrival && worth(job, last) <= 0) --last;
    range.see({.best = worth(job, soonest),
               .worst = worth(job, last),
               .work = static_cast<double>(job.work)},
              one);
  }
  oasis::PriceBook book{{{small.gpus}}, small.slots};
  book.set_range(range.low(), range.high());
  double sum = 0;
  for (const SmallJob& job : small.jobs) {
    oasis::Demand demand;
    demand.units = job.work;
    demand.workers_for = oasis::linear_workers(1, job.workers);
    demand.worker = one;
    const auto best = oasis::best_schedule(
        {&book, nullptr}, demand,
        {job.arrival, small.slots, [&](std::int64_t slot) { return worth(job, slot); }});
    // Refused: it would pay less than it costs.
    if (!best || best->payoff() <= 0) continue;
    book.promise(best->workers, one);
    sum += best->worth;
  }
  return sum;
}

}  // namespace

Result<ReproducedFigure> oasis_against_optimum(const ReproduceOptions& options) {
  std::vector<double> ratios;
  for (std::uint64_t i = 0; i < (options.quick ? 3U : 20U); ++i) {
    const SmallInstance small = draw_small(options.seed + i);
    BERTH_TRY(const double best, offline_utility(small));
    ratios.push_back(best / online_utility(small));
  }
  std::ranges::sort(ratios);
  double mean = 0;
  for (const double ratio : ratios) mean += ratio / static_cast<double>(ratios.size());
  return ReproducedFigure{
      .what =
          fmt::format("offline optimum against OASiS, {} instances of 12 jobs, 12 GPUs, 10 slots",
                      ratios.size()),
      .published = "1.1 to 1.5",
      .ours = fmt::format("mean {:.2f}, {:.2f} to {:.2f}", mean, ratios.front(), ratios.back()),
      .why = ""};
}

}  // namespace berth
