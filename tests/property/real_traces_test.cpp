// The property suite on slices of published traces: real sizes, real run times, real bursts, models
// and deadlines. Clusters are small enough for queues to form. Policies have their own defaults,
// but those that search every minute do so less often: a trace is weeks long.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/file.h"
#include "project_paths.h"
#include "support/policy_suite.h"
#include "support/suite_name.h"
#include "trace/reader.h"

namespace berth::test {
namespace {

struct TraceSlice {
  const char* file;
  std::size_t rows;  // of the file, from its first on
  const char* cluster;
};

constexpr TraceSlice kSlices[] = {
    {"philly/philly_sample1000_raw.csv", 200, "2x2,3x8"},
    {"helios/venus_gpu_jobs_2020-03_2020-08.csv.gz", 200, "8x8"},
    {"pai2020/pai_tasks_sample_day00-49.csv.gz", 200, "7x8"},
    {"itp_raw/cluster02.csv", 200, "3x8"},
    {"itp_elasticflow/cluster10.csv", 150, "2x8:v100,1x8:a100"},   // models, deadlines
    {"muri/testbed/cluster_trace.csv", 120, "4x4:v100,2x4:a100"},  // models
};

std::string data_path(const std::string& file) {
  return std::string(BERTH_SHARED_DIR) + "/data/" + file;
}

/// The first rows; reading all of a large file for each policy would take longer than the runs.
std::string first_rows(const std::string& text, std::size_t rows) {
  std::size_t end = 0;
  for (std::size_t line = 0; line <= rows && end != std::string::npos; ++line)
    end = text.find('\n', end == 0 ? 0 : end + 1);
  return text.substr(0, end);
}

Result<Trace> read_slice(const TraceSlice& slice) {
  BERTH_TRY(const std::string text, read_file(data_path(slice.file)));
  return parse_trace(first_rows(text, slice.rows), slice.file);
}

/// Those whose point is to refuse are told to end every job all the same, and those that compute
/// long to do so less often: these traces span days.
Settings settings_of(const std::string& policy) {
  static const std::map<std::string, Settings> kAffordable{
      {"andreas", {{"max_it", "20"}, {"effort", "500"}}},
      {"las", {{"quantum", "600"}}},
      {"las-2d", {{"quantum", "600"}}},
      {"pollux", {{"interval", "3600"}, {"population", "8"}, {"generations", "5"}}},
      {"sia", {{"interval", "1800"}}},
  };
  if (const auto found = kAffordable.find(policy); found != kAffordable.end()) return found->second;
  Settings settings;
  for (const auto& setting : (*find_policy(policy))->test_settings) {
    if (setting.first == "unmet" || setting.first == "reject_to_besteffort")
      settings.push_back(setting);
  }
  return settings;
}

struct Ended {
  std::string digest;
  std::size_t rejected = 0;
};

/// Runs to the end; a feasible job that did not end with all its work done fails the test.
Ended run_slice(const Trace& trace, const Cluster& cluster, const std::string& name,
                Auditor* auditor) {
  const auto policy = make_policy(name, settings_of(name));
  const auto placement = make_placement("best-fit");
  const auto estimator = make_estimator((*find_policy(name))->estimator, 1);
  const RateModel rates{built_in_profiles(), cluster, Effects{}};
  SimExecutor executor{trace, cluster, with_truth({}, **policy, rates)};
  Engine engine{{.trace = trace,
                 .cluster = cluster,
                 .policy = **policy,
                 .placement = **placement,
                 .estimator = **estimator,
                 .executor = executor,
                 .believed = rates,
                 .observer = auditor}};
  if (auditor != nullptr) {
    auditor->expect(**policy);
    auditor->engine = &engine;
    auditor->trace = &trace;
  }
  const auto done = engine.run();
  EXPECT_TRUE(done) << done.error().text();
  for (std::uint32_t i = 0; i < trace.jobs.size(); ++i) {
    const JobId job{i};
    const std::string_view id = trace.text(trace.jobs[i].id);
    if (engine.jobs().state[job] == JobState::Rejected) continue;
    EXPECT_TRUE(is_over(engine.jobs().state[job])) << "job " << id;
    EXPECT_NEAR(to_seconds(engine.jobs().work[job]), to_seconds(trace.jobs[i].duration), 1e-3)
        << "job " << id;
  }
  return {engine.digest(), engine.rejected().size()};
}

class RealTraces : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    if (!std::filesystem::exists(data_path("README.md")))
      GTEST_SKIP() << "no shared traces at " << data_path("");
  }
};

TEST_P(RealTraces, KeepTheBooksEndEveryFeasibleJobAndGiveTheSameBytes) {
  for (const TraceSlice& slice : kSlices) {
    SCOPED_TRACE(slice.file);
    const auto trace = read_slice(slice);
    ASSERT_TRUE(trace) << trace.error().text();
    ASSERT_GT(trace->jobs.size(), slice.rows / 2);
    const auto cluster = load_cluster(slice.cluster);
    ASSERT_TRUE(cluster) << cluster.error().text();
    Auditor auditor;
    const Ended first = run_slice(*trace, *cluster, GetParam(), &auditor);
    const Ended second = run_slice(*trace, *cluster, GetParam(), nullptr);
    EXPECT_EQ(first.digest, second.digest) << "the same bytes again";
    // What does not fit the cluster is refused by everybody alike.
    EXPECT_EQ(first.rejected, run_slice(*trace, *cluster, "fifo", nullptr).rejected);
    ASSERT_FALSE(HasFailure());
  }
}

std::vector<std::string> all_policies() {
  std::vector<std::string> names;
  for (const PolicyEntry& entry : policy_registry()) names.push_back(entry.name);
  return names;
}

INSTANTIATE_TEST_SUITE_P(Registry, RealTraces, ::testing::ValuesIn(all_policies()), kByName);

}  // namespace
}  // namespace berth::test
