// Cores that go to whoever can use them, seen in what the programs are bound to: lent while a job
// validates, and found by trying. The server has two, and two devices.
#include <gtest/gtest.h>
#include <sched.h>

#include <thread>

#include <fmt/format.h>

#include "e2e/systems/driver.h"
#include "e2e/systems/system.h"

namespace berth::test::cores_tests {
namespace {

using nlohmann::json;

constexpr const char* kCluster = "groups:\n  - {nodes: n0, gpus: 2, type: v100, cpus: 2}\n";
/// Trains as fast as it can on one core, and validates as fast as it can on two.
constexpr const char* kValnet =
    "profiles:\n  - name: valnet\n"
    "    cpu: {log_gain: 0, linear_gain: 100, plateau: 100, theta: 1}\n"
    "    validation: {every_seconds: 1800, seconds: 120, log_gain: 0, linear_gain: 50,"
    " plateau: 100, theta: 2}\n";

bool has_two_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  return ::sched_getaffinity(0, sizeof set, &set) == 0 && CPU_COUNT(&set) >= 2;
}

/// To how many its program is bound; 0: it does not run.
int cores_of(System& system, System::Job job) {
  const json view = system.view(job);
  const auto pid = view.is_object() ? view.value("pid", pid_t{0}) : 0;
  cpu_set_t set;
  CPU_ZERO(&set);
  if (pid <= 0 || ::sched_getaffinity(pid, sizeof set, &set) != 0) return 0;
  return CPU_COUNT(&set);
}

/// What people are told of it.
std::size_t cores_shown(System& system, System::Job job) {
  const json view = system.view(job);
  return view["where"].empty() ? 0 : view["where"][0]["cores"].size();
}

System::Job submit_valnet(System& system, json spec) {
  spec["model"] = "valnet";
  return system.submit(spec);
}

// Nobody tells that it validates: its device falls idle while it uses its core. It gets the core
// that nobody holds, hands it over to a newcomer, and gets it again when that one has gone.
TEST(CpuModes, CoresGoToWhoeverValidatesAndBack) {
  if (!has_two_cores()) GTEST_SKIP() << "needs two cores";
  const Driver driver{2};
  driver.say("energy 1 1 busy 90 90");
  System system{{.policy = "fifo",
                 .more = "cpu: aware\n" + Driver::lines(),
                 .cluster_text = kCluster,
                 .profiles = kValnet}};
  const auto job =
      submit_valnet(system, system.script("busy", "while :; do :; done & while :; do :; done"));
  system.until("it trains on one core", [&] { return cores_of(system, job) == 1; });
  driver.say("energy 1 1 busy 10 10");
  system.until("it is seen to validate", [&] { return cores_of(system, job) == 2; });
  EXPECT_EQ(cores_shown(system, job), 2U);

  const auto newcomer = submit_valnet(system, system.script("other", "sleep 1000"));
  system.until("the other has its core",
               [&] { return cores_of(system, newcomer) == 1 && cores_of(system, job) == 1; });
  EXPECT_EQ(cores_shown(system, job), 1U);
  system.cancel(newcomer);
  system.until("it goes to whoever validates", [&] { return cores_of(system, job) == 2; });

  // What a phase is survives the scheduler: nothing is seen for a while, and nothing changes.
  system.restart();
  system.until("it is known again", [&] { return cores_of(system, job) > 0; });
  EXPECT_EQ(cores_of(system, job), 2);
  driver.say("energy 1 1 busy 90 90");
  system.until("it trains again", [&] { return cores_of(system, job) == 1; });
}

// The code says what it does, on a machine whose devices say nothing. What it says while nobody
// listens it says again to the next scheduler.
TEST(CpuModes, APhaseThatIsToldBringsCores) {
  if (!has_two_cores()) GTEST_SKIP() << "needs two cores";
  System system{
      {.policy = "fifo", .more = "cpu: aware\n", .cluster_text = kCluster, .profiles = kValnet}};
  const auto validates = [&](bool yes) {
    const std::string file = "out/told.validate";
    if (yes)
      static_cast<void>(system.served().folder().file(file, ""));
    else
      ASSERT_EQ(std::remove((system.served().folder() / file).c_str()), 0);
  };
  json spec = system.pacer("told", {.steps = 1'000'000, .step_ms = 20, .phases = true});
  const auto job = submit_valnet(system, spec);
  // Cores do not make it faster: it shows so on two and on one, and is left with one.
  system.until("it is measured", [&] { return cores_of(system, job) == 2; });
  system.until("it trains on one core", [&] { return cores_of(system, job) == 1; });
  validates(true);
  system.until("it validates on two", [&] { return cores_of(system, job) == 2; });
  validates(false);
  system.until("it gives the core back", [&] { return cores_of(system, job) == 1; });

  validates(true);
  system.until("it validates again", [&] { return cores_of(system, job) == 2; });
  system.restart();
  system.until("it is known again", [&] { return cores_of(system, job) > 0; });
  EXPECT_EQ(cores_of(system, job), 2);
  system.served().kill_now();
  validates(false);
  ASSERT_TRUE(system.served().begin());
  system.until("what it said meanwhile is heard", [&] { return cores_of(system, job) == 1; });
}

// A job that is twice as fast on two cores is measured once. Neither it nor the next one of its
// kind is measured again by the next scheduler.
TEST(CpuModes, ACurveSurvivesTheScheduler) {
  if (!has_two_cores()) GTEST_SKIP() << "needs two cores";
  System system{{.policy = "fifo", .more = "cpu: aware\n", .cluster_text = kCluster}};
  const auto had = [&](const std::string& name) {
    const std::string file = "out/" + name + ".cores";
    return system.served().folder().has(file) ? system.served().folder().read(file) : "";
  };
  const auto twice = [&](const std::string& name) {
    json spec = system.pacer(name, {.steps = 1'000'000, .step_ms = 40, .cores = 2});
    spec["name"] = "twice";
    spec["model"] = "twicenet";
    return spec;
  };
  const auto first = system.submit(twice("first"));
  system.until("it is measured on two cores, on one, and left with two",
               [&] { return had("first").ends_with("2 1 2 "); });
  const int measuring = system.paces("first");
  const std::string before = had("first");

  system.restart();
  system.until("it goes on for as long",
               [&] { return system.paces("first") > 2 * measuring + 100; });
  EXPECT_EQ(had("first"), before);
  system.cancel(first);

  const auto second = system.submit(twice("second"));
  system.until("the next one runs for as long",
               [&] { return system.paces("second") > measuring + 100; });
  EXPECT_EQ(had("second").find("2 1"), std::string::npos) << had("second");
  EXPECT_EQ(cores_of(system, second), 2) << had("second");
}

}  // namespace
}  // namespace berth::test::cores_tests
