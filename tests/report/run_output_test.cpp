// The files of a run: contents, round trip, and which directories are refused.
#include "report/run_output.h"

#include <filesystem>
#include <fstream>
#include <sstream>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "metrics/recorded_run.h"
#include "report/csv.h"
#include "report/read_run.h"
#include "report/run_files.h"

namespace berth::test {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::StartsWith;

std::string slurp(const fs::path& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

void spill(const fs::path& path, const std::string& text) {
  fs::create_directories(path.parent_path());
  std::ofstream(path) << text;
}

class OnDisk : public ::testing::Test {
 protected:
  void SetUp() override {
    root_ = fs::temp_directory_path() /
            fmt::format("berth-report-{}-{}", ::getpid(),
                        ::testing::UnitTest::GetInstance()->current_test_info()->name());
    fs::remove_all(root_);
    fs::create_directories(root_);
  }
  void TearDown() override { fs::remove_all(root_); }
  [[nodiscard]] std::string path(const std::string& name) const { return (root_ / name).string(); }
  [[nodiscard]] std::size_t entries() const {
    return static_cast<std::size_t>(std::distance(fs::directory_iterator(root_), {}));
  }
  fs::path root_;
};

RunData t6_under(const std::string& policy) {
  std::vector<JobSpec> jobs = t6();
  jobs[0].user = "a, \"b\"";  // a field that needs quotes
  return recorded({.policy = policy, .cluster = "2x2:v100", .placement = "count", .jobs = jobs})
      ->analysed();
}

TEST(CsvText, SecondsLoseNothing) {
  EXPECT_EQ(seconds_text(seconds_to_duration(12)), "12");
  EXPECT_EQ(seconds_text(seconds_to_duration(12.5)), "12.5");
  EXPECT_EQ(seconds_text(Duration{1}), "0.000001");
  EXPECT_EQ(seconds_text(Duration{-1'500'000}), "-1.5");
  EXPECT_EQ(seconds_text(Duration{-1}), "-0.000001");
}

TEST(JobsCsv, HasTheContractsColumnsFirst) {
  const std::string csv = jobs_csv(t6_under("fifo"));
  std::istringstream lines(csv);
  std::string line;
  std::getline(lines, line);
  EXPECT_THAT(line, StartsWith("job_id,submit_time,start_time,finish_time,jct,queue_time,run_time,"
                               "gpus,preemptions,migrations,status,"));
  std::getline(lines, line);
  EXPECT_THAT(line, StartsWith("1,0,0,10,10,0,10,3,0,0,completed,\"a, \"\"b\"\"\","));
  std::getline(lines, line);
  EXPECT_THAT(line, StartsWith("2,1,10,14,13,9,4,2,0,0,completed,"));
}

TEST(JobsCsv, LeavesEmptyWhatNeverHappened) {
  const RunData run =
      recorded({.policy = "fifo", .cluster = "1x4", .jobs = {{0, 1, 5}, {1, 9, 5}}})->analysed();
  EXPECT_THAT(jobs_csv(run), HasSubstr("\n2,1,,,,,0,9,0,0,rejected,"));
}

TEST(ActionsCsv, SaysWhere) {
  const RunData run =
      recorded({.policy = "fifo", .cluster = "2x4", .placement = "best-fit", .jobs = {{0, 6, 5}}})
          ->analysed();
  const std::string node = run.cluster.nodes[0].name;
  EXPECT_THAT(actions_csv(run), StartsWith("time,action,reason,job_id,gpus,nodes\n0,start,"));
  EXPECT_THAT(actions_csv(run), HasSubstr(",1,6," + node + ":0-3;"));
}

TEST_F(OnDisk, WritesEveryFileOfTheContract) {
  ASSERT_TRUE(write_run(path("out"), t6_under("fifo")));
  for (const char* name :
       {"jobs.csv", "summary.json", "actions.csv", "timeline.csv", "report.html"}) {
    EXPECT_TRUE(fs::exists(root_ / "out" / name)) << name;
  }
  EXPECT_EQ(entries(), 1U) << "the temporary directory is gone";
  const std::string summary = slurp(root_ / "out/summary.json");
  EXPECT_THAT(
      summary,
      StartsWith(
          "{\n  \"policy\": \"fifo\",\n  \"jobs\": 6,\n  \"finished\": 6,\n  \"avg_jct\": 20,\n"));
  EXPECT_THAT(summary, HasSubstr("\"gpu_utilization\": 0.70454545"));
}

TEST_F(OnDisk, ReadsBackWhatItWrote) {
  const RunData wrote = t6_under("srtf");
  ASSERT_TRUE(write_run(path("out"), wrote, {.title = "a title", .baseline = {}}));
  const auto set = read_runs(path("out"));
  ASSERT_TRUE(set) << set.error().text();
  ASSERT_EQ(set->runs.size(), 1U);
  EXPECT_EQ(set->labels.title, "a title");
  const RunData& got = set->runs[0];
  for (const Metric& metric : metrics())
    EXPECT_EQ(got.summary.*metric.field, wrote.summary.*metric.field) << metric.name;
  EXPECT_EQ(got.summary.digest, wrote.summary.digest);
  EXPECT_EQ(got.summary.policy, "srtf");
  EXPECT_EQ(got.jct.x, wrote.jct.x);
  EXPECT_EQ(got.queue_time.x, wrote.queue_time.x);
  EXPECT_EQ(got.slowdown.x, wrote.slowdown.x);
  EXPECT_EQ(got.ftf.x, wrote.ftf.x);
  EXPECT_EQ(got.preemption_histogram, wrote.preemption_histogram);
  ASSERT_EQ(got.jobs.rows.size(), 6U);
  EXPECT_EQ(got.jobs.names.text(got.jobs.rows[0].user), "a, \"b\"");
  ASSERT_EQ(got.timeline.size(), wrote.timeline.size());
  for (std::size_t i = 0; i < got.timeline.size(); ++i) {
    EXPECT_EQ(got.timeline[i].at, wrote.timeline[i].at);
    EXPECT_EQ(got.timeline[i].levels, wrote.timeline[i].levels);
  }
  ASSERT_TRUE(got.gantt);
  ASSERT_EQ(got.gantt->bars.size(), wrote.gantt->bars.size());
  for (std::size_t i = 0; i < got.gantt->bars.size(); ++i) {
    EXPECT_EQ(got.gantt->bars[i].lane, wrote.gantt->bars[i].lane);
    EXPECT_EQ(got.gantt->bars[i].start, wrote.gantt->bars[i].start);
    EXPECT_EQ(got.gantt->jobs[got.gantt->bars[i].job].id,
              wrote.gantt->jobs[wrote.gantt->bars[i].job].id);
  }
  EXPECT_EQ(got.cluster.gpus, 4);
  EXPECT_EQ(got.cluster.types, wrote.cluster.types);
}

TEST_F(OnDisk, AComparisonHasADirectoryPerPolicyAndAReportOnTop) {
  std::vector<RunData> runs{t6_under("fifo"), t6_under("srtf")};
  combine_seeds(runs[1], {runs[1].summary, runs[1].summary});
  ASSERT_TRUE(write_comparison(path("out"), runs, {.title = {}, .baseline = "fifo"}));
  for (const char* name : {"summary.json", "comparison.csv", "report.html", "fifo/jobs.csv",
                           "srtf/summary.json", "srtf/timeline.csv"}) {
    EXPECT_TRUE(fs::exists(root_ / "out" / name)) << name;
  }
  const auto set = read_runs(path("out"));
  ASSERT_TRUE(set) << set.error().text();
  ASSERT_EQ(set->runs.size(), 2U);
  EXPECT_EQ(set->labels.baseline, "fifo");
  EXPECT_EQ(set->runs[1].summary.preemptions, 3);
  EXPECT_EQ(set->runs[1].seeds.size(), 2U);
  EXPECT_TRUE(confidence_of(set->runs[1], *find_metric("avg_jct")));

  const std::string before = slurp(root_ / "out/report.html");
  fs::remove(root_ / "out/report.html");
  ASSERT_TRUE(rebuild_report(path("out")));
  EXPECT_EQ(slurp(root_ / "out/report.html"), before) << "rebuilt from files, the page is the same";
  EXPECT_TRUE(fs::exists(root_ / "out/figures/jct_cdf.svg"));
}

TEST_F(OnDisk, AnEarlierRunIsReplacedWhole) {
  ASSERT_TRUE(write_comparison(path("out"), std::vector{t6_under("fifo"), t6_under("srtf")}));
  ASSERT_TRUE(write_run(path("out"), t6_under("sjf")));
  EXPECT_FALSE(fs::exists(root_ / "out/fifo"));  // because it belonged to the old results
  EXPECT_FALSE(fs::exists(root_ / "out/comparison.csv"));
  EXPECT_THAT(slurp(root_ / "out/summary.json"), HasSubstr("\"sjf\""));
  EXPECT_EQ(entries(), 1U);
}

TEST_F(OnDisk, RefusesADirectoryWithOtherThings) {
  spill(root_ / "out/thesis.tex", "months of work");
  const auto written = write_run(path("out"), t6_under("fifo"));
  ASSERT_FALSE(written);
  EXPECT_THAT(written.error().text(), HasSubstr("thesis.tex"));
  EXPECT_FALSE(fs::exists(root_ / "out/jobs.csv")) << "nothing half-written";
  ASSERT_TRUE(write_run(path("out"), t6_under("fifo"), {}, Overwrite::Anything));
  EXPECT_EQ(slurp(root_ / "out/thesis.tex"), "months of work")
      << "force writes beside it, not over it";
  EXPECT_TRUE(fs::exists(root_ / "out/report.html"));
}

TEST_F(OnDisk, RefusesOtherThingsBesideAnEarlierRunToo) {
  ASSERT_TRUE(write_run(path("out"), t6_under("fifo")));
  spill(root_ / "out/notes.txt", "mine");
  EXPECT_FALSE(write_run(path("out"), t6_under("fifo")));
  EXPECT_TRUE(fs::exists(root_ / "out/jobs.csv")) << "the old run is untouched";
}

TEST_F(OnDisk, RefusesAFileAndWhatCannotBeCreated) {
  spill(root_ / "file", "x");
  const auto on_file = write_run(path("file"), t6_under("fifo"));
  ASSERT_FALSE(on_file);
  EXPECT_THAT(on_file.error().text(), HasSubstr("is a file"));
  const auto below_file = write_run(path("file/out"), t6_under("fifo"));
  ASSERT_FALSE(below_file);
  EXPECT_THAT(below_file.error().text(), HasSubstr("file"));
  EXPECT_FALSE(write_run("/proc/nothing/out", t6_under("fifo")));
  EXPECT_FALSE(write_run("", t6_under("fifo")));
}

TEST_F(OnDisk, MakesMissingParentsAndTakesAnEmptyDirectory) {
  EXPECT_TRUE(write_run(path("a/b/c"), t6_under("fifo")));
  EXPECT_TRUE(fs::exists(root_ / "a/b/c/report.html"));
  fs::create_directories(root_ / "empty");
  EXPECT_TRUE(write_run(path("empty/"), t6_under("fifo")));
  EXPECT_TRUE(fs::exists(root_ / "empty/report.html"));
}

TEST_F(OnDisk, AnAbandonedDirectoryLeavesNoTrace) {
  {
    auto directory = OutputDirectory::create(path("x/y"));
    ASSERT_TRUE(directory);
    ASSERT_TRUE(directory->write("jobs.csv", "half"));
  }
  EXPECT_EQ(entries(), 0U);
}

TEST_F(OnDisk, ReadingSaysWhatIsWrong) {
  EXPECT_THAT(read_runs(path("none")).error().text(), HasSubstr("no such directory"));
  fs::create_directories(root_ / "empty");
  EXPECT_THAT(read_runs(path("empty")).error().text(), HasSubstr("summary.json"));
  ASSERT_TRUE(write_run(path("out"), t6_under("fifo")));
  spill(root_ / "out/jobs.csv",
        "job_id,submit_time,finish_time,gpus,status,work\n1,0,x,1,completed,1\n2,0\n3,0,5,1,asleep,"
        "1\n");
  const auto set = read_runs(path("out"));
  ASSERT_FALSE(set);
  EXPECT_THAT(set.error().text(), HasSubstr("jobs.csv:2:3: 'x' is not a number"));
  EXPECT_THAT(set.error().text(), HasSubstr("jobs.csv:3:1: 2 fields"));
  EXPECT_THAT(set.error().text(), HasSubstr("jobs.csv:4:5: unknown status 'asleep'"));
  spill(root_ / "out/summary.json", "{\"policy\": ");
  EXPECT_THAT(read_runs(path("out")).error().text(), HasSubstr("summary.json"));
  spill(root_ / "out/summary.json", "[{\"policy\":\"x\",\"directory\":\"../..\"}]");
  EXPECT_FALSE(read_runs(path("out")));
  spill(root_ / "out/summary.json", "[3]");
  EXPECT_FALSE(read_runs(path("out")));
}

TEST(DirectoryName, IsPlainAndNeverOneOfOurFiles) {
  EXPECT_EQ(directory_name("tiresias"), "tiresias");
  EXPECT_EQ(directory_name("las quantum=5/x"), "las_quantum_5_x");
  EXPECT_EQ(directory_name("figures"), "figures_");
  EXPECT_EQ(directory_name("../etc"), "_._etc");
}

}  // namespace
}  // namespace berth::test
