#include <algorithm>

#include <fmt/format.h>

#include "apps/cli.h"
#include "base/text_table.h"

namespace berth {

namespace {

constexpr std::size_t kColumn = 30;
constexpr std::size_t kWidth = 100;

std::string wrapped(std::string_view text, std::size_t indent) {
  std::string result;
  std::size_t column = indent;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find(' ', begin), text.size());
    const std::string_view word = text.substr(begin, end - begin);
    begin = end + 1;
    const std::size_t width = display_width(word);
    if (column > indent && column + 1 + width > kWidth) {
      result += '\n' + std::string(indent, ' ');
      column = indent;
    }
    if (column > indent) {
      result += ' ';
      ++column;
    }
    result += word;
    column += width;
  }
  return result;
}

std::string entry(const std::string& left, const std::string& right) {
  std::string line = "  " + left;
  if (line.size() + 2 > kColumn)
    line += '\n' + std::string(kColumn, ' ');
  else
    line.append(kColumn - line.size(), ' ');
  return line + wrapped(right, kColumn) + '\n';
}

std::string left_side(const CliOption& option) {
  if (option.positional) return option.names.front();
  const std::string names = fmt::format("{}", fmt::join(option.names, ", "));
  return option.value.empty() ? names : names + " " + option.value;
}

std::string usage(const CliCommand& root, const CliCommand& command) {
  if (&root == &command) return "berth COMMAND [OPTIONS]";
  std::string text = "berth " + command.name;
  if (!command.commands.empty()) text += " COMMAND";
  for (const CliOption& option : command.options) {
    if (!option.positional) continue;
    const std::string& name =
        option.names.front();  // a live command says itself what may be left out
    text += name.find_first_of("[ …|") == std::string::npos ? " [" + name + "]" : " " + name;
  }
  return text + " [OPTIONS]";
}

}  // namespace

std::string help_text(const CliCommand& root, const CliCommand& command) {
  std::string text = fmt::format("berth{}: {}\n\nExamples\n",
                                 &root == &command ? "" : " " + command.name, command.summary);
  for (std::size_t begin = 0; begin < command.examples.size();) {
    const std::size_t end = std::min(command.examples.find('\n', begin), command.examples.size());
    text += "  " + command.examples.substr(begin, end - begin) + '\n';
    begin = end + 1;
  }
  text += "\nUsage\n  " + usage(root, command) + '\n';
  if (!command.commands.empty())
    text += fmt::format("\nCommands (`berth {}COMMAND --help` tells more)\n",
                        &root == &command ? "" : command.name + " ");
  for (const CliCommand& sub : command.commands) text += entry(sub.name, sub.summary);

  std::vector<std::string> groups;
  for (const CliOption& option : command.options) {
    if (std::ranges::find(groups, option.group) == groups.end()) groups.push_back(option.group);
  }
  for (const std::string& group : groups) {
    text += fmt::format("\n{}\n", group);
    for (const CliOption& option : command.options) {
      if (option.group == group) text += entry(left_side(option), option.help);
    }
  }
  if (&root != &command)
    text +=
        "\nTimes are seconds, or carry a unit: 90, 90s, 5m, 2h, 1d. Exit: 0 success, 1 failure, 2 "
        "misuse.\n";
  return text;
}

}  // namespace berth
