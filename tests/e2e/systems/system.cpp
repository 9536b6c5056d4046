#include "e2e/systems/system.h"

#include <algorithm>

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace berth::test {

using nlohmann::json;

System::System(const SystemOptions& options) {
  std::string config = fmt::format("cluster: 1x{}\nmin_run: 0\n", options.slots);
  if (!options.cluster.empty()) {
    config = fmt::format("cluster: {}\nmin_run: 0\n",
                         served_.folder().file("cluster.yaml", options.cluster));
  }
  if (!options.profiles.empty())
    config +=
        fmt::format("profiles: {}\n", served_.folder().file("profiles.yaml", options.profiles));
  config += fmt::format("policy: {}\n", options.policy);
  if (!options.settings.empty()) config += "set:\n";
  for (const auto& [key, value] : options.settings)
    config += fmt::format("  {}: \"{}\"\n", key, value);
  static_cast<void>(served_.folder().file("serve.yaml", config + options.more));
  EXPECT_TRUE(served_.begin()) << served_.log();
}

System::~System() {
  if (!served_.is_alive()) return;
  for (const Job job : jobs_)
    static_cast<void>(served_.ask("DELETE", fmt::format("/api/v1/jobs/{}", job)));
  EXPECT_TRUE(eventually(
      [&] { return std::ranges::all_of(jobs_, [&](Job job) { return served_.is_over(job); }); }));
}

json System::trainer(const std::string& name, const TrainerOptions& options) const {
  constexpr int kBatch = 4;
  return {
      {"command",
       {BERTH_TRAINER, "--epochs", std::to_string(options.epochs), "--samples",
        std::to_string(options.steps * kBatch), "--batch", std::to_string(kBatch), "--rate",
        fmt::format("{}", options.rate), "--workers", "1", "--device-ms",
        fmt::format("{}", options.step_ms), "--checkpoint", served_.folder() / (name + ".ckpt")}},
      {"name", name}};
}

json System::pacer(const std::string& name, const PacerOptions& options) const {
  json command{BERTH_PACER, "--folder", served_.folder() / "out", "--name", name};
  const auto say = [&](const char* option, double value) {
    command.push_back(option);
    command.push_back(fmt::format("{}", value));
  };
  say("--steps", options.steps);
  say("--step-ms", options.step_ms);
  say("--gains", options.gains);
  say("--beside", options.beside);
  say("--epoch", options.epoch);
  say("--floor", options.floor);
  return {{"command", command}, {"name", name}};
}

int System::steps(const std::string& name) const {
  const std::string file = "out/" + name + ".steps";
  return served_.folder().has(file) ? std::atoi(served_.folder().read(file).c_str()) : 0;
}

json System::script(const std::string& name, const std::string& text) const {
  return {{"script", fmt::format("#!/bin/bash\nCOUNT={}/{}.count\n{}\n", served_.folder().path(),
                                 name, text)},
          {"name", name}};
}

std::string System::counted(const std::string& name) const {
  return served_.folder().has(name + ".count") ? served_.folder().read(name + ".count") : "";
}

System::Job System::submit(const json& spec) {
  json whole{{"gpus", 1},
             {"workdir", served_.folder().path()},
             {"output", (served_.folder() / "out/") + "%j.out"},
             {"open_mode", "append"},
             {"grace_seconds", 10}};
  whole.update(spec);
  const auto reply = served_.ask("POST", "/api/v1/jobs", whole);
  EXPECT_TRUE(reply && reply->status == 201) << (reply ? reply->body : "no answer");
  if (!reply || reply->status != 201) return 0;
  jobs_.push_back(json::parse(reply->body).at("job").get<Job>());
  return jobs_.back();
}

std::string System::refusal(const json& spec) {
  json whole{{"gpus", 1}, {"workdir", served_.folder().path()}};
  whole.update(spec);
  const auto reply = served_.ask("POST", "/api/v1/jobs", whole);
  EXPECT_TRUE(reply && reply->status >= 400 && reply->status < 500)
      << (reply ? reply->body : "no answer");
  return reply ? reply->body : "";
}

json System::ended(Job job) {
  EXPECT_TRUE(eventually([&] { return served_.is_over(job); })) << served_.view_of(job).dump();
  return served_.view_of(job);
}

void System::until(const std::string& what, const std::function<bool()>& condition) {
  EXPECT_TRUE(eventually(condition)) << what;
}

double median(std::vector<double> values) {
  std::ranges::sort(values);
  return values.empty() ? 0 : values[values.size() / 2];
}

}  // namespace berth::test
