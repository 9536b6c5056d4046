#include "cpu/quota_tuner.h"

#include <algorithm>
#include <cmath>

namespace berth {
namespace {

constexpr double kWorkerCores = 4;
constexpr double kParameterServerCores = 3;

}  // namespace

std::string_view QuotaTuner::name() const noexcept {
  switch (quota_) {
    case CpuQuota::Shared: return "shared";
    case CpuQuota::Role: return "role";
    case CpuQuota::Bind: break;
  }
  return "bind";
}

void QuotaTuner::begin(const View& view, const RateModel& believed) {
  beliefs_.begin(believed);
  knows_devices_ = view.cluster.tracks_devices();
}

void QuotaTuner::tune(const View&, std::span<const NodeId> changed, Plan& plan) {
  if (!knows_devices_) return;
  nodes_.assign(changed.begin(), changed.end());
  with_gang_mates(plan, nodes_, on_node_);
  offers_.clear();
  for (const NodeId node : nodes_) offer_cores(plan, node);
  for (const auto& [job, cores_milli] : offers_) {
    // A gang that was met only on a server around the change may have servers we did not look at;
    // nothing changed for it.
    const auto looked_at = [&](const Slice& slice) {
      return std::ranges::binary_search(nodes_, slice.node);
    };
    if (std::ranges::all_of(plan.slices(job), looked_at)) give_cores(plan, job, cores_milli);
  }
}

double QuotaTuner::wanted(const Plan& plan, NodeId node, JobId job) {
  switch (quota_) {
    case CpuQuota::Shared: return beliefs_.demand(plan, job, plan.jobs().phase[job]);
    case CpuQuota::Role: return kWorkerCores;
    case CpuQuota::Bind: break;
  }
  const Node& server = plan.cluster().cluster().nodes[node.value];
  return static_cast<double>(server.cpus_milli) / 1000 / server.gpus;
}

/// A gang has one parameter server, beside its first worker.
double QuotaTuner::parameter_server(const Plan& plan, NodeId node, JobId job) const {
  const bool has_one = quota_ == CpuQuota::Role && plan.gpus_of(job) > 1;
  return has_one && plan.slices(job).front().node == node ? kParameterServerCores : 0;
}

/// What each wants, or in proportion to it if that is more than there is.
void QuotaTuner::offer_cores(const Plan& plan, NodeId node) {
  const double cores = static_cast<double>(cores_milli_of(plan, node)) / 1000;
  if (cores <= 0) return;
  jobs_.clear();
  wanted_.clear();
  jobs_of_server(plan, node, on_node_, jobs_);
  double total = 0;
  for (const ServerJob& each : jobs_) {
    wanted_.push_back(wanted(plan, node, each.job));
    total += wanted_.back() * each.workers + parameter_server(plan, node, each.job);
  }
  const double part = total > cores ? cores / total : 1;
  for (std::size_t i = 0; i < jobs_.size(); ++i) {
    // Never zero, which would mean "as many as it wants".
    const auto offer =
        static_cast<std::int32_t>(std::max(1.0, std::floor(wanted_[i] * part * 1000)));
    const auto [entry, is_new] = offers_.try_emplace(jobs_[i].job, offer);
    if (!is_new) entry->second = std::min(entry->second, offer);
  }
}

}  // namespace berth
