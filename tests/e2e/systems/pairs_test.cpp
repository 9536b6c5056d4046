// Systems that put two jobs on one device: who goes with whom, and what becomes of a pair that
// hurts. Pacers slow down beside each other as a test says.
#include <gtest/gtest.h>

#include <algorithm>

#include <fmt/format.h>

#include "e2e/systems/system.h"

namespace berth::test::pairs_tests {
namespace {

using nlohmann::json;

constexpr int kForever = 100'000;

json of_model(json spec, const std::string& model, int estimate) {
  spec.update({{"model", model}, {"estimate", estimate}});
  return spec;
}

bool both_run(const System& system, System::Job first, System::Job second) {
  return system.is(first, "running") && system.is(second, "running");
}

// --- Gandiva

constexpr const char* kAlike =
    "profiles:\n  - {name: rough, memory: {fixed_mib: 500, per_sample_mib: 1}}\n  - {name: meek, "
    "memory: {fixed_mib: 500, per_sample_mib: 1}}\n";

// Two servers of one device: on one a pair gets less done together than in turns, on the other
// hardly anybody notices. Both are tried; the first is taken apart and takes turns again.
TEST(Gandiva, APairThatHurtsIsTakenApartAndAnotherIsKept) {
  System system{{.policy = "gandiva",
                 .settings = {{"slice", "8"},
                              {"switch_cost", "0"},
                              {"tick", "8"},
                              {"pack_probe", "1"},
                              {"migration", "off"},
                              {"growing", "off"}},
                 .cluster_text = "groups:\n  - {nodes: 'n[1-2]', gpus: 1}\n",
                 .profiles = kAlike}};
  std::vector<System::Job> rough, meek;
  for (const char* number : {"1", "2"}) {
    rough.push_back(
        system.submit(of_model(system.pacer(std::string{"rough"} + number,
                                            {.steps = kForever, .step_ms = 40, .beside = 3}),
                               "rough", 1000)));
    meek.push_back(
        system.submit(of_model(system.pacer(std::string{"meek"} + number,
                                            {.steps = kForever, .step_ms = 40, .beside = 1.05}),
                               "meek", 1000)));
  }
  system.until("both pairs are tried", [&] {
    return both_run(system, rough[0], rough[1]) && both_run(system, meek[0], meek[1]);
  });
  system.until("the pair that hurts is taken apart",
               [&] { return !both_run(system, rough[0], rough[1]); });
  // Each has its turn by itself after that.
  for (const std::size_t which : {0U, 1U}) {
    system.until("a turn", [&] {
      return system.is(rough[which], "running") && !system.is(rough[1 - which], "running");
    });
  }
  EXPECT_TRUE(both_run(system, meek[0], meek[1]));
}

// --- AntMan

// Both have the one device; the guest makes fewer steps a second than alone, the guaranteed job as
// many as alone.
TEST(Antman, AGuestLivesOnWhatTheGuaranteedJobLeaves) {
  System system{{.policy = "antman"}};
  const std::string count =
      "trap 'exit 143' TERM\n"
      "exec 3<> <(:)\n"
      "for i in $(seq 100000); do read -t 0.02 -u 3 || true; echo $i > $COUNT; done";
  const auto steps = [&](const std::string& name) {
    const std::string text = system.counted(name);
    return text.empty() ? 0.0 : std::stod(text);
  };
  const auto run_seconds = [&](System::Job job) {
    return system.ended(job)["run_seconds"].get<double>();
  };
  std::vector<double> alone, beside, guest_alone, guest_beside;
  for (int round = 0; round < 3; ++round) {
    const std::string name = fmt::format("guest-{}", round);
    const TrainerOptions paced{.epochs = 1, .steps = 60, .step_ms = 40};
    const auto by_itself = system.submit(system.trainer(fmt::format("alone-{}", round), paced));
    alone.push_back(run_seconds(by_itself));
    json guest = system.script(name, count);
    guest["priority"] = -1;
    const auto guest_job = system.submit(guest);
    system.until("the guest runs", [&] { return steps(name) > 10; });
    const double before = steps(name);
    const auto began = std::chrono::steady_clock::now();
    system.until("it makes steps", [&] { return steps(name) > before + 40; });
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - began;
    guest_alone.push_back((steps(name) - before) / took.count());
    const auto firm = system.submit(system.trainer(fmt::format("firm-{}", round), paced));
    system.until("both run", [&] { return system.is(firm, "running"); });
    const double at_begin = steps(name);
    beside.push_back(run_seconds(firm));
    guest_beside.push_back((steps(name) - at_begin) / beside.back());
    EXPECT_TRUE(system.is(guest_job, "running"));
    static_cast<void>(system.served().ask("DELETE", fmt::format("/api/v1/jobs/{}", guest_job)));
    static_cast<void>(system.ended(guest_job));
  }
  // The best of each: other work on the cores makes a run longer, never shorter.
  EXPECT_LT(std::ranges::min(beside), 1.05 * std::ranges::min(alone));
  EXPECT_LT(median(guest_beside), 0.8 * median(guest_alone));
}

// --- Lucid

constexpr const char* kQuietAndBusy =
    "profiles:\n"
    "  - {name: quiet, memory: {fixed_mib: 500, per_sample_mib: 1}, gpu_utilisation: 0.1, "
    "memory_utilisation: 0.05}\n"
    "  - {name: busy, memory: {fixed_mib: 500, per_sample_mib: 1}, gpu_utilisation: 0.9, "
    "memory_utilisation: 0.6}\n";

TEST(Lucid, PacksWhomNobodyShouldNoticeAndTakesApartWhoIsNoticed) {
  System system{{.policy = "lucid",
                 .settings = {{"packing", "on"}, {"unpack", "on"}, {"trial", "6"}},
                 .profiles = kQuietAndBusy}};
  const PacerOptions hurts{.steps = kForever, .step_ms = 40, .beside = 2};
  const auto host = system.submit(of_model(system.pacer("host", hurts), "busy", 1000));
  system.until("the host trains", [&] { return system.paces("host") > 110; });
  const auto busy = system.submit(of_model(system.script("busy", "sleep 1000"), "busy", 10));
  const auto guest = system.submit(of_model(system.pacer("guest", hurts), "quiet", 100));
  system.until("they share the device", [&] { return both_run(system, host, guest); });
  EXPECT_EQ(system.view(host)["where"], system.view(guest)["where"]);
  EXPECT_TRUE(system.is(busy, "pending"));  // shorter, and it came first
  system.until("the newcomer is stopped", [&] { return system.is(guest, "pending"); });
  EXPECT_TRUE(system.is(host, "running"));
  EXPECT_EQ(system.view(host)["attempts"], 1);
}

TEST(Lucid, KeepsAPairThatDoesNotHurt) {
  System system{{.policy = "lucid",
                 .settings = {{"packing", "on"}, {"unpack", "on"}, {"trial", "5"}},
                 .profiles = kQuietAndBusy}};
  const auto host = system.submit(
      of_model(system.pacer("host", {.steps = kForever, .step_ms = 40}), "quiet", 1000));
  system.until("the host trains", [&] { return system.paces("host") > 100; });
  // Longer than the trial.
  const auto guest =
      system.submit(of_model(system.pacer("guest", {.steps = 170, .step_ms = 40}), "quiet", 100));
  EXPECT_EQ(system.ended(guest)["state"], "completed");
  EXPECT_EQ(system.view(guest)["attempts"], 1);
  EXPECT_TRUE(system.is(host, "running"));
}

// --- Muri

constexpr const char* kStages =
    "profiles:\n"
    "  - {name: prepares, memory: {fixed_mib: 500, per_sample_mib: 1}, stages: [0, 0.09, 0, 0]}\n"
    "  - {name: computes, memory: {fixed_mib: 500, per_sample_mib: 1}, stages: [0, 0, 0.1, 0]}\n"
    "  - {name: crunches, memory: {fixed_mib: 500, per_sample_mib: 1}, stages: [0, 0, 0.15, 0]}\n";

// One device and three jobs: who computes goes with who prepares data, not with who computes as
// well. All three together would make fewer steps than one.
TEST(Muri, GroupsThoseWhoseStagesTakeTurns) {
  System system{{.policy = "muri-s",
                 .settings = {{"interval", "1"}, {"overhead", "measured"}},
                 .profiles = kStages}};
  const PacerOptions paced{.steps = kForever, .step_ms = 40};
  const auto first = system.submit(of_model(system.pacer("first", paced), "computes", 1000));
  system.until("it runs", [&] { return system.is(first, "running"); });
  const auto alike = system.submit(of_model(system.pacer("alike", paced), "crunches", 2000));
  const auto other = system.submit(of_model(system.pacer("other", paced), "prepares", 3000));
  system.until("the two share the device", [&] { return both_run(system, first, other); });
  EXPECT_EQ(system.view(first)["where"], system.view(other)["where"]);
  EXPECT_TRUE(system.is(alike, "pending")) << system.view(alike).dump();
  EXPECT_EQ(system.view(first)["attempts"], 1);
}

// --- SJF-BSBF

// The host needs 3000 + 32 x 64 = 5,048 of 9,216 MiB. What it and the reserve leave takes a quarter
// of the newcomer's batch.
TEST(SjfBsbf, TheNewcomerSplitsItsBatch) {
  System system{{.policy = "sjf-bsbf",
                 .cluster_text =
                     "devices:\n"
                     "  - {name: toy, memory_gb: 9, speed: 1, idle_watts: 1, busy_watts: 2}\n"
                     "groups:\n  - {nodes: n1, gpus: 1, type: toy}\n"}};
  json host = system.trainer("host", {.epochs = 1000, .steps = 50, .step_ms = 40});
  host["estimate"] = 10'000;
  const auto first = system.submit(host);
  system.until("the host trains", [&] { return system.is(first, "running"); });
  json guest = system.trainer("guest", {.epochs = 1, .steps = 60, .step_ms = 40});
  guest["estimate"] = 5;
  const auto second = system.submit(guest);
  system.until("they share the device", [&] { return both_run(system, first, second); });
  EXPECT_EQ(system.view(first)["where"], system.view(second)["where"]);
  EXPECT_EQ(system.ended(second)["state"], "completed");
  const std::string said = system.served().folder().read(fmt::format("out/{}.out", second));
  EXPECT_NE(said.find("sub-steps 4\n"), std::string::npos) << said;
}

// The host has 130 s left and the guest needs 90: beside somebody of whom nothing is known that
// pays. Once it is measured that the host takes four times as long beside the guest it does not.
TEST(SjfBsbf, APairThatWasSeenToHurtIsNotMadeAgain) {
  System system{{.policy = "sjf-bsbf", .more = "estimator: limit\n"}};
  const auto submit = [&](const std::string& name, double beside, int estimate) {
    json spec = system.pacer(name, {.steps = kForever, .step_ms = 40, .beside = beside});
    spec["estimate"] = estimate;
    return system.submit(spec);
  };
  const auto begin_host = [&] {
    const int before = system.paces("host");
    const auto job = submit("host", 4, 130);
    system.until("the host trains", [&] { return system.paces("host") > before + 110; });
    return job;
  };
  const auto host = begin_host();
  const auto guest = submit("guest", 1, 90);
  system.until("they share the device", [&] { return both_run(system, host, guest); });
  system.until("it is known what that costs", [&] {
    return berth(system.served().folder(),
                 {"profiles", "export", "--server", system.served().socket()})
               .out.find("pairs:") != std::string::npos;
  });
  for (const auto job : {host, guest}) {
    static_cast<void>(system.served().ask("DELETE", fmt::format("/api/v1/jobs/{}", job)));
    static_cast<void>(system.ended(job));
  }
  const auto again = begin_host();
  const auto avoided = submit("guest", 1, 90);
  const auto stranger = submit("stranger", 1, 90);
  system.until("the stranger shares", [&] { return both_run(system, again, stranger); });
  EXPECT_TRUE(system.is(avoided, "pending"));
}

}  // namespace
}  // namespace berth::test::pairs_tests
