// What Slurm's accounting tells of runs, in its three forms (sacct -P, sacct --json, the text file of
// jobcomp) and of three versions: runs that are one job, jobs of CPUs alone, jobs that are not over.
#include <filesystem>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "project_paths.h"
#include "trace/reader.h"
#include "trace/writer.h"

namespace berth {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;

Trace accounting(std::string_view bytes, const ReadOptions& options = {}) {
  auto trace = parse_trace(bytes, "t", options);
  EXPECT_TRUE(trace) << (trace ? "" : trace.error().text());
  return trace ? std::move(*trace) : Trace{};
}

/// "id: gpus x duration, waited, held, restarts": everything that the tests below are about.
std::string line_of(const Trace& trace, const TraceJob& job) {
  std::string line = fmt::format(
      "{}: {} x {}s", trace.text(job.id),
      job.gpu_milli == 0 ? fmt::format("{} cpus", job.cpus_milli / 1000) : fmt::to_string(job.gpus),
      to_seconds(job.duration));
  if (job.recorded)
    line +=
        fmt::format(", waits {}, ends {}, holds {}", to_seconds(job.recorded->start - job.submit),
                    to_seconds(job.recorded->end - job.submit), to_seconds(job.recorded->held));
  if (job.recorded && job.recorded->restarts > 0)
    line += fmt::format(", {} restarts", job.recorded->restarts);
  if (job.recorded && job.recorded->is_cut) line += ", cut";
  return line + ", " + std::string(to_string(job.status));
}

std::vector<std::string> lines_of(const Trace& trace) {
  std::vector<std::string> lines;
  for (const TraceJob& job : trace.jobs) lines.push_back(line_of(trace, job));
  return lines;
}

constexpr const char* kHeader = "JobID|User|State|Submit|Start|End|ElapsedRaw|AllocTRES\n";

// 10 s, put back at 20, 30 s more: 40 s of work in 60 s, of which 20 were spent waiting.
TEST(SlurmAccounting, TheRunsOfARequeuedJobAreOneJob) {
  const Trace trace = accounting(std::string(kHeader) +
                                 "4|ann|COMPLETED|1020|1030|1060|30|cpu=2,gres/gpu=4\n"
                                 "4|ann|REQUEUED|1000|1010|1020|10|cpu=2,gres/gpu=4\n");
  EXPECT_THAT(lines_of(trace),
              ElementsAre("4: 4 x 40s, waits 10, ends 60, holds 40, 1 restarts, completed"));
  EXPECT_THAT(trace.notes, Contains(HasSubstr("1 rows go on with an earlier one")));
}

TEST(SlurmAccounting, ALostNodeOrAPreemptionIsARestartOnlyIfTheJobGoesOn) {
  const Trace trace = accounting(std::string(kHeader) +
                                 "4|ann|NODE_FAIL|1000|1000|1020|20|gres/gpu=1\n"
                                 "4|ann|PREEMPTED|1020|1025|1030|5|gres/gpu=1\n"
                                 "4|ann|FAILED|1030|1040|1050|10|gres/gpu=1\n"
                                 "5|ann|PREEMPTED|1001|1010|1020|10|gres/gpu=1\n");
  EXPECT_THAT(lines_of(trace),
              ElementsAre("4: 1 x 35s, waits 0, ends 50, holds 35, 2 restarts, failed",
                          "5: 1 x 10s, waits 9, ends 19, holds 10, killed"));
}

// A killed slurmctld hands out ids again: another user's job under a known id is another job.
TEST(SlurmAccounting, AnIdThatWasHandedOutAgainIsAnotherJob) {
  const Trace trace = accounting(std::string(kHeader) +
                                 "4|ann|REQUEUED|1000|1010|1020|10|gres/gpu=1\n"
                                 "4|bob|COMPLETED|1030|1040|1050|10|gres/gpu=1\n"
                                 "6|ann|COMPLETED|1060|1060|1070|10|gres/gpu=1\n"
                                 "6|ann|COMPLETED|1080|1080|1090|10|gres/gpu=1\n");
  EXPECT_THAT(lines_of(trace),
              ElementsAre("4: 1 x 10s, waits 10, ends 20, holds 10, cut, completed",
                          "4#2: 1 x 10s, waits 10, ends 20, holds 10, completed",
                          "6: 1 x 10s, waits 0, ends 10, holds 10, completed",
                          "6#2: 1 x 10s, waits 0, ends 10, holds 10, completed"));
}

TEST(SlurmAccounting, WhatWaitsAgainIsCutAndWhatWasCancelledThenIsKilled) {
  const Trace trace = accounting(std::string(kHeader) +
                                 "4|ann|REQUEUED|1000|1010|1020|10|gres/gpu=1\n"
                                 "4|ann|PENDING|1020|Unknown|Unknown|0|\n"
                                 "5|ann|REQUEUED|1001|1010|1020|10|gres/gpu=1\n"
                                 "5|ann|CANCELLED by 0|1020|None|1030|0|\n"
                                 "6|ann|PENDING|1002|Unknown|Unknown|0|\n");
  EXPECT_THAT(lines_of(trace),
              ElementsAre("4: 1 x 10s, waits 10, ends 20, holds 10, cut, completed",
                          "5: 1 x 10s, waits 9, ends 19, holds 10, killed"));
  EXPECT_THAT(trace.notes, Contains("left out 1 rows that never ran (run time 0)"));
}

// 10 s on 4 GPUs and 20 s on 2 are 80 GPU seconds: 40 s at the size it had in the end.
TEST(SlurmAccounting, WorkOfAResizedJobIsCountedInGpuTime) {
  const Trace trace = accounting(std::string(kHeader) +
                                 "4|ann|RESIZING|1000|1000|1010|10|gres/gpu=4\n"
                                 "4|ann|COMPLETED|1000|1010|1030|20|gres/gpu=2\n");
  EXPECT_THAT(lines_of(trace),
              ElementsAre("4: 2 x 40s, waits 0, ends 30, holds 30, 1 restarts, completed"));
}

// A suspended job keeps its GPUs: 100 s held, 60 s of work.
TEST(SlurmAccounting, ASuspendedJobHoldsWhatItHas) {
  EXPECT_THAT(
      lines_of(accounting(std::string(kHeader) + "4|ann|COMPLETED|1000|1010|1110|60|gres/gpu=1\n")),
      ElementsAre("4: 1 x 60s, waits 10, ends 110, holds 100, completed"));
}

TEST(SlurmAccounting, JobsOfCpusAloneAreKept) {
  const Trace trace = accounting(
      "JobID|State|Submit|Start|End|Elapsed|AllocTRES|ReqGRES|NCPUS\n"
      "1|COMPLETED|1000|1000|1010|00:00:10|billing=8,cpu=8,mem=16G,node=1||\n"
      "2|COMPLETED|1001|1001|1011|00:00:10|||4\n"
      "3|COMPLETED|1002|1002|1012|00:00:10||gpu:2|4\n"
      "4|COMPLETED|1003|1003|1013|00:00:10|||\n"
      "5|COMPLETED|1004|1004|1014|00:00:10|cpu=1,gres/shard=2||\n");
  EXPECT_THAT(lines_of(trace), ElementsAre("1: 8 cpus x 10s, waits 0, ends 10, holds 10, completed",
                                           "2: 4 cpus x 10s, waits 0, ends 10, holds 10, completed",
                                           "3: 2 x 10s, waits 0, ends 10, holds 10, completed",
                                           "5: 1 x 10s, waits 0, ends 10, holds 10, completed"));
  EXPECT_EQ(trace.jobs[0].memory_mib, 16 * 1024);
  EXPECT_THAT(trace.notes, Contains("left out 1 rows that name neither GPUs nor CPUs"));
}

TEST(SlurmAccounting, WhatStillRunsIsCutWhereTheLogEnds) {
  EXPECT_THAT(lines_of(accounting(std::string(kHeader) +
                                  "7_1|ann|RUNNING|1000|1010|Unknown|25|gres/gpu=1\n"
                                  "7_[2-4%2]|ann|PENDING|1000|Unknown|Unknown|0|\n"
                                  "7_1.batch|ann|RUNNING|1000|1010|Unknown|25|gres/gpu=1\n")),
              ElementsAre("7_1: 1 x 25s, waits 10, ends 35, holds 25, cut, completed"));
}

TEST(SlurmAccounting, ARecordThatCannotBeTrueIsNotUsed) {
  const Trace trace =
      accounting(std::string(kHeader) + "4|ann|COMPLETED|1000|990|1010|20|gres/gpu=1\n");
  EXPECT_THAT(lines_of(trace), ElementsAre("4: 1 x 20s, completed"));
  EXPECT_THAT(trace.notes, Contains(HasSubstr("1 jobs started before they were submitted")));
}

TEST(SlurmAccounting, SeveralBadRowsAreReportedWithTheirPlace) {
  const auto trace = parse_trace(std::string(kHeader) +
                                     "1|ann|COMPLETED|soon|1010|1020|10|gres/gpu=1\n"
                                     "2|ann|COMPLETED|1000|1020|1010|10|gres/gpu=1\n"
                                     "3|ann|COMPLETED|1000|1010|1020|long|gres/gpu=1\n"
                                     "4|ann|COMPLETED|1000|1010|1020|10|gres/gpu=9999999\n"
                                     "a|b|c\n",
                                 "t");
  ASSERT_FALSE(trace);
  EXPECT_THAT(trace.error().messages,
              ElementsAre(HasSubstr("t:2:4: Submit is neither"), HasSubstr("t:3:6: End must not"),
                          HasSubstr("t:4:7: ElapsedRaw is not a number"),
                          HasSubstr("t:5:8: gpus must be at most 1000000"),
                          HasSubstr("t:6:3: row has 3 fields, expected 8")));
}

// Users may write the separator into what stands last; a line break makes rows of its own.
TEST(SlurmAccounting, FreeTextInTheLastColumnMayHoldTheSeparator) {
  const std::string text =
      "JobID|Submit|ElapsedRaw|AllocTRES|SubmitLine\n"
      "1|1000|10|gres/gpu=1|sbatch --wrap a | b | c\n"
      "2|1001|10|gres/gpu=1|sbatch --wrap 'a\nb|c'\n";
  const auto strict = parse_trace(text, "t");
  ASSERT_FALSE(strict);
  EXPECT_THAT(strict.error().messages, ElementsAre(HasSubstr("t:4:2: row has 2 fields")));
  EXPECT_EQ(accounting(text, {.format = {}, .skip_invalid = true}).jobs.size(), 2U);
}

TEST(SlurmAccounting, JsonOfEachVersionMeansTheSame) {
  const std::string old_form = R"({"jobs":[
    {"job_id":4,"user":"ann","array":{"job_id":0,"task_id":null},"state":{"current":"REQUEUED"},
     "time":{"submission":1000,"start":1010,"end":1020,"elapsed":10,"limit":null},
     "tres":{"requested":[{"type":"gres","name":"gpu:a100","count":4}],
             "allocated":[{"type":"gres","name":"gpu","count":4},{"type":"cpu","name":null,"count":2}]}},
    {"job_id":4,"user":"ann","array":{"job_id":0,"task_id":null},"state":{"current":"RUNNING"},
     "time":{"submission":1020,"start":1030,"end":0,"elapsed":30,"limit":30},
     "tres":{"allocated":[{"type":"gres","name":"gpu","count":4}]}},
    {"job_id":8,"user":"ann","array":{"job_id":7,"task_id":2},"state":{"current":"FAILED"},
     "time":{"submission":1001,"start":1010,"end":1020,"elapsed":10},
     "tres":{"allocated":[{"type":"cpu","name":null,"count":2}]}}]})";
  const std::string new_form = R"({"jobs":[
    {"job_id":4,"user":"ann","restart_cnt":0,"state":{"current":["PENDING","REQUEUED"]},
     "array":{"job_id":0,"task_id":{"set":false,"infinite":false,"number":0}},
     "time":{"submission":1000,"start":1010,"end":1020,"elapsed":10,"limit":{"set":true,"infinite":true,"number":0}},
     "tres":{"requested":[{"type":"gres","name":"gpu:a100","count":4}],
             "allocated":[{"type":"gres","name":"gpu","count":4},{"type":"cpu","name":"","count":2}]}},
    {"job_id":4,"user":"ann","restart_cnt":1,"state":{"current":["RUNNING"]},
     "array":{"job_id":0,"task_id":{"set":false,"infinite":false,"number":0}},
     "time":{"submission":1020,"start":1030,"end":0,"elapsed":30,"limit":{"set":true,"infinite":false,"number":30}},
     "tres":{"allocated":[{"type":"gres","name":"gpu","count":4}]}},
    {"job_id":8,"user":"ann","restart_cnt":0,"state":{"current":["FAILED"]},
     "array":{"job_id":7,"task_id":{"set":true,"infinite":false,"number":2}},
     "time":{"submission":1001,"start":1010,"end":1020,"elapsed":10},
     "tres":{"allocated":[{"type":"cpu","name":"","count":2}]}}]})";
  for (const std::string& text : {old_form, new_form}) {
    const Trace trace = accounting(text);
    EXPECT_THAT(lines_of(trace),
                ElementsAre("4: 4 x 40s, waits 10, ends 60, holds 40, 1 restarts, cut, completed",
                            "7_2: 2 cpus x 10s, waits 9, ends 19, holds 10, failed"));
    EXPECT_EQ(to_seconds(trace.jobs[0].estimate), 1800);
  }
}

TEST(SlurmAccounting, TheFileOfJobcompIsRead) {
  const std::string behind =
      " NodeList=n2 NodeCnt=1 ProcCnt=2 WorkDir=/tmp/a b ReservationName= "
      "Tres=cpu=2,mem=1000M,node=1,gres/gpu=4 Account=lab QOS=normal WcKey= Cluster=c ";
  const Trace trace = accounting(
      "JobId=4 UserId=ann(5) GroupId=ann(60) Name=a JobState=x b JobState=PENDING Partition=main "
      "TimeLimit=30 StartTime=2026-11-17T00:00:10 EndTime=2026-11-17T00:00:20" +
          behind +
          "SubmitTime=2026-11-17T00:00:00 EligibleTime=2026-11-17T00:00:00\n"
          "JobId=4 UserId=ann(5) GroupId=ann(60) Name=a JobState=COMPLETED Partition=main "
          "TimeLimit=30 "
          "StartTime=2026-11-17T00:00:30 EndTime=2026-11-17T00:01:00" +
          behind +
          "SubmitTime=2026-11-17T00:00:20 EligibleTime=2026-11-17T00:00:00\n"
          "JobId=5 UserId=bob(6) GroupId=bob(60) Name=two\nlines JobState=COMPLETED\n",
      {.format = {}, .skip_invalid = true});
  EXPECT_THAT(lines_of(trace),
              ElementsAre("4: 4 x 40s, waits 10, ends 60, holds 40, 1 restarts, completed"));
  EXPECT_EQ(trace.text(trace.jobs[0].user), "ann");
  EXPECT_EQ(trace.text(trace.jobs[0].group), "lab");
  EXPECT_EQ(trace.text(trace.jobs[0].queue), "main");
  EXPECT_EQ(trace.text(trace.jobs[0].name), "a");
}

TEST(SlurmAccounting, OurCsvKeepsWhatBecameOfAJob) {
  const Trace trace = accounting(std::string(kHeader) +
                                 "4|ann|REQUEUED|1000|1010|1020|10|cpu=1,gres/gpu=1\n"
                                 "4|ann|RUNNING|1020|1030|Unknown|30|cpu=1,gres/gpu=1\n"
                                 "5|ann|COMPLETED|1001|1010|1020|10|cpu=6\n");
  const Trace again = accounting(trace_to_csv(trace));
  EXPECT_EQ(again.format, "native");
  EXPECT_EQ(lines_of(again), lines_of(trace));
}

// The jobs of ../shared/slurm/samples, the same on three versions.
TEST(SlurmAccounting, SamplesOfThreeVersionsGiveTheSameJobs) {
  const std::string samples = std::string(BERTH_SHARED_DIR) + "/slurm/samples/";
  if (!std::filesystem::exists(samples)) GTEST_SKIP() << "shared data is not here: " << samples;
  for (const std::string version : {"22.05", "24.11", "26.05"}) {
    for (const std::string file : {"sacct.psv", "sacct.json"}) {
      const auto trace = read_trace(samples + version + "/" + file);
      ASSERT_TRUE(trace) << trace.error().text();
      std::vector<std::string> jobs;  // run times differ by a second from version to version
      for (const TraceJob& job : trace->jobs) {
        ASSERT_TRUE(job.recorded) << version << " " << file;
        jobs.push_back(fmt::format("{} {} {}{}", trace->text(job.id), job.gpus,
                                   to_string(job.status), job.recorded->is_cut ? " cut" : ""));
        EXPECT_EQ(trace->text(job.user), "user1");
        EXPECT_EQ(trace->text(job.group), "team-a");
        EXPECT_EQ(trace->text(job.queue), "main");
        EXPECT_LE(to_seconds(job.duration), 12);
        EXPECT_LE(to_seconds(job.recorded->start - job.submit), 3);
      }
      // 3 failed within its first second. 4 was put back and waits. 5 holds shards of a GPU.
      if (file == "sacct.psv")
        EXPECT_THAT(jobs, ElementsAre("1 2 completed", "2 16 completed cut", "4 4 completed cut",
                                      "5 1 completed cut", "9 1 killed", "7_1 1 completed cut"))
            << version;
      else
        EXPECT_THAT(jobs, ElementsAre("1 2 completed", "4 4 completed cut")) << version;
    }
    const auto completed = read_trace(samples + version + "/jobcomp.txt");
    ASSERT_TRUE(completed) << completed.error().text();
    ASSERT_EQ(completed->jobs.size(), 3U);  // 1, 4 and 9; 3 ran for no second
    EXPECT_EQ(completed->text(completed->jobs[0].gpu_type), "");
    EXPECT_EQ(completed->jobs[1].gpus, 4);
  }
}

}  // namespace
}  // namespace berth
