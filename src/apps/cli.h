// The command line. Only cli.cpp and command_line*.cpp know the option library; everybody else sees
// plain data: the parsed Command, and a description of all commands and options from which help and
// completion are made.
#pragma once

#include <string>
#include <vector>

#include "apps/options.h"
#include "base/result.h"

namespace berth {

struct CliOption {
  std::vector<std::string> names;  // "-o", "--out"; of an argument without dash its one name
  std::string value;               // what it takes: "FILE", "SECONDS" …; empty for a switch
  std::string help;
  std::string group;
  bool positional = false;
  bool hidden = false;
};

struct CliCommand {
  std::string name;  // "berth", "simulate" …
  std::string summary;
  std::string examples;
  std::vector<CliOption> options;
  std::vector<CliCommand> commands;
};

/// Every complaint names what to do instead; nothing is read or run here.
[[nodiscard]] Result<Command> parse_command_line(int argc, const char* const* argv);

/// Examples first, then every option with its unit and default.
[[nodiscard]] std::string help_text(const CliCommand& root, const CliCommand& command);
/// For bash, zsh or fish: commands, options, and the names that go with them.
[[nodiscard]] Result<std::string> completion_script(const std::string& shell,
                                                    const CliCommand& root);

}  // namespace berth
