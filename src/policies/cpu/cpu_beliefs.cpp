#include "policies/cpu/cpu_beliefs.h"

#include <algorithm>
#include <limits>

#include "core/locality.h"

namespace berth {
namespace {

constexpr int kMostCorrections = 8;

}  // namespace

void CpuBeliefs::begin(const RateModel& believed) {
  believed_ = &believed;
  tables_.clear();
  scales_.clear();
  most_cores_.assign(believed.cluster().pools.size(), 1);
  for (const Node& node : believed.cluster().nodes) {
    std::int32_t& most = most_cores_[node.pool.value];
    most = std::max(most, static_cast<std::int32_t>(node.cpus_milli / 1000));
  }
}

CpuBeliefs::Kind CpuBeliefs::kind_of(const View& view, const Plan& plan, JobId job) const {
  const PoolId pool = plan.pool_of(job);
  const std::int32_t gpus = plan.gpus_of(job);
  return {.profile = view.jobs.profile[job],
          .pool = pool,
          .gpus = gpus,
          .batch = view.jobs.batch[job],
          .sub_steps = plan.terms(job).sub_steps,
          .level = believed_->effects().locality
                       ? level_of(view.cluster.cluster(), plan.slices(job))
                       : believed_->best_level(pool, gpus)};
}

Standing CpuBeliefs::standing(const Kind& kind, std::int32_t cores_milli) const {
  Standing standing;
  standing.profile = kind.profile;
  standing.pool = kind.pool;
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

double CpuBeliefs::scale_of(const Kind& kind) const {
  const auto scale = scales_.find({kind.profile, kind.pool});
  return scale == scales_.end() ? 1 : scale->second.factor;
}

std::span<const double> CpuBeliefs::speeds(const View& view, const Plan& plan, JobId job) {
  const Kind kind = kind_of(view, plan, job);
  const auto [entry, is_new] = tables_.try_emplace(kind);
  std::vector<double>& table = entry->second;
  if (is_new) {
    const double scale = scale_of(kind);
    table.push_back(0);
    for (std::int32_t cores = 1; cores <= most_cores_[kind.pool.value]; ++cores)
      table.push_back(std::min(1.0, scale * fed(kind, cores * 1000)));
  }
  return table;
}

std::int32_t CpuBeliefs::demand(const View& view, const Plan& plan, JobId job) {
  const auto table = speeds(view, plan, job);
  const auto enough = std::lower_bound(table.begin() + 1, table.end(), table.back());
  return static_cast<std::int32_t>(enough - table.begin());
}

double CpuBeliefs::full_rate(const View& view, const Plan& plan, JobId job) const {
  Standing where = standing(kind_of(view, plan, job), 0);
  where.reference = view.jobs.reference[job];
  where.wanted = view.gpus(job);
  return believed_->alone(where);
}

double CpuBeliefs::speed(const View& view, const Plan& plan, JobId job,
                         std::int32_t cores_milli) const {
  const Kind kind = kind_of(view, plan, job);
  return std::min(1.0, scale_of(kind) * fed(kind, cores_milli));
}

bool CpuBeliefs::correct(const View& view, const Plan& plan, JobId job, double measured) {
  const Kind kind = kind_of(view, plan, job);
  const double unscaled = fed(kind, plan.terms(job).cores_milli);
  if (unscaled == std::numeric_limits<double>::infinity() || unscaled <= 0) return false;
  Scale& scale = scales_[{kind.profile, kind.pool}];
  // Jobs of one class that contradict each other must not keep the cluster busy for ever.
  if (scale.corrections == kMostCorrections) return false;
  scale = {measured / unscaled, scale.corrections + 1};
  std::erase_if(tables_, [&](const auto& entry) {
    return entry.first.profile == kind.profile && entry.first.pool == kind.pool;
  });
  return true;
}

}  // namespace berth
