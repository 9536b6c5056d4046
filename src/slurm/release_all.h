// Gives the queue back to Slurm: releases every job that Berth holds and takes back the nodes that
// Berth required of jobs which have not begun. Users' own holds stay; for good (undo) they become
// plain ones of Slurm, and no job keeps a mark.
// Needs no Berth, only Slurm's commands and the rights of root, SlurmUser or an operator. Doing it
// twice does no harm.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "base/result.h"
#include "slurm/commands.h"
#include "slurm/held_jobs.h"

namespace berth::slurm {

struct ReleaseOptions {
  bool is_for_good = false;                // marks are removed: the script that knows them is gone
  bool is_rehearsal = false;               // say what would be done
  std::function<bool()> should_stop = {};  // asked between steps: Berth may be back meanwhile
};

struct Released {
  std::size_t released = 0;  // jobs (an array that still waits together is one)
  std::size_t nodes_cleared = 0;
  std::size_t user_held = 0;  // left held, now by Slurm's own hold
  std::size_t left_held = 0;  // by users or admins, as they were
  bool was_stopped = false;
  std::vector<std::string> actions{};   // commands, as they were run
  std::vector<std::string> failures{};  // what Slurm refused
};

[[nodiscard]] Result<Released> release_all(SlurmCommands& commands, const ReleaseOptions& options);

}  // namespace berth::slurm
