// Random lives over a simulated Slurm: everything that can go wrong on either side does, in an order
// that only the seed knows. Then faults stop, and every job has to be over once, on both sides.
//   BERTH_SEEDS=N   so many lives instead of the default; BERTH_FIRST_SEED=S begins there
//   BERTH_SEED=S    only this one, with its log: how a failure is looked at
#include <gtest/gtest.h>

#include <array>
#include <cstdlib>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "support/sanitized.h"
#include "support/slurm_world.h"

namespace berth::test {
namespace {

constexpr std::uint64_t kDefaultLives = kIsSanitized ? 100 : 1000;
constexpr double kFaultsEnd = 900;  // seconds

std::uint64_t number_from(const char* variable, std::uint64_t otherwise) {
  const char* text = std::getenv(variable);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

/// What one life has met.
struct Told {
  std::vector<std::string> violations, log;
  std::map<std::string, std::uint64_t> counts;
  std::set<std::string> deaths;
};

SimSlurm::Request draw_job(Rng& rng) {
  SimSlurm::Request request;
  request.user = rng.below(2) == 0 ? "ann" : "bob";
  request.gpus = static_cast<std::int32_t>(1 + rng.below(4));
  request.seconds = static_cast<std::int64_t>(5 + rng.below(200));
  request.exit_code = rng.below(8) == 0 ? 2 : 0;
  request.time_limit = rng.below(3) == 0 ? 0 : static_cast<std::int64_t>(60 + rng.below(600));
  request.is_stubborn = rng.below(6) == 0;
  request.fails_on_warning = rng.below(4) == 0;
  request.may_requeue = rng.below(8) != 0;
  request.is_held = rng.below(10) != 0;
  request.is_batch = rng.below(12) != 0;
  if (!request.is_batch) request.is_held = false;
  if (request.is_batch && rng.below(10) == 0) request.tasks = "0-3%2";
  return request;
}

void draw_people(SlurmWorld& world, Rng& rng, int jobs) {
  const int acts = static_cast<int>(rng.below(12));
  for (int i = 0; i < acts; ++i) {
    const double when = rng.uniform() * kFaultsEnd;
    const auto job = static_cast<std::uint32_t>(1 + rng.below(static_cast<std::uint64_t>(jobs)));
    const auto limit = static_cast<std::int64_t>(20 + rng.below(400));
    switch (rng.below(8)) {
      case 0: world.at(when, [=](SimSlurm& slurm) { slurm.user_cancels(job); }); break;
      case 1: world.at(when, [=](SimSlurm& slurm) { slurm.user_holds(job); }); break;
      case 2: world.at(when, [=](SimSlurm& slurm) { slurm.admin_requeues(job); }); break;
      case 3: world.at(when, [=](SimSlurm& slurm) { slurm.admin_releases(job); }); break;
      case 4: world.at(when, [=](SimSlurm& slurm) { slurm.set_limit(job, limit); }); break;
      case 5: world.wish_at(when, {.job = job, .wish = Wish::Cancel, .by = "root"}); break;
      case 6: world.wish_at(when, {.job = job, .wish = Wish::Requeue, .by = "root"}); break;
      default:
        world.at(when, [](SimSlurm& slurm) { slurm.lose_node(0); });
        world.at(when + 60, [](SimSlurm& slurm) { slurm.bring_back(0); });
        break;
    }
  }
}

Told live_through(std::uint64_t seed, bool keeps_log) {
  constexpr std::array kPolicies{"fifo", "easy", "srtf", "tiresias-l", "sjf", "las"};
  Rng rng{seed};
  SlurmWorldOptions options;
  options.seed = seed;
  options.keeps_log = keeps_log;
  options.slurm.seed = seed * 7 + 1;
  options.slurm.gpus = {4, 4};
  if (rng.below(3) == 0) options.slurm.gpus = {4, 4, 8};
  const auto often = [&](double most) { return rng.below(2) == 0 ? 0.0 : rng.uniform() * most; };
  const SimSlurm::Faults faults{.unread = often(0.2),
                                .stale = often(0.2),
                                .unsent = often(0.3),
                                .undone_answer = often(0.3),
                                .slow_end = often(0.5)};
  options.slurm.faults = faults;
  options.scheduling.policy.policy = kPolicies[rng.below(kPolicies.size())];
  options.scheduling.placement = "consolidated";
  options.scheduling.spare_slots = 64;
  options.scheduling.min_run = static_cast<std::int64_t>(rng.below(3) * 15);
  if (rng.below(2) == 0) options.rules.warn_signal = 10;
  SlurmWorld world{options};
  const int jobs = static_cast<int>(3 + rng.below(15));
  for (int i = 0; i < jobs; ++i) {
    const SimSlurm::Request request = draw_job(rng);
    world.at(rng.uniform() * 600, [request](SimSlurm& slurm) { slurm.submit(request); });
  }
  draw_people(world, rng, jobs);
  const auto kills = rng.below(4);
  for (std::uint64_t i = 0; i < kills; ++i)
    world.crash_at_time(rng.uniform() * kFaultsEnd, rng.below(4) == 0 ? 120 : 1);
  if (rng.below(2) == 0) world.crash_at(1 + rng.below(300), 1 + rng.uniform() * 30);
  const auto controllers = rng.below(3);
  for (std::uint64_t i = 0; i < controllers; ++i) {
    const auto forgets = static_cast<std::int64_t>(rng.below(12));
    const auto away = static_cast<std::int64_t>(1 + rng.below(40));
    world.at(rng.uniform() * kFaultsEnd,
             [=](SimSlurm& slurm) { slurm.kill_controller(forgets, away); });
  }
  world.at(kFaultsEnd, [](SimSlurm& slurm) {
    slurm.set_faults({});
    slurm.bring_back(0);
  });
  world.run();
  return {world.violations(), world.log(), world.slurm().counts(), world.deaths_at()};
}

std::string account_of(std::uint64_t seed) {
  const Told told = live_through(seed, true);
  return fmt::format("{}\n{}\nreplay: BERTH_SEED={} slurm_lives_test\n",
                     fmt::join(told.log.end() - std::min<std::ptrdiff_t>(150, std::ssize(told.log)),
                               told.log.end(), "\n"),
                     fmt::join(told.violations, "\n"), seed);
}

class SlurmLives : public ::testing::TestWithParam<std::uint64_t> {};
constexpr std::uint64_t kParts = 4;

TEST_P(SlurmLives, EveryJobIsOverOnceOnBothSides) {
  if (std::getenv("BERTH_SEED") != nullptr) GTEST_SKIP() << "one seed is replayed";
  const std::uint64_t count = number_from("BERTH_SEEDS", kDefaultLives);
  const std::uint64_t first = number_from("BERTH_FIRST_SEED", 1);
  std::map<std::string, std::uint64_t> counts;
  std::set<std::string> deaths;
  for (std::uint64_t seed = first + count * GetParam() / kParts;
       seed < first + count * (GetParam() + 1) / kParts; ++seed) {
    const Told told = live_through(seed, false);
    ASSERT_TRUE(told.violations.empty()) << account_of(seed);
    for (const auto& [what, times] : told.counts) counts[what] += times;
    deaths.insert(told.deaths.begin(), told.deaths.end());
  }
  if (count / kParts < 100) return;
  for (const char* what : {"unread", "stale", "unsent", "undone-answer", "slow-end", "place",
                           "hold", "requeue", "cancel", "signal", "controller-killed"})
    EXPECT_GT(counts[what], 0U) << what;
  // Every single point is died at in slurm_host_test.
  for (const char* where : {"any time", "supervisor.written"})
    EXPECT_TRUE(deaths.contains(where)) << where;
}
INSTANTIATE_TEST_SUITE_P(Parts, SlurmLives, ::testing::Range(std::uint64_t{0}, kParts));

TEST(SlurmLife, OfOneSeed) {
  const char* seed = std::getenv("BERTH_SEED");
  if (seed == nullptr) GTEST_SKIP() << "BERTH_SEED is not set";
  const std::uint64_t number = std::strtoull(seed, nullptr, 10);
  fmt::print("{}", account_of(number));
  EXPECT_TRUE(live_through(number, false).violations.empty());
}

}  // namespace
}  // namespace berth::test
