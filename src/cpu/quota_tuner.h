// The ways to share out cores that know nothing of models or do nothing: `shared`, `role`, `bind`.
// What a worker gets on a server depends on the jobs of that server alone, so only servers whose
// jobs changed are looked at, and the other servers of their gangs.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "core/node_tuner.h"
#include "cpu/cpu_beliefs.h"
#include "cpu/server_jobs.h"

namespace berth {

enum class CpuQuota : std::uint8_t { Shared, Role, Bind };

class QuotaTuner final : public NodeTuner {
 public:
  explicit QuotaTuner(CpuQuota quota) : quota_(quota) {}
  [[nodiscard]] std::string_view name() const noexcept override;
  void begin(const View& view, const RateModel& believed) override;
  void tune(const View& view, std::span<const NodeId> changed, Plan& plan) override;

 private:
  void offer_cores(const Plan& plan, NodeId node);
  [[nodiscard]] double wanted(const Plan& plan, NodeId node, JobId job);
  [[nodiscard]] double parameter_server(const Plan& plan, NodeId node, JobId job) const;

  CpuQuota quota_;
  bool knows_devices_ = false;
  CpuBeliefs beliefs_;                    // `shared`: what workers would take
  std::vector<NodeId> nodes_;             // scratch
  std::vector<JobId> on_node_;            // scratch
  std::vector<ServerJob> jobs_;           // scratch
  std::vector<double> wanted_;            // scratch
  std::map<JobId, std::int32_t> offers_;  // scratch: the least of its servers, in thousandths
};

}  // namespace berth
