// How it stands between Berth and a Slurm: set up or not, does Berth live, who holds what.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "slurm/commands.h"
#include "slurm/setup_state.h"
#include "slurm/site.h"

namespace berth::slurm {

struct SetupStatus {
  std::string version{};  // empty: slurmctld does not answer
  std::string conf{};
  std::optional<SetupState> state{};
  std::optional<std::int64_t> heartbeat_age{};  // seconds; nothing: no heartbeat. Negative: ahead
  std::size_t held_by_berth = 0, held_by_users = 0, held_by_admins = 0, waiting = 0;
  std::vector<std::string> problems{};  // what does not fit together, and what to do
};

/// Never fails for what is down or missing: that is what it tells.
[[nodiscard]] Result<SetupStatus> setup_status(SlurmCommands& commands, const std::string& conf,
                                               std::int64_t now);

}  // namespace berth::slurm
