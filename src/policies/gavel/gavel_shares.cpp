// How Gavel's policy computes fractions: from the jobs at hand to classes, through the objective's
// program, to claims in the round book.
#include <algorithm>
#include <array>
#include <numeric>

#include "policies/gavel/gavel.h"

namespace berth::gavel {

namespace {

constexpr double kLeastLeft = 1;  // second: of a job that has outlived its estimate

double left_of(const View& view, JobId job) {
  return std::max(to_seconds(view.estimated_left(job)), kLeastLeft);
}

/// The rate a job needs from now on to meet its deadline; 0 = it has none, or it is over.
double needed_rate(const View& view, JobId job) {
  const auto deadline = view.deadline(job);
  if (!deadline || *deadline <= view.now) return 0;
  return left_of(view, job) / to_seconds(*deadline - view.now);
}

}  // namespace

void Gavel::compute_shares(const View& view) {
  book_.remove_pairs();
  index_candidates();
  collect_facts(view);
  const bool pairs = options_.space_sharing && facts_.size() <= options_.pair_jobs;
  const std::vector<JobClass> classes =
      pairs ? one_by_one(facts_) : group_jobs(facts_, options_.max_classes);
  Fluid fluid = fluid_of(view, classes);
  if (pairs) add_pairs(view, fluid);
  const Shares shares = shares_for(rule_, fluid, classes, facts_);
  book_.restart(options_.carry);
  set_claims(view, fluid, classes, shares);
  if (pairs) add_pair_candidates(fluid, classes, shares);
  computed_ = rounds_.number(view.now);
  is_changed_ = false;
}

void Gavel::index_candidates() {
  for (std::uint32_t i = 0; i < book_.size(); ++i) rows_[book_[i].job.value].at = i;
}

void Gavel::collect_facts(const View& view) {
  facts_.clear();
  std::vector<JobId> jobs;
  for (std::uint32_t i = 0; i < book_.size(); ++i) jobs.push_back(book_[i].job);
  std::ranges::sort(jobs);
  for (const JobId job : jobs) {
    JobFacts& facts = facts_.emplace_back();
    facts.job = job;
    facts.kind = rows_[job.value].kind;
    facts.entity = rows_[job.value].entity;
    facts.weight = static_cast<double>(view.request(job).weight);
    if (options_.objective == Objective::Makespan) facts.first = left_of(view, job);
    if (options_.objective == Objective::Slo) facts.first = needed_rate(view, job);
  }
  const bool ranked = options_.objective == Objective::Fifo || options_.objective == Objective::Sjf;
  if (ranked) rank_facts(view);
  if (options_.objective == Objective::Ftf) add_finish_facts(view);
}

/// FIFO: as they came. SJF: by the time left on their fastest type.
void Gavel::rank_facts(const View& view) {
  std::vector<std::pair<double, std::uint32_t>> order;
  for (std::uint32_t i = 0; i < facts_.size(); ++i) {
    const std::vector<double>& rates = kinds_[facts_[i].kind].rates;
    const double best = *std::ranges::max_element(rates);
    const bool by_length = options_.objective == Objective::Sjf && best > 0;
    order.emplace_back(by_length ? left_of(view, facts_[i].job) / best : 0.0, i);
  }
  std::ranges::sort(order);
  for (std::uint32_t i = 0; i < order.size(); ++i) facts_[order[i].second].rank = i;
}

/// Time in isolation so far, by the rate believed at each computation, and what is left of it.
void Gavel::add_finish_facts(const View& view) {
  Fluid kinds;
  for (std::uint32_t i = 0; i < view.cluster.pools(); ++i)
    kinds.gpus.push_back(static_cast<double>(view.cluster.usable_gpus(PoolId{i})));
  for (const Kind& kind : kinds_) {
    FluidClass& one = kinds.classes.emplace_back();
    one.gpus = kind.gpus;
    one.count = 0;
    for (std::size_t type = 0; type < kinds.types(); ++type)
      one.rates.push_back(rate(view, kind, type));
  }
  for (const JobFacts& facts : facts_) kinds.classes[facts.kind].count += 1;
  const std::vector<double> isolated = isolated_rates(kinds);
  for (JobFacts& facts : facts_) {
    Row& row = rows_[facts.job.value];
    const double left = left_of(view, facts.job);
    if (row.isolated_rate > 0) row.isolated += std::max(0.0, row.left - left) / row.isolated_rate;
    row.left = left;
    row.isolated_rate = isolated[facts.kind];
    const double rest = row.isolated_rate > 0 ? left / row.isolated_rate : left;
    facts.first = (row.isolated + rest) / left;
    facts.second = to_seconds(view.now - view.jobs.submitted[facts.job]) / left;
  }
}

Fluid Gavel::fluid_of(const View& view, std::span<const JobClass> classes) const {
  Fluid fluid;
  for (std::uint32_t i = 0; i < view.cluster.pools(); ++i)
    fluid.gpus.push_back(static_cast<double>(view.cluster.usable_gpus(PoolId{i})));
  for (const JobClass& one : classes) {
    const Kind& kind = kinds_[facts_[one.members.front()].kind];
    FluidClass& row = fluid.classes.emplace_back();
    row.gpus = kind.gpus;
    row.count = static_cast<double>(one.members.size());
    for (std::size_t type = 0; type < fluid.types(); ++type)
      row.rates.push_back(rate(view, kind, type));
  }
  return fluid;
}

/// Jobs of the same size that fit into a device together and get more done so than one alone.
void Gavel::add_pairs(const View& view, Fluid& fluid) const {
  const RateModel& believed = view.believed();
  const auto profile = [&](std::uint32_t i) { return view.jobs.profile[facts_[i].job]; };
  const auto memory = [&](std::uint32_t i) {
    return believed.memory_mib(profile(i), view.jobs.batch[facts_[i].job], {});
  };
  const auto beside = [&](std::uint32_t i, std::uint32_t other, PoolId pool) {
    const std::array<CoRunner, 1> others{{{.profile = profile(other)}}};
    return believed.beside(profile(i), {}, pool, others);
  };
  for (std::uint32_t a = 0; a < facts_.size(); ++a) {
    for (std::uint32_t b = a + 1; b < facts_.size(); ++b) {
      if (fluid.classes[a].gpus != fluid.classes[b].gpus) continue;
      FluidPair pair{.first = a,
                     .second = b,
                     .first_rates = std::vector<double>(fluid.types()),
                     .second_rates = std::vector<double>(fluid.types())};
      bool any = false;
      for (std::uint32_t type = 0; type < fluid.types(); ++type) {
        const PoolId pool{type};
        const std::int64_t room = believed.device_memory_mib(pool);
        const double of_a = beside(a, b, pool);
        const double of_b = beside(b, a, pool);
        if (of_a + of_b <= 1 || (room > 0 && memory(a) + memory(b) > room)) continue;
        pair.first_rates[type] = of_a * fluid.classes[a].rates[type];
        pair.second_rates[type] = of_b * fluid.classes[b].rates[type];
        any = any || (pair.first_rates[type] > 0 && pair.second_rates[type] > 0);
      }
      if (any) fluid.pairs.push_back(std::move(pair));
    }
  }
}

void Gavel::set_claims(const View& view, const Fluid& fluid, std::span<const JobClass> classes,
                       const Shares& shares) {
  const bool only_cheapest = options_.cost == CostForm::Ratio;
  for (std::size_t i = 0; i < classes.size(); ++i) {
    const FluidClass& one = fluid.classes[i];
    std::vector<double> per_dollar = one.rates;
    for (std::size_t type = 0; type < fluid.types(); ++type) per_dollar[type] /= rule_.prices[type];
    const double best = *std::ranges::max_element(per_dollar);
    for (const std::uint32_t member : classes[i].members) {
      const std::uint32_t at = rows_[facts_[member].job.value].at;
      for (std::uint32_t type = 0; type < view.cluster.pools(); ++type) {
        Claim& claim = book_.claim(at, PoolId{type});
        claim.rate = one.rates[type];
        claim.share = shares.of_class(i, type);
        claim.may_fill = !only_cheapest || per_dollar[type] >= best;
      }
    }
    if (!splits_equally(options_.objective)) split_in_order(fluid, classes[i], i, shares);
  }
}

/// The class's time goes to its first jobs, fastest type first, instead of a little to each.
void Gavel::split_in_order(const Fluid& fluid, const JobClass& one, std::size_t at,
                           const Shares& shares) {
  const FluidClass& row = fluid.classes[at];
  std::vector<std::uint32_t> types(fluid.types());
  std::iota(types.begin(), types.end(), 0U);
  std::ranges::stable_sort(types, std::ranges::greater{},
                           [&](std::uint32_t type) { return row.rates[type]; });
  std::vector<double> time(fluid.types());  // of all jobs of the class
  for (const std::uint32_t type : types) time[type] = shares.of_class(at, type) * row.count;
  for (const std::uint32_t member : one.members) {
    double left = 1;
    for (const std::uint32_t type : types) {
      const double share = std::min(left, time[type]);
      book_.claim(rows_[facts_[member].job.value].at, PoolId{type}).share = share;
      time[type] -= share;
      left -= share;
    }
  }
}

void Gavel::add_pair_candidates(const Fluid& fluid, std::span<const JobClass> classes,
                                const Shares& shares) {
  constexpr double kWorthATurn = 1e-6;
  const auto job_of = [&](std::uint32_t at) { return facts_[classes[at].members.front()].job; };
  for (std::size_t i = 0; i < fluid.pairs.size(); ++i) {
    const FluidPair& pair = fluid.pairs[i];
    std::optional<std::uint32_t> at;
    for (std::uint32_t type = 0; type < fluid.types(); ++type) {
      const double share = shares.of_pair(i, type);
      if (share < kWorthATurn) continue;
      if (!at)
        at = book_.add({.job = job_of(pair.first),
                        .partner = job_of(pair.second),
                        .gpus = kinds_[facts_[classes[pair.first].members.front()].kind].gpus});
      Claim& claim = book_.claim(*at, PoolId{type});
      claim.share = share;
      claim.rate = pair.first_rates[type] + pair.second_rates[type];
    }
  }
}

}  // namespace berth::gavel
