// sacct, seff, sstat, sprio and sshare against a played scheduler; help of every name.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <ctime>
#include <fstream>
#include <iterator>
#include <sstream>

#include <fmt/format.h>

#include "client/played_scheduler.h"
#include "project_paths.h"

namespace berth::test::account_tests {
namespace {

using nlohmann::json;
using testing::HasSubstr;

json past() {
  return {{"number", 9},
          {"where", {{{"node", "n1"}, {"devices", {0, 1}}, {"cores", {0, 1, 2, 3}}}}},
          {"attempts", 1},
          {"energy_kwh", 0.5},
          {"spec",
           {{"name", "old"},
            {"user", "ann"},
            {"queue", "gpu"},
            {"gpus", 2},
            {"cpus", 4},
            {"memory_mib", 6'144},
            {"time_limit", 7'200},
            {"workdir", "/home/ann"},
            {"command", {"./old"}}}}};
}

TEST(Sacct, HasSlurmsColumnsAndWidths) {
  PlayedScheduler scheduler;
  scheduler.set_job(past());
  const Ran ran = scheduler.sh("sacct -j 9");
  EXPECT_EQ(ran.exit, 0) << ran.err;
  EXPECT_EQ(ran.out,
            "JobID           JobName  Partition    Account  AllocCPUS      State ExitCode \n"
            "------------ ---------- ---------- ---------- ---------- ---------- -------- \n"
            "9                   old        gpu        ann          4     FAILED      3:0 \n"
            "9.batch           batch                   ann          4     FAILED      3:0 \n"
            "9.0             python3                   ann          2  CANCELLED     0:15 \n");
  EXPECT_EQ(scheduler.sh("sacct -j 9 -X -n -P -o State").out, "FAILED\n");
  EXPECT_EQ(scheduler.sh("sacct -j 9 -b -n -p").out,
            "9|FAILED|3:0|\n9.batch|FAILED|3:0|\n9.0|CANCELLED|0:15|\n");
  EXPECT_EQ(scheduler.sh("sacct -j 9 -X -n -o jobname%5,state%-9,partition%2").out,
            "  old FAILED    g+ \n");
  EXPECT_EQ(scheduler.sh("sacct -j 9 -P -n --delimiter=';' -X -o jobid,user").out, "9;ann\n");
  EXPECT_EQ(scheduler.sh("sacct -j 9.0 -n -P -o jobid,jobname").out, "9.0|python3\n");
  const Ran bad = scheduler.sh("sacct -o moon");
  EXPECT_EQ(bad.exit, 1);
  EXPECT_THAT(bad.err, HasSubstr("Invalid field requested: \"moon\""));
}

TEST(Sacct, TellsTimesResourcesAndUse) {
  PlayedScheduler scheduler;
  scheduler.set_job(past());
  EXPECT_EQ(scheduler
                .sh("sacct -j 9 -X -n -P -o start,end,submit,eligible,elapsed,elapsedraw,"
                    "timelimit,timelimitraw,cputime,cputimeraw,totalcpu,planned")
                .out,
            "2025-11-16T13:34:20|2025-11-16T14:34:20|2025-11-16T13:33:20|2025-11-16T13:33:20|"
            "01:00:00|3600|02:00:00|120|04:00:00|14400|02:00:00|00:01:00\n");
  EXPECT_EQ(scheduler
                .sh("sacct -j 9 -X -n -P -o alloctres,reqtres,reqmem,nodelist,nnodes,ncpus,"
                    "consumedenergyraw,workdir,qos,cluster,priority,derivedexitcode,reason")
                .out,
            "cpu=4,gres/gpu:a100=2,gres/gpu=2,mem=6G,node=1|cpu=4,gres/gpu=2,mem=6G,node=1|6G|n1|1|"
            "4|1800000|/home/ann|normal|test|0|3:0|NonZeroExitCode\n");
  EXPECT_EQ(scheduler.sh("sacct -j 9 -n -P -o jobid,maxrss,averss,ntasks,totalcpu").out,
            "9||||02:00:00\n9.batch|2M|2M|1|02:00:00\n9.0|3G|3G|2|01:30:00\n");
  EXPECT_EQ(scheduler.sh("sacct -j 9.0 -n -P --units=M -o maxrss").out, "3072M\n");
  EXPECT_EQ(scheduler.sh("sacct -j 9.0 -n -P --noconvert -o maxrss").out, "3145728K\n");
  EXPECT_EQ(scheduler.sh("sacct -j 13 -n -P -o state,start,end,nodelist,alloccpus,elapsed").out,
            "PENDING|Unknown|Unknown|None assigned|0|00:00:00\n");
}

TEST(Sacct, HasEveryField) {
  PlayedScheduler scheduler;
  const Ran all = scheduler.sh("sacct -e | wc -w");
  EXPECT_EQ(all.out, "118\n");  // as many as Slurm 24.11 has
  EXPECT_EQ(scheduler.sh("sacct -j 9 -X -P -o ALL | head -n 1 | tr '|' '\\n' | wc -l").out,
            "118\n");
  EXPECT_EQ(scheduler.sh("sacct -l -j 12").exit, 0);
}

TEST(Sacct, ChoosesByWindowUserAndState) {
  PlayedScheduler scheduler;
  const auto ids = [&](const std::string& options) {
    const Ran ran = scheduler.sh("sacct -a -X -n -P -o jobid " + options);
    EXPECT_EQ(ran.exit, 0) << options << ran.err;
    return ran.out;
  };
  EXPECT_EQ(ids(""), "12\n13\n20_[0,5,10%2]\n");  // 9 ended long ago, 14 is held
  EXPECT_EQ(ids("--array -u bob"), "13\n20_0\n20_5\n20_10\n");
  EXPECT_EQ(ids("-S 2025-11-16"), "9\n12\n13\n20_[0,5,10%2]\n");
  EXPECT_EQ(ids("-S 2025-11-16 -s F"), "9\n");
  EXPECT_EQ(ids("-s PD -u ann"), "14\n");
  EXPECT_EQ(ids("-r day"), "");
  EXPECT_EQ(ids("--name train,big"), "12\n13\n");
  EXPECT_EQ(ids("-N n1"), "12\n");
  EXPECT_EQ(ids("-q high"), "");
  EXPECT_EQ(ids("-j 4711"), "");
  EXPECT_EQ(scheduler.sh("sacct -s moon").exit, 2);
  EXPECT_EQ(scheduler.sh("sacct -S moon").exit, 2);
  EXPECT_EQ(scheduler.sh("sacct --units=X").exit, 2);
}

TEST(Sacct, SaysWhoCancelledAndWhatRanBefore) {
  PlayedScheduler scheduler;
  scheduler.set_job({{"number", 9}, {"state", "cancelled"}, {"reason", "cancelled by root: late"}});
  EXPECT_EQ(scheduler.sh("sacct -j 9 -X -n -P -o state").out, "CANCELLED by 0\n");
  EXPECT_EQ(scheduler.sh("sacct -j 9 -X -n -o state").out, "CANCELLED+ \n");
  scheduler.set_job({{"number", 12}, {"attempts", 2}});
  scheduler.first = [](const Asked& asked) -> Told {
    if (!asked.path().ends_with("/attempts")) return {.status = 0};
    return {.body = R"({"attempts":[
      {"id":"1.1","where":[{"node":"n2","devices":[0],"cores":[]}],"begun":1763300000000000,"ended":1763300060000000,
       "outcome":"preempted","exit_code":0,"signal":15,"gpu_seconds":60,"why":""},
      {"id":"1.2","where":[],"begun":1763300100000000,"ended":null,"outcome":null,"exit_code":0,"signal":0,"gpu_seconds":0,"why":""}]})"};
  };
  // Whole seconds are multiplied, so that the three agree.
  scheduler.set_job(
      {{"number", 12},
       {"run_seconds", 65.9},
       {"where", {{{"node", "n1"}, {"devices", {0, 1}}, {"cores", {0, 1, 2, 3, 4, 5, 6, 7}}}}}});
  EXPECT_EQ(scheduler.sh("sacct -j 12 -X -n -P -o elapsed,ncpus,cputime,cputimeraw").out,
            "00:01:05|8|00:08:40|520\n");
  EXPECT_THAT(scheduler.sh("seff 12").out, testing::HasSubstr("of 00:08:40 core-walltime"));
  EXPECT_EQ(scheduler.sh("sacct -D -j 12 -X -n -P -o jobid,state,elapsed,nodelist,exitcode").out,
            "12|PREEMPTED|00:01:00|n2|0:15\n12|RUNNING|00:01:05|n1|0:0\n");
}

// Who may see only himself is told what part of the whole he is.
TEST(Sshare, SharesAreThoseOfTheWhole) {
  PlayedScheduler scheduler;
  scheduler.first = [](const Asked& asked) -> Told {
    if (!asked.path().ends_with("/shares")) return {.status = 0};
    return {
        .body =
            R"({"shares":[{"kind":"user","name":"ann","shares":1,"gpu_seconds":600,"gpus_now":0,"jobs_now":0,
      "waiting":0,"gpu_limit":0,"job_limit":0,"gpu_seconds_limit":0,"all_shares":2,"all_gpu_seconds":2400}]})"};
  };
  EXPECT_EQ(scheduler.sh("sshare -a -n -P -o user,normshares,rawusage,effectvusage,fairshare").out,
            "||2400|1.000000|\nann|0.500000|600|0.250000|0.707107\n");
}

TEST(Sacct, OutOfMemoryHasSlurmsExitCode) {
  PlayedScheduler scheduler;
  scheduler.set_job({{"number", 9}, {"state", "out-of-memory"}, {"exit_code", 137}});
  EXPECT_EQ(scheduler.sh("sacct -j 9 -X -n -P -o state,exitcode,derivedexitcode").out,
            "OUT_OF_MEMORY|0:125|0:0\n");
  EXPECT_THAT(scheduler.sh("scontrol show job 9").out, HasSubstr("ExitCode=0:125"));
}

TEST(Sacct, TellsOfTheLastRunWithoutWhatItStoodStill) {
  PlayedScheduler scheduler;
  scheduler.set_job({{"number", 12},
                     {"attempts", 2},
                     {"started", 1'763'300'000'000'000},
                     {"last_started", 1'763'300'040'000'000},
                     {"run_seconds", 65.0},
                     {"last_run_seconds", 25.5},
                     {"suspended_seconds", 10.0},
                     {"suspended", 1'763'300'060'000'000}});
  EXPECT_EQ(scheduler.sh("sacct -j 12 -X -n -P -o start,elapsed,suspended").out,
            "2025-11-16T13:34:00|00:00:25|00:00:10\n");
  // No step is longer than its job.
  EXPECT_EQ(scheduler.sh("sacct -j 12.batch -n -P -o elapsed").out, "00:00:25\n");
  EXPECT_EQ(scheduler.sh("squeue -h -j 12 -o '%M %L'").out, "0:25 1:59:34\n");
  const std::string shown = scheduler.sh("scontrol show job 12").out;
  EXPECT_THAT(shown, HasSubstr("RunTime=00:00:25 "));
  EXPECT_THAT(shown, HasSubstr("SuspendTime=2025-11-16T13:34:20 SecsPreSuspend=25 "));
  // The end of this run: two hours after its start, and what it stood still.
  const std::int64_t start = std::time(nullptr) - 100;
  scheduler.set_job({{"number", 12}, {"last_started", start * 1'000'000}});
  EXPECT_EQ(scheduler.sh("date +%s -d \"$(squeue -h -j 12 -o %e)\"").out,
            fmt::format("{}\n", start + 7'200 + 10));
}

TEST(Sacct, SpeaksSlurmsJson) {
  PlayedScheduler scheduler;
  scheduler.set_job(past());
  const json answer = json::parse(scheduler.sh("sacct --json -j 9").out);
  ASSERT_EQ(answer["jobs"].size(), 1U);
  const json& job = answer["jobs"][0];
  EXPECT_EQ(job["job_id"], 9);
  EXPECT_EQ(job["state"]["current"], json::array({"FAILED"}));
  EXPECT_EQ(job["exit_code"]["return_code"]["number"], 3);
  EXPECT_EQ(job["time"]["elapsed"], 3'600);
  ASSERT_EQ(job["steps"].size(), 2U);
  EXPECT_EQ(job["steps"][1]["step"]["id"], "9.0");
  EXPECT_EQ(job["steps"][1]["exit_code"]["signal"]["name"], "SIGTERM");
  EXPECT_EQ(job["tres"]["allocated"][0],
            json::parse(R"({"type":"cpu","name":"","id":1,"count":4})"));
}

TEST(Seff, TellsTheEfficiency) {
  PlayedScheduler scheduler;
  scheduler.set_job(past());
  EXPECT_EQ(scheduler.sh("seff 9").out,
            "Job ID: 9\nCluster: test\nUser/Group: ann/ann\nState: FAILED (exit code 3)\nCores: 4\n"
            "CPU Utilized: 02:00:00\nCPU Efficiency: 50.00% of 04:00:00 core-walltime\n"
            "Job Wall-clock time: 01:00:00\nMemory Utilized: 3.00 GB\n"
            "Memory Efficiency: 50.00% of 6.00 GB\nGPUs: 2\n"
            "GPU Time Held: 02:00:00 GPU-walltime\nEnergy Charged: 0.500 kWh\n");
  EXPECT_THAT(scheduler.sh("seff 13").out,
              HasSubstr("Efficiency not available for jobs in the PENDING state.\n"));
  EXPECT_THAT(scheduler.sh("seff 12").out, HasSubstr("may be misleading for RUNNING jobs.\n"));
  EXPECT_EQ(scheduler.sh("seff 4711").out, "Job not found.\n");
  EXPECT_EQ(scheduler.sh("seff").exit, 2);
}

TEST(Sstat, SaysThatAJobIsNotHere) {
  PlayedScheduler scheduler;
  Ran ran = scheduler.sh("sstat -n -j 12");
  EXPECT_EQ(ran.exit, 1);
  EXPECT_EQ(ran.err, "sstat: error: no process of 12.0 is on this machine\n");
  ran = scheduler.sh("sstat -n -j 9");
  EXPECT_EQ(ran.err, "sstat: error: couldn't get steps for job 9: it does not run\n");
  EXPECT_THAT(scheduler.sh("sstat -e").out, HasSubstr("MaxRSS"));
  EXPECT_EQ(scheduler.sh("sstat").exit, 2);
}

TEST(Sprio, TellsWhatTheOrderIsMadeFrom) {
  PlayedScheduler scheduler;
  scheduler.set_job(
      {{"number", 13},
       {"spec", {{"name", "big"}, {"user", "ann"}, {"queue", "gpu"}, {"priority", 7}}}});
  EXPECT_THAT(scheduler.sh("sprio").out,
              HasSubstr("          JOBID PARTITION   PRIORITY        AGE    FAIRSHARE\n"));
  EXPECT_EQ(scheduler.sh("sprio -h -j 13 -o '%i|%u|%Y|%F|%N'").out, "13|ann|7|3600|0\n");
  EXPECT_EQ(scheduler.sh("sprio -w").out, "Policy: las\n  quantum = 60\n");
  EXPECT_EQ(scheduler.sh("sprio -h -S -Y -o %Y | head -n 1").out, "7\n");
  EXPECT_EQ(scheduler.sh("sprio -j 12").err,
            "sprio: Unable to find jobs matching user/id(s) specified\n");
}

TEST(Sshare, TellsSharesAndUse) {
  PlayedScheduler scheduler;
  EXPECT_EQ(
      scheduler.sh("sshare -a").out,
      "Account                    User  RawShares  NormShares    RawUsage  EffectvUsage  "
      "FairShare \n"
      "-------------------- ---------- ---------- ----------- ----------- ------------- "
      "---------- \n"
      "root                                                          7200      1.000000          "
      "  \n"
      " ann                        ann          2    1.000000        7200      1.000000   "
      "0.500000 \n");
  EXPECT_EQ(scheduler.sh("sshare -u ann -n -P -o user,rawusage").out, "ann|7200\n");
  EXPECT_EQ(scheduler.sh("sshare -u bob -h -P").out, "");
}

TEST(SlurmNames, AllTellTheirHelpUsageAndVersion) {
  PlayedScheduler scheduler;
  for (const std::string name :
       {"sacct", "scancel", "scontrol", "seff", "sinfo", "sprio", "squeue", "sshare", "sstat"}) {
    const Ran help = scheduler.sh(name + " --help");
    EXPECT_EQ(help.exit, 0) << name;
    EXPECT_TRUE(help.out.starts_with(name + " - ")) << help.out;
    EXPECT_THAT(help.out, HasSubstr("\nExamples:\n  " + name));
    EXPECT_TRUE(scheduler.sh(name + " --usage").out.starts_with("Usage: " + name + " [--")) << name;
    EXPECT_TRUE(scheduler.sh(name + " -V").out.starts_with("berth ")) << name;
    EXPECT_EQ(scheduler.sh(name + " --moon").exit, 2) << name;
  }
}

/// The section of docs/slurm-commands.md that is about this command.
std::string section_about(const std::string& name) {
  std::ifstream file(BERTH_SOURCE_DIR "/docs/slurm-commands.md");
  const std::string page((std::istreambuf_iterator<char>(file)), {});
  const auto begin = page.find("\n## " + name + "\n");
  if (begin == std::string::npos) return {};
  return page.substr(begin, page.find("\n## ", begin + 1) - begin);
}

TEST(SlurmNames, ThePageHasARowForEveryOption) {
  PlayedScheduler scheduler;
  for (const std::string name :
       {"sacct", "scancel", "scontrol", "seff", "sinfo", "sprio", "squeue", "sshare", "sstat"}) {
    const std::string section = section_about(name);
    const Ran options =
        scheduler.sh(name + " --help | sed -n 's/^  \\(-., \\|   \\)\\(--[A-Za-z-]*\\).*/\\2/p'");
    std::istringstream lines(options.out);
    int count = 0;
    for (std::string option; std::getline(lines, option); ++count)
      EXPECT_NE(section.find("`" + option), std::string::npos) << name << " " << option;
    EXPECT_GE(count, 4) << name;
  }
}

}  // namespace
}  // namespace berth::test::account_tests
