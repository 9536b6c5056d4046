#include "cpu/cpu_beliefs.h"

#include <algorithm>
#include <limits>

namespace berth {
namespace {

constexpr int kMostCorrections = 8;
constexpr double kRounding = 1e-9;

/// A last digit is no reason to want another core.
double up_to_full(double speed) { return speed > 1 - kRounding ? 1 : speed; }

}  // namespace

void CpuBeliefs::begin(const RateModel& believed, MeasuredSpeeds* measured) {
  believed_ = &believed;
  measured_ = measured;
  measured_tables_.clear();
  curves_.clear();
  most_cores_ = Column<PoolId, std::int32_t>(believed.cluster().pools.size(), 1);
  for (const Node& node : believed.cluster().nodes) {
    std::int32_t& most = most_cores_[node.pool];
    most = std::max(most, static_cast<std::int32_t>(node.cpus_milli / 1000));
  }
}

Standing CpuBeliefs::standing(const Plan& plan, JobId job, Phase phase) const {
  const PoolId pool = plan.pool_of(job);
  const std::int32_t gpus = plan.gpus_of(job);
  Standing standing{.profile = plan.jobs().profile[job],
                    .pool = pool,
                    .gpus = gpus,
                    .wanted = gpus,
                    .batch = plan.jobs().batch[job],
                    .level = believed_->effects().locality
                                 ? believed_->servers().level_of(plan.slices(job))
                                 : believed_->best_level(pool, gpus),
                    .phase = phase};
  standing.terms.sub_steps = plan.terms(job).sub_steps;
  return standing;
}

Standing CpuBeliefs::standing_in(const Plan& plan, JobId job, PoolId pool) const {
  const std::int32_t gpus = plan.shape(job).gpus;
  Standing standing{.profile = plan.jobs().profile[job],
                    .pool = pool,
                    .gpus = gpus,
                    .wanted = gpus,
                    .batch = plan.jobs().batch[job],
                    .level = believed_->best_level(pool, gpus)};
  standing.terms.sub_steps = plan.terms(job).sub_steps;
  return standing;
}

double CpuBeliefs::fed(Standing standing, std::int32_t cores_milli) const {
  if (cores_milli <= 0) return std::numeric_limits<double>::infinity();  // as many as it wants
  standing.terms.cores_milli = cores_milli;
  const IterationTime time = believed_->iteration(standing);
  return time.cpu > 0 ? time.gpu / time.cpu : std::numeric_limits<double>::infinity();
}

double CpuBeliefs::factor_of(const Standing& standing) const {
  const auto learnt = curves_.find({standing.profile, standing.pool, standing.phase});
  return learnt == curves_.end() ? 1 : learnt->second.factor;
}

std::span<const double> CpuBeliefs::table_of(KindId kind, const Standing& standing) {
  Learnt& learnt = curves_[{standing.profile, standing.pool, standing.phase}];
  const auto [entry, is_new] =
      learnt.tables.try_emplace({kind, standing.gpus, standing.terms.sub_steps, standing.level});
  std::vector<double>& table = entry->second;
  if (is_new) {
    table.push_back(0);
    for (std::int32_t cores = 1; cores <= most_cores(standing.pool); ++cores)
      table.push_back(up_to_full(learnt.factor * fed(standing, cores * 1000)));
  }
  return table;
}

std::span<const double> CpuBeliefs::measured(JobId job, PoolId pool) const {
  if (measured_ == nullptr) return {};
  const auto [entry, is_new] = measured_tables_.try_emplace(job);
  if (is_new && !measured_->speeds(job, most_cores(pool), entry->second)) entry->second.clear();
  return entry->second;
}

std::span<const double> CpuBeliefs::speeds(const Plan& plan, JobId job, Phase phase) {
  if (phase == Phase::Training) {
    if (const auto known = measured(job, plan.pool_of(job)); !known.empty()) return known;
  }
  return table_of(plan.jobs().kind[job], standing(plan, job, phase));
}

std::span<const double> CpuBeliefs::speeds_in(const Plan& plan, JobId job, PoolId pool) {
  return table_of(plan.jobs().kind[job], standing_in(plan, job, pool));
}

std::int32_t fewest_for_full_speed(std::span<const double> speeds) noexcept {
  const auto enough = std::lower_bound(speeds.begin() + 1, speeds.end(), speeds.back());
  return static_cast<std::int32_t>(enough - speeds.begin());
}

std::int32_t CpuBeliefs::demand(const Plan& plan, JobId job, Phase phase) {
  return fewest_for_full_speed(speeds(plan, job, phase));
}

double CpuBeliefs::full_rate(const Plan& plan, JobId job) const {
  Standing where = standing(plan, job, plan.jobs().phase[job]);
  where.reference = plan.jobs().reference[job];
  where.wanted = plan.shape(job).gpus;
  return believed_->alone(where);
}

double CpuBeliefs::speed(const Plan& plan, JobId job, std::int32_t cores_milli) const {
  if (const auto known = measured(job, plan.pool_of(job)); !known.empty()) {
    // Between two whole numbers of cores the speed is taken as linear.
    const std::size_t below =
        std::min<std::size_t>(static_cast<std::size_t>(cores_milli) / 1000, known.size() - 1);
    const std::size_t above = std::min(below + 1, known.size() - 1);
    return known[below] + (known[above] - known[below]) * (cores_milli % 1000) / 1000;
  }
  const Standing where = standing(plan, job, plan.jobs().phase[job]);
  return std::min(1.0, factor_of(where) * fed(where, cores_milli));
}

bool CpuBeliefs::correct(const Plan& plan, JobId job, double measured) {
  const Standing where = standing(plan, job, plan.jobs().phase[job]);
  const double unscaled = fed(where, plan.terms(job).cores_milli);
  if (unscaled == std::numeric_limits<double>::infinity() || unscaled <= 0) return false;
  Learnt& learnt = curves_[{where.profile, where.pool, where.phase}];
  // Jobs of one class that contradict each other must not keep the cluster busy for ever.
  if (learnt.corrections == kMostCorrections) return false;
  // Tables were made with the old factor: they are made again when they are asked for.
  learnt = {.factor = measured / unscaled, .corrections = learnt.corrections + 1, .tables = {}};
  return true;
}

}  // namespace berth
