// What planning, applying and undoing share; nobody else includes it.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "base/fd.h"
#include "base/result.h"
#include "slurm/commands.h"
#include "slurm/setup_state.h"

namespace berth::slurm {

/// The line of ours in slurm.conf. Without a path: a controller that hands its configuration to
/// nodes hands out only files that are included so.
inline constexpr const char* kIncludeLine =
    "Include berth.conf  # by `berth slurm setup`, removed by its --undo";

/// Only one setup at a time works on a slurm.conf. Held as long as it lives.
[[nodiscard]] Result<Fd> lock_folder_of(const std::string& conf);

struct QosRow {
  std::string name, group_jobs;
};
[[nodiscard]] Result<std::vector<QosRow>> qos_rows(SlurmCommands& commands);
[[nodiscard]] Result<void> set_group_jobs(SlurmCommands& commands, const std::string& qos,
                                          const std::string& value);

/// slurmctld is away for a moment while it reads its files anew.
inline constexpr int kTries = 50;
inline constexpr std::chrono::milliseconds kBetweenTries{200};

/// Removes what a killed run may have left: probe jobs of ours. Best effort.
void cancel_probes(SlurmCommands& commands);

}  // namespace berth::slurm
