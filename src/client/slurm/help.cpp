#include "client/slurm/help.h"

#include <fmt/format.h>

#include "base/split.h"
#include "client/slurm_names.h"

namespace berth::client::slurm {

namespace {

std::string usage_line(const HelpPage& page) {
  return fmt::format("{} [OPTIONS]{}{}", page.name, page.operands.empty() ? "" : " ",
                     page.operands);
}

std::string option_lines(std::span<const OptionSpec> options) {
  std::string text;
  for (const OptionSpec& option : options) {
    if (option.help.empty()) continue;
    std::string left = option.letter != 0 ? fmt::format("-{}", option.letter) : "  ";
    if (!option.name.empty())
      left += fmt::format("{} --{}", option.letter != 0 ? "," : " ", option.name);
    if (!option.value.empty())
      left += option.takes == Takes::Maybe ? fmt::format("[={}]", option.value)
                                           : fmt::format("={}", option.value);
    text += left.size() > 31 ? fmt::format("  {}\n  {:31} {}\n", left, "", option.help)
                             : fmt::format("  {:<31} {}\n", left, option.help);
  }
  return text;
}

}  // namespace

std::string help_text(const HelpPage& page, std::span<const OptionSpec> options) {
  std::string text = fmt::format("{} - {}\n\nUsage: {}\n\nOptions:\n{}", page.name, page.summary,
                                 usage_line(page), option_lines(options));
  if (!page.more.empty()) text += fmt::format("\n{}\n", page.more);
  if (!page.examples.empty()) {
    text += "\nExamples:\n";
    for (const std::string_view line : split(page.examples, '\n'))
      text += fmt::format("  {}\n", line);
  }
  return text +
         "\nThis is Berth: `berth --help` tells its own commands, docs/slurm-commands.md what each "
         "option does here.\n";
}

std::optional<int> usual_answer(const Parsed& parsed, const HelpPage& page,
                                std::span<const OptionSpec> options, Console& console) {
  if (parsed.has("help")) return console.put(help_text(page, options)), console.done();
  if (parsed.has("usage"))
    return console.put(slurm_usage(page.name, page.operands, options)), console.done();
  if (parsed.has("version")) return console.put("berth " BERTH_VERSION "\n"), console.done();
  return complaint(parsed, console);
}

}  // namespace berth::client::slurm
