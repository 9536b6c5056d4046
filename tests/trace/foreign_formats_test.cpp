// Each format in a few hand-written lines: what becomes of its columns, units and words.
#include <algorithm>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "trace/reader.h"

namespace berth {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

Trace read_good(std::string_view bytes, const ReadOptions& options = {}) {
  auto trace = parse_trace(bytes, "t", options);
  EXPECT_TRUE(trace) << (trace ? "" : trace.error().text());
  return trace ? std::move(*trace) : Trace{};
}

std::vector<std::string> messages_of(std::string_view bytes, const ReadOptions& options = {}) {
  const auto trace = parse_trace(bytes, "t", options);
  return trace ? std::vector<std::string>{} : trace.error().messages;
}

struct Sample {
  const char* format;
  std::string_view bytes;
  std::size_t jobs;
  const char* first_id;
  std::int32_t gpus;
  double duration;
};

const std::vector<Sample>& samples() {
  static const std::vector<Sample> kSamples{
      {"philly",
       "timestamp,duration,num_gpus,gpu_time,cluster\n2017-10-09 07:00:00,66.0,2,132.0,vc1\n", 1,
       "row-1", 2, 66},
      {"philly",
       "job_id,arrival_time_s,duration_s,gpu_count,gpu_type,preemptible\nph-1,1503507628.0,60,4,"
       "any,False\n",
       1, "ph-1", 4, 60},
      {"philly", R"([{"id":"a1","num_gpus":8,"runtime":9,"submitted_time":"2017-10-07 01:00:00",
        "attempts":[{"start_time":"2017-10-07 01:01:00","end_time":"2017-10-07 01:02:00"},
                    {"start_time":"2017-10-07 01:05:00","end_time":"2017-10-07 01:05:30"}]}])",
       1, "a1", 8, 90},
      {"philly",
       R"([{"jobid":"b1","status":"Killed","vc":"v","user":"u",
        "submitted_time":"2017-10-07 01:00:00",
        "attempts":[{"start_time":"2017-10-07 01:01:00","end_time":"2017-10-07 01:02:00",
                     "detail":[{"ip":"m1","gpus":["g0","g1"]},{"ip":"m2","gpus":["g0"]}]}]}])",
       1, "b1", 3, 60},
      {"helios", "job_id,arrival_s,service_sec,gpu_count\n363167#0,0.0,100.0,32\n", 1, "363167#0",
       32, 100},
      {"helios",
       "job_id,user,vc,gpu_num,cpu_num,node_num,state,submit_time,start_time,end_time,duration,"
       "queue\n"
       "1,u1,vc1,8,16,1,FAILED,2020-04-01 00:00:00,2020-04-01 00:00:05,2020-04-01 00:01:05,60,5\n"
       "2,u1,vc1,0,16,1,COMPLETED,2020-04-01 00:00:00,2020-04-01 00:00:05,2020-04-01 "
       "00:01:05,60,5\n",
       1, "1", 8, 60},
      {"pai", "job_id,arrival_s,service_sec,gpu_count\nali-1-worker#3,5,10,2\n", 1,
       "ali-1-worker#3", 2, 10},
      {"pai",
       "job_name,task_name,inst_num,status,start_time,end_time,plan_cpu,plan_mem,plan_gpu,gpu_"
       "type\n"
       "j1,worker,1,Terminated,100,160,600,30,50,T4\nj1,ps,1,Terminated,100,160,600,30,,CPU\n",
       1, "j1", 1, 60},
      {"openb",
       "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_"
       "time,scheduled_time\n"
       "p0,6000,12288,1,460,V100M16|V100M32,LS,Failed,10,110,20\np1,6000,12288,0,0,,BE,Running,11,"
       "20,12\n"
       "p2,6000,12288,1,1000,,BE,Pending,12,20,\n",
       1, "p0", 1, 90},
      {"dlrm",
       "instance_sn,role,app_name,cpu_request,gpu_request,memory_request,creation_time,scheduled_"
       "time,deletion_time\n"
       "i0,HN,app,12,1,120.0,5,6,16\ni1,HN,app,12,1,120,,,\n",
       1, "i0", 1, 10},
      {"itp", "job_id,submission_time,duration,num_gpu\nu-1,5810,20,16\n", 1, "u-1", 16, 20},
      {"itp",
       "job_id,submission_time,num_iteration,model_name,deadline,batch_size,num_gpu,duration\nu-1,"
       "100,3249,bert,400,32,1,10\n",
       1, "u-1", 1, 10},
      {"acme",
       "job_id,arrival_time,num_iteration,iteration_computing_time,iteration_networking_time,gpu_"
       "workers,ps,gpu_per_worker,cpu_per_gpu_worker\n"
       "0,0.0,200,0.5,0.25,8,0,8.0,15.0\n",
       1, "0", 64, 150},
      {"muri",
       "job_id,num_gpu,submit_time,iterations,model_name,batch_size,duration,interval,iteration_"
       "time,resource_time_0,resource_time_1,resource_time_2,priority\n"
       "0,4,1500,10,bert,4,2500,1,190,0.5,163,18,1\n",
       1, "0", 4, 2.5},
      {"tiresias",
       "job_id,num_gpu,submit_time,iterations,model_name,duration,interval\n0,1,0,606,vgg19,164,"
       "30\n",
       1, "0", 1, 164},
      {"chronus",
       "job_id,user,num_gpu,submit_time,iterations,model_name,duration,interval,expect_time_list,"
       "expect_value_list,best_effort,job_type\n"
       "0,vc,4,10,6,resnet,2,8,3,10,0,strict\n",
       1, "0", 4, 120},
      {"elasticflow",
       "job_id,submit_time,iteration,model_name,ddl,batch_size,num_gpu,duration\n0,100,20,cifar10,"
       "400,4096,1,56\n",
       1, "0", 1, 56},
      {"rubick",
       "name,submission_time,duration,application,num_gpus,num_cpus,bandwidth,exec_plan,steps,is_"
       "sla\nvit-0,0,31.5,vit,2,16,0,zero-dp,3,1\n",
       1, "vit-0", 2, 31.5},
      {"sia", "name,time,application,num_replicas,batch_size\nyolov3-0,107,yolov3,4,64\n", 1,
       "yolov3-0", 4, 7400},
      {"gavel", "A3C\tcmd\t-n\t1\t718\t6.0\t2\n", 1, "row-1", 2, 100},
      {"gavel", "LM (batch size 80)\tcmd\tdir\t-n\t1\t2824\t1\t2\t-1.0\t5\n", 1, "row-1", 1, 100},
      {"shockwave", "LM (batch size 10)\tcmd\tdir\t--steps\t1\t134\t3\tgns\t1\t-1.0\t1418\t9\n", 1,
       "row-1", 3, 1418},
      {"hydra",
       ",job_name,norm_job_submit_time,ddl,A100,GTX2080Ti,V100\n0,d6,0.0,inf,1,2,3.0\n1,d7,0.0,19."
       "0,1,2,4.0\n",
       2, "d6", 1, 3},
      {"synergy", "0,alexnet,0.0,3349,1\n", 1, "0", 1, 3349},
      {"sacct",
       "JobID|JobName|User|Account|Partition|State|Submit|Elapsed|Timelimit|ReqTRES|AllocTRES\n"
       "7_3|my\"job|ann|lab|gpu|CANCELLED by "
       "12|2024-04-04T10:00:00|1-00:00:10|2-00:00:00|cpu=4,gres/gpu:a100=2|cpu=8,gres/"
       "gpu:a100=2,gres/gpu=2,mem=10G\n"
       "7_3.batch|batch||||COMPLETED|2024-04-04T10:00:00|00:00:10||cpu=1|cpu=8,gres/gpu=2\n"
       "8|cpu|bob|lab|cpu|COMPLETED|2024-04-04T10:00:01|00:00:10||cpu=1|cpu=8\n"
       "9|wait|bob|lab|gpu|PENDING|2024-04-04T10:00:01|00:00:00||gres/gpu=1|\n",
       2, "7_3", 2, 86'410},
      {"sacct",
       R"({"jobs":[{"job_id":5,"user":"ann","state":{"current":["TIMEOUT"]},
        "time":{"submission":100,"elapsed":60,"limit":{"set":true,"number":1}},
        "tres":{"allocated":[{"type":"gres","name":"gpu","count":4},
                             {"type":"cpu","name":null,"count":8}]}}]})",
       1, "5", 4, 60},
      {"swf",
       "; Computer: test\n 1 0 5 60 4 -1 -1 4 100 -1 1 7 2 -1 3 -1 -1 -1\n 2 9 5 -1 4 -1 -1 4 100 "
       "-1 5 7 2 -1 3 -1 -1 -1\n",
       1, "1", 4, 60},
      {"swf", "1 1356996147 0 50 64 1 1024 64 86400 6871 0 62 1 1 -1 1 1 1 {1,1} q_1d 1:ppn=64\n",
       1, "1", 64, 50},
  };
  return kSamples;
}

TEST(ForeignFormats, AreRecognisedByTheirContent) {
  for (const Sample& sample : samples()) {
    const Trace trace = read_good(sample.bytes);
    EXPECT_EQ(trace.format, sample.format) << sample.bytes;
    ASSERT_EQ(trace.jobs.size(), sample.jobs) << sample.bytes;
    EXPECT_EQ(trace.text(trace.jobs[0].id), sample.first_id) << sample.bytes;
    EXPECT_EQ(trace.jobs[0].gpus, sample.gpus) << sample.bytes;
    EXPECT_EQ(to_seconds(trace.jobs[0].duration), sample.duration) << sample.bytes;
  }
}

TEST(ForeignFormats, CanBeNamed) {
  for (const Sample& sample : samples())
    EXPECT_EQ(read_good(sample.bytes, {.format = sample.format}).jobs.size(), sample.jobs)
        << sample.format;
}

TEST(ForeignFormats, EveryListedFormatHasASample) {
  for (const FormatInfo& info : trace_formats()) {
    if (info.name == "openb-all") continue;  // openb read in another way
    const bool has = info.name == "native" ||
                     std::any_of(samples().begin(), samples().end(),
                                 [&](const Sample& s) { return s.format == info.name; });
    EXPECT_TRUE(has) << info.name;
    EXPECT_FALSE(info.description.empty());
  }
}

const Sample& sample_of(std::string_view format, std::size_t index = 0) {
  for (const Sample& sample : samples()) {
    if (sample.format == format && index-- == 0) return sample;
  }
  ADD_FAILURE() << "no sample of " << format;
  return samples().front();
}

TEST(ForeignFormats, StatesBecomeHowTheJobEnded) {
  EXPECT_EQ(read_good(sample_of("helios", 1).bytes).jobs[0].status, TraceStatus::Failed);
  EXPECT_EQ(read_good(sample_of("philly", 3).bytes).jobs[0].status, TraceStatus::Killed);
  EXPECT_EQ(read_good(sample_of("openb").bytes).jobs[0].status, TraceStatus::Failed);
  EXPECT_EQ(read_good(sample_of("sacct", 0).bytes).jobs[0].status,
            TraceStatus::Killed);  // CANCELLED by 12
  EXPECT_EQ(read_good(sample_of("sacct", 1).bytes).jobs[0].status, TraceStatus::Killed);  // TIMEOUT
  EXPECT_EQ(read_good(sample_of("swf", 1).bytes).jobs[0].status, TraceStatus::Failed);    // 0
}

TEST(ForeignFormats, OwnersAndQueuesSurvive) {
  const Trace helios = read_good(sample_of("helios", 1).bytes);
  EXPECT_EQ(helios.text(helios.jobs[0].user), "u1");
  EXPECT_EQ(helios.text(helios.jobs[0].queue), "vc1");
  EXPECT_EQ(helios.jobs[0].cpus_milli, 16'000);
  const Trace sacct = read_good(sample_of("sacct").bytes);
  EXPECT_EQ(sacct.text(sacct.jobs[0].user), "ann");
  EXPECT_EQ(sacct.text(sacct.jobs[0].group), "lab");
  EXPECT_EQ(sacct.text(sacct.jobs[0].queue), "gpu");
  EXPECT_EQ(sacct.text(sacct.jobs[0].name), "my\"job");
  EXPECT_EQ(sacct.text(sacct.jobs[0].gpu_type), "a100");
  EXPECT_EQ(sacct.jobs[0].memory_mib, 10 * 1024);
  EXPECT_EQ(to_seconds(sacct.jobs[0].estimate), 2 * 86'400);
  EXPECT_THAT(sacct.notes, Contains("left out 1 job steps (the job itself is kept)"));
  EXPECT_THAT(sacct.notes, Contains("left out 1 rows that never ran (run time 0)"));
}

// Whoever exports chooses the columns; each of these says what is needed.
TEST(ForeignFormats, SacctIsReadInAnyColumns) {
  const std::string tres = "billing=4,cpu=4,gres/gpu:v100=2,gres/gpu=2,mem=4000M,node=1";
  const std::vector<std::string> exports{
      "JobID|Submit|ElapsedRaw|AllocTRES\n5|2024-04-04T10:00:00|90|" + tres + "\n",
      "AllocTRES|Submit|JobIDRaw|Elapsed\n" + tres + "|2024-04-04T10:00:00|5|00:01:30\n",
      "JobID|Submit|Start|End|ReqTRES|State\n5|2024-04-04T10:00:00|2024-04-04T11:00:00|"
      "2024-04-04T11:01:30|" +
          tres + "|COMPLETED\n",
      "JobID|Submit|Start|End|Elapsed|AllocGRES|ReqGRES|\n"  // -p ends each line with a |
      "5|2024-04-04T10:00:00|2024-04-04T11:00:00|Unknown|00:01:30|gpu:v100:2|gpu:v100:2|\n",
      "JobID|Submit|Elapsed|AllocGRES|ReqGRES\n5|2024-04-04T10:00:00|00:01:30||gpu:2\n",
      "JobID|JobName|Submit|ElapsedRaw|TimelimitRaw|AllocTRES\n5|a|1712224800|90|30|" + tres +
          "\n5.batch|batch||90||" + tres + "\n5.extern|extern||90||" + tres + "\n",
  };
  for (const std::string& text : exports) {
    const Trace trace = read_good(text);
    EXPECT_EQ(trace.format, "sacct") << text;
    ASSERT_EQ(trace.jobs.size(), 1U) << text;
    EXPECT_EQ(trace.text(trace.jobs[0].id), "5") << text;
    EXPECT_EQ(trace.jobs[0].gpus, 2) << text;
    EXPECT_EQ(to_seconds(trace.jobs[0].duration), 90) << text;
    EXPECT_EQ(trace.zero_seconds, 1'712'224'800) << text;
  }
  EXPECT_THAT(read_good(exports[0]).notes,
              Contains("no column State: every job counts as completed"));
  EXPECT_EQ(to_seconds(read_good(exports[5]).jobs[0].estimate), 1800);
}

TEST(ForeignFormats, SacctRowsThatHaveNoRunTimeAreLeftOut) {
  const Trace trace = read_good(
      "JobID|State|Submit|Start|End|AllocTRES|ReqTRES\n"
      "1|PENDING|2024-04-04T10:00:00|Unknown|Unknown||gres/gpu=1\n"
      "2|CANCELLED by 1000|2024-04-04T10:00:00|None|2024-04-04T10:01:00||gres/gpu=1\n"
      "3|RUNNING|2024-04-04T10:00:00|2024-04-04T10:00:05|Unknown|gres/gpu=1|gres/gpu=1\n"
      "4|CANCELLED by 1000|2024-04-04T10:00:00|2024-04-04T10:00:05|2024-04-04T10:00:10|gres/gpu=1|"
      "gres/gpu=1\n");
  ASSERT_EQ(trace.jobs.size(), 1U);
  EXPECT_EQ(trace.text(trace.jobs[0].id), "4");
  EXPECT_EQ(trace.jobs[0].status, TraceStatus::Killed);
  EXPECT_THAT(trace.notes, Contains("left out 2 rows that never ran (run time 0)"));
  EXPECT_THAT(
      trace.notes,
      Contains("left out 1 rows without an end (Elapsed or ElapsedRaw would say how long)"));
}

TEST(ForeignFormats, SacctSaysWhichColumnIsMissing) {
  for (const char* format : {"", "sacct"}) {
    EXPECT_THAT(messages_of("JobID|State|Submit|Start|AllocTRES\n", {.format = format}),
                ElementsAre(HasSubstr("ElapsedRaw, Elapsed, or Start and End")));
    EXPECT_THAT(messages_of("JobID|State|Elapsed\n", {.format = format}),
                ElementsAre(HasSubstr("Submit"), HasSubstr("AllocTRES, ReqTRES or AllocGRES")));
    EXPECT_THAT(messages_of("JobID           JobName  Partition\n"
                            "------------ ---------- ----------\n"
                            "1                 train        gpu\n",
                            {.format = format}),
                ElementsAre(HasSubstr("make it with sacct -P --format=JobID")));
  }
  EXPECT_THAT(messages_of("5|ann|2024-04-04T10:00:00|90|gres/gpu=2\n"),
              ElementsAre(HasSubstr("sacct -P without -n")));
  EXPECT_THAT(messages_of("5|ann|2024-04-04T10:00:00|90|gres/gpu=2\n", {.format = "sacct"}),
              ElementsAre(Not(HasSubstr("leave out --format"))));
}

TEST(ForeignFormats, FractionsOfAGpuAreKept) {
  const Trace openb = read_good(sample_of("openb").bytes);
  EXPECT_EQ(openb.jobs[0].gpu_milli, 460);
  EXPECT_EQ(openb.text(openb.jobs[0].gpu_type), "V100M16|V100M32");
  EXPECT_EQ(openb.jobs[0].memory_mib, 12'288);
  EXPECT_EQ(read_good(sample_of("pai", 1).bytes).jobs[0].gpu_milli, 500);  // plan_gpu = 50 %
}

// Pods without a GPU: left out of openb, nothing of one device in openb-all.
TEST(ForeignFormats, PodsWithoutAGpuTakePartIfAskedFor) {
  EXPECT_EQ(read_good(sample_of("openb").bytes).jobs.size(), 1U);
  const Trace all = read_good(sample_of("openb").bytes, {.format = "openb-all"});
  ASSERT_EQ(all.jobs.size(), 2U);
  EXPECT_EQ(all.jobs[1].gpus, 1);
  EXPECT_EQ(all.jobs[1].gpu_milli, 0);
  EXPECT_EQ(all.jobs[1].cpus_milli, 6000);
}

TEST(ForeignFormats, DeadlinesAreAbsolute) {
  EXPECT_EQ(to_seconds(*read_good(sample_of("itp", 1).bytes).jobs[0].deadline), 400);
  EXPECT_EQ(to_seconds(*read_good(sample_of("elasticflow").bytes).jobs[0].deadline), 400);
  EXPECT_EQ(to_seconds(*read_good(sample_of("chronus").bytes).jobs[0].deadline),
            780);  // 3 minutes after a submit at 10 minutes
  const Trace hydra = read_good(sample_of("hydra").bytes);
  EXPECT_FALSE(hydra.jobs[0].deadline.has_value());  // inf
  EXPECT_EQ(to_seconds(*hydra.jobs[1].deadline), 19);
}

TEST(ForeignFormats, JobTypesSplitIntoModelAndBatch) {
  const Trace gavel = read_good(sample_of("gavel", 1).bytes);
  EXPECT_EQ(gavel.text(gavel.jobs[0].model), "LM");
  EXPECT_EQ(gavel.jobs[0].batch_size, 80);
  EXPECT_EQ(gavel.jobs[0].weight, 2.0F);
  EXPECT_THAT(parse_trace("Unheard\tcmd\t-n\t1\t718\t6.0\t2\n", "t").error().text(),
              HasSubstr("t:1:1: job type has no known throughput, got Unheard"));
}

TEST(ForeignFormats, RepeatedIdsGetASuffixOnlyWhereTheFormatHasNoUniqueOnes) {
  const std::string header = "JobID|State|Submit|Elapsed|AllocTRES\n";
  const std::string row = "5|COMPLETED|2024-04-04T10:00:00|00:00:10|gres/gpu=1\n";
  const Trace trace = read_good(header + row + row + row);
  EXPECT_EQ(trace.text(trace.jobs[1].id), "5#2");
  EXPECT_EQ(trace.text(trace.jobs[2].id), "5#3");
  EXPECT_THAT(trace.notes, Contains(HasSubstr("2 rows repeat the id")));
  EXPECT_FALSE(parse_trace("job_id,submission_time,duration,num_gpu\nu,5,20,1\nu,6,20,1\n", "t"));
}

TEST(ForeignFormats, BrokenJsonSaysWhere) {
  EXPECT_THAT(parse_trace("[{\"id\":\n \"a\",,}]", "t").error().text(), HasSubstr("t:2:"));
  EXPECT_THAT(parse_trace("{\"jobs\": 5}", "t").error().text(), HasSubstr("has no list \"jobs\""));
  EXPECT_THAT(
      parse_trace("[1, 2]", "t").error().messages,
      ElementsAre(HasSubstr("t: item 1: a job must be a JSON object"), HasSubstr("t: item 2:")));
}

}  // namespace
}  // namespace berth
