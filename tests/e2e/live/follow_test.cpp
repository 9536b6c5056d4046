// wait and logs: to the end of a job, through restarts of the scheduler.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>

#include <fmt/format.h>

#include "client/played_scheduler.h"

namespace berth::test {
namespace {

using testing::HasSubstr;

std::string one_job(const std::string& state, int exit_code = 0, int signal = 0) {
  return fmt::format(
      R"({{"jobs":[{{"number":12,"state":"{}","exit_code":{},"signal":{}}}],"next":null,"total":1}})",
      state, exit_code, signal);
}

TEST(Wait, EndsWithTheExitOfTheJob) {
  PlayedScheduler scheduler;
  scheduler.set_job({{"number", 12}, {"state", "completed"}});
  EXPECT_EQ(scheduler.run("wait 12").exit, 0);
  scheduler.set_job({{"number", 12}, {"state", "failed"}, {"exit_code", 42}});
  const Ran failed = scheduler.run("wait 12 9");
  EXPECT_EQ(failed.exit, 42);  // the largest of 42 and 3
  EXPECT_THAT(failed.err, HasSubstr("job 12 failed with exit 42"));
  scheduler.set_job({{"number", 12}, {"state", "failed"}, {"exit_code", 0}, {"signal", 9}});
  EXPECT_EQ(scheduler.run("wait --quiet 12").exit, 137);
  scheduler.set_job({{"number", 12}, {"state", "cancelled"}, {"signal", 0}});
  EXPECT_EQ(scheduler.run("wait 12").exit, 1);
}

TEST(Wait, IsWokenByAnEvent) {
  PlayedScheduler scheduler;
  std::atomic<int> asked_for_jobs = 0;
  scheduler.first = [&](const Asked& asked) {
    if (asked.path() == "/api/v1/jobs")
      return Told{.body = one_job(++asked_for_jobs == 1 ? "running" : "completed")};
    if (asked.path() != "/api/v1/events") return Told{.status = 0};
    return Told{.stream = [&](const Told::Write& write) {
      while (asked_for_jobs < 1 && write(""))
        std::this_thread::sleep_for(std::chrono::milliseconds(2));
      write(":\n\n");  // a heartbeat is no event
      write("id: 5\nevent: job\ndata: {\"job\":12}\n\n");
      while (write("")) std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }};
  };
  EXPECT_EQ(scheduler.run("wait 12").exit, 0);
  EXPECT_EQ(asked_for_jobs, 2);  // once before and once after the event: no polling
  EXPECT_EQ(scheduler.server().asked("GET", "/api/v1/events").front().parameter("job"), "12");
}

TEST(Wait, OutlivesARestartOfTheScheduler) {
  PlayedScheduler scheduler;
  std::atomic<int> count = 0;
  scheduler.first = [&](const Asked& asked) {
    if (asked.path() == "/api/v1/events") return Told{.cut_after = 0};
    if (asked.path() != "/api/v1/jobs") return Told{.status = 0};
    Told told{.body = one_job(count >= 3 ? "completed" : "running")};
    if (++count <= 2) told.cut_after = 10;
    return told;
  };
  const Ran ran = scheduler.run("wait 12");
  EXPECT_EQ(ran.exit, 0) << ran.err;
  EXPECT_THAT(ran.err, HasSubstr("waiting for it to come back"));
}

TEST(Wait, ForAJobThatIsNotThereFails) {
  PlayedScheduler scheduler;
  const Ran ran = scheduler.run("wait 77");
  EXPECT_EQ(ran.exit, 1);
  EXPECT_EQ(ran.err, "berth: there is no job 77\n");
}

TEST(Logs, PrintWhatThereIs) {
  PlayedScheduler scheduler;
  EXPECT_EQ(scheduler.run("logs 12").out, "line 1\nline 2\nline 3\n");
  EXPECT_EQ(scheduler.run("logs --err 12").out, "oh no\n");
  EXPECT_EQ(scheduler.run("logs -n 2 12").out, "line 2\nline 3\n");
  EXPECT_EQ(scheduler.run("logs -n 9 12").out, "line 1\nline 2\nline 3\n");
  EXPECT_EQ(scheduler.run("logs -n 1 12").out, "line 3\n");
}

TEST(Logs, FollowOverABrokenConnectionWithoutLossOrRepetition) {
  PlayedScheduler scheduler;
  const std::string all = "one\ntwo\nthree\n";
  std::atomic<int> count = 0;
  scheduler.first = [&](const Asked& asked) {
    if (asked.path() != "/api/v1/jobs/12/output") return Told{.status = 0};
    EXPECT_EQ(asked.parameter("follow"), "1");
    const auto offset = static_cast<std::size_t>(std::stoul(asked.parameter("offset")));
    const int round = ++count;
    if (round == 1) {  // dies in the middle of a chunk
      Told told{.chunks = {all.substr(0, 6), "never arrives"}};
      told.cut_after =
          std::string("HTTP/1.1 200 Some words\r\nTransfer-Encoding: chunked\r\n\r\n6\r\n").size() +
          6 + 2;
      return told;
    }
    if (round == 2) return Told{.status = 503, .body = R"({"error":{"messages":["starting"]}})"};
    scheduler.set_job({{"number", 12}, {"state", "completed"}});
    return Told{.chunks = {all.substr(offset)}};
  };
  const Ran ran = scheduler.run("logs -f 12");
  EXPECT_EQ(ran.exit, 0) << ran.err;
  EXPECT_EQ(ran.out, all);
}

TEST(Logs, FollowEndsOnlyWhenTheJobDoes) {
  PlayedScheduler scheduler;
  std::atomic<int> count = 0;
  scheduler.first = [&](const Asked& asked) {
    if (asked.path() != "/api/v1/jobs/12/output") return Told{.status = 0};
    if (++count == 3) scheduler.set_job({{"number", 12}, {"state", "completed"}});
    return Told{.chunks = {fmt::format("attempt {}\n", count.load())}};
  };
  EXPECT_EQ(scheduler.run("logs -f 12").out, "attempt 1\nattempt 2\nattempt 3\n");
}

}  // namespace
}  // namespace berth::test
