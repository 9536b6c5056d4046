// What the report page and summary.json are told, byte for byte.
#include <fmt/format.h>

#include "metrics/recorded_run.h"
#include "report/html.h"
#include "report/run_fields.h"
#include "report/run_json.h"
#include "wire/recorded.h"
#include "wire/shape.h"

namespace berth::test {
namespace {

std::string without_version(std::string text) {
  const std::string version = "berth " BERTH_VERSION;
  for (auto at = text.find(version); at != std::string::npos; at = text.find(version))
    text.replace(at, version.size(), "berth");
  return text;
}

RunData run_of(const std::string& policy) {
  std::vector<JobSpec> jobs;
  for (int i = 0; i < 12; ++i)
    jobs.push_back({.submit = i * 1.25,
                    .gpus = 1 + i % 3,
                    .duration = 7.0 / (i + 1) + 3,
                    .user = i % 2 == 0 ? "ann \"<b>\"" : "bob"});
  jobs.push_back({.submit = 2, .gpus = 64, .duration = 1});  // never fits
  auto run =
      recorded(
          {.policy = policy, .cluster = "1x2:v100,1x4:a100", .placement = "best-fit", .jobs = jobs})
          ->analysed();
  run.trace.name = "odd \\ trace";
  return run;
}

TEST(Wire, TheReportPage) {
  std::vector<RunData> runs{run_of("srtf"), run_of("fifo")};
  std::vector<Summary> seeds(2, runs[1].summary);
  seeds[0].avg_jct = 19;
  seeds[1].avg_jct = 21;
  seeds[1].seed = 7;
  combine_seeds(runs[1], seeds);
  std::string all = report_json(runs, {.title = {}, .baseline = "fifo"}) + "\n";
  all += report_json({runs.data(), 1}, {.title = "<title>", .baseline = {}}) + "\n";
  all += report_json({}, {}) + "\n";
  RunData bare = runs[0];
  bare.timeline.clear();
  bare.gantt.reset();
  all += report_json({&bare, 1}, {}) + "\n";
  expect_recorded("report.txt", without_version(all));

  std::string summaries = summary_json(runs[0], {}) + "\n";
  summaries +=
      summary_json(bare, {.directory = {}, .is_baseline = false, .title = "a title"}) + "\n";
  const std::vector<SummaryExtras> extras{{.directory = "srtf", .is_baseline = false, .title = "t"},
                                          {.directory = "fifo", .is_baseline = true, .title = "t"}};
  summaries += summaries_json(runs, extras) + "\n";
  summaries += summaries_json({}, {}) + "\n";
  expect_recorded("summary.txt", without_version(summaries));
}

/// The page's own sources: the bundle in web/report/dist is built from them.
TEST(Wire, TheTypesOfTheReportPage) {
  const std::array shapes{wire::shape_of<ReportData>()};
  const std::string types =
      "// What stands in the page, as src/report/run_fields.h describes it. Made by report_test, "
      "not\n"
      "// by hand: BERTH_WRITE_GOLDEN=1 build/dev/tests/report_test --gtest_filter='Wire.*'\n\n" +
      wire::typescript(shapes);
  expect_recorded("../../../web/report/src/types.ts", types);
}

}  // namespace
}  // namespace berth::test
