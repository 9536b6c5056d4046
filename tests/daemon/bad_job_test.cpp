// One bad job never stops the scheduler: what no job can have is refused at the door, in the
// journal's order; what is in the journal already, or makes an engine fail, is set aside.
#include <set>
#include <stdexcept>

#include <gtest/gtest.h>

#include "base/check.h"
#include "support/live_world.h"

namespace berth::test::bad_job_tests {
namespace {

const Caller kAnn{.user = "ann", .uid = 1'000, .gid = 1'000, .role = Role::User};

JobSpec anns(std::string seconds, std::int32_t gpus = 1) {
  JobSpec spec = spec_of({"run", std::move(seconds)}, gpus);
  spec.user = "ann";
  return spec;
}

std::string refusal(const Answer<JobView>& answer) {
  return answer ? "taken" : answer.error().messages.front();
}

const std::vector<std::string> kNone;

// Because version 0.1.0 divided by zero here, and again after each restart.
TEST(BadJob, WhatIsAdmittedIsWhatIsWritten) {
  LiveWorld world{{.cluster = "1x2"}};
  world.at(0, [&](LiveService& service) {
    world.submit(service, anns("100", 2));
    world.submit(service, anns("100", 2));
  });
  world.at(10, [](LiveService& service) {
    EXPECT_NE(
        refusal(service.change(kAnn, 2, R"({"gpus":0,"gpu_type":"v100"})")).find("asks for no GPU"),
        std::string::npos);
    const auto changed = service.change(kAnn, 2, R"({"gpus":null})");
    ASSERT_TRUE(changed);
    EXPECT_EQ(changed->spec->gpus, 1);  // back to the default
    EXPECT_NE(refusal(service.change(kAnn, 2, R"({"gpus":-1})")).find("gpus"), std::string::npos);
    EXPECT_NE(refusal(service.change(kAnn, 2, R"({"gpus":1e9})")).find("gpus"), std::string::npos);
    EXPECT_NE(refusal(service.change(kAnn, 2, R"({"gpus":1000001})")).find("gpus"),
              std::string::npos);
    EXPECT_EQ(refusal(service.change(kAnn, 2, R"({"gpus":3})")),
              "needs 3 GPUs of one type, the cluster has at most 2");
  });
  world.crash_at_time(20, CrashKind::Kill);
  world.run();
  EXPECT_EQ(world.violations(), kNone);
  EXPECT_EQ(world.over().at(2).spec->gpus, 1);
  EXPECT_EQ(world.over().at(2).state, LiveState::Completed);
}

TEST(BadJob, NoTimeLimitIsNoWayAroundTheQueues) {
  AdmissionOptions admission;
  admission.queues = {
      {.name = "main", .default_time_limit = 3'600, .max_time_limit = 7'200, .max_gpus = 1},
      {.name = "strict", .max_time_limit = 7'200}};
  LiveWorld world{{.cluster = "1x2", .admission = admission}};
  world.at(0, [&](LiveService& service) {
    world.submit(service, anns("100"));
    JobSpec waiting = anns("100");
    waiting.hold = true;
    waiting.time_limit = 600;
    world.submit(service, waiting);
    EXPECT_EQ(service.change(kAnn, 2, R"({"time_limit":0})")->spec->time_limit, 3'600);
    EXPECT_EQ(refusal(service.change(kAnn, 2, R"({"time_limit":7201,"queue":"strict"})")),
              "queue 'strict' takes jobs of at most 2.0 h");
    EXPECT_EQ(service.job(kRoot, 2)->spec->queue, "main");
    const auto moved = service.change(kAnn, 2, R"({"time_limit":0,"queue":"strict"})");
    ASSERT_TRUE(moved);
    EXPECT_EQ(moved->spec->time_limit, 7'200);  // the most, where the queue has no default
    EXPECT_EQ(refusal(service.change(kAnn, 2, R"({"queue":"main"})")), "taken");
    // What an operator gave stays when its user changes something else.
    EXPECT_EQ(service.change(kRoot, 2, R"({"time_limit":90000,"priority":7})")->spec->priority, 7);
    EXPECT_EQ(service.change(kAnn, 2, R"({"name":"mine"})")->spec->time_limit, 90'000);
    EXPECT_NE(refusal(service.change(kAnn, 2, R"({"priority":8})")), "taken");
    static_cast<void>(service.act(kRoot, Verb::Cancel, {.numbers = {1, 2}}, "", 0));
  });
  world.run();
  EXPECT_EQ(world.violations(), kNone);
}

TEST(BadJob, ADeadlineIsToCome) {
  LiveWorld world{{.cluster = "1x1"}};
  world.at(0, [&](LiveService& service) {
    const std::int64_t now = world.wall_micros() / 1'000'000;
    JobSpec spec = anns("100");
    spec.deadline = now - 7'200;
    const auto refused = service.submit(kAnn, spec);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().kind, FaultKind::Impossible);
    EXPECT_EQ(refused.error().messages.front(),
              "deadline: it passed 2.0 h ago (now is " + std::to_string(now) + " in Unix seconds)");
    spec.deadline = now + 60;
    spec.hold = true;
    world.submit(service, spec);
    EXPECT_NE(refusal(service.change(kAnn, 1, R"({"deadline":12})")), "taken");
    EXPECT_NE(refusal(service.change(kAnn, 1, R"({"deadline":-12})")), "taken");
  });
  world.at(100, [](LiveService& service) {  // it has passed: everything else can still be changed
    EXPECT_EQ(refusal(service.change(kAnn, 1, R"({"name":"late"})")), "taken");
    EXPECT_EQ(refusal(service.change(kAnn, 1, R"({"deadline":null})")), "taken");
    static_cast<void>(service.act(kAnn, Verb::Release, {.numbers = {1}}, "", 0));
  });
  world.run();
  EXPECT_EQ(world.violations(), kNone);
}

TEST(BadJob, NobodyWaitsForItself) {
  LiveWorld world{{.cluster = "1x1"}};
  world.at(0, [&](LiveService& service) {
    const auto change = [&](JobNumber job, const std::string& what) {
      return refusal(service.change(kAnn, job, what));
    };
    world.submit(service, anns("1000"));  // 1 runs
    JobSpec spec = anns("10");
    spec.dependencies = {{DependencyKind::AfterOk, 1}};
    world.submit(service, spec);  // 2 waits for 1
    spec.dependencies = {{DependencyKind::AfterAny, 2}};
    spec.array = ArraySpec{.indices = {0, 1, 2}, .at_once = 0};
    world.submit(service, spec);  // 3, 4 and 5 wait for 2
    EXPECT_EQ(change(2, R"({"dependencies":"afterok:2"})"),
              "job 2 would wait for itself: 2 waits for 2");
    EXPECT_EQ(change(2, R"({"dependencies":"afterany:4"})"),
              "job 2 would wait for itself: 2 waits for 4, 4 waits for 2");
    EXPECT_EQ(change(2, R"({"dependencies":"afterany:1?afterany:5"})"),
              "job 2 would wait for itself: 2 waits for 5, 5 waits for 2");
    EXPECT_EQ(change(2, R"({"dependencies":"afterok:77"})"),
              "waits for job 77, which does not exist");
    EXPECT_EQ(change(5, R"({"dependencies":"afterok:4"})"), "taken");
    EXPECT_EQ(change(4, R"({"dependencies":"afterok:5"})"),
              "job 4 would wait for itself: 4 waits for 5, 5 waits for 4");
    // The only one of its name waits for those before it: an earlier one must not wait for it.
    JobSpec first = anns("10");
    first.name = "one";
    first.hold = true;
    const JobNumber earlier = world.submit(service, first);  // 6
    JobSpec only = anns("10");
    only.name = "one";
    only.dependencies = {{DependencyKind::Singleton, 0}};
    const JobNumber later = world.submit(service, only);  // 7
    EXPECT_EQ(later, 7U);
    EXPECT_EQ(change(earlier, R"({"dependencies":"afterok:7"})"),
              "job 6 would wait for itself: 6 waits for 7, 7 waits for 6");
    EXPECT_EQ(change(earlier, R"({"name":"other","dependencies":"afterok:7"})"), "taken");
    EXPECT_EQ(change(earlier, R"({"name":"one"})"),
              "job 6 would wait for itself: 6 waits for 7, 7 waits for 6");
    static_cast<void>(service.act(kRoot, Verb::Release, {.numbers = {earlier}}, "", 0));
  });
  world.run();
  EXPECT_EQ(world.violations(), kNone);  // all of them have ended
}

TEST(BadJob, WhatOlderVersionsWroteIsSetAside) {
  LiveWorld world{{.cluster = "1x2", .expects_bad_jobs = true}};
  world.at(0, [&](LiveService& service) {
    world.submit(service, anns("1000", 2));  // 1 runs
    world.submit(service, anns("10", 2));
    world.submit(service, anns("10", 2));
  });
  world.crash_at_time(10, CrashKind::Kill);
  ASSERT_TRUE(world.live());
  world.plant(ChangeRecord{.job = 1, .changes = R"({"gpus":-1})", .by = "ann"});
  world.plant(ChangeRecord{.job = 2, .changes = R"({"gpus":-1})", .by = "ann"});
  bool looked = false;
  world.at(2'000, [&](LiveService& service) {
    looked = true;
    const auto bad = service.job(kRoot, 2);
    EXPECT_EQ(bad->state, LiveState::Held);
    EXPECT_TRUE(bad->reason.starts_with("held by @scheduler: set aside: gpus: -1 is not within"))
        << bad->reason;
    EXPECT_EQ(world.why(2).reasons.front().kind, "hold");
    EXPECT_EQ(service.job(kRoot, 1)->state, LiveState::Completed);  // it ran, and went on
    EXPECT_EQ(service.job(kRoot, 3)->state, LiveState::Completed);  // nobody else waits for it
    EXPECT_NE(service.metrics().find("berth_jobs_set_aside 1"), std::string::npos);
    const auto kept = service.act(kAnn, Verb::Release, {.numbers = {2}}, "", 0);
    ASSERT_TRUE(kept);
    EXPECT_FALSE(kept->front().is_done);
    EXPECT_NE(kept->front().text.find("change it first"), std::string::npos);
    EXPECT_EQ(refusal(service.change(kAnn, 2, R"({"gpus":2})")), "taken");
    const auto released = service.act(kAnn, Verb::Release, {.numbers = {2}}, "", 0);
    ASSERT_TRUE(released);
    EXPECT_TRUE(released->front().is_done) << released->front().text;
  });
  world.crash_at_time(1'500, CrashKind::Power);
  world.run();
  EXPECT_TRUE(looked);
  EXPECT_EQ(world.violations(), kNone);
  EXPECT_EQ(world.over().at(2).state, LiveState::Completed);
}

/// Fails when a job of this many devices comes, or whenever it has to decide with one there.
class Touchy final : public Policy {
 public:
  enum class When : std::uint8_t { Arrival, Decide, Departure, Always };
  Touchy(std::unique_ptr<Policy> inner, When when) : inner_(std::move(inner)), when_(when) {}
  [[nodiscard]] std::string_view name() const noexcept override { return inner_->name(); }
  [[nodiscard]] PolicyTraits traits() const noexcept override { return inner_->traits(); }
  void begin(const View& view) override { inner_->begin(view); }
  void on_arrival(const View& view, JobId job) override {
    BERTH_CHECK(when_ != When::Arrival || view.gpus(job) != 3, "nobody asks for three");
    has_three_ = has_three_ || view.gpus(job) == 3;
    ++there_;
    inner_->on_arrival(view, job);
  }
  void on_departure(const View& view, JobId job) override {
    if (when_ == When::Departure && view.gpus(job) == 3) throw std::out_of_range("map::at");
    --there_;
    inner_->on_departure(view, job);
  }
  void on_requeue(const View& view, JobId job) override { inner_->on_requeue(view, job); }
  void on_capacity_change(const View& view, NodeId node) override {
    inner_->on_capacity_change(view, node);
  }
  void decide(const View& view, Plan& plan, Rng& rng) override {
    if (when_ == When::Decide && has_three_) throw std::out_of_range("map::at");
    if (when_ == When::Always && there_ > 0) throw std::out_of_range("map::at");
    inner_->decide(view, plan, rng);
  }
  [[nodiscard]] std::optional<Time> next_wakeup(const View& view) override {
    return inner_->next_wakeup(view);
  }

 private:
  std::unique_ptr<Policy> inner_;
  When when_;
  bool has_three_ = false;
  int there_ = 0;
};

/// Five jobs come at once, the third one asks for three devices.
LiveWorld touchy_world(Touchy::When when, const std::string& policy = "easy") {
  WorldOptions options{.cluster = "1x4", .expects_bad_jobs = true};
  options.scheduling.policy.policy = policy;
  options.around_policy = [when](std::unique_ptr<Policy> inner) -> std::unique_ptr<Policy> {
    if (when == Touchy::When::Always && inner->name() == "fifo") return inner;
    return std::make_unique<Touchy>(std::move(inner), when);
  };
  return LiveWorld{options};
}

void submit_five(LiveWorld& world) {
  world.at(0, [&world](LiveService& service) {
    for (const std::int32_t gpus : {1, 1, 3, 1, 2}) world.submit(service, anns("100", gpus));
  });
}

class TouchyPolicy : public ::testing::TestWithParam<Touchy::When> {};

TEST_P(TouchyPolicy, MakesOneJobWaitAndNobodyElse) {
  LiveWorld world = touchy_world(GetParam());
  submit_five(world);
  bool looked = false;
  world.at(1'000, [&](LiveService& service) {
    looked = true;
    const auto bad = service.job(kRoot, 3);
    EXPECT_EQ(bad->state, LiveState::Held);
    EXPECT_NE(bad->reason.find("held by @scheduler: set aside: "), std::string::npos);
    for (const JobNumber job : {1U, 2U, 4U, 5U})
      EXPECT_EQ(service.job(kRoot, job)->state, LiveState::Completed) << job;
    static_cast<void>(service.act(kAnn, Verb::Cancel, {.numbers = {3}}, "", 0));
  });
  world.run();
  EXPECT_TRUE(looked);
  EXPECT_EQ(world.violations(), kNone);
}
INSTANTIATE_TEST_SUITE_P(When, TouchyPolicy,
                         ::testing::Values(Touchy::When::Arrival, Touchy::When::Decide));

TEST(BadJob, AnEndThatAPolicyCannotBearIsAnEndAllTheSame) {
  LiveWorld world = touchy_world(Touchy::When::Departure);
  submit_five(world);
  world.run();
  EXPECT_EQ(world.violations(), kNone);
  for (const JobNumber job : {1U, 2U, 3U, 4U, 5U})
    EXPECT_EQ(world.over().at(job).state, LiveState::Completed) << job;
}

// Because jobs cannot all be wrong: after some of them the policy is what is wrong.
TEST(BadJob, APolicyThatAlwaysFailsIsReplaced) {
  LiveWorld world = touchy_world(Touchy::When::Always);
  submit_five(world);
  bool looked = false;
  world.at(1'000, [&](LiveService& service) {
    looked = true;
    EXPECT_EQ(service.cluster(kRoot).policy, "fifo");
    EXPECT_NE(service.metrics().find("berth_policy_fallback 1"), std::string::npos);
    for (const JobNumber job : {1U, 2U, 3U, 4U, 5U})
      EXPECT_EQ(service.job(kRoot, job)->state, LiveState::Completed) << job;
  });
  world.run();
  EXPECT_TRUE(looked);
  EXPECT_EQ(world.violations(), kNone);
}

/// Says of which jobs it has heard; the first arrival may have consequences.
class Witness final : public Policy {
 public:
  Witness(std::unique_ptr<Policy> inner, std::function<void()> first)
      : inner_(std::move(inner)), first_(std::move(first)) {}
  [[nodiscard]] std::string_view name() const noexcept override { return inner_->name(); }
  [[nodiscard]] PolicyTraits traits() const noexcept override { return inner_->traits(); }
  void begin(const View& view) override { inner_->begin(view); }
  void on_arrival(const View& view, JobId job) override {
    there_.insert(job);
    inner_->on_arrival(view, job);
    if (const auto first = std::exchange(first_, {})) first();
  }
  void on_departure(const View& view, JobId job) override {
    EXPECT_EQ(there_.erase(job), 1U) << "it leaves and has not come";
    inner_->on_departure(view, job);
  }
  void decide(const View& view, Plan& plan, Rng& rng) override { inner_->decide(view, plan, rng); }

 private:
  std::unique_ptr<Policy> inner_;
  std::function<void()> first_;
  std::set<JobId> there_;
};

// Because a new engine is told of running jobs one by one, and the world does not wait for that:
// gavel took the departure of a job that had not arrived for one of nobody, and read beyond its
// table.
TEST(BadJob, WhoLeavesBeforeItsTurnHasNotCome) {
  WorldOptions options{.cluster = "1x4"};
  LiveService* service = nullptr;
  int engines = 0;
  options.around_policy = [&](std::unique_ptr<Policy> inner) -> std::unique_ptr<Policy> {
    std::function<void()> first = [] {};
    if (++engines == 2) {
      first = [&service] {  // jobs come in the order in which they were started: 3 is to come
        static_cast<void>(service->act(kRoot, Verb::Cancel, {.numbers = {3}}, "", 0));
      };
    }
    return std::make_unique<Witness>(std::move(inner), first);
  };
  LiveWorld world{options};
  world.at(0, [&](LiveService& its) {
    service = &its;
    for (int i = 0; i < 3; ++i) world.submit(its, anns("100"));
  });
  world.at(10, [](LiveService& its) { EXPECT_TRUE(its.set_policy(kRoot, "fifo", {})); });
  world.run();
  EXPECT_EQ(world.violations(), kNone);
  EXPECT_EQ(engines, 2);
  EXPECT_EQ(world.over().at(3).state, LiveState::Cancelled);
  EXPECT_EQ(world.over().at(1).state, LiveState::Completed);
}

// Because gates are not asked while running jobs are brought in: what they have to say then comes
// when the job is over already, and an end of a job that is over is no record that can follow.
TEST(BadJob, WhoIsUnsatisfiableAndCancelledEndsOnce) {
  WorldOptions options{.cluster = "1x4"};
  LiveService* service = nullptr;
  int engines = 0;
  options.around_policy = [&](std::unique_ptr<Policy> inner) -> std::unique_ptr<Policy> {
    std::function<void()> first = [] {};
    if (++engines == 2) {
      first = [&service] {
        static_cast<void>(service->act(kRoot, Verb::Cancel, {.numbers = {3}}, "", 0));
        static_cast<void>(service->act(kRoot, Verb::Cancel, {.numbers = {4}}, "", 0));
      };
    }
    return std::make_unique<Witness>(std::move(inner), first);
  };
  LiveWorld world{options};
  world.at(0, [&](LiveService& its) {
    service = &its;
    for (int i = 0; i < 2; ++i) world.submit(its, anns("100"));
    JobSpec held = anns("100");
    held.hold = true;
    world.submit(its, held);  // 3
    JobSpec after = anns("100");
    after.dependencies = {{DependencyKind::AfterOk, 3}};
    world.submit(its, after);  // 4: unsatisfiable when 3 is cancelled
  });
  world.at(10, [](LiveService& its) { EXPECT_TRUE(its.set_policy(kRoot, "fifo", {})); });
  world.run();
  EXPECT_EQ(world.violations(), kNone);
  EXPECT_EQ(world.over().at(4).state, LiveState::Cancelled);
}

// Because a new engine reads the board, and hears of the same submit and cancel once more: the job
// was started in the very batch that ended it.
TEST(BadJob, WhoIsCancelledWhileAnEngineBeginsDoesNotStart) {
  WorldOptions options{.cluster = "1x4"};
  LiveService* service = nullptr;
  LiveWorld* its_world = nullptr;
  int engines = 0;
  options.around_policy = [&](std::unique_ptr<Policy> inner) {
    if (++engines == 2) {
      const JobNumber job = its_world->submit(*service, anns("100"));
      static_cast<void>(service->act(kRoot, Verb::Cancel, {.numbers = {job}}, "", 0));
    }
    return inner;
  };
  LiveWorld world{options};
  its_world = &world;
  world.at(0, [&](LiveService& its) {
    service = &its;
    EXPECT_TRUE(its.set_policy(kRoot, "fifo", {}));
  });
  world.run();
  EXPECT_EQ(world.violations(), kNone);
  EXPECT_EQ(engines, 2);
  EXPECT_EQ(world.over().at(1).state, LiveState::Cancelled);
  EXPECT_EQ(world.over().at(1).attempts, 0);
}

// Because a setting may be of another version: a policy that is not there must not keep the
// scheduler from beginning, again and again.
TEST(BadJob, APolicyThatCannotBeMadeIsReplaced) {
  LiveWorld world{{.cluster = "1x1"}};
  world.at(0, [&](LiveService& service) { world.submit(service, anns("100")); });
  world.crash_at_time(10, CrashKind::Power);
  ASSERT_TRUE(world.live());
  world.plant(SettingRecord{
      .key = "policy", .value = R"({"policy":"of-tomorrow","settings":{}})", .by = "root"});
  world.at(50, [](LiveService& service) {
    EXPECT_EQ(service.cluster(kRoot).policy, "fifo");
    EXPECT_TRUE(service.set_policy(kRoot, "easy", {}));
  });
  world.run();
  EXPECT_EQ(world.violations(), kNone);
  EXPECT_EQ(world.over().at(1).state, LiveState::Completed);
}

}  // namespace
}  // namespace berth::test::bad_job_tests
