#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "trace/reader.h"

namespace berth {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

Trace read_good(std::string_view bytes, const ReadOptions& options = {}) {
  auto trace = parse_trace(bytes, "t.csv", options);
  EXPECT_TRUE(trace) << (trace ? "" : trace.error().text());
  return trace ? std::move(*trace) : Trace{};
}

std::vector<std::string> errors_of(std::string_view bytes, const ReadOptions& options = {}) {
  auto trace = parse_trace(bytes, "t.csv", options);
  return trace ? std::vector<std::string>{} : trace.error().messages;
}

constexpr std::string_view kHeader = "job_id,submit_time,gpus,duration\n";

TEST(NativeReader, ReadsRequiredColumnsAndSortsBySubmitTime) {
  const Trace trace = read_good("job_id,submit_time,gpus,duration\nb,30,2,5\na,10,1,7.5\n");
  ASSERT_EQ(trace.jobs.size(), 2U);
  EXPECT_EQ(trace.format, "native");
  EXPECT_EQ(trace.text(trace.jobs[0].id), "a");
  EXPECT_EQ(to_seconds(trace.jobs[0].submit), 10);  // because seconds keep the file's own zero
  EXPECT_EQ(trace.zero_seconds, 0);
  EXPECT_EQ(to_seconds(trace.jobs[0].duration), 7.5);
  EXPECT_EQ(to_seconds(trace.jobs[1].submit), 30);
  EXPECT_EQ(trace.jobs[1].gpus, 2);
}

TEST(NativeReader, ReadsEveryOptionalColumn) {
  const Trace trace = read_good(
      "job_id,submit_time,gpus,duration,user,group,queue,name,model,gpu_type,gpus_min,gpus_max,"
      "cpus,memory_gb,batch_size,"
      "iterations,deadline,priority,weight,kind,study,status,estimate,cancel_time\n"
      "1,100,4,10,ann,vision,q1,\"big, "
      "run\",resnet50,a100|v100,2,8,7.5,1.5,256,1000,400,-3,2.5,HPO,s1,Killed,3600,250\n");
  ASSERT_EQ(trace.jobs.size(), 1U);
  const TraceJob& job = trace.jobs[0];
  EXPECT_EQ(trace.text(job.user), "ann");
  EXPECT_EQ(trace.text(job.group), "vision");
  EXPECT_EQ(trace.text(job.queue), "q1");
  EXPECT_EQ(trace.text(job.name), "big, run");
  EXPECT_EQ(trace.text(job.model), "resnet50");
  EXPECT_EQ(trace.text(job.gpu_type), "a100|v100");
  EXPECT_EQ(job.gpus_min, 2);
  EXPECT_EQ(job.gpus_max, 8);
  EXPECT_EQ(job.cpus_milli, 7500);
  EXPECT_EQ(job.memory_mib, 1536);
  EXPECT_EQ(job.batch_size, 256);
  EXPECT_EQ(job.iterations, 1000);
  EXPECT_EQ(to_seconds(*job.deadline), 400);  // absolute
  EXPECT_EQ(job.priority, -3);
  EXPECT_EQ(job.weight, 2.5F);
  EXPECT_EQ(job.kind, JobKind::Hpo);
  EXPECT_EQ(trace.text(job.study), "s1");
  EXPECT_EQ(job.status, TraceStatus::Killed);
  EXPECT_EQ(to_seconds(job.estimate), 3600);
  EXPECT_EQ(to_seconds(*job.cancel_at), 250);
  EXPECT_TRUE(trace.notes.empty());
}

TEST(NativeReader, TakesHeadersInAnyOrderAndCaseAndDelimiter) {
  EXPECT_EQ(read_good("\xEF\xBB\xBF"
                      "Duration; GPUS ;Job_ID;submit_time\r\n5;2;x;0\r\n")
                .jobs[0]
                .gpus,
            2);
  EXPECT_EQ(read_good("job_id\tsubmit_time\tgpus\tduration\nx\t0\t3\t1\n").jobs[0].gpus, 3);
}

TEST(NativeReader, MixesIsoTimesAndSecondsOnOneClock) {
  const Trace trace =
      read_good(std::string(kHeader) +
                "1,1507024800,1,5\n2,2017-10-03T10:00:07Z,1,5\n3,2017-10-03 10:00:09,1,5\n");
  EXPECT_EQ(to_seconds(trace.jobs[1].submit), 7);
  EXPECT_EQ(to_seconds(trace.jobs[2].submit), 9);
}

TEST(NativeReader, CompletesAnElasticRangeGivenHalf) {
  const Trace trace = read_good(
      "job_id,submit_time,gpus,duration,gpus_min,gpus_max\na,0,4,1,2,\nb,0,4,1,,8\nc,0,4,1,,\n");
  EXPECT_EQ(trace.jobs[0].gpus_max, 4);
  EXPECT_EQ(trace.jobs[1].gpus_min, 4);
  EXPECT_EQ(trace.jobs[2].gpus_min, 0);
}

TEST(NativeReader, NamesUnknownColumnsInANote) {
  const Trace trace = read_good("job_id,submit_time,gpus,duration,deadlin,zzzzzzzz\n1,0,1,1,5,6\n");
  EXPECT_THAT(trace.notes,
              ElementsAre("column deadlin is not known and was ignored (did you mean deadline?)",
                          "column zzzzzzzz is not known and was ignored"));
}

struct BadRow {
  std::string_view row;
  const char* message;
};

TEST(NativeReader, TellsWhereAndWhatIsWrong) {
  const std::string header =
      "job_id,submit_time,gpus,duration,kind,status,gpus_min,gpus_max,gpu_milli,deadline,weight,"
      "cancel_time\n";
  for (const BadRow& item : std::vector<BadRow>{
           {"1,0,0,1,,,,,,,,",
            "t.csv:2:3: gpus must be at least 1, got 0 (drop the row or pass --skip-invalid)"},
           {"1,0,-4,1,,,,,,,,", "t.csv:2:3: gpus must be at least 1, got -4"},
           {"1,0,1.5,1,,,,,,,,", "t.csv:2:3: gpus must be a whole number, got 1.5"},
           {"1,0,2000000,1,,,,,,,,", "t.csv:2:3: gpus must be at most 1000000, got 2000000"},
           {"1,-5,1,1,,,,,,,,", "t.csv:2:2: submit_time must not be negative, got -5"},
           {"1,soon,1,1,,,,,,,,",
            "t.csv:2:2: submit_time is neither a number nor an ISO 8601 time, got soon"},
           {"1,2017-99-03,1,1,,,,,,,,",
            "t.csv:2:2: submit_time is neither a number nor an ISO 8601 time"},
           {"1,0,1,nan,,,,,,,,", "t.csv:2:4: duration must be a finite number, got nan"},
           {"1,0,1,inf,,,,,,,,", "t.csv:2:4: duration must be a finite number, got inf"},
           {"1,0,1,1e12,,,,,,,,", "t.csv:2:4: duration must be at most 1e11 seconds, got 1e12"},
           {"1,0,1,,,,,,,,,", "t.csv:2:4: duration must not be empty"},
           {",0,1,1,,,,,,,,", "t.csv:2:1: job_id must not be empty"},
           {"1,0,1,1,trainig,,,,,,,",
            "t.csv:2:5: kind is not a known word, got trainig (did you mean training?)"},
           {"1,0,1,1,,complet,,,,,,",
            "t.csv:2:6: status is not a known word, got complet (did you mean completed?)"},
           {"1,0,4,1,,,5,,,,,", "gpus_min must not exceed gpus"},
           {"1,0,4,1,,,,3,,,,", "gpus_min must not exceed gpus_max"},
           {"1,0,4,1,,,1,3,,,,", "gpus_max must not be below gpus"},
           {"1,0,4,1,,,0,,,,,", "t.csv:2:7: gpus_min must be at least 1, got 0"},
           {"1,0,2,1,,,,,500,,,", "gpu_milli below 1000 needs gpus = 1"},
           {"1,0,1,1,,,,,1001,,,", "t.csv:2:9: gpu_milli must be at most 1000"},
           {"1,9,1,1,,,,,,5,,", "deadline must not be before submit_time"},
           {"1,9,1,1,,,,,,,,5", "cancel_time must not be before submit_time"},
           {"1,0,1,1,,,,,,,0,", "t.csv:2:11: weight must be greater than 0, got 0"},
           {"1,0,1", "t.csv:2:3: row has 3 fields, expected 12"},
           {"1,0,1,1,,,,,,,,,,x", "t.csv:2:14: row has 14 fields, expected 12"},
       }) {
    EXPECT_THAT(errors_of(header + std::string(item.row) + "\n"),
                ElementsAre(HasSubstr(item.message)))
        << item.row;
  }
}

TEST(NativeReader, ReportsSeveralProblemsAndCountsTheRest) {
  std::string bytes(kHeader);
  for (int i = 0; i < 25; ++i) bytes += "x" + std::to_string(i) + ",0,0,1\n";
  const auto messages = errors_of(bytes);
  ASSERT_EQ(messages.size(), 21U);
  EXPECT_EQ(messages.front(),
            "t.csv:2:3: gpus must be at least 1, got 0 (drop the row or pass --skip-invalid)");
  EXPECT_EQ(messages.back(), "t.csv: and 5 more");
  EXPECT_EQ(errors_of(bytes, {.format = "", .skip_invalid = false, .max_errors = 2}).size(), 3U);
}

TEST(NativeReader, ReportsEveryProblemOfARow) {
  EXPECT_EQ(errors_of(std::string(kHeader) + "1,-1,0,nan\n").size(), 3U);
}

TEST(NativeReader, RefusesTheSecondRowWithAnId) {
  EXPECT_THAT(errors_of(std::string(kHeader) + "7,0,1,1\n8,0,1,1\n7,1,1,1\n"),
              ElementsAre("t.csv:4:1: job_id must be unique, got 7 (already used on line 2; rename "
                          "it or pass --skip-invalid)"));
}

TEST(NativeReader, SkipsInvalidRowsAndCountsThemByRule) {
  ReadReport report;
  const auto trace =
      parse_trace(std::string(kHeader) + "1,0,1,1\n2,0,0,1\n3,0,0,1\n1,5,1,9\n4,x,1,1\n5,0,1\n",
                  "t.csv", {.format = "", .skip_invalid = true}, &report);
  ASSERT_TRUE(trace);
  ASSERT_EQ(trace->jobs.size(), 1U);
  EXPECT_EQ(to_seconds(trace->jobs[0].duration),
            1);  // because of two rows with one id the later is dropped
  EXPECT_EQ(report.rows, 6U);
  EXPECT_EQ(report.kept, 1U);
  EXPECT_EQ(report.dropped, 5U);
  EXPECT_THAT(report.dropped_reasons,
              ElementsAre("2 rows: gpus must be at least 1", "1 row: job_id must be unique",
                          "1 row: row has 3 fields, expected 4",
                          "1 row: submit_time is neither a number nor an ISO 8601 time"));
}

TEST(NativeReader, NeverSkipsAMissingOrDoubledColumn) {
  const ReadOptions skip{.format = "", .skip_invalid = true};
  EXPECT_THAT(errors_of("job_id,submit_time,gpu,duration\n1,0,1,1\n", skip),
              ElementsAre(HasSubstr("t.csv:1:1: column gpus is missing (rename column gpu?")));
  EXPECT_THAT(errors_of("job_id,submit_time,gpus,duration,gpus\n1,0,1,1,1\n", skip),
              ElementsAre("t.csv:1:5: column gpus appears twice (remove or rename one)"));
}

TEST(NativeReader, KnowsACutOffLastRow) {
  EXPECT_THAT(errors_of(std::string(kHeader) + "1,0,1,1\n2,5,1"),
              ElementsAre(HasSubstr("t.csv:3:3: the last row is cut off: 3 of 4 fields")));
  EXPECT_THAT(errors_of(std::string(kHeader) + "1,0,1,1\n2,5,\"1"),
              ElementsAre(HasSubstr("a quote is opened but never closed")));
  EXPECT_EQ(read_good(std::string(kHeader) + "1,0,1,1").jobs.size(),
            1U);  // whole, only the line break is missing
}

TEST(NativeReader, SaysWhenThereIsNothingToRead) {
  EXPECT_THAT(errors_of(""), ElementsAre("t.csv:1:1: holds no jobs (the file is empty)"));
  EXPECT_THAT(errors_of(" \n\r\n"), ElementsAre("t.csv:1:1: holds no jobs (the file is empty)"));
  EXPECT_THAT(errors_of(kHeader),
              ElementsAre("t.csv:1:1: holds no jobs (add rows below the header)"));
  EXPECT_THAT(
      errors_of(std::string(kHeader) + "1,0,0,1\n", {.format = "", .skip_invalid = true}),
      ElementsAre(HasSubstr(
          "holds no jobs (every row was left out or dropped); 1 rows: gpus must be at least 1")));
}

TEST(NativeReader, RefusesBinaryBytes) {
  EXPECT_THAT(errors_of(std::string_view("job_id\0", 7)),
              ElementsAre(HasSubstr("t.csv:1:1: holds a byte 0x00")));
  EXPECT_THAT(errors_of(std::string(kHeader) + std::string(100'000, '\n') + std::string(1, '\0')),
              ElementsAre(HasSubstr("0x00")));
  EXPECT_THAT(errors_of("\x7f"
                        "ELF\x02\x01"),
              ElementsAre(HasSubstr("not a text file")));
}

TEST(NativeReader, KeepsHostileTextOutOfMessages) {
  const auto messages =
      errors_of(std::string(kHeader) + "1,\"a\tb\nc" + std::string(1000, 'x') + "\",1,1\n");
  ASSERT_EQ(messages.size(), 1U);
  EXPECT_EQ(messages[0].find('\n'), std::string::npos);
  EXPECT_LT(messages[0].size(), 200U);
}

TEST(NativeReader, NamesTheFormatsWhenNoneFits) {
  EXPECT_THAT(errors_of("alpha,beta\n1,2\n"),
              ElementsAre(HasSubstr("is not a trace in a known format")));
  EXPECT_THAT(errors_of("job_id,x\n", {.format = "philli"}),
              ElementsAre(HasSubstr("trace format philli is not known (did you mean philly?)")));
  EXPECT_THAT(errors_of(kHeader, {.format = "swf"}),
              ElementsAre(HasSubstr("does not look like a swf trace")));
  EXPECT_GE(trace_formats().size(), 15U);
  EXPECT_EQ(trace_formats().front().name, "native");
}

TEST(NativeReader, TellsAMissingFileApart) {
  const auto trace = read_trace("no/such/file.csv");
  ASSERT_FALSE(trace);
  EXPECT_THAT(trace.error().text(), HasSubstr("no/such/file.csv"));
}

}  // namespace
}  // namespace berth
