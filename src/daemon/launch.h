// From a job on record and the devices it was granted to what a shim needs to run it.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "daemon/admission.h"
#include "daemon/job_supervisor.h"
#include "exec/container.h"
#include "exec/host.h"

namespace berth {

/// An error is the job's own: a user this machine does not know, a pattern that makes no sense.
[[nodiscard]] Result<LaunchOrder> launch_order(
    const LedgerJob& job, const Attempt& attempt, const Cluster& cluster,
    const std::vector<std::pair<std::string, std::string>>& extra_env,
    const ContainerOptions& containers = {});
/// What an interactive job's session is told of its queue: how long it may be idle.
[[nodiscard]] std::vector<std::pair<std::string, std::string>> session_environment(
    const JobSpec& spec, const std::vector<QueueOptions>& queues);
/// Devices and cores as its processes know them: of the machine, in one list.
[[nodiscard]] HeldDevices on_this_machine(const std::vector<HeldDevices>& where,
                                          const Cluster& cluster);
/// Processes of the gang: what the job asked for, in proportion to the devices it was given if it
/// is elastic.
[[nodiscard]] std::int32_t tasks_on(const JobSpec& spec, std::int32_t gpus);
/// Where its output and its errors go, absolute; the first task's if each has its own.
[[nodiscard]] std::pair<std::string, std::string> output_paths(const LedgerJob& job);

}  // namespace berth
