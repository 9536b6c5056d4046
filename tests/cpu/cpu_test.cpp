#include <gtest/gtest.h>

#include <cmath>

#include "cpu/cpu_tuner.h"
#include "support/cpu_models.h"
#include "support/random_scenario.h"
#include "support/run.h"

namespace berth::test::cpu_tests {
namespace {

constexpr Effects kOnlyCores{.sharing = false, .cpu = true};

/// f(C) of the worked examples.
double f(double cores, int theta) {
  return std::min(1.0, (std::log(cores) + 0.2 * cores) / (std::log(theta) + 0.2 * theta));
}

Scenario poster_server(const std::vector<std::string>& models, double duration = 1000) {
  Scenario scenario;
  scenario.placement = "best-fit";
  scenario.node_cpus = 24;
  scenario.profiles = cpu_poster_models();
  scenario.effects = kOnlyCores;
  for (const std::string& model : models)
    scenario.jobs.push_back({.duration = duration, .model = model});
  return scenario;
}

Outcome run_cpu(Scenario scenario, std::string_view mode, const CpuTunerOptions& options = {}) {
  auto tuner = make_cpu_tuner(mode, options);
  EXPECT_TRUE(tuner.has_value());
  scenario.tuner = tuner->get();
  return run(scenario);
}

const std::vector<std::string> kSpeechMix{"AlexNet", "LanguageModel", "DeepSpeech", "WaveNet"};
const std::vector<std::string> kVisionMix{"OverFeat", "GoogLeNet", "LanguageModel", "Bi-Att-Flow"};

TEST(CpuBind, GivesCoresInProportionToGpus) {
  const Outcome outcome = run_cpu(poster_server(kSpeechMix), "bind");
  EXPECT_NEAR(outcome.finish[0], 1000 / f(6, 19), 1e-3);  // six cores, .4436
  EXPECT_NEAR(outcome.finish[1], 1000, 1e-3);
  EXPECT_NEAR(outcome.finish[2], 1000, 1e-3);
}

TEST(CpuRole, GivesFourCoresToAWorkerWhateverItIs) {
  const Outcome outcome = run_cpu(poster_server(kSpeechMix), "role");
  EXPECT_NEAR(outcome.finish[0], 1000 / f(4, 19), 1e-3);
  EXPECT_NEAR(outcome.finish[3], 1000, 1e-3);
}

TEST(CpuRole, AParameterServerTakesItsCoresFromTheServer) {
  Scenario scenario = poster_server({});
  scenario.node_cpus = 16;
  scenario.jobs = {{.gpus = 4, .duration = 1000, .model = "AlexNet"}};
  // Four workers and the parameter server want 19 of 16 cores: 4 * 16/19 each.
  const Outcome outcome = run_cpu(scenario, "role");
  EXPECT_NEAR(outcome.finish[0], 1000 / f(4 * 16.0 / 19, 19), 5);  // gangs talk: within 0.2 %
}

TEST(CpuShared, WorkersTakeWhatTheyWantInProportionOnceCoresRunShort) {
  // 19 + 1 + 3 + 3 of 24 cores: everybody has 24/26 of what it wants, also those that want little.
  const Outcome outcome = run_cpu(poster_server(kSpeechMix), "shared");
  EXPECT_NEAR(outcome.finish[1], 1000 * 26.0 / 24, 3);  // the last seconds without DeepSpeech
  EXPECT_GT(outcome.finish[2], 1000);
  EXPECT_GT(outcome.finish[0], 1000);
  EXPECT_LT(outcome.finish[0], 1000 / f(6, 19));
  // Cores enough for all: nobody is held back.
  Scenario rich = poster_server(kSpeechMix);
  rich.node_cpus = 26;
  EXPECT_NEAR(run_cpu(rich, "shared").finish[0], 1000, 1e-3);
}

TEST(CpuAware, GivesTheRestToTheJobThatGains) {
  const Outcome outcome = run_cpu(poster_server(kSpeechMix), "aware");
  EXPECT_NEAR(outcome.finish[1], 1000, 1e-3);
  EXPECT_NEAR(outcome.finish[3], 1000, 1e-3);
  // 17 cores until the others have gone, all it wants afterwards.
  EXPECT_NEAR(outcome.finish[0], 1000 + (1 - f(17, 19)) * 1000, 1e-3);
}

TEST(CpuAware, NobodyIsWorseOffThanWithBind) {
  const Outcome bind = run_cpu(poster_server(kVisionMix), "bind");
  const Outcome aware = run_cpu(poster_server(kVisionMix), "aware");
  for (std::size_t i = 0; i < kVisionMix.size(); ++i)
    EXPECT_LE(aware.finish[i], bind.finish[i] + 1e-3) << kVisionMix[i];
  EXPECT_LT(aware.sum_jct, bind.sum_jct);
  // Sum mode starves OverFeat for the others: 4 cores instead of 6 until GoogLeNet ends.
  const Outcome sum = run_cpu(poster_server(kVisionMix), "aware", {.objective = CpuObjective::Sum});
  EXPECT_NEAR(sum.finish[1], 1000, 1e-3);
  EXPECT_GT(sum.finish[0], aware.finish[0]);
}

// The slowest worker counts, so more cores elsewhere would be wasted on it.
TEST(CpuAware, AGangHasTheCoresOfItsPoorestWorkerEverywhere) {
  Scenario scenario = poster_server({});
  scenario.cluster = "2x3";
  scenario.edit_cluster = [](Cluster& cluster) {
    cluster.nodes[0].cpus_milli = 24'000;
    cluster.nodes[1].cpus_milli = 8'000;
  };
  scenario.jobs = {{.gpus = 5, .duration = 1000, .model = "AlexNet"},
                   {.gpus = 1, .duration = 1000, .model = "AlexNet"}};
  const Outcome outcome = run_cpu(scenario, "aware", {.objective = CpuObjective::Sum});
  // One server has three workers of the gang, the other two and the single job. If the poor server
  // holds three of the gang, each has 2 of its 8 cores and the single job 24 - 4; if it holds two
  // and the single job, the gang cannot have more than 3 each there, and 24 cores idle.
  const double gang_speed = 1000 / outcome.finish[0];
  EXPECT_LE(gang_speed, f(4, 19) + 1e-9);
  EXPECT_GE(gang_speed, f(2, 19) - 1e-9);
  EXPECT_LT(outcome.finish[1], outcome.finish[0]);
}

TEST(CpuAware, FewerCoresThanWorkersAreDividedEvenly) {
  Scenario scenario = poster_server({"LanguageModel", "LanguageModel", "LanguageModel"});
  scenario.node_cpus = 2;
  const Outcome outcome = run_cpu(scenario, "aware");
  EXPECT_NEAR(outcome.finish[0], 1000 / 0.666, 1e-3);
}

TEST(CpuAware, AServerThatDoesNotSayItsCoresIsLeftAlone) {
  Scenario scenario = poster_server(kSpeechMix);
  scenario.node_cpus = 0;
  for (const std::string_view mode : {"shared", "role", "bind", "aware"})
    EXPECT_NEAR(run_cpu(scenario, mode).finish[0], 1000, 1e-3) << mode;
}

TEST(CpuAware, StarvedJobsMoveToIdleCores) {
  // Four jobs that want 22 cores each fill the first server; the second has one that wants none.
  Scenario scenario =
      poster_server({"OverFeat", "OverFeat", "OverFeat", "OverFeat", "LanguageModel"}, 20'000);
  scenario.cluster = "2x4";
  CpuTunerOptions options = cpu_options_for(**make_policy("fifo"));
  options.place = false;
  const Outcome stay = run_cpu(scenario, "aware", {.place = false});
  const Outcome move = run_cpu(scenario, "aware", options);
  int stayed = 0, moved = 0;
  for (std::size_t i = 0; i < 5; ++i) {
    stayed += stay.migrations[i];
    moved += move.migrations[i];
  }
  EXPECT_EQ(stayed, 0);
  EXPECT_GE(moved, 1);
  EXPECT_LE(moved, 4);
  EXPECT_LT(move.sum_jct, 0.8 * stay.sum_jct);
}

/// The most moves of one instant, and all of them.
class MoveCounter final : public Observer {
 public:
  void append(Time, const Action& action) override {
    now_ += action.kind == ActionKind::Migrate ? 1 : 0;
  }
  void instant_done(Time) override {
    most = std::max(most, now_);
    all += now_;
    now_ = 0;
  }
  int most = 0;
  int all = 0;

 private:
  int now_ = 0;
};

// Eight starved jobs, idle cores for all of them: one at a time, since 1 % of them is less than
// one.
TEST(CpuAware, FewMoveInOneRoundAndOnlyIfItPays) {
  Scenario scenario = poster_server({}, 0);
  scenario.cluster = "8x8";
  scenario.jobs.assign(8, {.duration = 40'000, .model = "OverFeat"});
  CpuTunerOptions options = cpu_options_for(**make_policy("fifo"));
  options.place = false;
  const auto moves = [&] {
    auto tuner = *make_cpu_tuner("aware", options);
    scenario.tuner = tuner.get();
    MoveCounter counter;
    EXPECT_EQ(run(scenario, &counter).finish.size(), 8U);
    return std::pair(counter.most, counter.all);
  };
  const auto [most, all] = moves();
  EXPECT_EQ(most, 1);
  EXPECT_GE(all, 4);
  options.moved_share = 0.5;  // of eight
  EXPECT_EQ(moves().first, 4);
  options.move_cost = std::chrono::hours{100};  // more than there is to gain
  EXPECT_EQ(moves().second, 0);
}

/// Runs with beliefs that differ from the truth.
struct TwoWorlds {
  std::vector<double> finish;
  TwoWorlds(const Scenario& scenario, const ProfileSet& believed_profiles,
            const CpuTunerOptions& options) {
    const Trace trace = make_trace(scenario.jobs);
    auto cluster = *load_cluster(scenario.cluster);
    for (Node& node : cluster.nodes) node.cpus_milli = scenario.node_cpus * 1000;
    const RateModel truth{scenario.profiles, cluster, scenario.effects};
    const RateModel believed{believed_profiles, cluster, scenario.effects};
    auto policy = *make_policy("fifo");
    auto placement = *make_placement("best-fit");
    auto estimator = *make_estimator("oracle", 1);
    auto tuner = *make_cpu_tuner("aware", options);
    SimOptions sim;
    sim.truth = &truth;
    SimExecutor executor{trace, cluster, sim};
    Engine engine{{.trace = trace,
                   .cluster = cluster,
                   .policy = *policy,
                   .placement = *placement,
                   .estimator = *estimator,
                   .executor = executor,
                   .believed = believed,
                   .tuner = tuner.get()}};
    EXPECT_TRUE(engine.run().has_value());
    for (std::uint32_t i = 0; i < trace.jobs.size(); ++i)
      finish.push_back(to_seconds(engine.jobs().finished[JobId{i}]));
  }
};

TEST(CpuAware, CorrectsACurveThatMeasuredSpeedsContradict) {
  // GoogLeNet is believed to be content with 3 cores; it wants 11.
  Scenario scenario = poster_server({"GoogLeNet", "LanguageModel"}, 10'000);
  ProfileSet wrong = cpu_poster_models();
  wrong.add(cpu_model("GoogLeNet", 3));
  scenario.cluster = "1x2";
  scenario.node_cpus = 16;
  const TwoWorlds corrected{scenario, wrong, {}};
  const TwoWorlds never{scenario, wrong, {.check_interval = std::chrono::hours{1000}}};
  EXPECT_NEAR(never.finish[0], 10'000 / f(3, 11), 1);
  // Contradicted at 30, 60 and 90 s; the belief is wrong in shape, so that one correction may not
  // be enough, but the job runs at almost full speed for the rest.
  EXPECT_LT(corrected.finish[0], 10'000 * 1.1);
  EXPECT_NEAR(corrected.finish[1], 10'000, 1e-3);
}

TEST(CpuAware, GoodBeliefsAreNotTouched) {
  const Scenario scenario = poster_server(kVisionMix, 5000);
  const TwoWorlds checked{scenario, scenario.profiles, {}};
  const TwoWorlds never{scenario, scenario.profiles, {.check_interval = std::chrono::hours{1000}}};
  EXPECT_EQ(checked.finish, never.finish);
}

// Because such a policy would look for the job where it put it.
TEST(CpuTuner, MovesNobodyBesideAPolicyThatKeepsItsOwnBooks) {
  EXPECT_EQ(cpu_options_for(**make_policy("gandiva")).reschedule_interval, Duration::zero());
  EXPECT_EQ(cpu_options_for(**make_policy("srtf")).reschedule_interval, std::chrono::minutes{10});
}

TEST(CpuTuner, NobodyWaitsForCoresBesideAPolicyThatKeepsItsOwnBooks) {
  EXPECT_EQ(cpu_options_for(**make_policy("muri-s")).wait, Duration::zero());
  EXPECT_EQ(cpu_options_for(**make_policy("easy")).wait, std::chrono::seconds{60});
}

std::string complaint(std::string_view text, const std::string& policy = "fifo") {
  const auto tuner = make_cpu_tuner(text, **make_policy(policy));
  return tuner ? "" : tuner.error().text();
}

TEST(CpuTuner, TakesTheOptionsOfAware) {
  for (const std::string_view text :
       {"shared", "role", "bind", "aware", "aware:objective=sum", "aware:objective=fair-floor",
        "aware:objective=maxmin,leftover=deal", "aware:leftover=keep,wait=0,place=off",
        "aware:lend=off,check=1m,reschedule=0,move_cost=2m,moved_share=0.1"})
    EXPECT_EQ(complaint(text), "") << text;
}

TEST(CpuTuner, SaysWhatIsWrongWithOptions) {
  const auto says = [](std::string_view text, std::string_view part, const std::string& policy) {
    const std::string said = complaint(text, policy);
    EXPECT_NE(said.find(part), std::string::npos) << text << ": " << said;
  };
  says("clever", "known: shared, role, bind, aware", "fifo");
  says("role:wait=3s", "only aware takes options", "fifo");
  says("aware:", "'' is no option (write KEY=VALUE", "fifo");
  says("aware:sum", "'sum' is no option", "fifo");
  says("aware:objektive=sum", "'aware' has no such parameter (did you mean objective?)", "fifo");
  says("aware:objective=most", "must be one of fair-floor, sum, maxmin", "fifo");
  says("aware:leftover=spend", "--cpu aware:leftover=spend: must be one of keep, deal", "fifo");
  says("aware:wait=2m", "no job waits for cores beyond 60s", "fifo");
  says("aware:check=0", "must be more than zero", "fifo");
  says("aware:moved_share=2", "from 0 to 1", "fifo");
  says("aware:place=perhaps", "must be on or off", "fifo");
  says("aware:reschedule=5m", "tracks the jobs of its servers itself", "gandiva");
  EXPECT_EQ(complaint("aware:reschedule=0,wait=0", "gandiva"), "");
}

// Because an option that is read but not used would go unnoticed.
TEST(CpuTuner, OptionsReachTheAllocation) {
  const auto finish = [](std::string_view text) {
    Scenario scenario = poster_server(kVisionMix);
    auto tuner = *make_cpu_tuner(text, **make_policy("fifo"));
    scenario.tuner = tuner.get();
    return run(scenario).finish;
  };
  EXPECT_EQ(finish("aware:objective=fair-floor"), finish("aware"));
  EXPECT_GT(finish("aware:objective=sum")[0], finish("aware")[0]);
  EXPECT_LT(finish("aware:objective=maxmin")[0], finish("aware")[0]);  // OverFeat: 12 cores, not 6
}

/// Cores of a server are never given twice, at any instant.
class CoreAuditor final : public Observer {
 public:
  void instant_done(Time) override {
    std::vector<std::int64_t> used(engine->cluster().cluster().nodes.size());
    for (const auto& [job, slices] : held_) {
      if (!engine->jobs().is_running(job)) continue;
      for (const Slice& slice : slices)
        used[slice.node.value] += std::int64_t{engine->jobs().terms[job].cores_milli} * slice.gpus;
    }
    for (std::size_t i = 0; i < used.size(); ++i)
      EXPECT_LE(used[i], engine->cluster().cluster().nodes[i].cpus_milli);
  }
  void append(Time, const Action& action) override {
    if (begins_stretch(action.kind) || changes_devices(action.kind))
      held_[action.job] = {action.slices.begin(), action.slices.end()};
    if (ends_stretch(action.kind) || action.kind == ActionKind::Kill) held_.erase(action.job);
    cores_set_ += action.kind == ActionKind::SetCores ? 1 : 0;
  }
  int cores_set_ = 0;

 private:
  std::map<JobId, std::vector<Slice>> held_;
};

class EveryPolicyWithCores : public testing::TestWithParam<std::string> {};

TEST_P(EveryPolicyWithCores, EndsItsJobsWithinTheCoresThereAre) {
  for (const PolicyEntry& entry : policy_registry()) {
    for (std::uint64_t seed = 1; seed <= 12; ++seed) {
      Scenario scenario = random_scenario(seed, {.many_nodes = true});
      SCOPED_TRACE(entry.name + ", seed " + std::to_string(seed));
      scenario.policy = entry.name;
      if (entry.name == "antman") scenario.settings = {{"op", "q1"}, {"op_upgrade", "20"}};
      scenario.placement = "best-fit";
      scenario.node_cpus = 20;
      scenario.profiles = cpu_poster_models();
      scenario.effects = kOnlyCores;
      const char* const models[] = {"AlexNet", "GoogLeNet", "LanguageModel", "no such model"};
      for (std::size_t i = 0; i < scenario.jobs.size(); ++i) {
        scenario.jobs[i].model = models[i % 4];
        scenario.jobs[i].duration *= 100;  // long enough to be checked and moved
      }
      const CpuTunerOptions options = cpu_options_for(**make_policy(entry.name, scenario.settings));
      auto tuner = make_cpu_tuner(GetParam(), options);
      ASSERT_TRUE(tuner.has_value());
      scenario.tuner = tuner->get();
      CoreAuditor auditor;
      const Outcome outcome = run(scenario, &auditor);
      for (const JobState state : outcome.state)
        EXPECT_TRUE(state == JobState::Completed || state == JobState::Rejected);
      auto again = make_cpu_tuner(GetParam(), options);
      scenario.tuner = again->get();
      EXPECT_EQ(run(scenario).digest, outcome.digest);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Modes, EveryPolicyWithCores,
                         testing::Values("shared", "role", "bind", "aware"));

}  // namespace
}  // namespace berth::test::cpu_tests
