// The commands of the live scheduler, as the program, its help and its completion see them. What
// they do, and how they read their words, is in client/; help for them comes with everybody's.
#pragma once

#include <optional>
#include <vector>

#include "apps/cli.h"

namespace berth {

/// Runs the program if it is called by one of Slurm's names or with a live command; its exit code.
[[nodiscard]] std::optional<int> run_if_live(int argc, const char* const* argv);
[[nodiscard]] std::vector<CliCommand> live_cli_commands();

}  // namespace berth
