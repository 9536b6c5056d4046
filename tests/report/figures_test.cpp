#include "report/figures.h"

#include <algorithm>
#include <cctype>

#include <gtest/gtest.h>

#include "metrics/recorded_run.h"
#include "report/chart.h"

namespace berth::test {
namespace {

/// A small judge of XML: elements nest, attributes are quoted, no stray '<' or '&'. Empty:
/// well-formed.
std::string what_is_wrong(std::string_view xml) {
  std::vector<std::string> open;
  std::size_t i = 0;
  while (i < xml.size()) {
    if (xml[i] == '&') {
      const std::size_t end = xml.find(';', i);
      if (end == std::string_view::npos || end - i > 6) return "stray &";
      i = end + 1;
      continue;
    }
    if (xml[i] != '<') {
      if (open.empty() && std::isspace(static_cast<unsigned char>(xml[i])) == 0)
        return "text outside";
      ++i;
      continue;
    }
    std::size_t end = i + 1;
    for (bool quoted = false; end < xml.size() && (quoted || xml[end] != '>'); ++end) {
      if (xml[end] == '"') quoted = !quoted;
      if (xml[end] == '<') return "< inside a tag";
    }
    if (end >= xml.size()) return "tag never ends";
    std::string_view tag = xml.substr(i + 1, end - i - 1);
    i = end + 1;
    const auto name_of = [](std::string_view text) {
      return std::string(text.substr(0, text.find_first_of(" /\n")));
    };
    if (tag.starts_with('/')) {
      if (open.empty() || open.back() != name_of(tag.substr(1)))
        return "wrong end " + std::string(tag);
      open.pop_back();
      continue;
    }
    if (std::ranges::count(tag, '=') * 2 != std::ranges::count(tag, '"'))
      return "attribute " + std::string(tag);
    if (!tag.ends_with('/')) open.push_back(name_of(tag));
  }
  return open.empty() ? "" : "never closed: " + open.back();
}

std::vector<RunData> three_runs() {
  std::vector<RunData> runs;
  for (const char* policy : {"fifo", "srtf", "sjf"}) {
    runs.push_back(recorded({.policy = policy, .cluster = "1x4", .jobs = t6()})->analysed());
  }
  runs[2].summary.label = "sjf <&> \"quoted\"";
  combine_seeds(runs[1], {runs[1].summary, runs[1].summary, runs[0].summary});
  return runs;
}

TEST(Figures, AreWellFormedAndComplete) {
  const auto all = figures(three_runs());
  std::vector<std::string> names;
  for (const Figure& figure : all) {
    EXPECT_EQ(what_is_wrong(figure.svg), "") << figure.name;
    EXPECT_EQ(figure.svg.find("nan"), std::string::npos) << figure.name;
    EXPECT_EQ(figure.svg.find("inf"), std::string::npos) << figure.name;
    names.push_back(figure.name);
  }
  EXPECT_EQ(names, (std::vector<std::string>{"jct_cdf", "queue_cdf", "avg_jct", "jct_by_size",
                                             "queue_length", "busy_gpus"}));
}

TEST(Figures, CarryUnitsLabelsAndDashes) {
  const auto all = figures(three_runs());
  EXPECT_NE(all[0].svg.find("Job completion time (s)"), std::string::npos);
  EXPECT_NE(all[0].svg.find("srtf"), std::string::npos);
  EXPECT_NE(all[0].svg.find("stroke-dasharray"),
            std::string::npos);  // because print may be black and white
  EXPECT_NE(all[0].svg.find("sans-serif"), std::string::npos);
}

TEST(Figures, OfRunsWithoutAnyEndedJobAreNone) {
  const RunData run =
      recorded({.policy = "fifo", .cluster = "1x2", .jobs = {{0, 4, 1}}})->analysed();
  for (const Figure& figure : figures({&run, 1})) EXPECT_EQ(what_is_wrong(figure.svg), "");
  EXPECT_TRUE(figures({}).empty());
}

TEST(Ticks, AreRoundNumbers) {
  EXPECT_EQ(linear_ticks(0, 10, 5), (std::vector<double>{0, 2, 4, 6, 8, 10}));
  EXPECT_EQ(linear_ticks(0, 1, 4), (std::vector<double>{0, 0.25, 0.5, 0.75, 1}));
  EXPECT_EQ(linear_ticks(3, 3, 4).size(), 1U);
}

TEST(XmlText, EscapesAndReplacesControlCharacters) {
  EXPECT_EQ(xml_text("a<b & \"c\""), "a&lt;b &amp; &quot;c&quot;");
  EXPECT_EQ(xml_text(std::string_view("\x01", 1)), "\xEF\xBF\xBD");
}

TEST(Charts, AcceptDegenerateData) {
  LineChart empty{.title = "t",
                  .x = {.title = "x", .scale = Scale::Log},
                  .y = {.title = "y"},
                  .lines = {{"a", {}}}};
  EXPECT_EQ(what_is_wrong(to_svg(empty)), "");
  LineChart zero{.title = "t",
                 .x = {.title = "x", .scale = Scale::Log},
                 .y = {.title = "y"},
                 .lines = {{"a", {{0, 0}, {0, 1}}}}};
  EXPECT_EQ(what_is_wrong(to_svg(zero)), "");
  EXPECT_EQ(to_svg(zero).find("nan"), std::string::npos);
  EXPECT_EQ(what_is_wrong(to_svg(BarChart{
                .title = "t", .y_title = "y", .x_title = "x", .categories = {}, .series = {}})),
            "");
}

}  // namespace
}  // namespace berth::test
