#include "apps/cli.h"
#include "apps/commands.h"

int main(int argc, char** argv) {
  berth::ignore_broken_pipes();
  const auto command = berth::parse_command_line(argc, argv);
  if (!command) return static_cast<int>(complain(berth::Exit::Misuse, command.error()));
  return static_cast<int>(
      std::visit([](const auto& options) { return berth::execute(options); }, *command));
}
