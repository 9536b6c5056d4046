// `berth slurm VERB`: what is done with a Slurm beside scheduling for it: its past as a trace, its
// settings. A verb is a source file of its own (slurm_VERB.cpp) that defines a SlurmVerb, and a
// line in the table of slurm.cpp; help and completion are made from it. Words are read as those of
// the live commands (client/options.h).
#pragma once

#include <optional>
#include <span>
#include <string_view>

#include "apps/cli.h"
#include "apps/terminal.h"
#include "client/options.h"

namespace berth {

struct SlurmVerb {
  std::string_view name, summary, examples;
  std::span<const client::OptionSpec> options;
  /// Only called when every word was understood. What was misused beyond that is its own matter.
  Exit (*run)(const client::Parsed& given) = nullptr;
  std::string_view operands = {};  // "NODE…"; empty: it takes none
  std::string_view operand_help = {};
};

// One per verb, in the source of its name.
extern const SlurmVerb kSlurmCapture;
extern const SlurmVerb kSlurmReleaseAll;
extern const SlurmVerb kSlurmSetup;
extern const SlurmVerb kSlurmStatus;
extern const SlurmVerb kSlurmWatch;

/// Runs the program if it is called as `berth slurm VERB`; its exit code. Help is not told here.
[[nodiscard]] std::optional<int> run_if_slurm(int argc, const char* const* argv);
/// The group with its verbs, for help and completion.
[[nodiscard]] CliCommand slurm_cli_command();

}  // namespace berth
