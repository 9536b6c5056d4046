// Whose the energy is, by the model and by counters; parts add up to all.
#include "daemon/energy_meter.h"

#include <gtest/gtest.h>

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
  EnergyMeter meter{cluster, Rapl{"/nowhere"}};
  meter.set_user(1, "ann");
  meter.set_user(2, "bob");
  meter.observe(at(0), {{1, NodeId{0}, 2}, {2, NodeId{0}, 1}}, {NodeUse::Idle});
  meter.observe(at(3600), {{1, NodeId{0}, 2}, {2, NodeId{0}, 1}}, {NodeUse::Idle});
  EXPECT_NEAR(meter.joules_of(1), 550 * kWattHour, 1);
  EXPECT_NEAR(meter.joules_of("bob"), 275 * kWattHour, 1);
  EXPECT_NEAR(meter.nobody(), 115 * kWattHour, 1);
  EXPECT_NEAR(meter.joules(NodeId{0}, NodeUse::Busy), 940 * kWattHour, 1);
  EXPECT_NEAR(sum(meter), meter.nobody() + meter.joules_of("ann") + meter.joules_of("bob"), 1e-3);
}

TEST(EnergyMeter, ANodeThatIsOffUsesNothingAndABootIsNobodys) {
  const Cluster cluster = server();
  EnergyMeter meter{cluster, Rapl{"/nowhere"}};
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
  EnergyMeter meter{cluster, Rapl{"/nowhere"}};
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
  EnergyMeter meter{cluster, Rapl{folder.path()}};
  meter.observe(at(0), {}, {NodeUse::Idle});
  counters.set(5'000'000);  // over its end
  meter.observe(at(0.05), {}, {NodeUse::Idle});
  EXPECT_NEAR(sum(meter), 15 + 4 * 40 * 0.05, 1e-6);
  counters.set(6'000'000);
  meter.observe(at(1000.05), {}, {NodeUse::Idle});  // it may have wrapped more than once
  EXPECT_NEAR(sum(meter), 15 + 4 * 40 * 0.05 + (300 + 160) * 1000.0, 1e-6);
  EXPECT_NE(meter.metrics(at(1000.05)).find("berth_energy_gaps_total 1"), std::string::npos);
}

}  // namespace
}  // namespace berth::test
