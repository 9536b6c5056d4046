#include "apps/cli.h"

#include <algorithm>
#include <cctype>

#include <fmt/format.h>

#include "apps/command_line.h"
#include "base/suggest.h"

namespace berth {

namespace {

std::vector<std::string> names_of(const std::vector<CliCommand>& commands) {
  std::vector<std::string> names;
  for (const CliCommand& command : commands) names.push_back(command.name);
  return names;
}

/// Options nobody knows, each with the nearest that exist: the library would name only the first.
Result<void> check_options(const CliCommand& command, const std::vector<std::string>& arguments) {
  std::vector<std::string> known;
  for (const CliOption& option : command.options) {
    if (!option.positional) known.insert(known.end(), option.names.begin(), option.names.end());
  }
  Error error;
  for (const std::string& argument : arguments) {
    if (argument == "--") break;
    if (argument.size() < 2 || argument[0] != '-' ||
        std::isdigit(static_cast<unsigned char>(argument[1])) != 0 || argument[1] == '.')
      continue;
    const std::string name =
        argument[1] == '-' ? argument.substr(0, argument.find('=')) : argument.substr(0, 2);
    if (std::ranges::find(known, name) != known.end()) continue;
    const auto near = nearest_names(name, known);
    error.messages.push_back(
        fmt::format("{}: no option is called '{}'{}", command.name, name,
                    near.empty() ? fmt::format(" (see `berth {} --help`)", command.name)
                                 : fmt::format(" (did you mean {}?)", fmt::join(near, ", "))));
  }
  if (!error.messages.empty()) return tl::unexpected<Error>(std::move(error));
  return {};
}

/// `slurm` or, if the next word is one of its own commands, that one under both names.
CliCommand named_by(const CliCommand& command, const std::vector<std::string>& words) {
  for (const std::string& word : words) {
    const auto below = std::ranges::find(command.commands, word, &CliCommand::name);
    if (below == command.commands.end()) continue;
    CliCommand named = *below;
    named.name = command.name + " " + below->name;
    return named;
  }
  return command;
}

bool asks_for_help(const std::vector<std::string>& arguments) {
  return std::ranges::any_of(arguments, [](const std::string& argument) {
    return argument == "--help" || argument == "-h";
  });
}

}  // namespace

Result<Command> parse_command_line(int argc, const char* const* argv) {
  try {  // the option library throws; nothing of it leaves this function
    CommandLine line;
    const CliCommand root = line.describe();
    std::vector<std::string> arguments(argv + 1, argv + argc);
    if (arguments.empty()) return fail("no command\n\n" + help_text(root, root));
    std::string first = arguments.front();
    if (first == "help" && arguments.size() > 1) {
      first = arguments[1];
      arguments.erase(arguments.begin());
      arguments.emplace_back("--help");
    }
    if (first == "--help" || first == "-h" || first == "help")
      return PrintOptions{help_text(root, root)};
    if (!first.starts_with('-')) {
      const auto command = std::ranges::find(root.commands, first, &CliCommand::name);
      if (command == root.commands.end()) {
        return fail(fmt::format("no command is called '{}'{}", first,
                                suggestion(first, names_of(root.commands))));
      }
      if (asks_for_help(arguments)) {
        return PrintOptions{help_text(root, named_by(*command, arguments))};
      }
      BERTH_TRY_VOID(check_options(*command, {arguments.begin() + 1, arguments.end()}));
    } else {
      BERTH_TRY_VOID(check_options(root, {first}));
    }
    line.parse(argc, argv);
    if (line.version_asked()) return PrintOptions{"berth " BERTH_VERSION "\n"};
    return line.command();
  } catch (const CLI::ParseError& problem) {
    return fail(fmt::format("{} (see `berth {}--help`)", problem.what(),
                            argc > 1 && argv[1][0] != '-' ? std::string(argv[1]) + " " : ""));
  } catch (const std::exception& problem) {
    return fail(problem.what());
  }
}

}  // namespace berth
