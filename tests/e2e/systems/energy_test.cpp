// Nodes that are switched off and on by programs. The programs of these tests note what they were
// asked for and keep a file for each machine that is off, so that a job which starts on such a one
// is noticed.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <chrono>
#include <sstream>
#include <utility>

#include <fmt/format.h>

#include "e2e/systems/driver.h"
#include "e2e/systems/system.h"

namespace berth::test::energy_tests {
namespace {

using nlohmann::json;

constexpr const char* kCes =
    "ces:tick=1s,history=1,future=1,buffer=0,buffer_share=0,keep=0,warm_up=1000000,forecast=naive";

struct PowerTest {
  std::string manager = {};           // of `power:`; empty: the policy does it itself
  std::string suspend = "sleep 1\n";  // beside noting it
  std::string resume = "sleep 1\n";
  std::string more = {};
};

std::string program(const TempFolder& folder, const std::string& name, const std::string& text) {
  std::string path = folder.file(name, fmt::format("#!/bin/bash\ncd {}\n{}", folder.path(), text));
  ::chmod(path.c_str(), 0755);
  return path;
}

/// Lines of the configuration, and the programs.
auto power_of(const PowerTest& test) {
  return [test](const TempFolder& folder) {
    const std::string suspend =
        program(folder, "suspend", "echo suspend $1 >> asked\n" + test.suspend + "touch off.$1\n");
    const std::string resume =
        program(folder, "resume", "echo resume $1 >> asked\n" + test.resume + "rm -f off.$1\n");
    std::string lines = "power:\n";
    if (!test.manager.empty()) lines += fmt::format("  manager: \"{}\"\n", test.manager);
    lines += fmt::format("  suspend_program: {}\n  resume_program: {}\n", suspend, resume);
    lines += "  suspend_timeout: 0\n";
    return lines + test.more;
  };
}

std::string state_of(System& system, const std::string& node) {
  const auto reply = system.served().ask("GET", "/api/v1/nodes");
  if (!reply || reply->status != 200) return "?";
  const json all = json::parse(reply->body);
  for (const json& one : all.at("nodes"))
    if (one.at("name") == node) return one.at("state");
  return "none";
}

bool are(System& system, const std::string& state) {
  return state_of(system, "n0") == state && state_of(system, "n1") == state;
}

int asked(System& system, const std::string& what) {
  if (!system.served().folder().has("asked")) return 0;
  std::istringstream lines{system.served().folder().read("asked")};
  int count = 0;
  for (std::string line; std::getline(lines, line);) count += line.starts_with(what) ? 1 : 0;
  return count;
}

/// Complains if the machine it is on is off.
json careful(System& system, const std::string& name, const std::string& text) {
  const std::string folder = system.served().folder().path();
  return system.script(name, fmt::format("echo began >> $COUNT\n"
                                         "for node in $BERTH_NODE; do\n"
                                         "  [ -e {}/off.$node ] && echo OFF >> $COUNT\ndone\n{}",
                                         folder, text));
}

std::string why_of(System& system, System::Job job) {
  const Ran ran = berth(system.served().folder(),
                        {"why", std::to_string(job), "--server", system.served().socket()});
  return ran.out;
}

void sleeps_and_wakes(System& system) {
  system.until("both nodes are put to sleep", [&] { return are(system, "off"); });
  EXPECT_TRUE(system.served().folder().has("off.n0") && system.served().folder().has("off.n1"));
  const auto job = system.submit(careful(system, "woken", "sleep 1"));
  system.until("a node boots for it", [&] {
    return state_of(system, "n0") == "booting" || state_of(system, "n1") == "booting";
  });
  EXPECT_TRUE(system.is(job, "pending"));
  EXPECT_NE(why_of(system, job).find("boot"), std::string::npos) << why_of(system, job);
  EXPECT_EQ(system.ended(job)["state"], "completed");
  EXPECT_EQ(system.counted("woken"), "began\n");
  EXPECT_EQ(asked(system, "resume"), 1);
  system.until("it is put to sleep again", [&] { return are(system, "off"); });
  EXPECT_EQ(asked(system, "suspend"), 3);
}

TEST(Ces, ANodeIsSwitchedOffWhenIdleAndOnForAJob) {
  System system{{.policy = "fifo", .cluster = "2x1"}, power_of({.manager = kCes})};
  sleeps_and_wakes(system);
}

TEST(Andreas, ANodeIsSwitchedOffWhenIdleAndOnForAJob) {
  System system{{.policy = "andreas", .cluster = "2x1"}, power_of({})};
  sleeps_and_wakes(system);
}

// Killed while a node boots: the next life knows that it may not be used yet, asks again, and the
// job starts once it is there.
TEST(Andreas, KilledInTheMiddleOfABootItKnowsWhatIsOff) {
  System system{{.policy = "andreas", .cluster = "2x1"},
                power_of({.resume = "until [ -e go ]; do sleep 0.05; done\n"})};
  system.until("both nodes are put to sleep", [&] { return are(system, "off"); });
  const auto job = system.submit(careful(system, "woken", "sleep 0.1"));
  system.until("the program is asked", [&] { return asked(system, "resume") == 1; });
  system.served().kill_now();
  ASSERT_TRUE(system.served().begin());
  system.until("it is asked again", [&] { return asked(system, "resume") >= 2; });
  EXPECT_TRUE(system.is(job, "pending"));
  EXPECT_EQ(system.counted("woken"), "");
  static_cast<void>(system.served().folder().file("go", ""));
  EXPECT_EQ(system.ended(job)["state"], "completed");
  EXPECT_EQ(system.counted("woken"), "began\n");
}

// Nobody knows whether such a node is on: nothing starts there before the resume program has run.
TEST(Ces, ASuspendProgramThatFailsIsToldAndTheNodeComesBack) {
  System system{{.policy = "fifo", .cluster = "2x1"},
                power_of({.manager = kCes, .suspend = "echo no such chassis >&2; exit 3\n"})};
  system.until("both nodes count as off", [&] { return are(system, "off"); });
  const Ran nodes =
      berth(system.served().folder(), {"nodes", "--server", system.served().socket()});
  EXPECT_NE(nodes.out.find("exit 3: no such chassis"), std::string::npos) << nodes.out;
  const auto job = system.submit(careful(system, "woken", "sleep 0.1"));
  EXPECT_EQ(system.ended(job)["state"], "completed");
  EXPECT_EQ(asked(system, "resume"), 1);
  const std::string log = system.served().log();
  EXPECT_EQ(log.find("a program failed"), log.rfind("a program failed")) << log;
}

TEST(Ces, ASuspendProgramThatHangsIsKilled) {
  System system{{.policy = "fifo", .cluster = "2x1"},
                power_of({.manager = kCes,
                          .suspend = "sleep 1000 & sleep 1000\n",
                          .resume = "",
                          .more = "  program_timeout: 1\n"})};
  system.until("both nodes count as off", [&] { return are(system, "off"); });
  EXPECT_NE(system.served().log().find("killed after 1.0 s"), std::string::npos)
      << system.served().log();
  const auto job = system.submit(careful(system, "woken", "sleep 0.1"));
  EXPECT_EQ(system.ended(job)["state"], "completed");
}

// Tried three times, then it is down and another node is woken.
TEST(Ces, ANodeThatDoesNotBootIsDownAndAnotherIsWoken) {
  System system{{.policy = "fifo", .cluster = "2x1"},
                power_of({.manager = kCes, .resume = "[ $1 = n0 ] && exit 9\n"})};
  system.until("both nodes are put to sleep", [&] { return are(system, "off"); });
  const auto job = system.submit(careful(system, "woken", "sleep 0.1"));
  EXPECT_EQ(system.ended(job)["state"], "completed");
  EXPECT_EQ(state_of(system, "n0"), "down");
  EXPECT_EQ(asked(system, "resume n0"), 3);
}

TEST(Ces, AnExcludedNodeStaysOn) {
  System system{{.policy = "fifo", .cluster = "2x1"},
                power_of({.manager = kCes, .more = "  suspend_exc_nodes: [n1]\n"})};
  system.until("the other is put to sleep", [&] { return state_of(system, "n0") == "off"; });
  EXPECT_EQ(state_of(system, "n1"), "up");
  EXPECT_EQ(asked(system, "suspend n1"), 0);
}

// A policy that knows nothing of power must find all nodes.
TEST(Ces, WithoutAManagerWhatIsOffIsSwitchedOn) {
  System system{{.policy = "andreas", .cluster = "2x1"}, power_of({})};
  system.until("both nodes are put to sleep", [&] { return are(system, "off"); });
  const auto reply = system.served().ask("PUT", "/api/v1/policy", {{"policy", "fifo"}});
  ASSERT_TRUE(reply && reply->status == 200) << (reply ? reply->body : "");
  system.until("both are on", [&] { return are(system, "up"); });
  EXPECT_FALSE(system.served().folder().has("off.n0"));
}

// --- what it used

double joules_of(System& system, System::Job job) {
  return system.view(job)["energy_kwh"].get<double>() * 3.6e6;
}

double metric(System& system, const std::string& sample) {
  const auto reply = system.served().ask("GET", "/metrics");
  if (!reply || reply->status != 200) return -1;
  const std::size_t at = reply->body.find("\n" + sample + " ");
  return at == std::string::npos ? -1 : std::stod(reply->body.substr(at + sample.size() + 2));
}

// By the model, 300 W a device: the scheduler is killed while the job runs, and ends are known only
// to the next one.
TEST(Energy, OfAJobSurvivesTheScheduler) {
  System system{{.policy = "fifo", .slots = 1}};
  const auto job =
      system.submit(system.script("work", "touch began; until [ -e go ]; do sleep 0.05; done"));
  system.until("it runs", [&] { return system.served().folder().has("began"); });
  const auto begun = std::chrono::steady_clock::now();
  system.until("a second has passed",
               [&] { return std::chrono::steady_clock::now() - begun > std::chrono::seconds{1}; });
  EXPECT_GT(metric(system, "berth_user_energy_joules_total{user=\"root\"}"), 250);
  system.served().kill_now();
  static_cast<void>(system.served().folder().file("go", ""));
  ASSERT_TRUE(system.served().begin());
  const json end = system.ended(job);
  EXPECT_EQ(end["state"], "completed");
  const double watts = joules_of(system, job) / end["run_seconds"].get<double>();
  EXPECT_GT(watts, 200) << end.dump();
  EXPECT_LT(watts, 450) << end.dump();
  const Ran table = berth(system.served().folder(),
                          {"history", "--energy", "--server", system.served().socket()});
  EXPECT_NE(table.out.find(" Wh"), std::string::npos) << table.out;
  EXPECT_NE(table.out.find("root"), std::string::npos) << table.out;
  EXPECT_NE(table.out.find("booting"), std::string::npos) << table.out;
  const Ran exported =
      berth(system.served().folder(), {"export", "-o", "-", "--server", system.served().socket()});
  EXPECT_NE(exported.out.find(",energy_kwh\n"), std::string::npos) << exported.out;
  // An orderly end leaves the sums for the next life, by node and what it did.
  const double before =
      metric(system, "berth_node_energy_joules_total{node=\"n0\",state=\"busy\"}");
  EXPECT_GT(before, 250);
  EXPECT_EQ(system.served().stop(), 0);
  ASSERT_TRUE(system.served().begin());
  EXPECT_GE(metric(system, "berth_node_energy_joules_total{node=\"n0\",state=\"busy\"}"),
            before * 0.999);
  EXPECT_NEAR(metric(system, "berth_user_energy_joules_total{user=\"root\"}"),
              joules_of(system, job), 1);
}

/// "1.234 kWh" or "12.3 Wh" behind the words of a line of a table that begins so.
double watt_hours(const std::string& text, const std::string& beginning) {
  std::istringstream lines{text};
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with(beginning)) continue;
    std::istringstream words{line.substr(beginning.size())};
    std::string number, unit;
    for (std::string word; words >> word; number = std::exchange(unit, word)) {
      if (unit == "Wh" || unit == "kWh") break;
    }
    return std::stod(number) * (unit == "kWh" ? 1000 : 1);
  }
  return -1;
}

// Two that are over: what the report says is what the history, the API and /metrics say.
TEST(Energy, OfTheReportIsThatOfTheHistoryAndOfTheMetrics) {
  const Driver driver{2};
  driver.say("energy 1000 1000");
  System system{{.policy = "fifo", .slots = 2, .more = Driver::lines()}};
  std::vector<System::Job> jobs;
  for (const char* name : {"one", "two"}) {
    jobs.push_back(system.submit(system.script(
        name, fmt::format("touch began.{}; until [ -e go ]; do sleep 0.05; done", name))));
    system.until("it runs", [&] {
      return system.served().folder().has(fmt::format("began.{}", name)) &&
             system.is(jobs.back(), "running");
    });
  }
  driver.say("energy 361000 721000");  // 0.1 and 0.2 kWh
  static_cast<void>(system.served().folder().file("go", ""));
  double charged = 0;
  for (const auto job : jobs) {
    EXPECT_EQ(system.ended(job)["state"], "completed");
    charged += joules_of(system, job);
  }
  const double user = metric(system, "berth_user_energy_joules_total{user=\"root\"}");
  EXPECT_NEAR(user, charged, 1);
  EXPECT_GT(user, 1e6);
  const Ran report = berth(system.served().folder(), {"report", "--live", "-o", "energy.html",
                                                      "--server", system.served().socket()});
  ASSERT_EQ(report.exit, 0) << report.err;
  const Ran history = berth(system.served().folder(),
                            {"history", "--energy", "--server", system.served().socket()});
  EXPECT_NEAR(watt_hours(report.out, "root "), user / 3600, user / 3600 * 0.006) << report.out;
  EXPECT_NEAR(watt_hours(history.out, "root "), user / 3600, user / 3600 * 0.006) << history.out;
  const double busy = metric(system, "berth_node_energy_joules_total{node=\"n0\",state=\"busy\"}");
  EXPECT_NEAR(watt_hours(report.out, "n0 "), busy / 3600, busy / 3600 * 0.006) << report.out;
  EXPECT_NEAR(watt_hours(history.out, "n0 "), busy / 3600, busy / 3600 * 0.006) << history.out;
  const std::string page = system.served().folder().read("energy.html");
  const std::size_t at = page.find("{\"version\":1");
  ASSERT_NE(at, std::string::npos);
  const json data = json::parse(page.substr(at, page.find("</script>", at) - at));
  EXPECT_NEAR(data["live"]["users"][0]["kwh"].get<double>() * 3.6e6, user, 1);
  EXPECT_NEAR(data["live"]["nodes"][0]["kwh"]["busy"].get<double>() * 3.6e6, busy, 1);
  double by_job = 0;
  for (const json& job : data["live"]["jobs"]) by_job += job["kwh"].get<double>() * 3.6e6;
  EXPECT_NEAR(by_job, charged, 1);
}

// Killed while one node is off and a job runs on the other: for the time in which there was no
// scheduler the one is charged as off and the job its own.
TEST(Energy, OfANodeThatIsOffIsNothingWhileTheSchedulerIsAway) {
  System system{{.policy = "fifo", .cluster = "2x1"}, power_of({.manager = kCes, .suspend = ""})};
  system.until("both nodes are put to sleep", [&] { return are(system, "off"); });
  const auto job =
      system.submit(careful(system, "work", "touch began; until [ -e go ]; do sleep 0.05; done\n"));
  system.until("it runs", [&] { return system.served().folder().has("began"); });
  const std::string sleeper = state_of(system, "n0") == "off" ? "n0" : "n1";
  ASSERT_EQ(state_of(system, sleeper), "off");
  const auto idle = [&] {
    return metric(system,
                  "berth_node_energy_joules_total{node=\"" + sleeper + "\",state=\"idle\"}");
  };
  const double before = idle();
  EXPECT_GT(before, 0);
  system.served().kill_now();
  const auto killed = std::chrono::steady_clock::now();
  system.until("it was away for a while",
               [&] { return std::chrono::steady_clock::now() - killed > std::chrono::seconds{3}; });
  ASSERT_TRUE(system.served().begin());
  EXPECT_LE(idle(), before + 1e-6);
  EXPECT_EQ(state_of(system, sleeper), "off");
  static_cast<void>(system.served().folder().file("go", ""));
  const json end = system.ended(job);
  EXPECT_EQ(end["state"], "completed");
  const double watts = joules_of(system, job) / end["run_seconds"].get<double>();
  EXPECT_GT(watts, 200) << end.dump();
  EXPECT_LT(watts, 450) << end.dump();
}

TEST(Energy, OfDevicesIsTheDriversWhereItCounts) {
  const Driver driver{2};
  driver.say("energy 1000 1000");
  System system{{.policy = "fifo", .slots = 2, .more = Driver::lines()}};
  const auto job =
      system.submit(system.script("work", "touch began; until [ -e go ]; do sleep 0.05; done"));
  system.until("it runs", [&] { return system.served().folder().has("began"); });
  system.until("the meter has seen it", [&] {
    return joules_of(system, job) >= 0 &&
           metric(system, "berth_node_energy_joules_total{node=\"n0\",state=\"busy\"}") >= 0;
  });
  driver.say("energy 3601000 3601000");  // a kWh each
  static_cast<void>(system.served().folder().file("go", ""));
  EXPECT_EQ(system.ended(job)["state"], "completed");
  EXPECT_NEAR(joules_of(system, job), 3.6e6, 1);
  EXPECT_NEAR(metric(system, "berth_nobody_energy_joules_total"), 3.6e6, 1);
  EXPECT_EQ(metric(system, "berth_energy_source{part=\"devices\",source=\"nvml\"}"), 1);
  const Ran table =
      berth(system.served().folder(), {"history", "--server", system.served().socket()});
  EXPECT_NE(table.out.find("1.000 kWh"), std::string::npos) << table.out;
}

}  // namespace
}  // namespace berth::test::energy_tests
