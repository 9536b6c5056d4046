// Dominant resource fairness: the worked example with its order of grants, weights, ties, and what
// happens to users whose next job does not fit.
#include <gtest/gtest.h>

#include "policies/stress.h"
#include "support/run.h"

namespace berth::test {
namespace {

/// Who got which devices of the one node: under first-fit the order of devices is the order of
/// grants.
class GrantOrder final : public Observer {
 public:
  explicit GrantOrder(const std::vector<JobSpec>& jobs) : jobs_(&jobs) {}
  void append(Time now, const Action& action) override {
    if (now == kTimeZero && action.kind == ActionKind::Start) {
      by_device_[action.slices.front().devices] = (*jobs_)[action.job.value].user;
    }
  }
  [[nodiscard]] std::string text() const {
    std::string all;
    for (const auto& [devices, user] : by_device_) all += user;
    return all;
  }

 private:
  const std::vector<JobSpec>* jobs_;
  std::map<std::uint64_t, std::string> by_device_;
};

std::string grants_at_zero(const Scenario& scenario) {
  auto policy = make_policy("drf", scenario.settings);
  GrantOrder order{scenario.jobs};
  static_cast<void>(run_with(scenario, **policy, &order));
  return order.text();
}

/// Five tasks of user A (1 GPU, 4 cores), then five of user B (3 GPUs, 1 core); all run 10 s.
std::vector<JobSpec> worked_example() {
  std::vector<JobSpec> jobs;
  for (int i = 0; i < 5; ++i) jobs.push_back({.gpus = 1, .duration = 10, .user = "A", .cpus = 4});
  for (int i = 0; i < 5; ++i) jobs.push_back({.gpus = 3, .duration = 10, .user = "B", .cpus = 1});
  return jobs;
}

TEST(Drf, GrantsInTheWorkedOrder) {
  const Scenario scenario{
      .cluster = "1x9", .placement = "first-fit", .jobs = worked_example(), .node_cpus = 18};
  // A 0 -> 4/18, B 0 -> 3/9, A 2/9 -> 4/9, B 1/3 -> 2/3, A 4/9 -> 2/3: no GPU is left.
  EXPECT_EQ(grants_at_zero(scenario), "ABABA");
}

TEST(Drf, GivesBothUsersTheSameDominantShare) {
  const Outcome outcome =
      run({.policy = "drf", .cluster = "1x9", .jobs = worked_example(), .node_cpus = 18});
  EXPECT_EQ(std::vector<double>(outcome.start.begin(), outcome.start.begin() + 5),
            (std::vector<double>{0, 0, 0, 10, 10}));
  EXPECT_EQ(std::vector<double>(outcome.start.begin() + 5, outcome.start.end()),
            (std::vector<double>{0, 0, 10, 10, 20}));
}

TEST(Drf, CountsOnlyWhatTheClusterDeclares) {
  // Without cores on the nodes the GPUs alone count: A 1/9, B 3/9, A 2/9, A 3/9, tie with B goes to
  // A: 4/9.
  const Scenario scenario{.cluster = "1x9", .placement = "first-fit", .jobs = worked_example()};
  EXPECT_EQ(grants_at_zero(scenario),
            "ABAAAA");  // then B needs 3 of the 1 that is left, and A has the rest
}

std::vector<JobSpec> one_gpu_each(int a, int b) {
  std::vector<JobSpec> jobs;
  for (int i = 0; i < a; ++i) jobs.push_back({.duration = 10, .user = "alice"});
  for (int i = 0; i < b; ++i) jobs.push_back({.duration = 10, .user = "bob"});
  return jobs;
}

TEST(Drf, DividesSharesByWeights) {
  const Settings weights = {{"weights", "alice:2,bob:1"}};
  const Outcome outcome =
      run({.policy = "drf", .settings = weights, .cluster = "1x6", .jobs = one_gpu_each(6, 6)});
  EXPECT_EQ(std::count(outcome.start.begin(), outcome.start.begin() + 6, 0), 4);
  EXPECT_EQ(std::count(outcome.start.begin() + 6, outcome.start.end(), 0), 2);
}

TEST(Drf, BreaksTiesByUserName) {
  std::vector<JobSpec> jobs{{.duration = 10, .user = "zoe"}, {.duration = 10, .user = "adam"}};
  EXPECT_EQ(run({.policy = "drf", .cluster = "1x1", .jobs = jobs}).start,
            (std::vector<double>{10, 0}));
}

TEST(Drf, PassesOverAUserWhoseNextJobDoesNotFit) {
  // alice's next needs 4 of the 3 that are left; her small one behind it waits, bob goes on.
  const Outcome outcome = run({.policy = "drf",
                               .cluster = "1x4",
                               .jobs = {{.gpus = 1, .duration = 10, .user = "bob"},
                                        {.submit = 1, .gpus = 4, .duration = 5, .user = "alice"},
                                        {.submit = 1, .gpus = 1, .duration = 5, .user = "alice"},
                                        {.submit = 1, .gpus = 1, .duration = 5, .user = "bob"}}});
  EXPECT_EQ(outcome.start, (std::vector<double>{0, 10, 15, 1}));
}

TEST(Drf, SaysWhatIsWrongWithAWeight) {
  EXPECT_NE(make_policy("drf", {{"weights", "alice:0"}}).error().text().find("USER:weight"),
            std::string::npos);
}

TEST(Drf, SurvivesRandomWorlds) {
  survive({.policy = "drf"});
  survive({.policy = "drf", .settings = {{"weights", "u1:3,u2:0.5"}}});
}

}  // namespace
}  // namespace berth::test
