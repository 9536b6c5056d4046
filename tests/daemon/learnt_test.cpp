// What jobs have shown of themselves: kept by kind, bounded, written only when it is news.
#include <gtest/gtest.h>

#include <fmt/format.h>

#include "daemon/learnt.h"
#include "perf/profile_file.h"
#include "support/live_world.h"

namespace berth::test {
namespace {

JobSpec job(const std::string& user, const std::string& name, const std::string& model = "") {
  JobSpec spec;
  spec.user = user;
  spec.name = name;
  spec.model = model;
  spec.gpus = 1;
  return spec;
}

std::map<std::string, std::string> written(LearntKinds& learnt) {
  std::vector<RecordBody> records;
  learnt.take_records(records);
  std::map<std::string, std::string> settings;
  for (const RecordBody& record : records) {
    const auto& setting = std::get<SettingRecord>(record);
    settings[setting.key] = setting.value;
  }
  return settings;
}

TEST(LearntLengths, AJobsOwnWordHoldsUntilAJobOfItsKindIsOver) {
  for (const OwnWord word : {OwnWord::First, OwnWord::Last}) {
    LearntLengths lengths{*make_estimator("history", 1), word};
    TraceJob other, own;
    own.user = other.user = NameId{1};
    other.name = NameId{2};
    own.name = NameId{3};
    own.estimate = std::chrono::hours{2};
    EXPECT_EQ(lengths.estimate(own), std::chrono::hours{2});
    lengths.learn(other, std::chrono::seconds{5});
    EXPECT_EQ(lengths.estimate(own), word == OwnWord::First ? Duration{std::chrono::hours{2}}
                                                            : Duration{std::chrono::seconds{5}});
    TraceJob silent = own;
    silent.estimate = {};
    EXPECT_EQ(lengths.estimate(silent), std::chrono::seconds{5});
    lengths.learn(own, std::chrono::seconds{60});
    EXPECT_EQ(lengths.estimate(own), std::chrono::seconds{60});
  }
}

/// Who of two waiting jobs comes first under sjf, once the machine is free at 100 s. `earlier` has
/// happened before.
std::string first_of(const std::function<void(LiveWorld&)>& earlier, JobSpec one, JobSpec other) {
  LiveWorld world{{.cluster = "1x1", .scheduling = {.policy = {.policy = "sjf"}}}};
  earlier(world);
  world.at(50, [&](LiveService& service) { world.submit(service, spec_of({"run", "50"})); });
  world.at(60, [&](LiveService& service) {
    world.submit(service, std::move(one));
    world.submit(service, std::move(other));
  });
  std::string first;
  world.at(110, [&](LiveService& service) {
    const auto page = service.jobs(kRoot, {});
    ASSERT_TRUE(page);
    for (const JobView& view : page->jobs)
      if (view.state == LiveState::Running) first += view.spec->name;
  });
  world.run();
  EXPECT_EQ(world.violations(), std::vector<std::string>{});
  return first;
}

JobSpec waiting(const std::string& user, const std::string& name, std::int64_t estimate) {
  JobSpec spec = spec_of({"run", "30"});
  spec.user = user;
  spec.name = name;
  spec.estimate = estimate;
  return spec;
}

TEST(LearntLengths, ACancelledJobHasNotShownHowLongItTakes) {
  const auto cancelled = [](LiveWorld& world) {
    world.at(1, [&](LiveService& service) {
      JobSpec spec = spec_of({"run", "1000"});
      spec.user = "ann";
      spec.name = "long";
      world.submit(service, std::move(spec));
    });
    world.at(5, [](LiveService& service) {
      ASSERT_TRUE(service.act(kRoot, Verb::Cancel, {.states = {}, .numbers = {1}}, "", 0));
    });
  };
  EXPECT_EQ(first_of(cancelled, waiting("ann", "long", 0), waiting("bob", "short", 100)), "short");
}

TEST(LearntLengths, AnEstimateCountsMoreThanOtherJobsOfItsUser) {
  const auto over = [](LiveWorld& world) {
    world.at(1, [&](LiveService& service) {
      JobSpec spec = spec_of({"run", "3"});
      spec.user = "ann";
      spec.name = "tiny";
      world.submit(service, std::move(spec));
    });
  };
  EXPECT_EQ(first_of(over, waiting("ann", "long", 5000), waiting("bob", "short", 100)), "short");
  EXPECT_EQ(first_of(over, waiting("ann", "tiny", 5000), waiting("bob", "short", 100)), "tiny");
}

TEST(LearntKinds, KeepsAKindOverARestart) {
  LearntKinds learnt{{}};
  const JobSpec spec = job("ann", "a/b%", "my net");
  learnt.learn_speed(spec, 0.5, 32, 1000);
  learnt.learn_beside(spec, kind_of(job("bob", "x")), 1.8, 1001);
  learnt.learn_start(spec, 12, 1002);
  learnt.learn_cores(kind_of(spec), {{RunShape{.gpus = 1, .batch = 32}, {{1, 10}, {2, 19}}}}, 1003);
  const auto settings = written(learnt);
  ASSERT_EQ(settings.size(), 2U);  // the other one of the pair has a name then
  EXPECT_EQ(settings.begin()->first, "learnt/ann/a%2Fb%25/my net");
  EXPECT_TRUE(settings.contains("learnt/bob/x/"));
  const LearntKinds again{settings};
  const LearntKind* kind = again.find(kind_of(spec));
  ASSERT_NE(kind, nullptr);
  EXPECT_EQ(kind->seconds_per_iteration, 0.5);
  EXPECT_EQ(kind->batch, 32);
  EXPECT_EQ(kind->start_seconds, 12);
  EXPECT_EQ(kind->beside.at("bob/x/"), 1.8);
  EXPECT_EQ(kind->cores.begin()->second.at(2), 19);
  EXPECT_EQ(kind->version, 4U);
}

// because a thousand jobs of one kind must not fill the journal
TEST(LearntKinds, WritesOnlyWhatIsNews) {
  LearntKinds learnt{{}};
  const JobSpec spec = job("ann", "train");
  learnt.learn_speed(spec, 0.5, 32, 1000);
  EXPECT_EQ(written(learnt).size(), 1U);
  for (int i = 0; i < 100; ++i) learnt.learn_speed(spec, 0.5 + 0.0002 * i, 32, 1000 + i);
  EXPECT_TRUE(written(learnt).empty());
  learnt.learn_speed(spec, 0.6, 32, 2000);
  EXPECT_EQ(written(learnt).size(), 1U);
}

TEST(LearntKinds, IgnoresWhatCannotBeAndForgetsTheOldest) {
  LearntKinds learnt{{}};
  learnt.learn_speed(job("ann", "train"), -1, 1, 0);
  learnt.learn_speed(job("ann", "train"), std::numeric_limits<double>::quiet_NaN(), 1, 0);
  learnt.learn_speed(job("ann", "train"), 1e300, 1, 0);
  EXPECT_TRUE(written(learnt).empty());
  for (int i = 0; i < 1'200; ++i) learnt.learn_speed(job("u", fmt::format("{}", i)), 1, 1, i);
  EXPECT_LE(learnt.kinds().size(), 1'000U);
  EXPECT_EQ(learnt.find(kind_of(job("u", "0"))), nullptr);
  EXPECT_NE(learnt.find(kind_of(job("u", "1199"))), nullptr);
  for (const char* text : {"", "{}", "[]", "{\"user\":1}", "{\"user\":\"a\",\"name\":\"b\"}"})
    EXPECT_FALSE(learnt_from_json(text));
}

// What was exported is read by a simulation.
TEST(LearntKinds, IsExportedAsProfiles) {
  LearntKinds learnt{{}};
  learnt.learn_speed(job("ann", "train", "MyNet"), 0.5, 16, 1000);
  learnt.learn_beside(job("ann", "train", "MyNet"), kind_of(job("bob", "other")), 1.7, 1000);
  learnt.learn_speed(job("bob", "other"), 0.25, 8, 1000);
  std::vector<LearntKind> kinds;
  for (const auto& [key, kind] : learnt.kinds()) kinds.push_back(kind);
  const std::string text = learnt_yaml(kinds);
  const auto read = parse_profiles(text, "learnt.yaml", built_in_profiles());
  ASSERT_TRUE(read) << read.error().text() << text;
  const auto mine = read->find("mynet");
  const auto other = read->find("other");
  ASSERT_TRUE(mine && other) << text;
  const Profile& profile = (*read)[*mine];
  EXPECT_EQ(profile.batch, 16);
  EXPECT_NEAR(profile.iteration.alpha + 16 * profile.iteration.beta, 0.5, 1e-6);
  EXPECT_NEAR(read->slowdown(*mine, *other), 1.7, 1e-5);
}

}  // namespace
}  // namespace berth::test
