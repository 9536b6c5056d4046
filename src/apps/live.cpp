#include "apps/live.h"

#include <span>
#include <string>

#include "apps/step_host.h"
#include "client/commands.h"
#include "client/slurm_names.h"

namespace berth {

namespace {

CliOption described(const client::OptionSpec& spec) {
  CliOption option;
  if (spec.letter != 0) option.names.push_back(std::string{'-', spec.letter});
  if (!spec.name.empty()) option.names.push_back("--" + std::string(spec.name));
  option.value = std::string(spec.value);
  option.help = std::string(spec.help);
  option.group = std::string(spec.group);
  return option;
}

}  // namespace

std::vector<CliCommand> live_cli_commands() {
  std::vector<CliCommand> all;
  for (const client::LiveCommand& live : client::live_commands()) {
    CliCommand command{
        std::string(live.name), std::string(live.summary), std::string(live.examples), {}, {}};
    if (!live.operands.empty()) {
      CliOption operand;
      operand.names = {std::string(live.operands)};
      operand.value = live.name == "submit" ? "FILE" : "";
      operand.help = std::string(live.operand_help);
      operand.group = "Operands";
      operand.positional = true;
      command.options.push_back(std::move(operand));
    }
    for (const client::OptionSpec& spec : live.options) command.options.push_back(described(spec));
    all.push_back(std::move(command));
  }
  return all;
}

std::optional<int> run_if_live(int argc, const char* const* argv) {
  if (argc < 1) return std::nullopt;
  const std::vector<std::string> words(argv + 1, argv + argc);
  if (client::is_slurm_name(argv[0])) return client::run_slurm_name(argv[0], words);
  if (!words.empty() && words.front() == "step-host")
    return run_step_host(std::span(words.begin() + 1, words.end()));
  const auto* command = words.empty() ? nullptr : client::find_live_command(words.front());
  if (command == nullptr) return std::nullopt;
  const std::span rest(words.begin() + 1, words.end());
  if (client::asks_for_help(*command, rest)) return std::nullopt;  // told by the command line
  client::Console console("berth");
  return client::run_live(*command, rest, console);
}

}  // namespace berth
