#include "lab/reproduction.h"

#include <algorithm>
#include <chrono>
#include <filesystem>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "apps/commands.h"
#include "base/suggest.h"
#include "base/text_table.h"

namespace berth {

namespace {

std::string list() {
  TextTable table({{"name", Align::Left}, {"data", Align::Left}, {"paper", Align::Left}});
  for (const Reproduction& one : reproductions())
    table.add_row({one.name, one.needs.empty() ? "none" : "needed", one.paper});
  return table.str() + "\n`berth reproduce NAME` runs one, `berth reproduce all` each of them.\n";
}

std::string as_text(const Reproduction& one, const Reproduced& result) {
  TextTable table({{"figure", Align::Left},
                   {"published", Align::Left},
                   {"ours", Align::Left},
                   {"why they differ", Align::Left}});
  for (const ReproducedFigure& figure : result.figures)
    table.add_row({figure.what, figure.published, figure.ours, figure.why});
  std::string text =
      fmt::format("{}: {}\nsetting: {}\n\n{}", one.name, one.paper, result.setting, table.str());
  for (const std::string& note : result.notes) text += fmt::format("note: {}\n", note);
  return text + "\n";
}

std::string as_markdown(const Reproduction& one, const Reproduced& result) {
  std::string text =
      fmt::format("## {}\n\n{}.\n\nSetting: {}\n\n", one.name, one.paper, result.setting);
  text += "| Figure | Published | Ours | Why they differ |\n|---|---|---|---|\n";
  for (const ReproducedFigure& figure : result.figures) {
    text += fmt::format("| {} | {} | {} | {} |\n", figure.what, figure.published, figure.ours,
                        figure.why);
  }
  text += '\n';
  for (const std::string& note : result.notes) text += fmt::format("{}\n\n", note);
  return text;
}

/// One row for each reproduction that ran.
class SumTable {
 public:
  void add(const Reproduction& one, const Headline& headline) {
    rows_.push_back(
        {one.name, headline.published, headline.ours, std::string(to_string(headline.verdict))});
  }
  [[nodiscard]] std::string as_text() const {
    TextTable table({{"name", Align::Left},
                     {"published", Align::Left},
                     {"ours", Align::Left},
                     {"verdict", Align::Left}});
    for (const auto& row : rows_) table.add_row(row);
    return table.str();
  }
  [[nodiscard]] std::string as_markdown() const {
    std::string text =
        "## In one table\n\n| Name | Published | Ours | Verdict |\n|---|---|---|---|\n";
    for (const auto& row : rows_) text += fmt::format("| {} |\n", fmt::join(row, " | "));
    return text;
  }

 private:
  std::vector<std::vector<std::string>> rows_;
};

/// What it needs and the data folder does not have.
std::vector<std::string> missing(const Reproduction& one, const std::string& data) {
  std::vector<std::string> lacking;
  for (const std::string& path : one.needs) {
    std::error_code ignored;
    if (data.empty() || !std::filesystem::exists(data + "/" + path, ignored))
      lacking.push_back(path);
  }
  return lacking;
}

std::string complaint(const Reproduction& one, const std::string& data,
                      const std::vector<std::string>& lacking) {
  if (data.empty()) return fmt::format("{} needs public data (give --data DIR)", one.name);
  return fmt::format("{} needs {}, which {} does not have", one.name, fmt::join(lacking, ", "),
                     data);
}

Result<std::vector<const Reproduction*>> chosen(const ReproduceCommand& command) {
  std::vector<const Reproduction*> some;
  std::vector<std::string> names{"all"};
  for (const Reproduction& one : reproductions()) {
    names.push_back(one.name);
    if (command.name != "all" && command.name != one.name) continue;
    if (const auto lacking = missing(one, command.data); !lacking.empty()) {
      const std::string text = complaint(one, command.data, lacking);
      if (command.name != "all") return fail(text);
      print_note("skipped: " + text);
      continue;
    }
    some.push_back(&one);
  }
  if (some.empty() && command.name != "all")
    return fail(fmt::format("no reproduction is called '{}'{}", command.name,
                            suggestion(command.name, names)));
  return some;
}

}  // namespace

Exit execute(const ReproduceCommand& command) {
  if (command.name.empty()) return write_stdout(list());
  const auto some = chosen(command);
  if (!some) return complain(Exit::Misuse, some.error());
  const ReproduceOptions options{
      .data = command.data, .quick = command.quick, .seed = command.seed};
  SumTable sum;
  for (const Reproduction* one : *some) {
    const auto began = std::chrono::steady_clock::now();
    const auto result = one->run(options);
    if (!result) return complain(Exit::Failure, result.error());
    const std::chrono::duration<double> wall = std::chrono::steady_clock::now() - began;
    const std::string text = command.markdown ? as_markdown(*one, *result) : as_text(*one, *result);
    if (const Exit exit = write_stdout(text); exit != Exit::Success) return exit;
    sum.add(*one, result->headline);
    print_note(fmt::format("{}: {:.1f} s", one->name, wall.count()));
  }
  if (command.name != "all") return Exit::Success;
  return write_stdout(command.markdown ? sum.as_markdown() : sum.as_text());
}

}  // namespace berth
