// cancel and its like: what is asked of the scheduler, and what is told of the answer.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "client/played_scheduler.h"

namespace berth::test {
namespace {

using nlohmann::json;
using testing::HasSubstr;

constexpr auto kActions = "/api/v1/jobs/actions";

TEST(Actions, NameTheirVerbAndJobs) {
  PlayedScheduler scheduler;
  for (const char* verb : {"cancel", "hold", "release", "requeue", "suspend", "resume"}) {
    const Ran ran = scheduler.run(std::string(verb) + " 12 13,14");
    EXPECT_EQ(ran.exit, 0) << verb << ran.err;
    EXPECT_EQ(scheduler.sent("POST", kActions), (json{{"verb", verb}, {"ids", {12, 13, 14}}}));
  }
  EXPECT_EQ(scheduler.run("cancel 20_*").exit, 0);
  EXPECT_EQ(scheduler.sent("POST", kActions)["ids"], (json{20, 21, 22}));
  EXPECT_EQ(scheduler.run("cancel --user bob --state pending --why 'too big'").exit, 0);
  EXPECT_EQ(scheduler.sent("POST", kActions),
            json::parse(R"({"verb":"cancel","user":"bob","state":["pending"],"why":"too big"})"));
  EXPECT_EQ(scheduler.run("cancel 12 --signal USR1").exit, 0);
  EXPECT_EQ(scheduler.sent("POST", kActions),
            json::parse(R"({"verb":"signal","ids":[12],"signal":10})"));
}

TEST(Actions, TellOfTheJobsThatCouldNotBeDone) {
  PlayedScheduler scheduler;
  const Ran ran = scheduler.run("cancel 9 12");
  EXPECT_EQ(ran.exit, 1);
  EXPECT_EQ(ran.err, "berth: job 9: it is over\n");
}

TEST(Actions, NeverMeanEverythingByAccident) {
  PlayedScheduler scheduler;
  const Ran ran = scheduler.run("cancel");
  EXPECT_EQ(ran.exit, 2);
  EXPECT_THAT(ran.err, HasSubstr("which jobs?"));
  EXPECT_EQ(scheduler.run("cancel ''").exit, 2);
  EXPECT_TRUE(scheduler.server().asked().empty());
}

TEST(Change, SendsValuesAsTheirKindsAre) {
  PlayedScheduler scheduler;
  EXPECT_EQ(scheduler.run("change 13 gpus=2 time_limit=2h priority=-5 name=small requeue=no").exit,
            0);
  EXPECT_EQ(
      scheduler.sent("PATCH", "/api/v1/jobs/13"),
      json::parse(R"({"gpus":2,"time_limit":7200,"priority":-5,"name":"small","requeue":false})"));
  const Ran wrong = scheduler.run("change 13 gpu=2 priority=high nonsense");
  EXPECT_EQ(wrong.exit, 2);
  EXPECT_THAT(wrong.err, HasSubstr("no key is called 'gpu' (did you mean gpus"));
  EXPECT_THAT(wrong.err, HasSubstr("priority: 'high' is no whole number"));
  EXPECT_THAT(wrong.err, HasSubstr("'nonsense' is not KEY=VALUE"));
}

}  // namespace
}  // namespace berth::test
