// Targets, bodies, limits and JSON, each alone.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <ctime>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "api/body.h"
#include "api/json.h"
#include "api/rate_limiter.h"
#include "api/target.h"
#include "daemon/past_cursor.h"
#include "model/job_spec_json.h"
#include "support/sanitized.h"

namespace berth::api {
namespace {

TEST(Target, IsTakenApartAndDecoded) {
  const auto target = parse_target("/a/b%20c/%C3%A4?x=1+2&y&z=a%3Db");
  ASSERT_TRUE(target);
  EXPECT_EQ(target->path, (std::vector<std::string>{"a", "b c", "ä"}));
  EXPECT_EQ(target->query, (std::vector<std::pair<std::string, std::string>>{
                               {"x", "1 2"}, {"y", ""}, {"z", "a=b"}}));
  EXPECT_EQ(parse_target("http://host:1/a?b=1")->path, (std::vector<std::string>{"a"}));
}

TEST(Target, RefusesWhatIsNoText) {
  for (const char* bad : {"", "a", "*", "/%", "/%4", "/%zz", "/%00", "/%ff", "/%C0%80",
                          "/?a=%ED%A0%80", "/?%F5%80%80%80=1", "http:/x", "http://host?q=1"}) {
    EXPECT_FALSE(parse_target(bad)) << bad;
  }
}

TEST(JobNumbers, AreWholeAndPositive) {
  EXPECT_EQ(job_number_from("18446744073709551615"), 18446744073709551615ULL);
  for (const char* bad : {"", "0", "-1", "+1", "1 ", " 1", "1.0", "0x1", "18446744073709551616"})
    EXPECT_FALSE(job_number_from(bad)) << bad;
}

TEST(QueryReader, ReadsRangesUpToALimit) {
  const auto target = parse_target(
      "/?a=3,7-9&b=1-5&c=18446744073709551615-18446744073709551615&d=1-18446744073709551615");
  QueryReader query(*target);
  EXPECT_EQ(query.numbers("a", 4), (std::vector<JobNumber>{3, 7, 8, 9}));
  EXPECT_EQ(query.numbers("c", 4).size(), 1U);
  EXPECT_TRUE(query.is_good());
  EXPECT_TRUE(query.numbers("b", 4).empty());
  EXPECT_TRUE(query.numbers("d", 4).empty());
  EXPECT_EQ(query.faults().size(), 2U);
}

TEST(Body, IsAnObjectOfBoundedDepth) {
  EXPECT_TRUE(parse_body(""));
  EXPECT_TRUE(parse_body(R"({"a":"[[[[[[[[[[[[[[[[[[[[[[\"[["})")) << "brackets in texts are text";
  EXPECT_FALSE(parse_body(std::string(1'000'000, '[')));
  EXPECT_FALSE(parse_body("[]"));
  EXPECT_FALSE(parse_body("{\"a\":\"\xff\"}"));
  EXPECT_FALSE(parse_body(R"({"a":1e999})"));
  EXPECT_FALSE(parse_body(R"({"a":1} x)"));
  const std::string nested =
      fmt::format("{{\"a\":{}1{}}}", std::string(15, '['), std::string(15, ']'));
  EXPECT_TRUE(parse_body(nested));
}

TEST(Body, ReportsEveryFault) {
  const auto document = nlohmann::json::parse(
      R"({"why":7,"signal":99,"ids":[1,"x"],"shares":"many","more":1,"huge":18446744073709551615})");
  BodyReader body(document);
  EXPECT_FALSE(body.text("why", 10));
  EXPECT_FALSE(body.whole("signal", 1, 64));
  EXPECT_FALSE(body.whole("huge", 1, INT64_MAX));
  EXPECT_TRUE(body.numbers("ids", 10).empty());
  EXPECT_FALSE(body.number("shares", 0, 1));
  body.finish();
  EXPECT_EQ(body.faults().size(), 6U);
}

TEST(RateLimiter, FillsWithTimeAndForgets) {
  using std::chrono::milliseconds;
  RateLimiter limiter(10, 2);
  const auto start = RateLimiter::Clock::now();
  EXPECT_TRUE(limiter.try_take("a", start));
  EXPECT_TRUE(limiter.try_take("a", start));
  EXPECT_FALSE(limiter.try_take("a", start));
  EXPECT_TRUE(limiter.try_take("b", start));
  EXPECT_FALSE(limiter.try_take("a", start + milliseconds(50)));  // half a token
  EXPECT_TRUE(limiter.try_take("a", start + milliseconds(150)));
  for (int i = 0; i < 10'000; ++i)
    EXPECT_TRUE(limiter.try_take(fmt::format("{}", i), start + milliseconds(1'000 + i)));
  EXPECT_LT(limiter.remembered(), 5'000U);
}

TEST(PastCursor, ComesBackAsItWas) {
  const PastCursor cursor{1'700'000'000'123'456, 42};
  EXPECT_EQ(past_cursor_from(past_cursor_text(cursor)), cursor);
  for (const char* bad : {"", "1", "1.", ".1", "1.2x", "x.2", "1.-2"})
    EXPECT_FALSE(past_cursor_from(bad)) << bad;
}

TEST(JobJson, OfASpecIsTheSameWithAndWithoutATree) {
  JobSpec spec;
  spec.script = "#!/bin/sh\n\"<x>\"\n";
  spec.env = {{"A", "b\tc"}};
  spec.command = {"x", ""};
  spec.gpus = 4;
  spec.weight = 0.1;
  spec.requeue_exit_code = 3;
  spec.deadline = 1'800'000'000;
  spec.preemptible = false;
  spec.open_mode = OpenMode::Append;
  spec.kind = JobKind::Debug;
  spec.dependencies = {{DependencyKind::AfterOk, 12}};
  spec.array = ArraySpec{{0, 2, 4}, 2};
  JsonWriter out;
  write_json(out, spec, SpecPart::Whole);
  EXPECT_EQ(nlohmann::json::parse(out.str()), to_json(spec));
  JsonWriter part;
  write_json(part, spec, SpecPart::WithoutScriptAndEnvironment);
  EXPECT_EQ(part.str().find("script"), std::string::npos);
  EXPECT_EQ(part.str().find("env"), std::string::npos);
}

double thread_milliseconds() {
  timespec time{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) * 1e3 + static_cast<double>(time.tv_nsec) / 1e6;
}

TEST(JobJson, OfAThousandJobsTakesMilliseconds) {
  JobPage page;
  for (JobNumber i = 1; i <= 1'000; ++i) {
    auto spec = std::make_shared<JobSpec>();
    spec->command = {"python3", "train.py", "--epochs", "90"};
    spec->workdir = "/home/alice/project";
    spec->name = fmt::format("train-{}", i);
    spec->user = "alice";
    spec->gpus = 4;
    spec->time_limit = 86'400;
    JobView job;
    job.number = i;
    job.spec = spec;
    job.state = LiveState::Running;
    job.submitted = job.started = 1'700'000'000'000'000;
    job.where = {{"n1", {0, 1, 2, 3}, {0, 1, 2, 3, 4, 5, 6, 7}}};
    job.output = fmt::format("/home/alice/project/berth-{}.out", i);
    page.jobs.push_back(job);
  }
  double best = 1e9;
  for (int i = 0; i < 20; ++i) {
    // Time of this thread, because the machine may be busy with others; the best of some.
    const double begin = thread_milliseconds();
    const std::string text = to_json(page);
    best = std::min(best, thread_milliseconds() - begin);
    EXPECT_GT(text.size(), 300'000U);
  }
  RecordProperty("milliseconds", fmt::format("{:.2f}", best));
  EXPECT_LT(best, 10 * test::kSanitizedSlowdown) << "even in a checked build";
}

}  // namespace
}  // namespace berth::api
