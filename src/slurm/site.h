// What setup must know of a Slurm before it changes anything, as slurmctld tells it.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"
#include "slurm/commands.h"

namespace berth::slurm {

struct Site {
  std::string version;          // "24.11.5"
  std::string conf;             // the slurm.conf that slurmctld reads
  std::string plugin_dir;       // folders, joined by colons
  std::uint32_t slurm_uid = 0;  // SlurmUser
  std::string plugins;          // JobSubmitPlugins
  std::string parameters;       // SchedulerParameters
  std::string enforce;          // AccountingStorageEnforce
  std::string accounting;       // AccountingStorageType
};

[[nodiscard]] Result<Site> ask_site(SlurmCommands& commands);

/// Where job_submit_lua.so lies; empty: in none of the folders.
[[nodiscard]] std::string find_lua_plugin(const std::string& plugin_dir);

}  // namespace berth::slurm
