#include "apps/slurm.h"

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "base/suggest.h"

namespace berth {

namespace {

// Pointers, because the verbs live in other sources and are made in no particular order.
constexpr std::array kVerbs{
    &kSlurmCapture, &kSlurmSetup, &kSlurmStatus, &kSlurmReleaseAll, &kSlurmWatch,
};

std::vector<std::string> verb_names() {
  std::vector<std::string> names;
  for (const SlurmVerb* verb : kVerbs) names.emplace_back(verb->name);
  return names;
}

CliOption option_of(const client::OptionSpec& spec) {
  CliOption option;
  if (spec.letter != 0) option.names.push_back(std::string{'-', spec.letter});
  if (!spec.name.empty()) option.names.push_back("--" + std::string(spec.name));
  option.value = std::string(spec.value);
  option.help = std::string(spec.help);
  option.group = std::string(spec.group);
  return option;
}

CliOption operand_of(std::string_view name, std::string_view value, std::string_view help) {
  CliOption operand;
  operand.names = {std::string(name)};
  operand.value = std::string(value);
  operand.help = std::string(help);
  operand.group = "Operands";
  operand.positional = true;
  return operand;
}

CliOption help_option() {
  CliOption option;
  option.names = {"-h", "--help"};
  option.help = "this text";
  option.group = "Output";
  return option;
}

CliCommand command_of(const SlurmVerb& verb) {
  CliCommand command{
      std::string(verb.name), std::string(verb.summary), std::string(verb.examples), {}, {}};
  if (!verb.operands.empty())
    command.options.push_back(operand_of(verb.operands, "", verb.operand_help));
  for (const client::OptionSpec& spec : verb.options) command.options.push_back(option_of(spec));
  command.options.push_back(help_option());
  return command;
}

Exit run_verb(const SlurmVerb& verb, std::span<const std::string> words) {
  const client::Parsed given =
      client::parse_options(verb.options, words, client::OperandOrder::Mixed);
  Error error;
  for (const client::OptionFault& fault : given.faults)
    error.messages.push_back(
        fmt::format("slurm {0}: {1} (see `berth slurm {0} --help`)", verb.name, fault.text));
  if (verb.operands.empty() && !given.operands.empty())
    error.messages.push_back(fmt::format("slurm {0}: takes no '{1}' (see `berth slurm {0} --help`)",
                                         verb.name, given.operands.front()));
  if (!error.messages.empty()) return complain(Exit::Misuse, error);
  return verb.run(given);
}

bool wants_help(std::span<const std::string> words) {
  return std::ranges::any_of(
      words, [](const std::string& word) { return word == "--help" || word == "-h"; });
}

}  // namespace

std::optional<int> run_if_slurm(int argc, const char* const* argv) {
  if (argc < 2 || std::string_view(argv[1]) != "slurm") return std::nullopt;
  const std::vector<std::string> words(argv + 2, argv + argc);
  if (wants_help(words)) return std::nullopt;  // told by the command line
  if (words.empty())
    return static_cast<int>(
        complain(Exit::Misuse, fmt::format("slurm: do what? One of {} (see `berth slurm --help`)",
                                           fmt::join(verb_names(), ", "))));
  const auto found = std::ranges::find(kVerbs, words.front(), &SlurmVerb::name);
  if (found == kVerbs.end())
    return static_cast<int>(
        complain(Exit::Misuse, fmt::format("slurm: no command is called '{}'{}", words.front(),
                                           suggestion(words.front(), verb_names()))));
  return static_cast<int>(run_verb(**found, std::span(words).subspan(1)));
}

CliCommand slurm_cli_command() {
  CliCommand group{
      "slurm", "commands around a Slurm: its past as a trace, its settings", "", {}, {}};
  for (const SlurmVerb* verb : kVerbs) {
    group.examples += (group.examples.empty() ? "" : "\n") + std::string(verb->examples);
    group.commands.push_back(command_of(*verb));
  }
  group.options.push_back(help_option());
  return group;
}

}  // namespace berth
