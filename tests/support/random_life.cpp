#include "support/random_life.h"

#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/format.h>

#include "policies/registry.h"

namespace berth::test {

namespace {

constexpr std::array<std::string_view, kFaultClasses> kNames = {
    "kill",     "power",       "controller",  "in-recovery", "disk",       "full-disk",
    "refusals", "late-claims", "shim-deaths", "late-events", "twice-told", "stubborn",
    "flaky",    "cancels",     "holds",       "requeues",    "suspends",   "policies",
    "nodes",    "changes",     "shares",      "clock-jumps", "repeats",    "narrow",
    "absurd",   "late-wakes",  "reports",     "slow-passes"};

constexpr double kDay = 86'400;

double log_uniform(Rng& rng, double least, double most) {
  return least * std::pow(most / least, rng.uniform());
}

std::int32_t below(Rng& rng, std::int32_t limit) {
  return static_cast<std::int32_t>(rng.below(static_cast<std::uint64_t>(limit)));
}

JobSpec draw_job(Rng rng, std::int32_t gpus, const LifeSettings& settings) {
  const auto one_in = [&](std::uint64_t n) { return rng.below(n) == 0; };
  const std::int32_t wide = std::max(1, gpus >> below(rng, 4));
  const double length = std::min(6 * 3600.0, rng.lognormal(std::log(900.0), 1.5));
  JobSpec spec = spec_of({"run", fmt::format("{:.3f}", length)}, 1 + below(rng, wide));
  spec.user = fmt::format("u{}", rng.below(3));
  spec.group = fmt::format("g{}", rng.below(2));
  spec.name = fmt::format("n{}", rng.below(4));
  spec.model = one_in(2) ? "resnet50" : "vgg16";
  spec.priority = below(rng, 3);
  if (one_in(2)) spec.estimate = static_cast<std::int64_t>(length * (0.5 + rng.uniform())) + 1;
  if (one_in(6)) spec.time_limit = static_cast<std::int64_t>(length * (0.3 + rng.uniform())) + 1;
  if (one_in(4)) {
    spec.gpus_min = 1;
    spec.gpus_max = std::max(spec.gpus, wide);
  }
  if (one_in(8)) spec.array = ArraySpec{.indices = {0, 1, 2}, .at_once = below(rng, 3)};
  if (one_in(8)) spec.dependencies = {{DependencyKind::Singleton, 0}};
  if (one_in(12)) spec.requeue = false;
  if (one_in(12)) spec.hold = true;
  spec.grace_seconds = 1 + below(rng, 60);
  if (settings.has(FaultClass::Stubborn) && one_in(4)) spec.command.front() = "stubborn";
  if (settings.has(FaultClass::Flaky) && one_in(3)) {
    spec.command = {"flaky", spec.command[1], std::to_string(1 + rng.below(3))};
    spec.max_retries = below(rng, 4);
  }
  return spec;
}

/// A job takes 1.5 ms from its intent to its first step, if its shim is not late.
void draw_narrow_strikes(Rng rng, LifeSettings& settings) {
  for (auto what = FaultClass::Cancels; what < FaultClass::Narrow;
       what = static_cast<FaultClass>(static_cast<int>(what) + 1)) {
    const double at = settings.jobs[rng.below(settings.jobs.size())].first;
    const Strike strike{at + rng.uniform() * 2e-3, what, rng.next(), Moment::Narrow};
    if (settings.has(what)) settings.strikes.push_back(strike);
  }
  const double at = settings.jobs[rng.below(settings.jobs.size())].first;
  const Strike full{at + rng.uniform() * 2e-3, FaultClass::FullDisk, rng.next(), Moment::Narrow};
  if (settings.has(FaultClass::FullDisk)) settings.strikes.push_back(full);
}

void draw_strikes(Rng rng, LifeSettings& settings) {
  for (std::size_t i = 0; i < kFaultClasses; ++i) {
    const auto what = static_cast<FaultClass>(i);
    Rng own = rng.fork(kNames[i]);
    if (!settings.has(what)) continue;
    if (what == FaultClass::LateClaims || what == FaultClass::ShimDeaths ||
        what == FaultClass::LateEvents || what == FaultClass::TwiceTold ||
        what == FaultClass::Stubborn || what == FaultClass::Flaky || what == FaultClass::Narrow ||
        what == FaultClass::LateWakes || what == FaultClass::Reports ||
        what == FaultClass::SlowPasses)
      continue;  // they are in the host and in the jobs; or see below
    const auto count = static_cast<int>(log_uniform(own, 1, 9));
    for (int n = 0; n < count; ++n)
      settings.strikes.push_back({own.uniform() * settings.days * kDay, what, own.next()});
  }
  if (settings.has(FaultClass::Narrow)) draw_narrow_strikes(rng.fork("narrow"), settings);
  std::ranges::stable_sort(settings.strikes, {}, &Strike::at);
}

void draw_host(Rng rng, LifeSettings& settings) {
  SimHost::Options& host = settings.host;
  host.seed = rng.next();
  if (settings.has(FaultClass::LateClaims))
    host.claim_delay = static_cast<SimHost::Micros>(log_uniform(rng, 1e3, 3e7));
  if (settings.has(FaultClass::ShimDeaths)) {
    host.dies_unclaimed = log_uniform(rng, 0.01, 0.2);
    host.dies_claimed = log_uniform(rng, 0.01, 0.2);
    host.dies_unrecorded = log_uniform(rng, 0.01, 0.2);
  }
  if (settings.has(FaultClass::LateEvents))
    host.told_late = static_cast<SimHost::Micros>(log_uniform(rng, 1e3, 3e7));
  if (settings.has(FaultClass::TwiceTold)) host.told_twice = log_uniform(rng, 0.05, 0.5);
}

void draw_sleep(Rng rng, LifeSettings& settings) {
  Oversleeping& how = settings.oversleeping;
  how.most_micros = static_cast<std::int64_t>(log_uniform(rng, 2, 1e6));
  Rng passes = rng.fork("passes");
  if (settings.has(FaultClass::SlowPasses)) how.in_passes = log_uniform(passes, 0.001, 0.3);
  if (!settings.has(FaultClass::LateWakes)) return;
  how.seconds = log_uniform(rng, 0.01, 0.5);
  how.hours = log_uniform(rng, 0.0005, 0.02);
}

/// Whether two jobs may be on one device under a policy that the life may come to.
bool may_share(const LifeSettings& settings) {
  const auto shares = [](const std::string& name) {
    return (*make_policy(name))->traits().shares_devices;
  };
  if (shares(settings.policy)) return true;
  const auto registry = policy_registry();
  return std::ranges::any_of(settings.strikes, [&](const Strike& strike) {
    return strike.what == FaultClass::Policies &&
           shares(registry[strike.number % registry.size()].name);
  });
}

/// Comes again until it is taken: the key makes it one job.
void submit_until_taken(LiveWorld& world, LiveService& service, const JobSpec& spec) {
  const auto answer = service.submit(kRoot, spec);
  if (answer) return world.acknowledge(spec.key, *answer);
  if (answer.error().kind != FaultKind::Unavailable) {
    world.violations().push_back("a submit was refused: " + answer.error().messages.front());
    return;
  }
  world.at(world.seconds() + 60,
           [&world, spec](LiveService& again) { submit_until_taken(world, again, spec); });
}

bool is_crash(FaultClass what) { return what <= FaultClass::Controller; }

/// Half of the crashes come at any time, half at one of the points that follow.
void arm(LiveWorld& world, const Strike& strike) {
  const auto kind = static_cast<CrashKind>(strike.what);
  if (strike.number % 2 == 0) {
    world.crash_at_time(strike.at, kind);
  } else {
    world.at(strike.at, [&world, kind, number = strike.number](LiveService&) {
      world.crash_at(world.points_passed() + 1 + number / 2 % 40, kind);
    });
  }
}

}  // namespace

std::string_view to_string(FaultClass fault) noexcept {
  return kNames[static_cast<std::size_t>(fault)];
}

LifeSettings draw_life(std::uint64_t seed, std::optional<std::string> policy) {
  const Rng root{seed};
  Rng rng = root.fork("life");
  LifeSettings settings;
  settings.seed = seed;
  const auto registry = policy_registry();
  settings.policy = policy ? *policy : registry[seed % registry.size()].name;
  const std::int32_t nodes = 1 + below(rng, 4);
  const std::int32_t gpus = 1 + below(rng, 8);
  settings.cluster = rng.below(3) == 0 ? fmt::format("{0}x{1}:v100,{0}x{1}:a100", nodes, gpus)
                                       : fmt::format("{}x{}", nodes, gpus);
  settings.days = 1 + static_cast<double>(rng.below(2));
  constexpr auto kFirstOnes = static_cast<std::size_t>(FaultClass::Repeats);
  for (std::size_t i = 0; i < kFirstOnes; ++i) settings.classes.set(i, rng.below(2) == 0);
  // Drawn apart: without these a life is what it was before they were thought of.
  for (std::size_t i = kFirstOnes; i < kFaultClasses; ++i)
    settings.classes.set(i, root.fork(kNames[i]).below(2) == 0);
  settings.spare_slots = std::size_t{4} << rng.below(6);  // few: engines are renewed often
  const int jobs = 4 + below(rng, 28);
  for (int i = 0; i < jobs; ++i) {
    Rng own = root.fork(fmt::format("job {}", i));
    const double at = own.uniform() * settings.days * kDay * (rng.below(2) == 0 ? 0.9 : 0.1);
    settings.jobs.emplace_back(at, draw_job(own, nodes * gpus, settings));
    settings.jobs.back().second.key = fmt::format("k{}", i);
  }
  draw_strikes(root.fork("strikes"), settings);
  draw_host(root.fork("host"), settings);
  draw_sleep(root.fork("sleep"), settings);
  constexpr std::int64_t kMinRuns[] = {0, 0, 5, 60};
  settings.min_run = kMinRuns[root.fork("min_run").below(4)];
  settings.host.device_limit = may_share(settings) ? static_cast<std::int32_t>(kMaxSharers) : 1;
  return settings;
}

std::string to_text(const LifeSettings& settings) {
  std::string classes;
  for (std::size_t i = 0; i < kFaultClasses; ++i) {
    if (settings.classes.test(i)) classes += fmt::format(" {}", kNames[i]);
  }
  std::string text = fmt::format(
      "seed {}, {} on {}, {} days, {} jobs, {} slots, min_run {}, {} on a device;{}\n",
      settings.seed, settings.policy, settings.cluster, settings.days, settings.jobs.size(),
      settings.spare_slots, settings.min_run, settings.host.device_limit, classes);
  const SimHost::Options& host = settings.host;
  text += fmt::format(
      "  host: seed {}, claims after {} us, events late by up to {} us, twice {:.3f}; shims die "
      "unclaimed {:.3f}, claimed {:.3f}, unrecorded {:.3f}\n",
      host.seed, host.claim_delay, host.told_late, host.told_twice, host.dies_unclaimed,
      host.dies_claimed, host.dies_unrecorded);
  text += fmt::format(
      "  wakes late by up to {} us, so often by seconds {:.4f}, by hours {:.4f}, in passes "
      "{:.4f}\n",
      settings.oversleeping.most_micros, settings.oversleeping.seconds, settings.oversleeping.hours,
      settings.oversleeping.in_passes);
  for (const Strike& strike : settings.strikes)
    text += fmt::format("  {:.3f} {} {}\n", strike.at, to_string(strike.what), strike.number);
  return text;
}

LifeReport live_through(const LifeSettings& settings, KeepLog keep) {
  WorldOptions options;
  options.cluster = settings.cluster;
  options.scheduling.policy = affordable(settings.policy);
  options.scheduling.spare_slots = settings.spare_slots;
  options.scheduling.min_run = settings.min_run;
  options.host = settings.host;
  options.oversleeping = settings.oversleeping;
  options.hears_nonsense = settings.has(FaultClass::Reports);
  options.seed = settings.seed;
  options.keeps_log = keep == KeepLog::Yes;
  options.deadline = (settings.days + 200) * kDay;
  LiveWorld world{options};
  for (const auto& [at, spec] : settings.jobs)
    world.at(at, [&world, spec = spec](LiveService& service) {
      submit_until_taken(world, service, spec);
    });
  LifeReport report;
  std::vector<Strike> in_recovery;
  for (const Strike& one : settings.strikes) {
    if (one.what == FaultClass::InRecovery) {
      in_recovery.push_back(one);
    } else if (is_crash(one.what)) {
      arm(world, one);
    } else if (one.what == FaultClass::Repeats) {
      if (settings.jobs.empty()) continue;
      const JobSpec& spec = settings.jobs[one.number % settings.jobs.size()].second;
      world.at(one.at, [&world, spec](LiveService& service) {
        world.count_fault(to_string(FaultClass::Repeats));
        submit_until_taken(world, service, spec);
      });
    } else {
      world.at(one.at, [&world, one](LiveService& service) { strike(world, service, one); });
    }
  }
  world.at(settings.days * kDay, [](LiveService& service) { heal(service); });
  while (world.live() && world.violations().empty()) {
    if (in_recovery.empty()) continue;
    const Strike one = in_recovery.back();
    in_recovery.pop_back();
    constexpr std::uint64_t kToRead = 3;  // operations of the disk before the first record
    if (settings.has(FaultClass::Narrow) && one.number % 4 == 3)
      world.fail_disk_after(kToRead + one.number / 4 % 8, DiskFault::Eio);
    else
      world.crash_at(1 + one.number / 3 % 12, static_cast<CrashKind>(one.number % 3));
  }
  report.violations = world.violations();
  report.digest = world.digest();
  report.records = world.records();
  report.seconds = world.seconds();
  report.lives = world.lives();
  report.jobs = world.over().size();
  report.struck = world.struck();
  report.deaths_at = world.deaths_at();
  report.found = world.host().found();
  report.log = world.log();
  return report;
}

}  // namespace berth::test
