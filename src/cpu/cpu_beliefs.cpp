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
  tables_.clear();
  scales_.clear();
  most_cores_.assign(believed.cluster().pools.size(), 1);
  for (const Node& node : believed.cluster().nodes) {
    std::int32_t& most = most_cores_[node.pool.value];
    most = std::max(most, static_cast<std::int32_t>(node.cpus_milli / 1000));
  }
}

CpuBeliefs::Kind CpuBeliefs::kind_of(const Plan& plan, JobId job, Phase phase) const {
  const PoolId pool = plan.pool_of(job);
  const std::int32_t gpus = plan.gpus_of(job);
  return {.curve = {plan.jobs().profile[job], pool, phase},
          .gpus = gpus,
          .batch = plan.jobs().batch[job],
          .sub_steps = plan.terms(job).sub_steps,
          .level = believed_->effects().locality ? believed_->servers().level_of(plan.slices(job))
                                                 : believed_->best_level(pool, gpus)};
}

CpuBeliefs::Kind CpuBeliefs::kind_in(const Plan& plan, JobId job, PoolId pool) const {
  const std::int32_t gpus = plan.shape(job).gpus;
  return {.curve = {plan.jobs().profile[job], pool, Phase::Training},
          .gpus = gpus,
          .batch = plan.jobs().batch[job],
          .sub_steps = plan.terms(job).sub_steps,
          .level = believed_->best_level(pool, gpus)};
}

Standing CpuBeliefs::standing(const Kind& kind, std::int32_t cores_milli) const {
  Standing standing;
  standing.profile = kind.curve.profile;
  standing.pool = kind.curve.pool;
  standing.phase = kind.curve.phase;
  standing.gpus = kind.gpus;
  standing.wanted = kind.gpus;
  standing.batch = kind.batch;
  standing.level = kind.level;
  standing.terms.sub_steps = kind.sub_steps;
  standing.terms.cores_milli = cores_milli;
  return standing;
}

double CpuBeliefs::fed(const Kind& kind, std::int32_t cores_milli) const {
  if (cores_milli <= 0) return std::numeric_limits<double>::infinity();  // as many as it wants
  const IterationTime time = believed_->iteration(standing(kind, cores_milli));
  return time.cpu > 0 ? time.gpu / time.cpu : std::numeric_limits<double>::infinity();
}

double CpuBeliefs::scale_of(const Curve& curve) const {
  const auto scale = scales_.find(curve);
  return scale == scales_.end() ? 1 : scale->second.factor;
}

std::span<const double> CpuBeliefs::table_of(const Kind& kind) {
  const auto [entry, is_new] = tables_.try_emplace(kind);
  std::vector<double>& table = entry->second;
  if (is_new) {
    const double scale = scale_of(kind.curve);
    table.push_back(0);
    for (std::int32_t cores = 1; cores <= most_cores_[kind.curve.pool.value]; ++cores)
      table.push_back(up_to_full(scale * fed(kind, cores * 1000)));
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
  return table_of(kind_of(plan, job, phase));
}

std::span<const double> CpuBeliefs::speeds_in(const Plan& plan, JobId job, PoolId pool) {
  return table_of(kind_in(plan, job, pool));
}

std::int32_t fewest_for_full_speed(std::span<const double> speeds) noexcept {
  const auto enough = std::lower_bound(speeds.begin() + 1, speeds.end(), speeds.back());
  return static_cast<std::int32_t>(enough - speeds.begin());
}

std::int32_t CpuBeliefs::demand(const Plan& plan, JobId job, Phase phase) {
  return fewest_for_full_speed(speeds(plan, job, phase));
}

double CpuBeliefs::full_rate(const Plan& plan, JobId job) const {
  Standing where = standing(kind_of(plan, job, plan.jobs().phase[job]), 0);
  where.reference = plan.jobs().reference[job];
  where.wanted = plan.shape(job).gpus;
  return believed_->alone(where);
}

double CpuBeliefs::speed(const Plan& plan, JobId job, std::int32_t cores_milli) const {
  const Kind kind = kind_of(plan, job, plan.jobs().phase[job]);
  if (const auto known = measured(job, kind.curve.pool); !known.empty()) {
    const std::size_t below =
        std::min<std::size_t>(static_cast<std::size_t>(cores_milli) / 1000, known.size() - 1);
    const std::size_t above = std::min(below + 1, known.size() - 1);
    return known[below] + (known[above] - known[below]) * (cores_milli % 1000) / 1000;
  }
  return std::min(1.0, scale_of(kind.curve) * fed(kind, cores_milli));
}

bool CpuBeliefs::correct(const Plan& plan, JobId job, double measured) {
  const Kind kind = kind_of(plan, job, plan.jobs().phase[job]);
  const double unscaled = fed(kind, plan.terms(job).cores_milli);
  if (unscaled == std::numeric_limits<double>::infinity() || unscaled <= 0) return false;
  Scale& scale = scales_[kind.curve];
  // Jobs of one class that contradict each other must not keep the cluster busy for ever.
  if (scale.corrections == kMostCorrections) return false;
  scale = {measured / unscaled, scale.corrections + 1};
  std::erase_if(tables_, [&](const auto& entry) { return entry.first.curve == kind.curve; });
  return true;
}

}  // namespace berth
