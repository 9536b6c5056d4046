#include "daemon/gates.h"

#include <gtest/gtest.h>

namespace berth {
namespace {

class GatesTest : public ::testing::Test {
 protected:
  LedgerJob job(JobNumber number, JobSpec spec = {}) {
    LedgerJob job;
    job.number = number;
    if (spec.user.empty()) spec.user = "ann";
    job.is_held = spec.hold;
    job.spec = std::make_shared<const JobSpec>(std::move(spec));
    return job;
  }
  void add(JobNumber number, JobSpec spec = {}) {
    gates.add(job(number, std::move(spec)), now, wall);
  }
  std::vector<JobNumber> ready() {
    std::vector<JobNumber> jobs;
    gates.take_ready(now, jobs);
    return jobs;
  }
  std::vector<UnsatisfiableJob> unsatisfiable() {
    std::vector<UnsatisfiableJob> jobs;
    gates.take_unsatisfiable(jobs);
    return jobs;
  }
  static JobSpec after(DependencyKind kind, JobNumber other) {
    JobSpec spec;
    spec.dependencies = {{kind, other}};
    return spec;
  }
  using Jobs = std::vector<JobNumber>;
  std::map<JobNumber, Outcome> past;
  Gates gates{[this](JobNumber number) -> std::optional<Outcome> {
    const auto found = past.find(number);
    if (found == past.end()) return std::nullopt;
    return found->second;
  }};
  Time now = seconds_to_time(100);
  std::int64_t wall = 1'700'000'000'000'000;
};

TEST_F(GatesTest, NothingInTheWayIsToldOnce) {
  add(2);
  add(1);
  EXPECT_EQ(ready(), (Jobs{1, 2}));
  EXPECT_EQ(ready(), Jobs{});
  EXPECT_TRUE(gates.shut(1, now).empty());
}

TEST_F(GatesTest, AHeldJobWaitsForItsRelease) {
  JobSpec spec;
  spec.hold = true;
  add(1, spec);
  EXPECT_EQ(ready(), Jobs{});
  ASSERT_EQ(gates.shut(1, now).size(), 1U);
  EXPECT_EQ(gates.shut(1, now)[0].kind, GateKind::Hold);
  gates.release(1);
  EXPECT_EQ(ready(), Jobs{1});
}

TEST_F(GatesTest, HoldingAWaitingJobWithdrawsItARunningOneNot) {
  add(1);
  add(2);
  EXPECT_EQ(ready(), (Jobs{1, 2}));
  gates.hold(1, false);
  gates.hold(2, true);
  Jobs withdrawn;
  gates.take_withdrawn(withdrawn);
  EXPECT_EQ(withdrawn, Jobs{1});
  gates.ended(2, Outcome::Preempted, false);
  EXPECT_EQ(ready(), Jobs{}) << "held when it would be in line again";
}

TEST_F(GatesTest, BeginsByPeoplesClock) {
  JobSpec spec;
  spec.begin = wall / 1'000'000 + 60;
  add(1, spec);
  EXPECT_EQ(ready(), Jobs{});
  EXPECT_EQ(gates.next_opening(), now + std::chrono::seconds{60});
  now += std::chrono::seconds{60};
  EXPECT_EQ(ready(), Jobs{1});
}

TEST_F(GatesTest, DependenciesAreMetOrUnsatisfiable) {
  add(1);
  add(2, after(DependencyKind::AfterOk, 1));
  add(3, after(DependencyKind::AfterNotOk, 1));
  add(4, after(DependencyKind::AfterAny, 1));
  add(5, after(DependencyKind::After, 1));
  EXPECT_EQ(ready(), Jobs{1});
  gates.started(1, now);
  EXPECT_EQ(ready(), Jobs{5});
  gates.ended(1, Outcome::Failed, true);
  EXPECT_EQ(ready(), (Jobs{3, 4}));
  const auto hopeless = unsatisfiable();
  ASSERT_EQ(hopeless.size(), 1U);
  EXPECT_EQ(hopeless[0].job, 2U);
  EXPECT_EQ(hopeless[0].why, "afterok:1 can never be met: job 1 failed");
}

TEST_F(GatesTest, ARetryIsNoEnd) {
  add(1);
  add(2, after(DependencyKind::AfterNotOk, 1));
  EXPECT_EQ(ready(), Jobs{1});
  gates.ended(1, Outcome::Failed, false, now + std::chrono::seconds{2});
  EXPECT_EQ(ready(), Jobs{});
  EXPECT_EQ(gates.shut(1, now)[0].kind, GateKind::RetryDelay);
  now += std::chrono::seconds{2};
  EXPECT_EQ(ready(), Jobs{1});
}

TEST_F(GatesTest, JobsThatAreOverCountAsDependencies) {
  past = {{7, Outcome::Completed}, {8, Outcome::Failed}};
  add(10, after(DependencyKind::AfterOk, 7));
  add(11, after(DependencyKind::AfterOk, 8));
  EXPECT_EQ(ready(), Jobs{10});
  EXPECT_EQ(unsatisfiable().size(), 1U);
}

TEST_F(GatesTest, OneOfSeveralIsEnoughIfAsked) {
  add(1);
  add(2);
  JobSpec spec;
  spec.dependencies = {{DependencyKind::AfterOk, 1}, {DependencyKind::AfterOk, 2}};
  spec.any_dependency = true;
  add(3, spec);
  EXPECT_EQ(ready(), (Jobs{1, 2}));
  gates.ended(1, Outcome::Failed, true);
  EXPECT_TRUE(unsatisfiable().empty());
  gates.ended(2, Outcome::Completed, true);
  EXPECT_EQ(ready(), Jobs{3});
}

TEST_F(GatesTest, SingletonsComeOneByOne) {
  JobSpec spec;
  spec.name = "nightly";
  spec.dependencies = {{DependencyKind::Singleton, 0}};
  add(1, spec);
  add(2, spec);
  add(3, spec);
  EXPECT_EQ(ready(), Jobs{1});
  gates.ended(1, Outcome::Completed, true);
  EXPECT_EQ(ready(), Jobs{2});
}

TEST_F(GatesTest, AnArrayLetsSoManyInAtOnce) {
  JobSpec spec;
  spec.array = ArraySpec{.indices = {0, 1, 2, 3}, .at_once = 2};
  for (JobNumber i = 1; i <= 4; ++i) {
    LedgerJob one = job(i, spec);
    one.array = 1;
    gates.add(one, now, wall);
  }
  EXPECT_EQ(ready(), (Jobs{1, 2}));
  EXPECT_EQ(gates.shut(3, now)[0].text, "2 of its array run or are in line, at most 2 at once");
  gates.ended(2, Outcome::Completed, true);
  EXPECT_EQ(ready(), Jobs{3});
}

TEST_F(GatesTest, QuotasCountWhatIsInUseOrInLine) {
  gates.set_limits("user/ann", {.gpus = 4, .jobs = 0, .gpu_seconds = 0});
  JobSpec spec;
  spec.gpus = 2;
  for (JobNumber i = 1; i <= 3; ++i) add(i, spec);
  JobSpec other = spec;
  other.user = "bob";
  add(4, other);
  EXPECT_EQ(ready(), (Jobs{1, 2, 4}));
  EXPECT_EQ(gates.shut(3, now)[0].text,
            "ann has 4 of 4 GPUs in use or in line, this job asks for 2");
  gates.ended(1, Outcome::Completed, true);
  EXPECT_EQ(ready(), Jobs{3});
}

TEST_F(GatesTest, ARaisedQuotaLetsThemIn) {
  gates.set_limits("group/ml", {.gpus = 0, .jobs = 1, .gpu_seconds = 0});
  JobSpec spec;
  spec.group = "ml";
  for (JobNumber i = 1; i <= 3; ++i) add(i, spec);
  EXPECT_EQ(ready(), Jobs{1});
  gates.set_limits("group/ml", {.gpus = 0, .jobs = 3, .gpu_seconds = 0});
  EXPECT_EQ(ready(), (Jobs{2, 3}));
}

TEST_F(GatesTest, AUsedUpBudgetOpensAsItDecays) {
  gates.set_limits("user/ann", {.gpus = 0, .jobs = 0, .gpu_seconds = 3600});
  gates.set_use("user/ann", 4000);
  add(1);
  EXPECT_EQ(ready(), Jobs{});
  gates.set_use("user/ann", 3000);
  EXPECT_EQ(ready(), Jobs{1});
}

TEST_F(GatesTest, ManyWaitingBehindAQuotaCostLittle) {
  gates.set_limits("user/ann", {.gpus = 1, .jobs = 0, .gpu_seconds = 0});
  constexpr JobNumber kJobs = 20'000;
  for (JobNumber i = 1; i <= kJobs; ++i) add(i);
  Jobs first = ready();
  ASSERT_EQ(first, Jobs{1});
  for (JobNumber i = 1; i < 2'000; ++i) {
    gates.ended(i, Outcome::Completed, true);
    ASSERT_EQ(ready(), Jobs{i + 1});
  }
}

}  // namespace
}  // namespace berth
