// What people and the surroundings do to a scheduler in a random life.
#include <fmt/format.h>

#include "policies/registry.h"
#include "support/random_life.h"

namespace berth::test {

namespace {

constexpr double kHour = 3600;

std::optional<JobNumber> pick(LiveService& service, std::vector<LiveState> states,
                              std::uint64_t number) {
  const auto page = service.jobs(kRoot, {.states = std::move(states), .limit = 1000});
  if (!page || page->jobs.empty()) return std::nullopt;
  return page->jobs[number % page->jobs.size()].number;
}

void act(LiveService& service, Verb verb, std::optional<JobNumber> job) {
  if (!job) return;
  static_cast<void>(service.act(kRoot, verb, {.states = {}, .numbers = {*job}}, "test", 0));
}

/// Does it, and takes it back after a while.
void for_a_while(LiveWorld& world, LiveService& service, Verb verb, Verb back,
                 std::optional<JobNumber> job, std::uint64_t number) {
  act(service, verb, job);
  const double later = world.seconds() + static_cast<double>(number / 64 % 7200);
  world.at(later, [back, job](LiveService& again) { act(again, back, job); });
}

void take_node_out(LiveWorld& world, LiveService& service, std::uint64_t number) {
  const auto nodes = service.nodes(kRoot);
  const std::string node = nodes[number / 4 % nodes.size()].name;
  const char* state = number % 2 == 0 ? "drain" : "down";
  static_cast<void>(service.set_node(kRoot, node, state, "test"));
  world.at(world.seconds() + static_cast<double>(number / 64 % 10'000), [node](LiveService& again) {
    static_cast<void>(again.set_node(kRoot, node, "resume", ""));
  });
}

void switch_policy(LiveService& service, std::uint64_t number) {
  const auto registry = policy_registry();
  const PolicyChoice choice = affordable(registry[number % registry.size()].name);
  static_cast<void>(service.set_policy(kRoot, choice.policy, choice.settings));
}

void set_share(LiveWorld& world, LiveService& service, std::uint64_t number) {
  ShareView share;
  share.kind = "user";
  share.name = fmt::format("u{}", number % 3);
  share.shares = 1 + static_cast<double>(number / 4 % 4);
  share.job_limit = static_cast<std::int32_t>(number / 16 % 3);
  static_cast<void>(service.set_share(kRoot, share));
  share.job_limit = 0;
  world.at(world.seconds() + kHour,
           [share](LiveService& again) { static_cast<void>(again.set_share(kRoot, share)); });
}

void fill_disk(LiveWorld& world, std::uint64_t number) {
  world.set_space_left(0);
  world.at(world.seconds() + static_cast<double>(number % 3600),
           [&world](LiveService&) { world.set_space_left(std::uint64_t{1} << 40U); });
}

}  // namespace

PolicyChoice affordable(const std::string& policy) {
  PolicyChoice choice{.policy = policy, .settings = {}};
  if (policy == "andreas") choice.settings = {{"max_it", "10"}};
  return choice;
}

void strike(LiveWorld& world, LiveService& service, const Strike& strike) {
  const std::uint64_t number = strike.number;
  // Of the disk and of launches it is counted when it strikes.
  if (strike.what != FaultClass::Disk && strike.what != FaultClass::Refusals)
    world.count_fault(to_string(strike.what));
  const auto any = [&] { return pick(service, {}, number / 8); };
  const auto running = [&] { return pick(service, {LiveState::Running}, number / 8); };
  switch (strike.what) {
    case FaultClass::Disk:
      world.fail_disk_after(number / 2 % 20, number % 2 == 0 ? DiskFault::Eio : DiskFault::Enospc);
      break;
    case FaultClass::FullDisk: fill_disk(world, number); break;
    case FaultClass::Refusals:
      world.host().refuse_launches(1 + static_cast<int>(number % 4));
      break;
    case FaultClass::Cancels: act(service, Verb::Cancel, any()); break;
    case FaultClass::Holds:
      for_a_while(world, service, Verb::Hold, Verb::Release, any(), number);
      break;
    case FaultClass::Requeues: act(service, Verb::Requeue, running()); break;
    case FaultClass::Suspends:
      for_a_while(world, service, Verb::Suspend, Verb::Resume, running(), number);
      break;
    case FaultClass::Policies: switch_policy(service, number); break;
    case FaultClass::Nodes: take_node_out(world, service, number); break;
    case FaultClass::Changes:
      if (const auto job = pick(service, {LiveState::Pending, LiveState::Held}, number / 8))
        static_cast<void>(
            service.change(kRoot, *job, fmt::format(R"({{"priority":{}}})", number % 5)));
      break;
    case FaultClass::Shares: set_share(world, service, number); break;
    case FaultClass::ClockJumps:
      world.jump_wall_clock((static_cast<double>(number % 7201) - kHour));
      break;
    default: break;  // crashes are armed elsewhere; the rest is in the host and in the jobs
  }
}

void heal(LiveService& service) {
  for (const NodeView& node : service.nodes(kRoot))
    static_cast<void>(service.set_node(kRoot, node.name, "resume", ""));
  static_cast<void>(service.act(kRoot, Verb::Release, {.states = {LiveState::Held}}, "", 0));
  static_cast<void>(service.act(kRoot, Verb::Resume, {.states = {LiveState::Suspended}}, "", 0));
}

}  // namespace berth::test
