// The program under Slurm's names: sbatch, srun, squeue, scontrol and the like. The options people's fingers
// know, the columns their scripts cut.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "client/console.h"
#include "client/options.h"

namespace berth::client {

/// Whether the program was called by one of these names: argv[0], with or without a path.
[[nodiscard]] bool is_slurm_name(std::string_view program);
/// The words behind the name; answers the exit code.
[[nodiscard]] int run_slurm_name(std::string_view program, std::span<const std::string> words);

[[nodiscard]] int run_sbatch(std::span<const std::string> words, Console& console);
[[nodiscard]] int run_srun(std::span<const std::string> words, Console& console);
[[nodiscard]] int run_squeue(std::span<const std::string> words, Console& console);
[[nodiscard]] int run_scancel(std::span<const std::string> words, Console& console);
[[nodiscard]] int run_sacct(std::span<const std::string> words, Console& console);
[[nodiscard]] int run_scontrol(std::span<const std::string> words, Console& console);
[[nodiscard]] int run_seff(std::span<const std::string> words, Console& console);
[[nodiscard]] int run_sprio(std::span<const std::string> words, Console& console);
[[nodiscard]] int run_sshare(std::span<const std::string> words, Console& console);
[[nodiscard]] int run_sstat(std::span<const std::string> words, Console& console);
[[nodiscard]] int run_sinfo(std::span<const std::string> words, Console& console);

/// Usage and options of such a command.
[[nodiscard]] std::string slurm_help(std::string_view usage, std::span<const OptionSpec> options);
/// The options in a paragraph: "Usage: sbatch [--account=NAME] … [SCRIPT [ARGS…]]".
[[nodiscard]] std::string slurm_usage(std::string_view program, std::string_view operands,
                                      std::span<const OptionSpec> options);
/// Complaints about words, or nothing.
[[nodiscard]] std::optional<int> complaint(const Parsed& parsed, const Console& console);

}  // namespace berth::client
