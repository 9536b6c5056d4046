// The page opens with its data: JSON in the place of the token, nothing that ends the script
// element early.
#include "report/html.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "metrics/recorded_run.h"

namespace berth::test {
namespace {

using nlohmann::json;

RunData t6_run(const std::string& policy, const std::string& user = {}) {
  std::vector<JobSpec> jobs = t6();
  for (JobSpec& job : jobs) job.user = user;
  return recorded({.policy = policy, .cluster = "1x4:v100", .placement = "best-fit", .jobs = jobs})
      ->analysed();
}

TEST(ReportPage, HoldsItsTokenOnce) {
  const std::size_t first = report_page().find(kDataToken);
  ASSERT_NE(first, std::string_view::npos);
  EXPECT_EQ(report_page().find(kDataToken, first + 1), std::string_view::npos);
}

TEST(ReportHtml, HasNoTokenLeftAndValidJsonInItsPlace) {
  const std::vector<RunData> runs{t6_run("fifo", "</script><script>alert(1)"), t6_run("srtf")};
  const std::string html = report_html(runs, {.title = {}, .baseline = "fifo"});
  EXPECT_EQ(html.find(kDataToken), std::string::npos);
  const std::size_t at = report_page().find(kDataToken);
  const std::size_t length = html.size() - (report_page().size() - kDataToken.size());
  const json data = json::parse(html.substr(at, length));
  EXPECT_EQ(data["version"], 1);
  EXPECT_EQ(data["baseline"], "fifo");
  EXPECT_EQ(data["runs"].size(), 2U);
  EXPECT_EQ(html.substr(at, length).find('<'), std::string::npos)
      << "a name cannot end the script element";
  EXPECT_EQ(data["runs"][0]["by_user"][0]["label"], "</script><script>alert(1)");
}

TEST(ReportJson, HasTheShapeThePageExpects) {
  const std::vector<RunData> runs{t6_run("srtf", "ann")};
  const json data = json::parse(report_json(runs, {}));
  EXPECT_TRUE(data["baseline"].is_null());
  EXPECT_EQ(data["trace"]["jobs"], 6);
  EXPECT_EQ(data["trace"]["gpu_seconds"], 93);
  EXPECT_EQ(data["trace"]["span"], 5);
  EXPECT_EQ(data["cluster"]["gpus"], 4);
  EXPECT_EQ(data["cluster"]["types"][0]["type"], "v100");
  const json& run = data["runs"][0];
  EXPECT_EQ(run["policy"], "srtf");
  EXPECT_EQ(run["summary"]["preemptions"], 3);
  EXPECT_EQ(run["summary"].size(), metrics().size());
  EXPECT_TRUE(run["confidence"].is_null());
  for (const char* kind : {"jct", "queue", "slowdown", "ftf"}) {
    ASSERT_EQ(run["cdf"][kind]["x"].size(), 6U) << kind;
    EXPECT_EQ(run["cdf"][kind]["p"][5], 1);
  }
  const json& timeline = run["timeline"];
  for (const char* column : {"queue", "queued_gpus", "busy", "running", "capacity"}) {
    EXPECT_EQ(timeline[column].size(), timeline["t"].size()) << column;
  }
  EXPECT_EQ(timeline["capacity"][0], 4);
  const json& gantt = run["gantt"];
  for (const char* column : {"start", "end", "job", "kind"})
    EXPECT_EQ(gantt[column].size(), gantt["lane"].size()) << column;
  EXPECT_EQ(gantt["shown"], gantt["lane"].size());
  EXPECT_EQ(gantt["nodes"][0]["gpus"], 4);
  EXPECT_EQ(gantt["jobs"].size(), 6U);
  double area = 0;
  for (std::size_t i = 0; i < gantt["lane"].size(); ++i) {
    EXPECT_LT(gantt["lane"][i].get<int>(), 4);
    area += gantt["end"][i].get<double>() - gantt["start"][i].get<double>();
  }
  EXPECT_DOUBLE_EQ(area, 93);  // GPU-seconds of the trace, no overhead
  EXPECT_EQ(run["by_size"][0]["label"], "1");
  EXPECT_EQ(run["by_user"][0]["jobs"], 6);
  std::size_t jobs = 0;
  for (const json& entry : run["preemption_histogram"]) jobs += entry[1].get<std::size_t>();
  EXPECT_EQ(jobs, 6U);
}

TEST(ReportJson, SeedsBecomeConfidenceIntervals) {
  RunData run = t6_run("fifo");
  std::vector<Summary> seeds(2, run.summary);
  seeds[0].avg_jct = 19;
  seeds[1].avg_jct = 21;
  combine_seeds(run, seeds);
  const json data = json::parse(report_json({&run, 1}, {}));
  const json& interval = data["runs"][0]["confidence"]["avg_jct"];
  // mean 20, s = sqrt(2), t(1) = 12.7062: half width 12.7062 x sqrt(2) / sqrt(2)
  EXPECT_NEAR(interval[0].get<double>(), 20 - 12.7062, 1e-9);
  EXPECT_NEAR(interval[1].get<double>(), 20 + 12.7062, 1e-9);
}

TEST(ReportJson, LeavesOutGanttsThatWouldMakeThePageTooLarge) {
  RunData run = t6_run("fifo");
  const std::vector<GanttBar> few = run.gantt->bars;
  while (run.gantt->bars.size() < kMaxGanttBars)
    run.gantt->bars.insert(run.gantt->bars.end(), few.begin(), few.end());
  const std::vector<RunData> runs(12, run);
  const std::string text = report_json(runs, {});
  EXPECT_LT(text.size() + report_page().size(), 25'000'000U);
  const json data = json::parse(text);
  EXPECT_FALSE(data["runs"][0]["gantt"].is_null());
  EXPECT_TRUE(data["runs"][11]["gantt"].is_null());
}

TEST(ReportJson, ManagesARunInWhichNothingRan) {
  const RunData run =
      recorded({.policy = "fifo", .cluster = "1x2", .jobs = {{0, 4, 1}}})->analysed();
  const json data = json::parse(report_json({&run, 1}, {}));
  EXPECT_TRUE(data["runs"][0]["summary"]["avg_jct"].is_null());
  EXPECT_EQ(data["runs"][0]["rejected"][0]["job"], "1");
}

}  // namespace
}  // namespace berth::test
