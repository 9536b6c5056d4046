#include "policies/gavel/fractions.h"

#include <algorithm>
#include <array>
#include <numeric>

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

std::vector<double> devices_up(const View& view) {
  std::vector<double> gpus;
  for (std::uint32_t i = 0; i < view.cluster.pools(); ++i)
    gpus.push_back(static_cast<double>(view.cluster.usable_gpus(PoolId{i})));
  return gpus;
}

}  // namespace

Need Fractions::needs() const noexcept {
  switch (options_.objective) {
    case Objective::Ftf:
    case Objective::Makespan:
    case Objective::Sjf: return Need::Profile | Need::RunTime;
    case Objective::Slo: return Need::Profile | Need::RunTime | Need::Deadline;
    default: return Need::Profile;
  }
}

void Fractions::begin(const View& view) {
  entity_.resize(view.jobs.size());
  isolated_.resize(view.jobs.size());
  rule_ = {.objective = options_.objective,
           .cost = options_.cost,
           .prices = {},
           .entity_weights = {},
           .max_levels = options_.max_levels};
  for (const DeviceType& device : view.cluster.cluster().pools)
    rule_.prices.push_back(price_of(device));
}

void Fractions::add(const View& view, JobId job, Candidates& candidates) {
  entity_[job] = entity_of(view, job);
  const std::uint32_t at = candidates.add({.job = job, .partner = {}, .gpus = view.gpus(job)});
  const FluidClass one = fluid_class(view, job);
  for (std::uint32_t i = 0; i < one.rates.size(); ++i)
    candidates.claim(at, PoolId{i}).rate = one.rates[i];
}

std::uint32_t Fractions::entity_of(const View& view, JobId job) {
  if (options_.objective != Objective::Hierarchical) return 0;
  const JobRequest& request = view.request(job);
  const NameId name = options_.entity == Entity::User    ? request.user
                      : options_.entity == Entity::Group ? request.group
                                                         : request.queue;
  const std::uint32_t entity = entities_.of(name).value;
  if (entity < rule_.entity_weights.size()) return entity;
  const auto given =
      std::ranges::find(options_.weights, view.text(name), &std::pair<std::string, double>::first);
  rule_.entity_weights.push_back(given == options_.weights.end() ? 1 : given->second);
  return entity;
}

const std::vector<double>& Fractions::rates(const View& view, JobId job) {
  if (options_.speeds == Speeds::Aware) return beliefs_.rates(view, job);
  return equal_speeds_.of(view.jobs.kind[job], [&] {
    std::vector<double> speeds(view.cluster.pools());
    for (const PoolId pool : view.shape(job).pools) speeds[pool.value] = 1;
    return speeds;
  });
}

/// The job as a class of its own. It cannot run where too few devices are up: a program that gave
/// it time there would waste the time.
FluidClass Fractions::fluid_class(const View& view, JobId job) {
  FluidClass one{.rates = rates(view, job), .gpus = static_cast<double>(view.gpus(job))};
  for (std::uint32_t i = 0; i < one.rates.size(); ++i) {
    if (view.cluster.usable_gpus(PoolId{i}) < view.gpus(job)) one.rates[i] = 0;
  }
  return one;
}

void Fractions::compute(const View& view, Candidates& candidates) {
  candidates.remove_pairs();  // who shares with whom is decided anew
  collect_facts(view, candidates);
  // A pair needs both of its jobs to be classes of their own.
  const std::vector<JobClass> classes =
      shares_devices() ? one_by_one(facts_) : group_jobs(facts_, options_.max_classes);
  Fluid fluid = fluid_of(view, classes);
  if (shares_devices()) add_pairs(view, fluid);
  const Shares shares = shares_for(rule_, fluid, classes, facts_);
  candidates.restart(options_.carry);
  set_claims(fluid, classes, shares, candidates);
  add_pair_candidates(fluid, shares, candidates);
}

void Fractions::collect_facts(const View& view, const Candidates& candidates) {
  facts_.clear();
  for (std::uint32_t i = 0; i < candidates.size(); ++i) {
    const JobId job = candidates[i].job;
    JobFacts& facts = facts_.emplace_back();
    facts.job = job;
    facts.kind = view.jobs.kind[job];
    facts.entity = entity_[job];
    facts.weight = static_cast<double>(view.request(job).weight);
    if (options_.objective == Objective::Makespan) facts.first = left_of(view, job);
    if (options_.objective == Objective::Slo) facts.first = needed_rate(view, job);
  }
  std::ranges::sort(facts_, {}, &JobFacts::job);
  const bool ranked = options_.objective == Objective::Fifo || options_.objective == Objective::Sjf;
  if (ranked) rank_facts(view);
  if (options_.objective == Objective::Ftf) add_finish_facts(view);
}

/// FIFO: as they came. SJF: by the time left on their fastest type, whether it is up or not.
void Fractions::rank_facts(const View& view) {
  std::vector<std::pair<double, std::uint32_t>> order;
  for (std::uint32_t i = 0; i < facts_.size(); ++i) {
    const double best = *std::ranges::max_element(rates(view, facts_[i].job));
    const bool by_length = options_.objective == Objective::Sjf && best > 0;
    order.emplace_back(by_length ? left_of(view, facts_[i].job) / best : 0.0, i);
  }
  std::ranges::sort(order);
  for (std::uint32_t i = 0; i < order.size(); ++i) facts_[order[i].second].rank = i;
}

/// What a job did since the last computation counts as isolated time at the rate it had then, since
/// its part of the cluster changes as jobs come and go; what is left goes on at the rate of now.
/// Both are divided by the work left, so that jobs alike in these form one class.
void Fractions::add_finish_facts(const View& view) {
  const Fluid devices{.gpus = devices_up(view), .classes = {}, .pairs = {}};
  const auto jobs = static_cast<double>(facts_.size());
  Memo<KindId, double> rate_of;
  for (JobFacts& facts : facts_) {
    const double rate = rate_of.of(
        facts.kind, [&] { return isolated_rate(devices, fluid_class(view, facts.job), jobs); });
    Isolated& isolated = isolated_[facts.job];
    const double left = left_of(view, facts.job);
    if (isolated.rate > 0) isolated.time += std::max(0.0, isolated.left - left) / isolated.rate;
    isolated.left = left;
    isolated.rate = rate;
    const double rest = rate > 0 ? left / rate : left;
    facts.first = (isolated.time + rest) / left;
    facts.second = to_seconds(view.now - view.jobs.submitted[facts.job]) / left;
  }
}

Fluid Fractions::fluid_of(const View& view, std::span<const JobClass> classes) {
  Fluid fluid{.gpus = devices_up(view), .classes = {}, .pairs = {}};
  for (const JobClass& one : classes) {
    fluid.classes.push_back(fluid_class(view, facts_[one.members.front()].job));
    fluid.classes.back().count = static_cast<double>(one.members.size());
  }
  return fluid;
}

/// Jobs of the same size that fit into a device together and get more done so than one alone.
void Fractions::add_pairs(const View& view, Fluid& fluid) const {
  const RateModel& believed = view.believed();
  const auto beside = [&](std::uint32_t i, std::uint32_t other, PoolId pool) {
    const std::array<CoRunner, 1> others{{{.profile = view.jobs.profile[facts_[other].job]}}};
    return believed.beside(view.jobs.profile[facts_[i].job], {}, pool, others);
  };
  for (std::uint32_t a = 0; a < facts_.size(); ++a) {
    for (std::uint32_t b = a + 1; b < facts_.size(); ++b) {
      if (fluid.classes[a].gpus != fluid.classes[b].gpus) continue;
      const std::int64_t memory = std::int64_t{believed_memory_mib(view, facts_[a].job)} +
                                  believed_memory_mib(view, facts_[b].job);
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
        if (of_a + of_b <= 1 || (room > 0 && memory > room)) continue;
        pair.first_rates[type] = of_a * fluid.classes[a].rates[type];
        pair.second_rates[type] = of_b * fluid.classes[b].rates[type];
        any = any || (pair.first_rates[type] > 0 && pair.second_rates[type] > 0);
      }
      if (any) fluid.pairs.push_back(std::move(pair));
    }
  }
}

void Fractions::set_claims(const Fluid& fluid, std::span<const JobClass> classes,
                           const Shares& shares, Candidates& candidates) const {
  // Under the ratio of all work to all dollars a job that fills an expensive device costs more than
  // it brings.
  const bool only_cheapest = options_.cost == CostForm::Ratio;
  for (std::size_t i = 0; i < classes.size(); ++i) {
    const FluidClass& one = fluid.classes[i];
    std::vector<double> per_dollar = one.rates;
    for (std::size_t type = 0; type < fluid.types(); ++type) per_dollar[type] /= rule_.prices[type];
    const double best = *std::ranges::max_element(per_dollar);
    std::vector<double> time(fluid.types());  // of all jobs of the class
    for (std::uint32_t type = 0; type < fluid.types(); ++type) {
      time[type] = shares.of_class(i, type) * one.count;
      for (const std::uint32_t member : classes[i].members) {
        Claim& claim = candidates.claim(candidates.alone(facts_[member].job), PoolId{type});
        claim.rate = one.rates[type];
        claim.share = shares.of_class(i, type);
        claim.may_fill = !only_cheapest || per_dollar[type] >= best;
      }
    }
    if (!splits_equally(options_.objective))
      split_in_order(one, classes[i].members, std::move(time), candidates);
  }
}

/// The class's time goes to its first jobs, fastest type first, instead of a little to each.
void Fractions::split_in_order(const FluidClass& one, std::span<const std::uint32_t> members,
                               std::vector<double> time, Candidates& candidates) const {
  std::vector<std::uint32_t> types(time.size());
  std::iota(types.begin(), types.end(), 0U);
  std::ranges::stable_sort(types, std::ranges::greater{},
                           [&](std::uint32_t type) { return one.rates[type]; });
  for (const std::uint32_t member : members) {
    const std::uint32_t at = candidates.alone(facts_[member].job);
    double left = 1;
    for (const std::uint32_t type : types) {
      const double share = std::min(left, time[type]);
      candidates.claim(at, PoolId{type}).share = share;
      time[type] -= share;
      left -= share;
    }
  }
}

void Fractions::add_pair_candidates(const Fluid& fluid, const Shares& shares,
                                    Candidates& candidates) const {
  constexpr double kWorthATurn = 1e-6;  // less is rounding of the solver
  for (std::size_t i = 0; i < fluid.pairs.size(); ++i) {
    const FluidPair& pair = fluid.pairs[i];
    std::optional<std::uint32_t> at;
    for (std::uint32_t type = 0; type < fluid.types(); ++type) {
      const double share = shares.of_pair(i, type);
      if (share < kWorthATurn) continue;
      if (!at)
        at = candidates.add({.job = facts_[pair.first].job,
                             .partner = facts_[pair.second].job,
                             .gpus = static_cast<std::int32_t>(fluid.classes[pair.first].gpus)});
      Claim& claim = candidates.claim(*at, PoolId{type});
      claim.share = share;
      claim.rate = pair.first_rates[type] + pair.second_rates[type];
    }
  }
}

}  // namespace berth::gavel
