// Whose the energy is, by the model and by counters; parts add up to all.
#include "daemon/energy_meter.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include <fmt/format.h>

#include "daemon/daemon.h"
#include "support/temporary_directory.h"

namespace berth::test {
namespace {

constexpr double kWattHour = 3600;

Cluster server() {
  Cluster cluster = *load_cluster("1x4");
  cluster.nodes.front().idle_watts = cluster.nodes.front().busy_watts = 300;
  cluster.pools.front().idle_watts = 40;
  cluster.pools.front().busy_watts = 200;
  return cluster;
}

Time at(double seconds) { return Time{seconds_to_duration(seconds)}; }

double sum(const EnergyMeter& meter) {
  double all = 0;
  for (std::size_t use = 0; use < kNodeUses; ++use)
    all += meter.joules(NodeId{0}, static_cast<NodeUse>(use));
  return all;
}

TEST(EnergyMeter, ADeviceIsItsHoldersAndTheServerIsSharedByDevices) {
  const Cluster cluster = server();
  EnergyMeter meter{cluster, {}};
  meter.set_user(1, "ann");
  meter.set_user(2, "bob");
  meter.observe(at(0), {{1, NodeId{0}, 0b0011}, {2, NodeId{0}, 0b0100}}, {NodeUse::Idle});
  meter.observe(at(3600), {{1, NodeId{0}, 0b0011}, {2, NodeId{0}, 0b0100}}, {NodeUse::Idle});
  EXPECT_NEAR(meter.joules_of(1), 550 * kWattHour, 1);
  EXPECT_NEAR(meter.joules_of("bob"), 275 * kWattHour, 1);
  EXPECT_NEAR(meter.nobody(), 115 * kWattHour, 1);
  EXPECT_NEAR(meter.joules(NodeId{0}, NodeUse::Busy), 940 * kWattHour, 1);
  EXPECT_NEAR(sum(meter), meter.nobody() + meter.joules_of("ann") + meter.joules_of("bob"), 1e-3);
}

TEST(EnergyMeter, ANodeThatIsOffUsesNothingAndABootIsNobodys) {
  const Cluster cluster = server();
  EnergyMeter meter{cluster, {}};
  meter.observe(at(0), {}, {NodeUse::Off});
  meter.observe(at(100), {}, {NodeUse::Booting});
  meter.observe(at(110), {}, {NodeUse::Idle});
  meter.observe(at(130), {}, {NodeUse::Off});
  EXPECT_EQ(meter.joules(NodeId{0}, NodeUse::Off), 0);
  EXPECT_NEAR(meter.joules(NodeId{0}, NodeUse::Booting), 4600, 1e-6);
  EXPECT_NEAR(meter.joules(NodeId{0}, NodeUse::Idle), 9200, 1e-6);
  EXPECT_NEAR(meter.nobody(), 13'800, 1e-6);
  const std::string text = meter.metrics(at(140));
  EXPECT_NE(text.find("berth_node_energy_joules_total{node=\"n0\",state=\"booting\"} 4600"),
            std::string::npos)
      << text;
}

TEST(EnergyMeter, AClockThatStandsOrGoesBackChargesNothing) {
  const Cluster cluster = server();
  EnergyMeter meter{cluster, {}};
  meter.observe(at(100), {}, {NodeUse::Idle});
  meter.observe(at(50), {}, {NodeUse::Idle});
  meter.observe(at(100), {}, {NodeUse::Idle});
  EXPECT_EQ(sum(meter), 0);
}

class Counters {
 public:
  explicit Counters(const std::string& root) : folder_(root + "/intel-rapl:0") {
    std::filesystem::create_directories(folder_);
    std::filesystem::create_directories(root + "/intel-rapl:0:0");
    write("max_energy_range_uj", 100'000'000);
    set(90'000'000);
  }
  void set(std::uint64_t microjoules) const { write("energy_uj", microjoules); }

 private:
  void write(const char* name, std::uint64_t number) const {
    std::ofstream{folder_ + "/" + name} << number << "\n";
  }
  std::string folder_;
};

TEST(EnergyMeter, CountersOfTheMachineWrapAndAreNotTrustedAfterAGap) {
  const TemporaryDirectory folder;
  const Counters counters{folder.path()};
  const Cluster cluster = server();
  EnergyMeter meter{cluster, {.rapl = Rapl{folder.path()}}};
  meter.observe(at(0), {}, {NodeUse::Idle});
  counters.set(5'000'000);  // over its end
  meter.observe(at(0.05), {}, {NodeUse::Idle});
  EXPECT_NEAR(sum(meter), 15 + 4 * 40 * 0.05, 1e-6);
  counters.set(6'000'000);
  meter.observe(at(1000.05), {}, {NodeUse::Idle});  // it may have wrapped more than once
  EXPECT_NEAR(sum(meter), 15 + 4 * 40 * 0.05 + (300 + 160) * 1000.0, 1e-6);
  EXPECT_NE(meter.metrics(at(1000.05)).find("berth_energy_gaps_total 1"), std::string::npos);
}

// The driver's counters are those of the fake library: see tests/exec/fake_nvml.cpp.
void set_driver(const TemporaryDirectory& folder, const std::string& text) {
  std::ofstream{folder.path() + "/gpus"} << text;
  ::setenv("FAKE_NVML_GPUS", (folder.path() + "/gpus").c_str(), 1);
}

TEST(EnergyMeter, DevicesAreMeasuredWhereTheDriverCounts) {
  const TemporaryDirectory folder;
  set_driver(folder, "energy 1000 2000 3000 4000");  // joules
  const Cluster cluster = server();
  EnergyMeter meter{cluster, {.gpus = GpuEnergy{BERTH_FAKE_NVML}}};
  meter.set_user(1, "ann");
  meter.observe(at(0), {{1, NodeId{0}, 0b0001}}, {NodeUse::Idle});
  set_driver(folder, "energy 1500 2010 3010 4010");
  meter.observe(at(100), {{1, NodeId{0}, 0b0001}}, {NodeUse::Idle});
  EXPECT_NEAR(meter.joules_of(1), 500 + 300 * 100 / 4.0, 1e-6);
  EXPECT_NEAR(sum(meter), 530 + 300 * 100, 1e-6);
  EXPECT_EQ(meter.source(), "nvml(gpus) model(servers)");
  // The driver was loaded anew: counters begin again, and the model stands in.
  set_driver(folder, "energy 5 2020 3020 4020");
  meter.observe(at(110), {}, {NodeUse::Idle});
  EXPECT_NEAR(meter.joules(NodeId{0}, NodeUse::Busy), 530 + 30000 + 2000 + 30 + 3000, 1e-6);
  EXPECT_NE(meter.metrics(at(110)).find("berth_energy_gaps_total 1"), std::string::npos);
}

TEST(EnergyMeter, DevicesThatTellTheirDrawAreLookedAt) {
  const TemporaryDirectory folder;
  set_driver(folder, "draw 100 0 0 0");  // watts
  const Cluster cluster = server();
  EnergyMeter meter{cluster, {.gpus = GpuEnergy{BERTH_FAKE_NVML}}};
  meter.set_user(1, "ann");
  meter.observe(at(0), {{1, NodeId{0}, 0b0001}}, {NodeUse::Idle});
  EXPECT_EQ(meter.sample(at(0)), 1.0);
  set_driver(folder, "draw 200 0 0 0");
  EXPECT_EQ(meter.sample(at(2)), 1.0);
  EXPECT_NEAR(meter.joules_of(1), 300 + 300 * 2 / 4.0, 1e-6);
  meter.observe(at(20), {}, {NodeUse::Idle});  // nobody has looked: the model
  EXPECT_NEAR(meter.joules(NodeId{0}, NodeUse::Busy), 300 + 600 + 18 * (300 + 200 + 3 * 40.0),
              1e-6);
}

TEST(EnergyMeter, TheNextLifeGoesOnFromThere) {
  const Cluster cluster = server();
  std::string kept;
  {
    EnergyMeter meter{cluster, {}};
    meter.set_keeper([&](std::string text) { kept = std::move(text); });
    meter.set_user(1, "ann");
    meter.observe(at(0), {{1, NodeId{0}, 0b0001}}, {NodeUse::Idle});
    meter.keep(at(100));
  }
  // Job 1 has run all the time, job 2 since second 150; the new life begins at second 200.
  EnergyMeter meter{cluster, {}};
  meter.set_user(1, "ann");
  meter.set_user(2, "bob");
  const std::vector<EnergyMeter::Held> held{{1, NodeId{0}, 0b0001, at(0)},
                                            {2, NodeId{0}, 0b0010, at(150)}};
  meter.restore(kept, held, {NodeUse::Idle}, at(200));
  EXPECT_NEAR(meter.joules_of(1), 275 * 200, 1e-6);
  EXPECT_NEAR(meter.joules_of("bob"), 275 * 50, 1e-6);
  EXPECT_NEAR(meter.joules(NodeId{0}, NodeUse::Busy), 200 * (300 + 200 + 3 * 40) + 50 * 160, 1e-6);
  EXPECT_NEAR(sum(meter), meter.nobody() + meter.joules_of("ann") + meter.joules_of("bob"), 1e-3);
  // Job 2 is found to have ended at second 160: from then on its device was idle, and nobody's.
  const double nobody = meter.nobody();
  EXPECT_NEAR(meter.take(2, at(160), at(200)), 275 * 10, 1e-6);
  EXPECT_NEAR(meter.joules_of("bob"), 275 * 10, 1e-6);
  EXPECT_NEAR(meter.nobody() - nobody, (75 + 40) * 40, 1e-6);
  EXPECT_NEAR(meter.joules(NodeId{0}, NodeUse::Busy), 200 * (300 + 200 + 3 * 40) + 10 * 160, 1e-6);
  EXPECT_NEAR(sum(meter), meter.nobody() + meter.joules_of("ann") + meter.joules_of("bob"), 1e-3);
  EXPECT_NEAR(meter.take(1, at(200), at(200)), 275 * 200, 1e-6);
  EXPECT_EQ(meter.take(1, at(200), at(200)), 0);
}

TEST(EnergyMeter, WhatNobodyLookedAtIsChargedAsTheNodeWas) {
  const Cluster cluster = server();
  const std::string kept = R"({"at":0,"nodes":{"n0":[0,0,0,0]}})";
  for (const NodeUse use : {NodeUse::Idle, NodeUse::Booting, NodeUse::Off}) {
    EnergyMeter meter{cluster, {}};
    meter.restore(kept, {}, {use}, at(3600));
    const double watts = use == NodeUse::Off ? 0 : 460;
    EXPECT_NEAR(meter.joules(NodeId{0}, use), watts * kWattHour, 1e-3) << to_string(use);
    EXPECT_NEAR(sum(meter), watts * kWattHour, 1e-3) << to_string(use);
    // And so until somebody looks.
    meter.keep(at(7200));
    EXPECT_NEAR(sum(meter), 2 * watts * kWattHour, 1e-3) << to_string(use);
  }
}

// Two share a device. What the first was charged is on record before it is known that the other
// had left earlier.
TEST(EnergyMeter, OfSeveralWhoEndedUnseenEachIsChargedItsPart) {
  const Cluster cluster = server();
  EnergyMeter meter{cluster, {}};
  meter.set_user(1, "ann");
  meter.set_user(2, "bob");
  const std::vector<EnergyMeter::Held> held{{1, NodeId{0}, 0b0001, at(0)},
                                            {2, NodeId{0}, 0b0001, at(0)}};
  meter.restore(R"({"at":0})", held, {NodeUse::Idle}, at(100));
  EXPECT_NEAR(meter.take(1, at(60), at(100)), 275.0 / 2 * 60, 1e-6);
  EXPECT_NEAR(meter.take(2, at(20), at(100)), 275.0 / 2 * 20, 1e-6);
  EXPECT_NEAR(meter.joules(NodeId{0}, NodeUse::Busy), 60 * (300 + 200 + 120), 1e-6);
  EXPECT_NEAR(meter.joules(NodeId{0}, NodeUse::Idle), 40 * 460, 1e-6);
  EXPECT_NEAR(meter.joules_of("ann"), 275.0 / 2 * 60, 1e-6);
  EXPECT_NEAR(sum(meter), meter.nobody() + meter.joules_of("ann") + meter.joules_of("bob"), 1e-3);
}

TEST(EnergyMeter, WhatHasNewsIsPutDownSoonAndOnce) {
  const Cluster cluster = server();
  EnergyMeter meter{cluster, {}};
  int kept = 0;
  meter.set_keeper([&](const std::string&) { ++kept; });
  meter.restore("", {}, {NodeUse::Idle}, at(0));
  meter.observe(at(1), {}, {NodeUse::Idle});
  EXPECT_EQ(kept, 0);
  meter.observe(at(2), {}, {NodeUse::Off});
  EXPECT_EQ(kept, 1);
  meter.observe(at(3), {}, {NodeUse::Booting});
  EXPECT_EQ(kept, 1);
  EXPECT_EQ(meter.sample(at(13)), 10.0) << "nothing else may happen for hours";
  EXPECT_EQ(kept, 2);
  EXPECT_EQ(meter.sample(at(3600)), 10.0);
  EXPECT_EQ(kept, 2);
}

// A journal as a killed scheduler has left it: an hour later another one reads it.
TEST(EnergyMeter, ReadsFromTheJournalWhichNodesWereOff) {
  const TemporaryDirectory folder;
  const MachineClock machine;
  const std::int64_t killed = 1'000'000'000;  // of the engine's clock
  {
    auto store = SqliteStore::open({.directory = folder.path()});
    ASSERT_TRUE(store) << store.error().text();
    auto ledger = (*store)->recover();
    ASSERT_TRUE(ledger);
    const auto write = [&](RecordBody body) {
      const Record record{Time{Duration{killed}}, machine.wall_micros(), std::move(body)};
      const auto change = ledger->replay(record);
      ASSERT_TRUE(change) << change.error().text();
      ASSERT_TRUE((*store)->append(record, *change));
    };
    const auto set = [&](const std::string& key, const std::string& value) {
      write(SettingRecord{.key = key, .value = value, .by = kSchedulerName});
    };
    write(LifeRecord{.generation = 1, .boot_id = machine.boot_id()});
    set("clock", fmt::format(R"({{"boot_id":"{}","boot":{},"at":{}}})", machine.boot_id(),
                             machine.boot_micros() - 3'600'000'000, killed));
    set("power/n0", "off");
    set("power/n1", "booting");
    set("power/n2", "off: the suspend program failed (exit 3): it may still be on");
    set("power/n3", "suspending");
    set(kEnergySetting, fmt::format(R"({{"at":{}}})", killed));
    JobSpec spec;
    spec.user = "root";
    spec.gpus = 1;
    spec.command = {"true"};
    write(SubmitRecord{.first = 1, .spec = spec});
    IntentRecord intent;
    intent.job = 1;
    intent.attempt = {1, 1};
    intent.where.push_back({.node = "n5", .devices = {0}, .cores = {}});
    intent.gpus = 1;
    write(std::move(intent));
    ASSERT_TRUE((*store)->commit());
  }
  std::filesystem::create_directories(folder.path() + "/run");
  DaemonOptions options;
  options.cluster = *load_cluster("6x1");
  for (Node& node : options.cluster.nodes) node.idle_watts = node.busy_watts = 100;
  options.cluster.pools.front().idle_watts = 0;
  options.cluster.pools.front().busy_watts = 50;
  options.state_dir = folder.path();
  options.run_dir = folder.path() + "/run";
  options.shim = "/bin/true";
  options.power.programs = {.suspend = "/bin/false", .resume = "/bin/true"};
  options.power.nvml_library = options.power.powercap = "";
  Logger log;
  const auto daemon = Daemon::open(std::move(options), log);
  ASSERT_TRUE(daemon) << daemon.error().text();
  const auto nodes = (*daemon)->service().nodes({});
  ASSERT_EQ(nodes.size(), 6U);
  const double hour = 100 * kWattHour, slack = 100 * 60;  // a busy machine
  const auto expect = [&](std::size_t node, NodeUse use, double joules) {
    for (std::size_t other = 0; other < kNodeUses; ++other) {
      const bool is_it = other == static_cast<std::size_t>(use);
      EXPECT_NEAR(nodes[node].energy_kwh[other] * kJoulesPerKwh, is_it ? joules : 0,
                  is_it ? slack : 0)
          << nodes[node].name << " " << kNodeUseNames[other];
    }
  };
  expect(0, NodeUse::Off, 0);
  expect(1, NodeUse::Booting, hour);
  expect(2, NodeUse::Idle, hour);
  expect(3, NodeUse::Idle, hour);
  expect(4, NodeUse::Idle, hour);
  expect(5, NodeUse::Busy, 1.5 * hour);
}

TEST(EnergyMeter, WithoutATextWhoeverRunsIsChargedSinceItBegan) {
  const Cluster cluster = server();
  EnergyMeter meter{cluster, {}};
  meter.set_user(1, "ann");
  meter.restore("", std::vector<EnergyMeter::Held>{{1, NodeId{0}, 0b0001, at(50)}}, {NodeUse::Idle},
                at(200));
  EXPECT_NEAR(meter.joules_of("ann"), 275 * 150, 1e-6);
  EXPECT_NEAR(meter.take(1, at(100), at(200)), 275 * 50, 1e-6);
}

TEST(EnergyMeter, ATextThatIsNoneIsTakenForNothing) {
  const Cluster cluster = server();
  for (const char* text :
       {"", "{", "[]", R"({"at":"noon"})", R"({"at":5,"nodes":7,"users":[1]})",
        R"({"at":0,"nodes":{"n0":["x",-5,1e300]},"nobody":-1,"users":{"a":null}})"}) {
    EnergyMeter meter{cluster, {}};
    meter.restore(text, {}, {NodeUse::Idle}, at(5));
    EXPECT_LE(sum(meter), 5 * (300 + 160)) << text;
    EXPECT_GE(meter.nobody(), 0) << text;
  }
}

}  // namespace
}  // namespace berth::test
