// Whose the energy is, by the model and by counters; parts add up to all.
#include "daemon/energy_meter.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

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
  EXPECT_EQ(meter.look(at(0)), 1.0);
  set_driver(folder, "draw 200 0 0 0");
  EXPECT_EQ(meter.look(at(2)), 1.0);
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
  meter.restore(kept, held, at(200));
  EXPECT_NEAR(meter.joules_of(1), 275 * 200, 1e-6);
  EXPECT_NEAR(meter.joules_of("bob"), 275 * 50, 1e-6);
  EXPECT_NEAR(meter.joules(NodeId{0}, NodeUse::Busy), 200 * (300 + 200 + 3 * 40) + 50 * 160, 1e-6);
  EXPECT_NEAR(sum(meter), meter.nobody() + meter.joules_of("ann") + meter.joules_of("bob"), 1e-3);
  // Job 2 is found to have ended at second 160: the rest of the time is nobody's.
  const double nobody = meter.nobody();
  EXPECT_NEAR(meter.take(2, at(160), at(200)), 275 * 10, 1e-6);
  EXPECT_NEAR(meter.joules_of("bob"), 275 * 10, 1e-6);
  EXPECT_NEAR(meter.nobody() - nobody, 275 * 40, 1e-6);
  EXPECT_NEAR(meter.take(1, at(200), at(200)), 275 * 200, 1e-6);
  EXPECT_EQ(meter.take(1, at(200), at(200)), 0);
}

TEST(EnergyMeter, WithoutATextWhoeverRunsIsChargedSinceItBegan) {
  const Cluster cluster = server();
  EnergyMeter meter{cluster, {}};
  meter.set_user(1, "ann");
  meter.restore("", std::vector<EnergyMeter::Held>{{1, NodeId{0}, 0b0001, at(50)}}, at(200));
  EXPECT_NEAR(meter.joules_of("ann"), 275 * 150, 1e-6);
  EXPECT_NEAR(meter.take(1, at(100), at(200)), 275 * 50, 1e-6);
}

TEST(EnergyMeter, ATextThatIsNoneIsTakenForNothing) {
  const Cluster cluster = server();
  for (const char* text :
       {"", "{", "[]", R"({"at":"noon"})", R"({"at":5,"nodes":7,"users":[1]})",
        R"({"at":0,"nodes":{"n0":["x",-5,1e300]},"nobody":-1,"users":{"a":null}})"}) {
    EnergyMeter meter{cluster, {}};
    meter.restore(text, {}, at(5));
    EXPECT_LE(sum(meter), 5 * (300 + 160)) << text;
    EXPECT_GE(meter.nobody(), 0) << text;
  }
}

}  // namespace
}  // namespace berth::test
