#include "support/busy_day.h"

#include <fmt/format.h>

namespace berth::test {

namespace {

void submit(LiveWorld& world, double at, JobSpec spec, std::string key) {
  spec.key = std::move(key);
  world.at(
      at, [&world, spec](LiveService& service) { static_cast<void>(world.submit(service, spec)); });
}

JobFilter only(JobNumber job) { return {.states = {}, .numbers = {job}}; }

/// To every job that runs this program and is not over.
void act_on(LiveService& service, const std::string& program, Verb verb) {
  const auto page = service.jobs(kRoot, {.states = {}, .limit = 1000});
  for (const JobView& job : page->jobs) {
    if (job.spec->command.front() == program)
      static_cast<void>(service.act(kRoot, verb, only(job.number), "", 0));
  }
}

void write_jobs(LiveWorld& world) {
  submit(world, 1, spec_of({"run", "40"}, 4), "gang");
  JobSpec array = spec_of({"run", "15"}, 1);
  array.array = ArraySpec{.indices = {0, 1, 2, 3, 4}, .at_once = 2};
  submit(world, 2, array, "array");
  for (int i = 0; i < 6; ++i)
    submit(world, 3 + i, spec_of({"run", std::to_string(20 + 3 * i)}, 1 + i % 2),
           fmt::format("s{}", i));
  JobSpec urgent = spec_of({"run", "10"}, 4);
  urgent.priority = 9;
  submit(world, 12, urgent, "urgent");
  submit(world, 13, spec_of({"stubborn", "400"}, 1), "stubborn");
  JobSpec flaky = spec_of({"flaky", "5", "1"}, 1);
  flaky.max_retries = 2;
  submit(world, 14, flaky, "flaky");
  JobSpec after = spec_of({"run", "5"}, 1);
  after.dependencies = {{DependencyKind::AfterAny, 1}};
  submit(world, 15, after, "after");
  after.dependencies = {{DependencyKind::AfterOk, 1}};
  submit(world, 16, after, "after-ok");
  JobSpec limited = spec_of({"run", "4000"}, 1);
  limited.time_limit = 25;
  submit(world, 20, limited, "limited");
  submit(world, 22, spec_of({"run", "3", "7"}, 1), "fails");
  JobSpec wide = spec_of({"run", "12"}, 8);
  submit(world, 90, wide, "both-nodes");
  for (int i = 0; i < 10; ++i)
    submit(world, 95 + 2 * i, spec_of({"run", std::to_string(4 + i)}, 1 + i % 4),
           fmt::format("t{}", i));
  JobSpec pairs = spec_of({"run", "6"}, 2);
  pairs.array = ArraySpec{.indices = {0, 1, 2, 3}, .at_once = 0};
  submit(world, 120, pairs, "pairs");
  for (int i = 0; i < 3; ++i) {
    JobSpec single = spec_of({"run", "7"}, 1);
    single.name = "chain";
    single.dependencies = {{DependencyKind::Singleton, 0}};
    submit(world, 125 + i, single, fmt::format("chain{}", i));
  }
  submit(world, 130, spec_of({"sleeper", "300"}, 1), "sleeper");
}

}  // namespace

WorldOptions busy_options() {
  WorldOptions options;
  options.cluster = "2x4";
  options.scheduling.policy = {.policy = "priority", .settings = {{"preempt_classes", "5"}}};
  return options;
}

void write_busy_script(LiveWorld& world) {
  write_jobs(world);
  world.at(30, [](LiveService& service) {
    static_cast<void>(
        service.act(kRoot, Verb::Requeue, {.states = {LiveState::Running}, .user = "root"}, "", 0));
  });
  world.at(45, [](LiveService& service) {
    static_cast<void>(service.set_node(kRoot, "n1", "down", "test"));
  });
  world.at(60, [](LiveService& service) {
    static_cast<void>(service.set_node(kRoot, "n1", "resume", ""));
  });
  world.at(70, [](LiveService& service) {
    static_cast<void>(service.set_policy(kRoot, "fifo-skip", {}));
  });
  world.at(80, [](LiveService& service) { act_on(service, "stubborn", Verb::Cancel); });
  world.at(200, [](LiveService& service) { act_on(service, "sleeper", Verb::Suspend); });
  world.at(400, [](LiveService& service) { act_on(service, "sleeper", Verb::Resume); });
}

Ends ends_of(const LiveWorld& world) {
  Ends ends;
  for (const auto& [number, view] : world.over())
    ends[fmt::format("{}#{}", view.spec->key, view.array_index)] = view.state;
  return ends;
}

CalmDay calm_day() {
  LiveWorld world{busy_options()};
  write_busy_script(world);
  world.run();
  return {ends_of(world), world.points_passed(), world.violations()};
}

namespace {

std::vector<std::string> wrong_in(LiveWorld& world, const CalmDay& calm) {
  std::vector<std::string> wrong = world.violations();
  const Ends ends = ends_of(world);
  for (const auto& [job, state] : calm.ends) {
    const auto found = ends.find(job);
    const std::string_view got = found == ends.end() ? "lost" : to_string(found->second);
    if (got != to_string(state))
      wrong.push_back(fmt::format("ends: {} is {}, not {}", job, got, to_string(state)));
  }
  if (ends.size() != calm.ends.size()) wrong.push_back("ends: other jobs than on a calm day");
  return wrong;
}

}  // namespace

std::vector<std::string> disturbed_day(std::uint64_t point, CrashKind kind, const CalmDay& calm) {
  LiveWorld world{busy_options()};
  write_busy_script(world);
  world.crash_at(point, kind);
  world.run();
  std::vector<std::string> wrong = wrong_in(world, calm);
  if (world.lives() != 2) wrong.push_back(fmt::format("it lived {} times", world.lives()));
  return wrong;
}

SecondCrash twice_disturbed_day(const CrashPair& pair, const CalmDay& calm) {
  LiveWorld world{busy_options()};
  write_busy_script(world);
  world.crash_at(pair.first, pair.first_kind);
  if (!world.live()) return {{"the first crash did not come"}, false};
  world.crash_at(pair.second, pair.second_kind);
  const bool died = world.live();
  const bool in_recovery = died && world.died_in_recovery();
  if (died) world.run();
  return {wrong_in(world, calm), in_recovery};
}

}  // namespace berth::test
