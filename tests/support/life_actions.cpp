// What people and the surroundings do to a scheduler in a random life.
#include <array>
#include <limits>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "model/job_spec_json.h"
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

using nlohmann::json;

/// Anything that stands in JSON, near the edges of what numbers can be.
json any_value(Rng& rng) {
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
  constexpr std::array<std::int64_t, 16> kWhole = {0,
                                                   -1,
                                                   1,
                                                   2,
                                                   1'000,
                                                   1'001,
                                                   2'147'483'647,
                                                   -2'147'483'648,
                                                   9'999,
                                                   86'401,
                                                   1'000'001,
                                                   4'294'967'296,
                                                   3'200'000'001,
                                                   kMost,
                                                   -kMost - 1,
                                                   100'000'000'000};
  constexpr std::array<double, 8> kReal = {0.0, -0.5, 1e-7, 1e-6, 1e6, 1e7, 1e300, -1e300};
  switch (rng.below(8)) {
    case 0: return kReal[rng.below(kReal.size())];
    case 1: return "";
    case 2: return std::string(1 + rng.below(400), '%');
    case 3: return fmt::format("afterany:{}", 1 + rng.below(40));
    case 4: return rng.below(2) == 0;
    case 5: return nullptr;
    case 6: return json::array({fmt::format("n{}", rng.below(4)), ""});
    default: return kWhole[rng.below(kWhole.size())];
  }
}

json any_keys(Rng& rng, json spec) {
  const auto& fields = job_spec_fields();
  for (std::uint64_t left = 1 + rng.below(3); left > 0; --left)
    spec[std::string(fields[rng.below(fields.size())].key)] = any_value(rng);
  spec.erase("command");  // the host of these lives knows no others
  return spec;
}

/// What was taken of it may wait for ever: somebody tidies up after a while.
void cancel_later(LiveWorld& world, JobNumber job, std::uint64_t number) {
  world.at(world.seconds() + static_cast<double>(number % 9000),
           [job](LiveService& again) { act(again, Verb::Cancel, job); });
}

void ask_anything(LiveWorld& world, LiveService& service, std::uint64_t number) {
  Rng rng{number};
  const auto job = pick(service, {}, rng.next());
  for (int i = 0; i < 4 && job; ++i)
    static_cast<void>(service.change(kRoot, *job, any_keys(rng, json::object()).dump()));
  if (job) {
    for (const Verb verb : {Verb::Hold, Verb::Suspend, Verb::Resume, Verb::Release, Verb::Requeue})
      if (rng.below(3) == 0) act(service, verb, job);
    cancel_later(world, *job, rng.next());
  }
  const JobSpec plain = spec_of({"run", "60"});
  if (auto spec = job_spec_from_json(any_keys(rng, to_json(plain)))) {
    spec->command = plain.command;
    spec->key.clear();
    if (const auto taken = service.submit(kRoot, *spec)) {
      world.acknowledge("", *taken);
      for (std::size_t i = 0; i < taken->count; ++i)
        cancel_later(world, taken->first + static_cast<JobNumber>(i), rng.next());
    }
  }
  ShareView share;
  share.kind = "user";
  share.name = "u9";
  share.shares = std::numeric_limits<double>::quiet_NaN();
  static_cast<void>(service.set_share(kRoot, share));
  share.shares = 1e300;
  share.gpu_limit = std::numeric_limits<std::int32_t>::max();
  static_cast<void>(service.set_share(kRoot, share));
  static_cast<void>(service.set_node(kRoot, "nowhere", "drain", ""));
  static_cast<void>(service.set_policy(kRoot, "none-such", {}));
  static_cast<void>(service.why(kRoot, std::numeric_limits<JobNumber>::max()));
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
    case FaultClass::Absurd: ask_anything(world, service, number); break;
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
