// Synergy shares out host memory beside cores: a cache large enough for the data set is worth more
// than the proportional share of one that is not.
#include <gtest/gtest.h>

#include <map>
#include <string_view>

#include "support/cpu_models.h"
#include "support/run.h"

namespace berth::test {
namespace {

constexpr std::int64_t kServerMib = 512'000;  // 64,000 for each of 8 GPUs

/// 320 samples a second on the GPU, as many from one core; a data set of 200,000 MiB that storage
/// delivers 100 samples of a second: 100 / (1 - m / 200000) through a cache of m.
Profile reader() {
  Profile profile = cpu_model("reader", 1);
  profile.data = {.dataset_mib = 200'000, .sample_mib = 0.1, .storage_mib_per_second = 10};
  return profile;
}

Scenario server(const std::string& mode, int readers, int others, int servers = 1) {
  Scenario scenario;
  scenario.policy = "synergy";
  scenario.settings = {{"mode", mode}};
  scenario.cluster = std::to_string(servers) + "x8";
  scenario.placement = "best-fit";
  scenario.edit_cluster = [](Cluster& cluster) {
    for (Node& node : cluster.nodes) {
      node.cpus_milli = 24'000;
      node.memory_mib = kServerMib;
    }
  };
  scenario.effects = {.sharing = false, .cpu = true, .memory = true};
  scenario.profiles.add(reader());
  scenario.profiles.add(cpu_model("wants1", 1));
  scenario.profiles.add(cpu_model("wants9", 9));
  for (int i = 0; i < readers; ++i) scenario.jobs.push_back({.duration = 300, .model = "reader"});
  for (int i = 0; i < others; ++i) scenario.jobs.push_back({.duration = 300, .model = "wants1"});
  return scenario;
}

/// Neither memory nor cores of a server are given twice, at any instant.
class SideAuditor final : public Observer {
 public:
  void append(Time, const Action& action) override {
    memory_set += action.kind == ActionKind::SetMemory ? 1 : 0;
    if (begins_stretch(action.kind) || changes_devices(action.kind))
      held_[action.job] = {action.slices.begin(), action.slices.end()};
    if (ends_stretch(action.kind)) held_.erase(action.job);
  }
  void instant_done(Time) override {
    const auto& nodes = engine->cluster().cluster().nodes;
    std::vector<std::int64_t> memory(nodes.size());
    std::vector<std::int64_t> cores(nodes.size());
    for (const auto& [job, slices] : held_) {
      if (!engine->jobs().is_running(job)) continue;
      const Terms& terms = engine->jobs().terms[job];
      for (const Slice& slice : slices) {
        memory[slice.node.value] += std::int64_t{terms.host_memory_mib} * slice.gpus;
        cores[slice.node.value] += std::int64_t{terms.cores_milli} * slice.gpus;
      }
    }
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      EXPECT_LE(memory[i], nodes[i].memory_mib);
      EXPECT_LE(cores[i], nodes[i].cpus_milli);
      most = std::max(most, memory[i]);
    }
  }
  std::int64_t most = 0;
  int memory_set = 0;

 private:
  std::map<JobId, std::vector<Slice>> held_;
};

// Levels are 21333, 64000, 128000, 192000, 256000. Nine tenths of 320 a second need 287: 128000
// give 278, 192000 give 2500. Two readers at 192000 and six others at 21333 are 511,998 MiB.
TEST(SynergyMemory, AReaderGetsTheCacheItsDataSetNeeds) {
  SideAuditor auditor;
  const Outcome tune = run(server("tune", 2, 6), &auditor);
  for (std::size_t i = 0; i < 8; ++i) EXPECT_NEAR(tune.finish[i], 300, 1e-3) << i;
  EXPECT_EQ(auditor.most, 511'998);
  // With 64000 each: 100 / (1 - 0.32) = 147.06 of 320 a second.
  const Outcome fair = run(server("proportional", 2, 6));
  EXPECT_NEAR(fair.finish[0], 300 * 320 * 0.68 / 100, 1e-2);
  EXPECT_NEAR(fair.finish[2], 300, 1e-3);
  EXPECT_NEAR(run(server("greedy", 2, 6)).finish[0], 300, 1e-3);
  EXPECT_NEAR(run(server("opt", 2, 6)).finish[0], 300, 1e-3);
}

// Two of four readers find room for what they want (384,000); the others take the proportional
// share, and what still wants its 21333 makes one of the first two give its cache back.
TEST(SynergyMemory, ReadersGiveBackWhatOthersAreDue) {
  SideAuditor auditor;
  Scenario scenario = server("tune", 4, 4);
  for (std::size_t i = 0; i < 4; ++i) scenario.jobs[i].duration = 30'000;
  const Outcome tune = run(scenario, &auditor);
  scenario.settings = {{"mode", "proportional"}};
  const Outcome fair = run(scenario);
  for (std::size_t i = 0; i < 8; ++i) {
    EXPECT_EQ(tune.start[i], 0);
    EXPECT_LE(tune.finish[i], fair.finish[i] + 1e-3) << i;
  }
  EXPECT_LT(tune.sum_jct, 0.8 * fair.sum_jct);
  EXPECT_GT(auditor.memory_set, 0);  // once the four others have gone
}

// Without giving back: the third reader waits for its cache although GPUs and cores are free.
TEST(SynergyMemory, GreedyLeavesGpusIdleForMemory) {
  const Outcome greedy = run(server("greedy", 3, 0));
  EXPECT_EQ(greedy.start[0], 0);
  EXPECT_EQ(greedy.start[1], 0);
  EXPECT_EQ(greedy.start[2], 300);
  EXPECT_EQ(run(server("tune", 3, 0)).start[2], 0);
}

// Eight workers share 512,000 MiB: more than 64,000 each is not to be had on any server.
TEST(SynergyMemory, AGangKeepsWithinTheMemoryOfAServer) {
  Scenario scenario = server("greedy", 0, 0);
  scenario.jobs = {{.gpus = 8, .duration = 300, .model = "reader"}};
  SideAuditor auditor;
  const Outcome outcome = run(scenario, &auditor);
  EXPECT_EQ(outcome.start[0], 0);
  EXPECT_NEAR(outcome.finish[0], 300 * 320 * 0.68 / 100, 5);  // gangs talk: within 1 %
  EXPECT_EQ(auditor.most, kServerMib);
}

TEST(SynergyMemory, ServersThatDoNotSayTheirMemoryAreNotPackedByIt) {
  Scenario scenario = server("tune", 4, 4);
  scenario.edit_cluster = [](Cluster& cluster) {
    for (Node& node : cluster.nodes) node.cpus_milli = 24'000;
  };
  const Outcome outcome = run(scenario);
  for (const double finish : outcome.finish) EXPECT_NEAR(finish, 300, 1e-3);
}

TEST(SynergyMemory, NothingIsOverusedAndNobodyEndsLaterThanWithItsShare) {
  Rng rng{73};
  for (int round = 0; round < 20; ++round) {
    Scenario scenario = server("tune", 0, 0, 2);
    for (int gpus = 16; gpus > 0;) {  // everybody runs from the beginning
      const int k = std::min(gpus, 1 << rng.below(3));
      const char* const models[] = {"reader", "wants1", "wants9"};
      scenario.jobs.push_back({.gpus = k,
                               .duration = 200.0 + static_cast<double>(rng.below(3000)),
                               .model = models[rng.below(3)]});
      gpus -= k;
    }
    SideAuditor auditor;
    const Outcome tune = run(scenario, &auditor);
    scenario.settings = {{"mode", "proportional"}};
    SideAuditor fair_auditor;
    const Outcome fair = run(scenario, &fair_auditor);
    for (std::size_t i = 0; i < scenario.jobs.size(); ++i)
      EXPECT_LE(tune.finish[i], fair.finish[i] + 1e-3) << "job " << i << " of round " << round;
    for (const char* mode : {"greedy", "opt"}) {
      if (mode == std::string_view{"opt"} && round > 1) continue;  // an integer program per round
      scenario.settings = {{"mode", mode}, {"solver_nodes", "20"}};
      SideAuditor other;
      for (const JobState state : run(scenario, &other).state)
        EXPECT_EQ(state, JobState::Completed) << mode;
    }
  }
}

}  // namespace
}  // namespace berth::test
