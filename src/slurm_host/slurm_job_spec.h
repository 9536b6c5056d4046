// A job of Slurm as a request to our policies, and why it may be none. What a policy cannot take
// into account (a choice of nodes, features, several nodes of a part of their GPUs each) makes a
// job one that Berth does not place: it stays held, and people are told.
#pragma once

#include <string>
#include <vector>

#include "model/cluster.h"
#include "model/job_spec.h"
#include "slurm/facts.h"
#include "slurm_host/claim.h"

namespace berth {

/// Its tasks that wait, or itself. Empty: its list of tasks makes no sense.
[[nodiscard]] std::vector<SlurmName> names_of(const slurm::Job& job);
/// Of an array: at most so many at once; 0: no limit.
[[nodiscard]] std::int32_t tasks_at_once(const slurm::Job& job);

/// Why a job that waits is not for us to place; empty: it is. `partition`: nodes of its partition,
/// empty: not known.
[[nodiscard]] std::string obstacle_of(const slurm::Job& job, const Cluster& cluster,
                                      const std::vector<std::string>& partition);
[[nodiscard]] JobSpec spec_of(const slurm::Job& job, const FirstSight& seen,
                              const Cluster& cluster);
/// Devices on each node are such that Slurm would give the same; a text says why not.
[[nodiscard]] std::string misfit_of(const slurm::Job& job, const std::vector<HeldDevices>& where);

/// How it asks for GPUs: so many on each node, or in all.
struct GpuRequest {
  std::int32_t total = 0;
  std::int32_t per_node = 0;  // 0: however they fall
  std::string type{};
};
[[nodiscard]] GpuRequest gpus_of(const slurm::Job& job);

}  // namespace berth
