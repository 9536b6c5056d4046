#include "trace/writer.h"

#include <string>

#include <gtest/gtest.h>

#include "base/rng.h"
#include "trace/reader.h"

namespace berth {
namespace {

// Any job the reader would accept, with awkward numbers and texts.
TraceJob random_job(Trace& trace, Rng& rng, std::size_t number) {
  const auto maybe = [&rng](auto value) { return rng.below(2) == 0 ? decltype(value){} : value; };
  const auto name = [&](std::string_view prefix) {
    static constexpr std::string_view kTails[] = {"",         "a,b", "say \"hi\"", "x\ny",
                                                  "\xC3\xA9", "#2",  "semi;colon", "|"};
    if (rng.below(3) == 0) return NameId{};
    return trace.names.intern(std::string(prefix) + std::string(kTails[rng.below(8)]));
  };
  TraceJob job;
  job.id = trace.names.intern("job" + std::to_string(number) + (rng.below(2) == 0 ? "" : ",\"x\""));
  // Up to the year 2096: a later clock zero does not fit the ticks of a double.
  job.submit = Time{Duration{static_cast<std::int64_t>(rng.below(4'000'000'000'000'000))}};
  job.duration = Duration{static_cast<std::int64_t>(rng.below(1'000'000'000'000'000))};
  job.gpus = 1 + static_cast<std::int32_t>(rng.below(64));
  if (rng.below(2) == 0) {
    job.gpus_min = 1 + static_cast<std::int32_t>(rng.below(static_cast<std::uint64_t>(job.gpus)));
    job.gpus_max = job.gpus + static_cast<std::int32_t>(rng.below(9));
  }
  if (job.gpus == 1) job.gpu_milli = static_cast<std::int32_t>(rng.below(1001));  // 0: cores alone
  job.cpus_milli = maybe(static_cast<std::int32_t>(rng.below(2'000'000'000)));
  job.memory_mib = maybe(static_cast<std::int32_t>(rng.below(2'000'000'000)));
  job.batch_size = maybe(static_cast<std::int32_t>(rng.below(1'000'000)));
  job.priority = maybe(static_cast<std::int32_t>(rng.below(2'000'000)) - 1'000'000);
  job.weight = static_cast<float>(rng.lognormal(0, 5));
  job.kind = static_cast<JobKind>(rng.below(5));
  job.status = static_cast<TraceStatus>(rng.below(3));
  job.iterations = maybe(static_cast<std::int64_t>(rng.below(1'000'000'000'000'000)));
  job.estimate = maybe(Duration{static_cast<std::int64_t>(rng.below(1'000'000'000'000))});
  if (rng.below(2) == 0)
    job.deadline = job.submit + Duration{static_cast<std::int64_t>(rng.below(1'000'000'000'000))};
  if (rng.below(2) == 0)
    job.cancel_at = job.submit + Duration{static_cast<std::int64_t>(rng.below(1'000'000'000'000))};
  job.user = name("u");
  job.group = name("g");
  job.queue = name("q");
  job.name = name("n");
  job.model = name("m");
  job.study = name("s");
  job.gpu_type = name("t");
  return job;
}

void expect_same(const Trace& a, const Trace& b) {
  ASSERT_EQ(a.jobs.size(), b.jobs.size());
  for (std::size_t i = 0; i < a.jobs.size(); ++i) {
    const TraceJob& x = a.jobs[i];
    const TraceJob& y = b.jobs[i];
    EXPECT_EQ(a.text(x.id), b.text(y.id));
    EXPECT_EQ(x.submit, y.submit);
    EXPECT_EQ(x.duration, y.duration);
    EXPECT_EQ(x.gpus, y.gpus);
    EXPECT_EQ(x.gpus_min, y.gpus_min);
    EXPECT_EQ(x.gpus_max, y.gpus_max);
    EXPECT_EQ(x.gpu_milli, y.gpu_milli);
    EXPECT_EQ(x.cpus_milli, y.cpus_milli);
    EXPECT_EQ(x.memory_mib, y.memory_mib);
    EXPECT_EQ(x.batch_size, y.batch_size);
    EXPECT_EQ(x.priority, y.priority);
    EXPECT_EQ(x.weight, y.weight);
    EXPECT_EQ(x.kind, y.kind);
    EXPECT_EQ(x.status, y.status);
    EXPECT_EQ(x.iterations, y.iterations);
    EXPECT_EQ(x.estimate, y.estimate);
    EXPECT_EQ(x.deadline, y.deadline);
    EXPECT_EQ(x.cancel_at, y.cancel_at);
    for (const auto member : {&TraceJob::user, &TraceJob::group, &TraceJob::queue, &TraceJob::name,
                              &TraceJob::model, &TraceJob::study, &TraceJob::gpu_type}) {
      EXPECT_EQ(a.text(x.*member), b.text(y.*member));
    }
  }
}

TEST(Writer, ReadingWhatWasWrittenGivesTheSameTrace) {
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    Rng rng(seed);
    Trace trace;
    const std::size_t count = 1 + rng.below(40);
    for (std::size_t i = 0; i < count; ++i) trace.jobs.push_back(random_job(trace, rng, i));
    trace.normalise();
    const std::string csv = trace_to_csv(trace);
    const auto again = parse_trace(csv, "t.csv");
    ASSERT_TRUE(again) << "seed " << seed << "\n" << again.error().text();
    EXPECT_TRUE(again->notes.empty());
    expect_same(trace, *again);
    EXPECT_EQ(trace_to_csv(*again), csv) << "seed " << seed;  // and it stays so
  }
}

TEST(Writer, WritesOnlyColumnsInUse) {
  const auto trace = parse_trace(
      "job_id,submit_time,gpus,duration,user,kind\n1,5,1,2.5,,\n2,7.000001,4,3,bob,\n", "t.csv");
  ASSERT_TRUE(trace);
  EXPECT_EQ(trace_to_csv(*trace),
            "job_id,submit_time,gpus,duration,user\n"
            "1,5,1,2.5,\n"  // the file's own clock, not ours
            "2,7.000001,4,3,bob\n");
}

TEST(Writer, LeavesNothingBehindWhenItCannotWrite) {
  EXPECT_FALSE(write_trace_csv(Trace{}, "no/such/directory/t.csv"));
}

}  // namespace
}  // namespace berth
