// The jobs of one server as core allocation sees them: who, with how many workers.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "base/device_mask.h"
#include "core/plan.h"
#include "perf/cpu_allocation.h"

namespace berth {

struct ServerJob {
  JobId job;
  std::int32_t workers = 0;  // GPUs of the job on this server
};

/// Cores of a server, whole and in thousandths; 0 = it does not say.
[[nodiscard]] inline std::int64_t cores_milli_of(const Plan& plan, NodeId node) noexcept {
  return plan.cluster().cluster().nodes[node.value].cpus_milli;
}

[[nodiscard]] inline CpuServer server_of(const Plan& plan, NodeId node) noexcept {
  const Node& server = plan.cluster().cluster().nodes[node.value];
  return {static_cast<std::int32_t>(server.cpus_milli / 1000), server.gpus};
}

/// Ascending by job. `scratch` is only there so that nothing is allocated.
inline void jobs_of_server(const Plan& plan, NodeId node, std::vector<JobId>& scratch,
                           std::vector<ServerJob>& jobs) {
  plan.cluster().jobs_on(node, scratch);
  for (const JobId job : scratch) {
    std::int32_t workers = 0;
    for (const Slice& slice : plan.slices(job)) workers += slice.node == node ? slice.gpus : 0;
    jobs.push_back({job, workers});
  }
}

/// `nodes` and the other servers of gangs that reach onto them; ascending, each once.
inline void with_gang_mates(const Plan& plan, std::vector<NodeId>& nodes,
                            std::vector<JobId>& scratch) {
  const std::size_t given = nodes.size();
  for (std::size_t i = 0; i < given; ++i) {
    plan.cluster().jobs_on(nodes[i], scratch);
    for (const JobId job : scratch) {
      const auto slices = plan.slices(job);
      if (slices.size() < 2) continue;
      for (const Slice& slice : slices) nodes.push_back(slice.node);
    }
  }
  std::ranges::sort(nodes);
  nodes.erase(std::unique(nodes.begin(), nodes.end()), nodes.end());
}

/// Beside others on a GPU a speed says nothing about cores.
[[nodiscard]] inline bool has_device_company(const Plan& plan, JobId job) {
  return std::ranges::any_of(plan.slices(job), [&](const Slice& slice) {
    return std::ranges::any_of(DeviceMask{slice.devices}, [&](std::int32_t device) {
      return plan.cluster().jobs_on(slice.node, device).size() > 1;
    });
  });
}

inline void give_cores(Plan& plan, JobId job, std::int32_t cores_milli) {
  Terms terms = plan.terms(job);
  terms.cores_milli = cores_milli;
  // Cores take no device memory, so this cannot fail.
  static_cast<void>(plan.set_terms(job, terms));
}

}  // namespace berth
