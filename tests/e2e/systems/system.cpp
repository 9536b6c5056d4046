#include "e2e/systems/system.h"

#include <algorithm>
#include <cstdlib>
#include <fstream>

#include <sched.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace berth::test {

using nlohmann::json;

namespace {

/// Every process from here on sees this file as the machine's users; nobody else does.
bool mount_users(const std::string& file) {
  return ::unshare(CLONE_NEWNS) == 0 &&
         ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
         ::mount(file.c_str(), "/etc/passwd", nullptr, MS_BIND, nullptr) == 0;
}

/// The machine's users and these, who are other names of whoever runs the test.
std::string users_file(const TempFolder& folder, const std::vector<std::string>& users) {
  std::ifstream machine("/etc/passwd");
  std::string text{std::istreambuf_iterator<char>(machine), {}};
  for (const std::string& user : users)
    text += fmt::format("{}:x:{}:{}::/:/bin/sh\n", user, ::getuid(), ::getgid());
  return folder.file("passwd", text);
}

}  // namespace

bool can_have_users() {
  const TempFolder folder;
  const std::string file = users_file(folder, {});
  const pid_t child = ::fork();
  if (child == 0) std::_Exit(mount_users(file) ? 0 : 1);
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

System::System(const SystemOptions& options)
    : System(options, [](const TempFolder&) { return std::string{}; }) {}

System::System(const SystemOptions& options,
               const std::function<std::string(const TempFolder&)>& prepare) {
  const std::string cluster =
      options.cluster.empty() ? fmt::format("1x{}", options.slots) : options.cluster;
  std::string config = fmt::format("cluster: {}\nmin_run: 0\n", cluster);
  if (!options.cluster_text.empty())
    config = fmt::format("cluster: {}\nmin_run: 0\n",
                         served_.folder().file("cluster.yaml", options.cluster_text));
  if (!options.profiles.empty())
    config +=
        fmt::format("profiles: {}\n", served_.folder().file("profiles.yaml", options.profiles));
  config += fmt::format("policy: {}\n", options.policy);
  if (!options.settings.empty()) config += "set:\n";
  for (const auto& [key, value] : options.settings)
    config += fmt::format("  {}: \"{}\"\n", key, value);
  static_cast<void>(
      served_.folder().file("serve.yaml", config + options.more + prepare(served_.folder())));
  if (!options.users.empty()) {
    const std::string file = users_file(served_.folder(), options.users);
    served_.set_before([file] { return mount_users(file); });
  }
  EXPECT_TRUE(served_.begin()) << served_.log();
}

System::~System() {
  if (!served_.is_alive()) return;
  expect_went_on();
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
  say("--cores", options.cores);
  say("--phases", options.phases ? 1 : 0);
  return {{"command", command}, {"name", name}};
}

int System::paces(const std::string& name) const {
  const std::string file = "out/" + name + ".steps";
  return served_.folder().has(file) ? std::atoi(served_.folder().read(file).c_str()) : 0;
}

json System::script(const std::string& name, const std::string& text) const {
  return {{"script", fmt::format("#!/bin/bash\nFOLDER={0}\nCOUNT=$FOLDER/{1}.count\n"
                                 "begun() {{ echo {1} >> $FOLDER/order; }}\n"
                                 "told() {{ [ -e $FOLDER/told.$1 ]; }}\n{2}\n",
                                 served_.folder().path(), name, text)},
          {"name", name}};
}

std::string System::counted(const std::string& name) const {
  return served_.folder().has(name + ".count") ? served_.folder().read(name + ".count") : "";
}

int System::steps(const std::string& name) const {
  return static_cast<int>(std::ranges::count(counted(name), '\n'));
}

std::string System::order() const {
  std::string names = served_.folder().has("order") ? served_.folder().read("order") : "";
  std::ranges::replace(names, '\n', ' ');
  if (!names.empty()) names.pop_back();
  return names;
}

void System::tell(const std::string& word) const {
  static_cast<void>(served_.folder().file("told." + word, ""));
}

void System::cancel(Job job) {
  static_cast<void>(served_.ask("DELETE", fmt::format("/api/v1/jobs/{}", job)));
  static_cast<void>(ended(job));
}

double System::waited(Job job) const {
  const json record = view(job);
  return 1e-6 * (record["started"].get<double>() - record["submitted"].get<double>());
}

void System::restart() {
  served_.kill_now();
  EXPECT_TRUE(served_.begin()) << served_.log();
  ++restarts_;
}

/// Each life after the first has gone on with the engine of the last one.
void System::expect_went_on() const {
  const std::string log = served_.log();
  const std::string line = "the engine goes on where the last one stood";
  int lives = 0;
  for (auto at = log.find(line); at != std::string::npos; at = log.find(line, at + 1)) ++lives;
  EXPECT_GE(lives, restarts_) << "so many engines went on";
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

std::string steps_script(int steps) {
  return fmt::format(
      "touch $COUNT; while [ $(wc -l < $COUNT) -lt {} ]; do sleep 0.05; echo x >> $COUNT; done",
      steps);
}

std::string steps_until(const std::string& word) {
  return fmt::format("until told {}; do sleep 0.05; echo x >> $COUNT; done", word);
}

double median(std::vector<double> values) {
  std::ranges::sort(values);
  return values.empty() ? 0 : values[values.size() / 2];
}

}  // namespace berth::test
