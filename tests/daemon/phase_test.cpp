// A phase that training code tells reaches whoever decides: the job is in it from the next pass on,
// and a new life finds it there.
#include <gtest/gtest.h>

#include <algorithm>

#include "daemon/use_phases.h"
#include "support/live_world.h"

namespace berth::test {
namespace {

/// What the code of the only job says.
class SaidPhases final : public TrainingChannel {
 public:
  void say(Phase phase) {
    phase_ = phase;
    news_.emplace_back(1, phase);
  }
  [[nodiscard]] std::optional<TrainingReport> report(JobNumber) const override { return {}; }
  void losses(JobNumber, std::int64_t, std::vector<double>&) const override {}
  [[nodiscard]] bool has_saved(JobNumber) const override { return false; }
  void tell(JobNumber, const Terms&) override {}
  [[nodiscard]] Phase phase(JobNumber) const override { return phase_; }
  [[nodiscard]] std::vector<std::pair<JobNumber, Phase>> take_phases() override {
    return std::exchange(news_, {});
  }

 private:
  Phase phase_ = Phase::Training;
  std::vector<std::pair<JobNumber, Phase>> news_;
};

class Watching final : public Policy {
 public:
  Watching(std::unique_ptr<Policy> inner, std::vector<Phase>& seen)
      : inner_(std::move(inner)), seen_(seen) {}
  [[nodiscard]] std::string_view name() const noexcept override { return inner_->name(); }
  [[nodiscard]] PolicyTraits traits() const noexcept override { return inner_->traits(); }
  void begin(const View& view) override { inner_->begin(view); }
  void on_arrival(const View& view, JobId job) override { inner_->on_arrival(view, job); }
  void on_departure(const View& view, JobId job) override { inner_->on_departure(view, job); }
  void on_requeue(const View& view, JobId job) override { inner_->on_requeue(view, job); }
  void on_capacity_change(const View& view, NodeId node) override {
    inner_->on_capacity_change(view, node);
  }
  void decide(const View& view, Plan& plan, Rng& rng) override {
    if (view.jobs.is_running(JobId{0})) seen_.push_back(view.jobs.phase[JobId{0}]);
    inner_->decide(view, plan, rng);
  }
  [[nodiscard]] std::optional<Time> next_wakeup(const View& view) override {
    return inner_->next_wakeup(view);
  }

 private:
  std::unique_ptr<Policy> inner_;
  std::vector<Phase>& seen_;
};

TEST(Phases, WhatTheCodeTellsIsWhatTheEngineKnows) {
  SaidPhases training;
  std::vector<Phase> seen;
  WorldOptions options{.cluster = "1x1"};
  options.training = &training;
  options.around_policy = [&](std::unique_ptr<Policy> inner) -> std::unique_ptr<Policy> {
    return std::make_unique<Watching>(std::move(inner), seen);
  };
  LiveWorld world{options};
  const auto say = [&](double seconds, Phase phase) {
    world.at(seconds, [&, phase](LiveService& service) {
      training.say(phase);
      JobSpec other = spec_of({"run", "1"});  // somebody comes, so that there is a pass
      other.key = std::to_string(world.seconds());
      world.submit(service, other);
    });
  };
  world.at(1, [&](LiveService& service) { world.submit(service, spec_of({"run", "100"})); });
  say(10, Phase::Validation);
  say(20, Phase::Training);
  say(30, Phase::Validation);
  world.crash_at_time(40, CrashKind::Kill);
  world.at(50, [&](LiveService& service) { world.submit(service, spec_of({"run", "1"})); });
  world.run();
  EXPECT_EQ(world.violations(), std::vector<std::string>{});
  ASSERT_GE(seen.size(), 4U);
  const auto first = std::ranges::find(seen, Phase::Validation);
  ASSERT_NE(first, seen.end());
  const auto back = std::find(first, seen.end(), Phase::Training);
  ASSERT_NE(back, seen.end());
  EXPECT_NE(std::find(back, seen.end(), Phase::Validation), seen.end());
  EXPECT_EQ(seen.back(), Phase::Validation);  // after the restart, without another word
}

// Seen from outside: GPUs below half and cores all in use, three times in a row.
TEST(Phases, AreSeenInCoresAndDevices) {
  constexpr JobUse kTrains{.cores = 4, .cores_used = 2, .gpus_busy = 0.9};
  constexpr JobUse kValidates{.cores = 4, .cores_used = 3.9, .gpus_busy = 0.2};
  constexpr JobUse kLoads{.cores = 4, .cores_used = 3.9, .gpus_busy = 0.8};
  constexpr JobUse kRests{.cores = 4, .cores_used = 0, .gpus_busy = 0};
  PhaseGuess guess;
  EXPECT_EQ(guess.update(1, kTrains), std::nullopt);
  EXPECT_EQ(guess.update(1, kTrains), std::nullopt);
  EXPECT_EQ(guess.update(1, kTrains), Phase::Training);  // it may be known as another
  EXPECT_EQ(guess.update(1, kValidates), std::nullopt);
  EXPECT_EQ(guess.update(1, kValidates), std::nullopt);
  EXPECT_EQ(guess.update(1, kTrains), std::nullopt);  // that was a moment only
  for (const JobUse& other : {kLoads, kRests})
    for (int i = 0; i < 5; ++i) EXPECT_EQ(guess.update(1, other), std::nullopt);
  EXPECT_EQ(guess.update(1, kValidates), std::nullopt);
  EXPECT_EQ(guess.update(1, kValidates), std::nullopt);
  EXPECT_EQ(guess.update(1, kValidates), Phase::Validation);
  EXPECT_EQ(guess.update(1, kValidates), std::nullopt);
  // It was lent more than it uses.
  for (int i = 0; i < 5; ++i)
    EXPECT_EQ(guess.update(1, {.cores = 8, .cores_used = 4, .gpus_busy = 0.2}), std::nullopt);
  EXPECT_EQ(guess.update(1, kTrains), std::nullopt);
  EXPECT_EQ(guess.update(1, kTrains), std::nullopt);
  EXPECT_EQ(guess.update(1, kTrains), Phase::Training);
  guess.keep_only({});  // another job of this number would begin anew
  EXPECT_EQ(guess.update(1, {.cores = 0, .cores_used = 0, .gpus_busy = 0}), std::nullopt);
}

}  // namespace
}  // namespace berth::test
