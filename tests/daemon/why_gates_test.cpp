// Why a job waits: each gate with its numbers, none cut short by another, and what would open it.
#include <gtest/gtest.h>

#include <algorithm>

#include "daemon/why_support.h"

namespace berth::test {
namespace {

using Kinds = std::vector<std::string>;

SchedulerOptions under(const std::string& policy, Settings settings = {}) {
  return {.policy = {.policy = policy, .settings = std::move(settings)}, .estimator = "limit"};
}

void finish(LiveWorld& world) {
  world.run();
  EXPECT_EQ(world.violations(), std::vector<std::string>{});
}

TEST(WhyGates, AHeldJobIsAlsoToldThatItsDevicesAreTaken) {
  LiveWorld world{{.cluster = "1x2", .scheduling = under("easy")}};
  JobNumber held = 0, alone = 0;
  world.at(0.1, [&](LiveService& service) {
    JobSpec spec = limited(10, 1, 100);
    spec.hold = true;
    alone = world.submit(service, spec);
    spec.gpus = 2;
    held = world.submit(service, spec);
    world.submit(service, limited(50, 1, 100));
  });
  world.at(1, [&](LiveService&) {
    const Why why = world.why(held);
    EXPECT_EQ(kinds_of(why), (Kinds{"hold", "capacity"}));
    EXPECT_FALSE(why.reasons[0].sole) << "released it would still wait for a device";
    EXPECT_FALSE(why.reasons[1].sole);
    EXPECT_EQ(number_in<std::string>(why.reasons[0], "by", ""), "root");
    EXPECT_EQ(why.reasons[0].fix, fmt::format("berth release {}", held));
    EXPECT_TRUE(why.would_start.empty()) << "no single change is enough";
    EXPECT_EQ(why.of, 0U) << "it does not stand in line yet";
    const Why other = world.why(alone);
    EXPECT_EQ(kinds_of(other), Kinds{"hold"});
    EXPECT_TRUE(other.reasons[0].sole) << "a device is free for it";
    EXPECT_EQ(other.would_start, Kinds{fmt::format("berth release {}", alone)});
  });
  world.at(100, [&](LiveService& service) {
    static_cast<void>(service.act(kRoot, Verb::Cancel, {.numbers = {held, alone}}, "", 0));
  });
  finish(world);
}

TEST(WhyGates, QuotaTellsWhatIsUsedOfHowMuch) {
  LiveWorld world{{.cluster = "1x4", .scheduling = under("easy")}};
  JobNumber second = 0;
  world.at(0.1, [&](LiveService& service) {
    ASSERT_TRUE(service.set_share(kRoot, {.kind = "user", .name = "root", .gpu_limit = 2}));
    world.submit(service, limited(50, 1, 100));
    second = world.submit(service, limited(10, 2, 100));
  });
  world.at(1, [&](LiveService&) {
    const Why why = world.why(second);
    ASSERT_EQ(kinds_of(why), Kinds{"quota"});
    EXPECT_EQ(count_in(why.reasons[0], "used"), 1);
    EXPECT_EQ(count_in(why.reasons[0], "limit"), 2);
    EXPECT_EQ(count_in(why.reasons[0], "need"), 2);
    EXPECT_TRUE(why.reasons[0].sole);
    EXPECT_EQ(why.would_start, Kinds{"an admin: berth share set root --gpu-limit 3"});
  });
  finish(world);
}

TEST(WhyGates, DependencyAndArrayCountWhatIsUnmet) {
  LiveWorld world{{.cluster = "1x4", .scheduling = under("easy")}};
  JobNumber child = 0, array = 0;
  world.at(0.1, [&](LiveService& service) {
    const JobNumber parent = world.submit(service, limited(50, 1, 100));
    JobSpec spec = limited(10, 1, 100);
    spec.dependencies = {{.kind = DependencyKind::AfterOk, .job = parent}};
    child = world.submit(service, spec);
    JobSpec many = limited(50, 1, 100);
    many.array = *parse_array("0-2%1");
    array = world.submit(service, many);
  });
  world.at(1, [&](LiveService&) {
    const Why why = world.why(child);
    ASSERT_EQ(kinds_of(why), Kinds{"dependency"});
    EXPECT_EQ(count_in(why.reasons[0], "unmet"), 1);
    EXPECT_EQ(count_in(why.reasons[0], "of"), 1);
    const Why second = world.why(array + 1);
    ASSERT_EQ(kinds_of(second), Kinds{"array"});
    EXPECT_EQ(count_in(second.reasons[0], "running"), 1);
    EXPECT_EQ(count_in(second.reasons[0], "at_once"), 1);
  });
  finish(world);
}

// A holds 2 of 4 until 100, H wants all 4 then; J would fit now, but not for its 1,000 s.
TEST(WhyGates, AReservationNamesTheLongestRunThatFitsAndItDoes) {
  LiveWorld world{{.cluster = "1x4", .scheduling = under("easy")}};
  JobNumber h = 0, j = 0, shorter = 0;
  world.at(0.1, [&](LiveService& service) {
    world.submit(service, limited(100, 2, 100));
    h = world.submit(service, limited(20, 4, 100));
    j = world.submit(service, limited(20, 2, 1000));
  });
  world.at(1, [&](LiveService& service) {
    const Why why = world.why(j);
    ASSERT_EQ(kinds_of(why), Kinds{"reservation"});
    const std::int64_t longest = count_in(why.reasons[0], "longest_limit");
    EXPECT_GE(longest, 97);
    EXPECT_LE(longest, 100);
    EXPECT_EQ(count_in(why.reasons[0], "job"), h);
    EXPECT_TRUE(why.reasons[0].sole);
    ASSERT_FALSE(why.would_start.empty());
    EXPECT_NE(why.would_start[0].find(fmt::format("berth change {} time_limit={}s", j, longest)),
              std::string::npos)
        << why.would_start[0];
    shorter = world.submit(service, limited(20, 2, longest));
  });
  world.at(2, [&](LiveService& service) {
    EXPECT_EQ(service.job(kRoot, shorter)->state, LiveState::Running) << "as was said";
    EXPECT_EQ(service.job(kRoot, j)->state, LiveState::Pending);
  });
  finish(world);
}

TEST(WhyGates, StrictOrderNamesThoseBefore) {
  LiveWorld world{{.cluster = "1x4", .scheduling = under("fifo")}};
  JobNumber h = 0, j = 0;
  world.at(0.1, [&](LiveService& service) {
    world.submit(service, limited(100, 2, 100));
    h = world.submit(service, limited(20, 4, 100));
    j = world.submit(service, limited(20, 2, 10));
  });
  world.at(1, [&](LiveService&) {
    const Why why = world.why(j);
    ASSERT_EQ(kinds_of(why), Kinds{"order"});
    EXPECT_EQ(why.reasons[0].text, "1 job with 4 GPUs in all comes before it");
    EXPECT_EQ(why.reasons[0].entities, Kinds{fmt::format("job {} (4 GPUs)", h)});
    EXPECT_EQ(why.place, 2U);
    EXPECT_EQ(why.of, 2U);
  });
  finish(world);
}

TEST(WhyGates, OtherUsersJobsAreASumForThoseWhoMayNotSeeThem) {
  LiveWorld world{{.cluster = "1x4", .scheduling = under("easy")}};
  JobNumber mine = 0, last = 0;
  world.at(0.1, [&](LiveService& service) {
    JobSpec theirs = limited(100, 1, 200);
    theirs.user = "ann";
    world.submit(service, theirs);
    theirs.gpus = 2;
    world.submit(service, theirs);
    mine = world.submit(service, limited(100, 1, 200));
    last = world.submit(service, limited(10, 1, 200));
  });
  world.at(1, [&](LiveService&) {
    const Why seen = world.why(last, false);
    ASSERT_EQ(kinds_of(seen), Kinds{"capacity"});
    EXPECT_EQ(seen.reasons[0].entities,
              (Kinds{fmt::format("job {} (1 GPU)", mine), "2 jobs of other users, 3 GPUs"}));
    EXPECT_EQ(world.why(last).reasons[0].entities.size(), 3U);
  });
  finish(world);
}

TEST(WhyGates, ADrainedNodeIsAnOperatorsMatter) {
  LiveWorld world{{.cluster = "1x4", .scheduling = under("easy")}};
  JobNumber job = 0;
  std::string node;
  world.at(0.1, [&](LiveService& service) {
    node = service.nodes(kRoot).front().name;
    ASSERT_TRUE(service.set_node(kRoot, node, "drain", "fan"));
    job = world.submit(service, limited(10, 1, 100));
  });
  world.at(1, [&](LiveService& service) {
    const Why why = world.why(job);
    ASSERT_EQ(kinds_of(why), (Kinds{"node state", "capacity"}));
    EXPECT_TRUE(why.reasons[0].sole);
    EXPECT_EQ(why.would_start, Kinds{"an operator: berth node resume " + node});
    ASSERT_TRUE(service.set_node(kRoot, node, "resume", ""));
  });
  finish(world);
}

// root's job of a higher class may take the device, but not before the other has run 60 s.
TEST(WhyGates, ProtectionEndsWhenTheMinimumRunIsOver) {
  LiveWorld world{
      {.cluster = "1x1",
       .scheduling = under("fair-share", {{"preempt", "priority"}, {"min_run", "60"}})}};
  JobNumber urgent = 0;
  world.at(0.1, [&](LiveService& service) { world.submit(service, limited(500, 1, 600)); });
  world.at(10, [&](LiveService& service) {
    JobSpec spec = limited(10, 1, 100);
    spec.priority = 5;
    urgent = world.submit(service, spec);
  });
  world.at(20, [&](LiveService&) {
    const Why why = world.why(urgent);
    ASSERT_EQ(kinds_of(why), (Kinds{"capacity", "protection"}));
    EXPECT_NEAR(measure_in(why.reasons[1], "seconds_left"), 40, 1) << "60 s after its start at 0";
    EXPECT_EQ(why.reasons[1].when, "until");
  });
  world.at(70, [&](LiveService& service) {
    EXPECT_NE(service.job(kRoot, urgent)->started, 0) << "as was said";
  });
  finish(world);
}

}  // namespace
}  // namespace berth::test
