// Pollux in the engine.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <vector>

#include "support/run.h"
#include "support/scaling_models.h"

namespace berth::test {
namespace {

/// Everything done, by kind and time.
class Log final : public Observer {
 public:
  struct Entry {
    double at;
    ActionKind kind;
    std::uint32_t job;
    std::int32_t gpus;
    Terms terms;
    std::size_t nodes;
  };
  void append(Time now, const Action& action) override {
    entries.push_back({to_seconds(now.time_since_epoch()), action.kind, action.job.value,
                       action.gpus, action.terms, action.slices.size()});
  }
  [[nodiscard]] std::size_t count(ActionKind kind) const {
    return static_cast<std::size_t>(std::ranges::count(entries, kind, &Entry::kind));
  }
  std::vector<Entry> entries;
};

Scenario pollux_on(std::string cluster, std::vector<JobSpec> jobs) {
  Scenario scenario;
  scenario.policy = "pollux";
  scenario.cluster = std::move(cluster);
  scenario.placement = "best-fit";
  scenario.profiles = scalable();
  scenario.jobs = std::move(jobs);
  return scenario;
}

TEST(Pollux, ALoneJobDoublesUntilItHasWhatItMayHold) {
  Log log;
  Scenario scenario = pollux_on("1x8", {{.submit = 0, .gpus = 1, .duration = 5000}});
  const Outcome outcome = run(scenario, &log);
  ASSERT_GE(log.entries.size(), 1U);
  EXPECT_EQ(log.entries[0].at, 0) << "the first GPU needs no round";
  EXPECT_EQ(log.entries[0].gpus, 1);
  std::vector<std::int32_t> sizes;
  for (const auto& entry : log.entries) {
    if (entry.kind == ActionKind::Resize) {
      sizes.push_back(entry.gpus);
      EXPECT_EQ(std::fmod(entry.at, 60), 0) << "changes come in rounds";
    }
  }
  EXPECT_EQ(sizes, (std::vector<std::int32_t>{2, 4, 8}));
  EXPECT_LT(outcome.finish[0], 1500) << "eight GPUs do in 650 s what one does in 5000";
}

TEST(Pollux, GrowthIsNotLimitedIfAskedNotToBe) {
  Log log;
  Scenario scenario = pollux_on("1x8", {{.submit = 0, .gpus = 1, .duration = 5000}});
  scenario.settings = {{"growth", "0"}};
  static_cast<void>(run(scenario, &log));
  for (const auto& entry : log.entries) {
    if (entry.kind != ActionKind::Resize) continue;
    EXPECT_EQ(entry.gpus, 8);
    break;
  }
}

TEST(Pollux, TwoEqualJobsShareTheCluster) {
  Log log;
  Scenario scenario = pollux_on("2x4", {{.submit = 0, .gpus = 1, .duration = 20000},
                                        {.submit = 0, .gpus = 1, .duration = 20000}});
  const Outcome outcome = run(scenario, &log);
  EXPECT_NEAR(outcome.finish[0], outcome.finish[1], 0.02 * outcome.finish[0]);
  for (const auto& entry : log.entries) {
    if (entry.at < outcome.finish[0] - 1) {
      EXPECT_LE(entry.gpus, 4);
    }
  }
}

TEST(Pollux, AMoveCostsARestartAndTheFirstStartDoesNot) {
  Scenario scenario = pollux_on("1x2", {{.submit = 0, .gpus = 1, .duration = 600}});
  scenario.settings = {{"restart", "30"}};
  const Outcome outcome = run(scenario);
  EXPECT_NEAR(outcome.overhead[0], 30, 1e-9) << "one resize from one GPU to two";
}

// 30 s of work left are not worth a restart of 30 s, and a job that restarts is let alone.
TEST(Pollux, AJobThatIsAboutToEndIsLeftAlone) {
  Log log;
  static_cast<void>(run(pollux_on("1x2", {{.submit = 0, .gpus = 1, .duration = 85}}), &log));
  EXPECT_EQ(log.count(ActionKind::Resize), 0U) << "25 s are left at the first round";
  Log longer;
  static_cast<void>(run(pollux_on("1x2", {{.submit = 0, .gpus = 1, .duration = 600}}), &longer));
  EXPECT_EQ(longer.count(ActionKind::Resize), 1U);
}

TEST(Pollux, AJobThatRestartsIsLeftAlone) {
  Log log;
  Scenario scenario = pollux_on("1x8", {{.submit = 0, .gpus = 1, .duration = 5000}});
  scenario.settings = {{"restart", "90"}};
  static_cast<void>(run(scenario, &log));
  double last = -1;
  for (const auto& entry : log.entries) {
    if (entry.kind != ActionKind::Resize) continue;
    if (last >= 0) {
      EXPECT_GE(entry.at, last + 120) << "the round after 60 s falls into the restart";
    }
    last = entry.at;
  }
  EXPECT_GE(log.count(ActionKind::Resize), 2U);
}

TEST(Pollux, ANoiseScaleIsSmoothedOverTheRounds) {
  const auto changes = [](const std::string& smoothing) {
    Log log;
    Scenario scenario = pollux_on("1x4", {{.submit = 0, .gpus = 4, .duration = 20000}});
    Profile& profile = scenario.profiles.edit(ProfileSet::fallback());
    profile.iteration.alpha = 0.2;
    profile.batch_limits = {16, 256, 8192};
    profile.noise = {{0, 300}, {0.1, 300}, {0.1001, 50'000}};  // jumps once
    scenario.settings = {{"elastic", "declared"}, {"smoothing", smoothing}};
    static_cast<void>(run(scenario, &log));
    return log.count(ActionKind::SetBatch);
  };
  EXPECT_GT(changes("0.9"), changes("0") + 1) << "a tenth of the way in every round";
}

TEST(Pollux, OnceSettledNothingHappensUntilSomethingDoes) {
  Log log;
  Scenario scenario = pollux_on("2x4", {{.submit = 0, .gpus = 1, .duration = 40000},
                                        {.submit = 0, .gpus = 1, .duration = 40000}});
  const Outcome outcome = run(scenario, &log);
  const double first_end = std::min(outcome.finish[0], outcome.finish[1]);
  for (const auto& entry : log.entries) {
    if (entry.at > 600 && entry.at < first_end - 1) {
      ADD_FAILURE() << to_string(entry.kind) << " at " << entry.at;
    }
  }
}

TEST(Pollux, TheBatchGrowsAsTheNoiseDoes) {
  Log log;
  Scenario scenario = pollux_on("1x4", {{.submit = 0, .gpus = 4, .duration = 4000}});
  Profile& profile = scenario.profiles.edit(ProfileSet::fallback());
  profile.iteration.alpha = 0.2;  // large batches pay
  profile.batch_limits = {16, 256, 8192};
  profile.noise = {{0, 300}, {0.5, 50'000}};
  scenario.settings = {{"elastic", "declared"}};  // four GPUs all the time
  const Outcome outcome = run(scenario, &log);
  EXPECT_EQ(outcome.state[0], JobState::Completed);
  ASSERT_GE(log.count(ActionKind::SetBatch), 2U);
  std::int32_t batch = 0;
  for (const auto& entry : log.entries) {
    EXPECT_GE(entry.terms.batch, batch) << "at " << entry.at;
    batch = entry.terms.batch;
  }
  EXPECT_GT(batch, 2 * log.entries.front().terms.batch);
}

TEST(Pollux, AtMostOneJobOverSeveralNodesOnEachNode) {
  class Watch final : public Observer {
   public:
    void append(Time, const Action& action) override {
      if (begins_stretch(action.kind) || changes_devices(action.kind))
        held_[action.job].assign(action.slices.begin(), action.slices.end());
    }
    void instant_done(Time) override {
      std::map<std::uint32_t, int> distributed;
      for (const auto& [job, slices] : held_) {
        if (!engine->jobs().is_running(job) || slices.size() < 2) continue;
        for (const Slice& slice : slices) ++distributed[slice.node.value];
      }
      for (const auto& [node, jobs] : distributed) EXPECT_LE(jobs, 1) << "node " << node;
    }

   private:
    std::map<JobId, std::vector<Slice>> held_;
  } watch;
  std::vector<JobSpec> jobs;
  for (int i = 0; i < 5; ++i)
    jobs.push_back({.submit = 50.0 * i, .gpus = 1, .duration = 6000.0 + 900 * i});
  Scenario scenario = pollux_on("4x4", jobs);
  scenario.settings = {{"population", "30"}, {"generations", "20"}};
  static_cast<void>(run(scenario, &watch));
}

TEST(Pollux, DeclaredRangesAndRigidJobsAreKept) {
  Log log;
  Scenario scenario = pollux_on("2x4", {{.submit = 0, .gpus = 2, .duration = 3000},
                                        {.submit = 0, .gpus = 1, .duration = 3000, .gpus_max = 2}});
  scenario.settings = {{"elastic", "declared"}};
  static_cast<void>(run(scenario, &log));
  for (const auto& entry : log.entries) {
    if (entry.kind == ActionKind::SetBatch) continue;
    if (entry.job == 0) {
      EXPECT_EQ(entry.gpus, 2);
    } else {
      EXPECT_LE(entry.gpus, 2);
    }
  }
}

TEST(Pollux, FillingDecidesOnLargeClusters) {
  std::vector<JobSpec> jobs;
  for (int i = 0; i < 6; ++i) jobs.push_back({.submit = 10.0 * i, .gpus = 1, .duration = 9000});
  Scenario scenario = pollux_on("4x4", jobs);
  scenario.settings = {{"genetic_gpus", "0"}};
  const Outcome outcome = run(scenario);
  Scenario genetic = pollux_on("4x4", jobs);
  const double other = run(genetic).makespan;
  EXPECT_NEAR(outcome.makespan, other, 0.2 * other);
  for (const JobState state : outcome.state) EXPECT_EQ(state, JobState::Completed);
}

TEST(Pollux, ParametersLearntOnTheWayLeadToTheSameSizes) {
  Log log;
  Scenario scenario = pollux_on("1x4", {{.submit = 0, .gpus = 1, .duration = 3000}});
  scenario.settings = {{"model", "fitted"}};
  const Outcome outcome = run(scenario, &log);
  EXPECT_EQ(outcome.state[0], JobState::Completed);
  std::int32_t largest = 0;
  for (const auto& entry : log.entries) largest = std::max(largest, entry.gpus);
  EXPECT_EQ(largest, 4) << "optimism makes it try two, then four";
}

}  // namespace
}  // namespace berth::test
