// scontrol against a played scheduler: what scripts grep, and what is sent.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "client/played_scheduler.h"

namespace berth::test::scontrol_tests {
namespace {

using nlohmann::json;
using testing::HasSubstr;

TEST(Scontrol, TellsTheTasksThatAScriptAskedFor) {
  PlayedScheduler scheduler;
  scheduler.set_job({{"number", 13},
                     {"tasks", 2},
                     {"spec", {{"name", "big"}, {"user", "bob"}, {"queue", "gpu"}, {"cpus", 4}}}});
  EXPECT_THAT(scheduler.sh("scontrol show job 13").out,
              testing::HasSubstr("NumCPUs=4 NumTasks=2 CPUs/Task=2 "));
  EXPECT_EQ(scheduler.sh("squeue -h -j 13 -O numtasks:2,cpus-per-task:2").out, "2 2\n");
}

TEST(Scontrol, ShowsAJobInSlurmsLayout) {
  PlayedScheduler scheduler;
  scheduler.set_job({{"number", 12},
                     {"submitted", 1'763'300'000'000'000},
                     {"started", 1'763'300'060'000'000},
                     {"spec",
                      {{"name", "train"},
                       {"user", "ann"},
                       {"queue", "gpu"},
                       {"gpus", 2},
                       {"cpus", 4},
                       {"memory_mib", 16'384},
                       {"time_limit", 7'200},
                       {"workdir", "/home/ann"},
                       {"comment", "hello"},
                       {"command", {"./train"}}}}});
  const Ran ran = scheduler.sh("scontrol show job 12");
  EXPECT_EQ(ran.exit, 0) << ran.err;
  const std::string text = ran.out;
  EXPECT_TRUE(
      text.starts_with("JobId=12 JobName=train\n   UserId=ann(ann) GroupId=ann(ann) "
                       "MCS_label=N/A\n   Priority=0 Nice=0 Account=ann QOS=normal\n"
                       "   JobState=RUNNING Reason=None Dependency=(null)\n"
                       "   Requeue=1 Restarts=0 BatchFlag=1 Reboot=0 ExitCode=0:0\n"
                       "   RunTime=00:01:05 TimeLimit=02:00:00 TimeMin=N/A\n"
                       "   SubmitTime=2025-11-16T13:33:20 EligibleTime=2025-11-16T13:33:20\n"
                       "   AccrueTime=2025-11-16T13:33:20\n"
                       "   StartTime=2025-11-16T13:34:20 EndTime="))
      << text;
  EXPECT_THAT(text, HasSubstr("\n   Partition=gpu AllocNode:Sid="));
  EXPECT_THAT(text,
              HasSubstr("\n   NodeList=n1\n   BatchHost=n1\n   NumNodes=1 NumCPUs=4 NumTasks=1 "
                        "CPUs/Task=4 ReqB:S:C:T=0:0:*:*\n"
                        "   ReqTRES=cpu=4,mem=16G,node=1,gres/gpu=2\n"
                        "   AllocTRES=cpu=4,mem=16G,node=1,gres/gpu=2,gres/gpu:a100=2\n"));
  EXPECT_THAT(text, HasSubstr("\n   Command=./train\n   WorkDir=/home/ann\n   Comment=hello \n"
                              "   StdErr=/home/ann/berth-12.out\n   StdIn=/dev/null\n"
                              "   StdOut=/home/ann/berth-12.out\n   TresPerNode=gres/gpu:2\n\n"));
  EXPECT_THAT(scheduler.sh("scontrol -d show job 12").out,
              HasSubstr("JOB_GRES=gpu:a100:2\n     Nodes=n1 CPU_IDs=N/A Mem=16384 "
                        "GRES=gpu:a100:2(IDX:0-1)\n"));
  EXPECT_EQ(scheduler.sh("scontrol -o show job 12 | wc -l").out, "1\n");
  EXPECT_EQ(scheduler.sh("scontrol show job 12 | grep -oP 'JobState=\\K\\w+'").out, "RUNNING\n");
  for (const char* form : {"jobid=12", "jobid 12", "job=12", "JOBS 12"})
    EXPECT_EQ(scheduler.sh(std::string("scontrol show ") + form + " | grep -c JobId=").out, "1\n");
}

TEST(Scontrol, ShowsArraysAndWhatWaits) {
  PlayedScheduler scheduler;
  EXPECT_EQ(scheduler.sh("scontrol show job 20 | grep JobId").out,
            "JobId=20 ArrayJobId=20 ArrayTaskId=0,5,10%2 ArrayTaskThrottle=2 JobName=sweep\n");
  EXPECT_EQ(scheduler.sh("scontrol show job 20_5 | grep -o 'ArrayTaskId=[^ ]*'").out,
            "ArrayTaskId=5\n");
  EXPECT_EQ(
      scheduler.sh("scontrol show job 14 | grep -oE '(JobState|Reason|StartTime)=[A-Za-z]+'").out,
      "JobState=PENDING\nReason=JobHeldUser\nStartTime=Unknown\n");
  const Ran unknown = scheduler.sh("scontrol show job 4711");
  EXPECT_EQ(unknown.exit, 1);
  EXPECT_EQ(unknown.err, "scontrol: slurm_load_jobs error: Invalid job id specified\n");
  const json answer = json::parse(scheduler.sh("scontrol show job 12 --json").out);
  EXPECT_EQ(answer["jobs"][0]["job_id"], 12);
}

TEST(Scontrol, ANameCannotShapeAnotherJobsRecord) {
  PlayedScheduler scheduler;
  scheduler.set_job(
      {{"number", 13}, {"spec", {{"name", "x\n\nJobId=99 JobState=FAILED"}, {"user", "bob"}}}});
  EXPECT_EQ(scheduler.sh("scontrol -o show job 13 | wc -l").out, "1\n");
  EXPECT_EQ(scheduler.sh("scontrol show job 13 | grep -c '^JobId='").out, "1\n");
}

TEST(Scontrol, ShowsNodesPartitionsAndConfig) {
  PlayedScheduler scheduler;
  const Ran node = scheduler.sh("scontrol show node n1");
  EXPECT_EQ(node.exit, 0) << node.err;
  EXPECT_THAT(node.out, HasSubstr("NodeName=n1 CoresPerSocket=16"));
  EXPECT_THAT(node.out, HasSubstr("\n   CPUAlloc=8 CPUEfctv=16 CPUTot=16 "));
  EXPECT_THAT(node.out, HasSubstr("\n   Gres=gpu:a100:4\n"));
  EXPECT_THAT(node.out, HasSubstr("\n   State=MIXED "));
  EXPECT_THAT(node.out, HasSubstr("\n   Partitions=gpu,day \n"));
  EXPECT_THAT(node.out, HasSubstr("CfgTRES=cpu=16,mem=64G,gres/gpu=4,gres/gpu:a100=4\n"));
  EXPECT_EQ(scheduler.sh("scontrol -o show nodes | wc -l").out, "3\n");
  EXPECT_EQ(scheduler.sh("scontrol show node n3 | grep -oE '(State|Reason)=.*'").out,
            "State=IDLE+DRAIN ThreadsPerCore=1 TmpDisk=0 Weight=1 Owner=N/A MCS_label=N/A\n"
            "Reason=new fan\n");
  const Ran missing = scheduler.sh("scontrol show node n9");
  EXPECT_EQ(missing.exit, 1);
  EXPECT_EQ(missing.out, "Node n9 not found\n");
  EXPECT_THAT(scheduler.sh("scontrol show partition day").out, HasSubstr("MaxTime=1-00:00:00 "));
  EXPECT_EQ(scheduler.sh("scontrol show partition | grep -oE 'Default=[A-Z]+'").out,
            "Default=YES\nDefault=NO\n");
  EXPECT_EQ(scheduler.sh("scontrol show partition night").out, "Partition night not found\n");
  EXPECT_EQ(scheduler.sh("scontrol show config | grep ClusterName").out,
            "ClusterName             = test\n");
  EXPECT_THAT(scheduler.sh("scontrol ping").out, HasSubstr("is UP\n"));
}

TEST(Scontrol, ShowsStepsThatRun) {
  PlayedScheduler scheduler;
  EXPECT_EQ(scheduler.sh("scontrol show step 12 | grep -oE 'StepId=[^ ]*'").out,
            "StepId=12.batch\nStepId=12.0\n");
  EXPECT_THAT(scheduler.sh("scontrol show step 12.0").out,
              HasSubstr("\n   Nodes=1 CPUs=4 Tasks=2 Name=train.py Network=(null)\n"
                        "   TRES=cpu=4,gres/gpu=2\n"));
  EXPECT_EQ(scheduler.sh("scontrol show step 12.9").exit, 1);
}

TEST(Scontrol, TakesListsOfHostsApartAndTogether) {
  PlayedScheduler scheduler;
  EXPECT_EQ(scheduler.sh("scontrol show hostnames 'n[1-3,5],m0[1-2],login'").out,
            "n1\nn2\nn3\nn5\nm01\nm02\nlogin\n");
  EXPECT_EQ(scheduler.sh("SLURM_JOB_NODELIST=n[08-10] scontrol show hostnames | head -n 1").out,
            "n08\n");
  EXPECT_EQ(scheduler.sh("scontrol show hostnames 'r[1-2]n[1-2]'").out, "r1n1\nr1n2\nr2n1\nr2n2\n");
  EXPECT_EQ(scheduler.sh("scontrol show hostlist n1,n2,n3,login").out, "n[1-3],login\n");
  EXPECT_EQ(scheduler.sh("scontrol show hostlist n3,n1,n2").out, "n[3,1-2]\n");
  EXPECT_EQ(scheduler.sh("scontrol show hostlistsorted n3,n1,n2").out, "n[1-3]\n");
  for (const char* bad : {"'n[1-'", "'n[3-1]'", "'n[a]'", "'n[1-999999999]'", "'n[]'"})
    EXPECT_EQ(scheduler.sh(std::string("scontrol show hostnames ") + bad).exit, 1) << bad;
  // Needs no scheduler at all.
  EXPECT_EQ(scheduler.sh("BERTH_SOCKET=/nowhere scontrol show hostnames n[1-2]").out, "n1\nn2\n");
}

constexpr auto kActions = "/api/v1/jobs/actions";

TEST(Scontrol, HoldsReleasesAndTheLike) {
  PlayedScheduler scheduler;
  const auto verb_of = [&](const char* command) {
    EXPECT_EQ(scheduler.sh(std::string("scontrol ") + command).exit, 0) << command;
    return scheduler.sent("POST", kActions);
  };
  EXPECT_EQ(verb_of("hold 13 14"), json::parse(R"({"verb":"hold","ids":[13,14]})"));
  EXPECT_EQ(verb_of("uhold 13"), json::parse(R"({"verb":"hold","ids":[13]})"));
  EXPECT_EQ(verb_of("release 20"), json::parse(R"({"verb":"release","ids":[20,21,22]})"));
  EXPECT_EQ(verb_of("release 20_5"), json::parse(R"({"verb":"release","ids":[21]})"));
  EXPECT_EQ(verb_of("requeue 12"), json::parse(R"({"verb":"requeue","ids":[12]})"));
  EXPECT_EQ(verb_of("suspend 12"), json::parse(R"({"verb":"suspend","ids":[12]})"));
  EXPECT_EQ(verb_of("resume jobid=12"), json::parse(R"({"verb":"resume","ids":[12]})"));
  EXPECT_EQ(verb_of("requeuehold 12"), json::parse(R"({"verb":"requeue","ids":[12]})"));
  const auto all = scheduler.server().asked("POST", kActions);  // held first: it must not start
  EXPECT_EQ(json::parse(all[all.size() - 2].body), json::parse(R"({"verb":"hold","ids":[12]})"));
  EXPECT_EQ(scheduler.sh("scontrol hold").exit, 1);
  EXPECT_EQ(scheduler.sh("scontrol hold 9").exit, 1);
  EXPECT_EQ(scheduler.sh("scontrol frob 12").err, "scontrol: invalid keyword: frob\n");
}

TEST(Scontrol, UpdatesJobs) {
  PlayedScheduler scheduler;
  const auto sent = [&](const std::string& settings) {
    const Ran ran = scheduler.sh("scontrol update jobid=13 " + settings);
    EXPECT_EQ(ran.exit, 0) << settings << ran.err;
    return scheduler.sent("PATCH", "/api/v1/jobs/13");
  };
  EXPECT_EQ(sent("TimeLimit=2:00:00"), json::parse(R"({"time_limit":7200})"));
  EXPECT_EQ(sent("timelimit=UNLIMITED"), json::parse(R"({"time_limit":0})"));
  EXPECT_EQ(sent("Priority=5 JobName=x Partition=day Comment='two words'"),
            json::parse(R"({"priority":5,"name":"x","queue":"day","comment":"two words"})"));
  EXPECT_EQ(sent("priority=-3"), json::parse(R"({"priority":-3})"));
  EXPECT_EQ(scheduler.sh("scontrol update partition=day jobid=13").exit, 0);
  EXPECT_EQ(scheduler.sent("PATCH", "/api/v1/jobs/13"), json::parse(R"({"queue":"day"})"));
  EXPECT_EQ(sent("Nice=10"), json::parse(R"({"priority":-10})"));
  EXPECT_EQ(sent("Gres=gpu:a100:2"), json::parse(R"({"gpus":2,"gpu_type":"a100"})"));
  EXPECT_EQ(sent("TresPerNode=gres/gpu:3"), json::parse(R"({"gpus":3})"));
  EXPECT_EQ(sent("NumCPUs=4-8 MinMemoryNode=4G"), json::parse(R"({"cpus":4,"memory_mib":4096})"));
  EXPECT_EQ(sent("Dependency=afterok:12"), json::parse(R"({"dependencies":"afterok:12"})"));
  EXPECT_EQ(sent("ReqNodeList=n[1-2]"), json::parse(R"({"nodes":["n1","n2"]})"));
  EXPECT_TRUE(sent("StartTime=now+1hour")["begin"].is_number());
  const Ran bad = scheduler.sh("scontrol update jobid=13 features=x");
  EXPECT_EQ(bad.exit, 1);
  EXPECT_EQ(bad.err,
            "scontrol: Update of this parameter is not supported: features=x\n"
            "scontrol: Request aborted\n");
  EXPECT_EQ(scheduler.sh("scontrol update jobid=4711 timelimit=3").err,
            "scontrol: Invalid job id specified for job 4711\n");
  EXPECT_EQ(scheduler.sh("scontrol update timelimit=3").exit, 1);
  EXPECT_EQ(scheduler.sh("scontrol update partitionname=gpu state=down").exit, 1);
}

TEST(Scontrol, DrainsNodes) {
  PlayedScheduler scheduler;
  EXPECT_EQ(scheduler.sh("scontrol update nodename=n[1-2] state=drain reason='new fan'").exit, 0);
  EXPECT_EQ(scheduler.sent("POST", "/api/v1/nodes/n1/drain")["reason"], "new fan");
  EXPECT_EQ(scheduler.sent("POST", "/api/v1/nodes/n2/drain")["reason"], "new fan");
  EXPECT_EQ(scheduler.sh("scontrol update node=n1 state=resume").exit, 0);
  EXPECT_NE(scheduler.sent("POST", "/api/v1/nodes/n1/resume"), nullptr);
  EXPECT_THAT(scheduler.sh("scontrol update nodename=n1 state=drain").err, HasSubstr("a reason"));
  EXPECT_EQ(scheduler.sh("scontrol update nodename=n1 state=sleepy").exit, 1);
}

TEST(Scontrol, WritesScriptsAndReadsCommands) {
  PlayedScheduler scheduler;
  scheduler.set_job({{"number", 13}, {"spec", {{"name", "b"}, {"script", "#!/bin/sh\ntrue\n"}}}});
  EXPECT_EQ(scheduler.sh("scontrol write batch_script 13 -").out, "#!/bin/sh\ntrue\n");
  EXPECT_EQ(scheduler.sh("scontrol write batch_script 13").out,
            "batch script for job 13 written to slurm-13.sh\n");
  EXPECT_EQ(scheduler.folder().read("slurm-13.sh"), "#!/bin/sh\ntrue\n");
  EXPECT_EQ(scheduler.sh("scontrol write batch_script 12 -").exit, 1);
  const Ran lines = scheduler.sh(
      "printf 'oneliner\\nshow job 12\\nupdate jobid=13 comment=\"a b\"\\nexit\\nfrob\\n' | "
      "scontrol");
  EXPECT_EQ(lines.exit, 0) << lines.err;
  EXPECT_TRUE(lines.out.starts_with("JobId=12 JobName=train UserId=")) << lines.out;
  EXPECT_EQ(scheduler.sent("PATCH", "/api/v1/jobs/13"), json::parse(R"({"comment":"a b"})"));
}

TEST(Scontrol, SaysHonestlyWhatItDoesNotDo) {
  PlayedScheduler scheduler;
  const Ran ran = scheduler.sh("scontrol reconfigure");
  EXPECT_EQ(ran.exit, 1);
  EXPECT_THAT(ran.err, HasSubstr("SIGHUP"));
  EXPECT_EQ(scheduler.sh("scontrol listpids 12").exit, 1);  // it runs on another machine
  EXPECT_EQ(scheduler.sh("scontrol show").err, "scontrol: too few arguments for keyword:show\n");
  EXPECT_EQ(scheduler.sh("scontrol show moon").exit, 1);
}

}  // namespace
}  // namespace berth::test::scontrol_tests
