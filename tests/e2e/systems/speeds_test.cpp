// Systems that go by how fast jobs run: with how many devices, on which type, as jobs of their kind
// ran before.
#include <gtest/gtest.h>

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "e2e/systems/system.h"

namespace berth::test::speeds_tests {
namespace {

using nlohmann::json;

json elastic(json spec, int gpus, int estimate) {
  spec.update({{"gpus", gpus}, {"elastic", true}, {"estimate", estimate}});
  return spec;
}

int granted(const System& system, System::Job job) {
  return system.is(job, "running") ? system.view(job).value("granted", 0) : 0;
}

// --- Optimus

System::Json paced(const System& system, const std::string& name, const PacerOptions& options) {
  return elastic(system.pacer(name, options), 4, 120);
}

// A step of 40 ms, of which its estimate says that it takes a second: what it does with one device
// is far more than what is believed of four. Every device helps it all the same.
TEST(Optimus, GrowsAJobThatIsFasterThanItsEstimate) {
  System system{
      {.policy = "optimus", .settings = {{"interval", "5"}, {"overhead", "0"}}, .slots = 4}};
  json spec = elastic(system.pacer("grows", {.steps = 3000, .step_ms = 40}), 4, 3000);
  spec["iterations"] = 3000;
  const auto job = system.submit(spec);
  system.until("its pace is known", [&] {
    const json pace = system.view(job)["pace"];
    return pace.is_object() && pace["source"] == "reports" && pace["rate"] > 5;
  });
  EXPECT_NE(system.served().log().find(fmt::format("job={} attempt=1.1 devices=n0:0 ", job)),
            std::string::npos)
      << "it begins with one device";
  system.until("it has all four", [&] { return granted(system, job) == 4; });
}

// Both are believed to gain by devices until they have shown what they do with them.
TEST(Optimus, DevicesGoToWhoGetsFasterByThem) {
  System system{
      {.policy = "optimus", .settings = {{"interval", "6"}, {"overhead", "0"}}, .slots = 4}};
  const auto flat =
      system.submit(paced(system, "flat", {.steps = 9000, .step_ms = 40, .gains = 0}));
  const auto steep =
      system.submit(paced(system, "steep", {.steps = 9000, .step_ms = 40, .gains = 1}));
  system.until("the one that scales has three", [&] { return granted(system, steep) == 3; });
  EXPECT_EQ(granted(system, flat), 1);
}

// An epoch of 20 steps lowers the loss by less than a hundredth after nine; of 5,000 it is young.
TEST(Optimus, WhoseLossHardlyFallsAnyMoreNeedsNoDevices) {
  System system{
      {.policy = "optimus", .settings = {{"interval", "2"}, {"overhead", "0"}}, .slots = 4}};
  const auto trained =
      system.submit(paced(system, "trained", {.steps = 9000, .step_ms = 40, .epoch = 20}));
  const auto young =
      system.submit(paced(system, "young", {.steps = 9000, .step_ms = 40, .epoch = 5000}));
  system.until("the one that learns has three", [&] { return granted(system, young) == 3; });
  EXPECT_EQ(granted(system, trained), 1);
}

// --- Pollux and Sia

/// Mean completion time of a long job that asks for two of four devices and a short one that comes
/// later and asks for all of them.
double mean_completion(System& system, const std::string& names, bool is_elastic) {
  const auto asks = [&](const std::string& name, int steps, int gpus) {
    json spec = system.trainer(name + names, {.epochs = 1, .steps = steps, .step_ms = 80});
    spec.update({{"gpus", gpus}, {"estimate", 1000}});
    if (is_elastic) spec.update({{"gpus_min", 1}, {"gpus_max", 4}});
    return system.submit(spec);
  };
  const auto begun = [&](System::Job job) {
    const json view = system.view(job);
    return view.contains("training") && view["training"].is_object() &&
           view["training"]["iterations"] > 0;
  };
  const auto large = asks("long", 100, 2);
  system.until("the long one trains", [&] { return begun(large); });
  const auto brief = asks("short", 12, 4);
  double sum = 0;
  for (const auto job : {large, brief}) {
    const json end = system.ended(job);
    EXPECT_EQ(end["state"], "completed") << end.dump();
    sum += end["ended"].get<double>() - end["submitted"].get<double>();
  }
  // The process itself has been given all four, without a restart.
  const std::string said = system.served().folder().read(fmt::format("out/{}.out", large));
  EXPECT_EQ(said.find("goes on with 4 devices") != std::string::npos, is_elastic) << said;
  return sum / 2;
}

void expect_elastic_is_better(const std::string& policy) {
  System system{{.policy = policy,
                 .settings = {{"interval", "1"}, {"restart", "0"}, {"growth", "0"}},
                 .slots = 4}};
  std::vector<double> rigid, resized;
  for (int round = 0; round < 2; ++round) {
    rigid.push_back(mean_completion(system, fmt::format("-rigid-{}", round), false));
    resized.push_back(mean_completion(system, fmt::format("-elastic-{}", round), true));
  }
  EXPECT_LT(resized[0] + resized[1], 0.85 * (rigid[0] + rigid[1]))
      << fmt::format("{} and {}", resized, rigid);
}

TEST(Pollux, ResizesTheTrainerAndIsDoneEarlier) { expect_elastic_is_better("pollux"); }
TEST(Sia, ResizesTheTrainerAndIsDoneEarlier) { expect_elastic_is_better("sia"); }

// --- Gavel

/// Two devices of types that differ by a factor of four for one model and hardly for the other.
constexpr const char* kTwoTypes =
    "devices:\n"
    "  - {name: brisk, memory_gb: 16, speed: 1, idle_watts: 1, busy_watts: 2}\n"
    "  - {name: tardy, memory_gb: 16, speed: 0.5, idle_watts: 1, busy_watts: 2}\n"
    "groups:\n"
    "  - {nodes: fast, gpus: 1, type: brisk}\n"
    "  - {nodes: slow, gpus: 1, type: tardy}\n";
constexpr const char* kTwoModels =
    "devices: [brisk, tardy]\n"
    "profiles:\n"
    "  - {name: steep, like: resnet50, speeds: {brisk: 1, tardy: 0.25}}\n"
    "  - {name: flat, like: resnet50, speeds: {brisk: 1, tardy: 0.9}}\n";

/// A pacer that is as fast as its model is on the type of its node.
json on_types(const System& system, const std::string& model, double on_slow) {
  constexpr double kFast = 40;
  json spec = system.pacer(model, {.steps = 100'000, .step_ms = kFast});
  std::string line;
  for (const json& word : spec["command"]) line += "'" + word.get<std::string>() + "' ";
  spec.erase("command");
  spec["script"] =
      fmt::format("#!/bin/bash\n[ $BERTH_NODE = fast ] && ms={} || ms={}\nexec {} --step-ms $ms\n",
                  kFast, kFast * on_slow, line);
  spec.update({{"model", model}, {"estimate", 4000}});
  return spec;
}

TEST(Gavel, TheFastTypeGoesToWhoGainsMostByIt) {
  System system{{.policy = "gavel-throughput",
                 .settings = {{"round", "2"}, {"recompute", "1"}},
                 .more = "effects: device\n",
                 .cluster_text = kTwoTypes,
                 .profiles = kTwoModels}};
  const auto where = [&](System::Job job) {
    const json places = system.view(job)["where"];
    return places.is_array() && !places.empty() ? places[0]["node"].get<std::string>() : "";
  };
  const auto flat = system.submit(on_types(system, "flat", 1 / 0.9));
  system.until("it runs", [&] { return system.paces("flat") > 0; });
  EXPECT_EQ(where(flat), "fast");  // alone it is best off there as well
  const auto steep = system.submit(on_types(system, "steep", 4));
  system.until("both run where they should",
               [&] { return where(steep) == "fast" && where(flat) == "slow"; });
}

// --- what was learnt

TEST(Learnt, TheNextJobOfAKindIsKnownBeforeItReports) {
  System system{{.policy = "srtf"}};
  const auto export_of = [&] {
    return berth(system.served().folder(),
                 {"profiles", "export", "-o", "mine.yaml", "--server", system.served().socket()});
  };
  json spec = system.pacer("again", {.steps = 2000, .step_ms = 100});
  spec["iterations"] = 2000;
  const auto first = system.submit(spec);
  system.until("it is known", [&] {
    return export_of().exit == 0 &&
           system.served().folder().read("mine.yaml").find("name: again") != std::string::npos;
  });
  system.served().kill_now();
  ASSERT_TRUE(system.served().begin());
  static_cast<void>(system.served().ask("DELETE", fmt::format("/api/v1/jobs/{}", first)));
  static_cast<void>(system.ended(first));
  // This one never says anything, nor how long it is: 600 steps of 100 ms.
  json silent = system.script("again", "sleep 1000");
  silent["iterations"] = 600;
  const auto second = system.submit(silent);
  system.until("its length is believed", [&] {
    const json view = system.view(second);
    return view.contains("pace") && view["pace"].is_object() &&
           view["pace"].contains("seconds_left");
  });
  const double left = system.view(second)["pace"]["seconds_left"];
  EXPECT_GT(left, 0.9 * 60);
  EXPECT_LT(left, 2 * 60);  // an hour is what nobody knows better
  // The simulator reads the file, and finds the steps of 100 ms in it.
  ASSERT_EQ(export_of().exit, 0);
  const Ran model =
      berth(system.served().folder(), {"models", "again", "--profiles", "mine.yaml", "--json"});
  ASSERT_EQ(model.exit, 0) << model.err;
  const json known = json::parse(model.out);
  const double step = known["alpha"].get<double>() + 32 * known["beta"].get<double>();
  EXPECT_GT(step, 0.09) << model.out;
  EXPECT_LT(step, 0.2) << model.out;
  static_cast<void>(system.served().folder().file(
      "trace.csv", "job_id,submit_time,gpus,duration,model\na,0,1,100,again\nb,0,1,50,again\n"));
  const Ran simulated =
      berth(system.served().folder(), {"simulate", "--trace", "trace.csv", "--cluster", "1x1",
                                       "--policy", "srtf", "--profiles", "mine.yaml"});
  EXPECT_EQ(simulated.exit, 0) << simulated.err;
}

}  // namespace
}  // namespace berth::test::speeds_tests
