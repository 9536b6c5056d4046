#include "apps/cli.h"
#include "apps/commands.h"
#include "apps/live.h"
#include "apps/slurm.h"

int main(int argc, char** argv) {
  berth::ignore_broken_pipes();
  if (const auto code = berth::run_if_live(argc, argv)) return *code;
  if (const auto code = berth::run_if_slurm(argc, argv)) return *code;
  const auto command = berth::parse_command_line(argc, argv);
  if (!command) return static_cast<int>(complain(berth::Exit::Misuse, command.error()));
  return static_cast<int>(
      std::visit([](const auto& options) { return berth::execute(options); }, *command));
}
