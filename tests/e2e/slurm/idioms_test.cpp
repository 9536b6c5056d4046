// The shell idioms of people's scripts and of workflow programs, with a real scheduler and real
// jobs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <unistd.h>

#include <fmt/format.h>

#include "e2e/serve/served.h"

namespace berth::test::slurm_idioms_tests {
namespace {

using nlohmann::json;
using testing::HasSubstr;

class SlurmIdioms : public testing::Test {
 protected:
  SlurmIdioms() {
    for (const char* name : {"sacct", "sbatch", "scancel", "scontrol", "seff", "sinfo", "sprio",
                             "squeue", "srun", "sshare", "sstat"})
      if (::symlink(BERTH_PROGRAM, (served_.folder() / name).c_str()) != 0)
        ADD_FAILURE() << "no symlink";
  }
  void SetUp() override { ASSERT_TRUE(served_.begin()) << served_.log(); }

  [[nodiscard]] Ran sh(const std::string& command) const {
    return shell(served_.folder(),
                 fmt::format("unset BERTH_URL BERTH_TOKEN; export BERTH_SOCKET='{}' "
                             "PATH=\"{}:$PATH\"; {}",
                             served_.socket(), served_.folder().path(), command));
  }
  /// The number of a job with this script.
  [[nodiscard]] std::string submit(const std::string& options, const std::string& script) const {
    const Ran ran = sh(fmt::format("sbatch --parsable {} --wrap '{}'", options, script));
    EXPECT_EQ(ran.exit, 0) << ran.err;
    return ran.out.substr(0, ran.out.find('\n'));
  }
  [[nodiscard]] bool comes_to(const std::string& job, const std::string& state) const {
    return eventually(
        [&] { return sh("squeue -h -t all -j " + job + " -o %T").out == state + "\n"; });
  }

  Served served_;
};

TEST_F(SlurmIdioms, AskAndCommandARunningJob) {
  const std::string id =
      submit("-J train -t 30 --comment=hello", "echo up > up; while :; do sleep 0.1; done");
  ASSERT_TRUE(comes_to(id, "RUNNING")) << served_.log();
  ASSERT_TRUE(eventually([&] { return served_.folder().has("up"); }));
  EXPECT_EQ(sh("sacct -j " + id + " -X -n -P -o State").out, "RUNNING\n");
  EXPECT_EQ(sh("scontrol show job " + id + " | grep -oP 'JobState=\\K\\w+'").out, "RUNNING\n");
  EXPECT_EQ(sh("scontrol show job " + id + " | grep -oP 'TimeLimit=\\K\\S+'").out, "00:30:00\n");
  EXPECT_EQ(sh("scontrol show job " + id + " | grep -oP 'Comment=\\K\\w+'").out, "hello\n");
  const std::string node = sh("squeue -h -j " + id + " -o %N").out;
  EXPECT_EQ(sh("scontrol show hostnames $(squeue -h -j " + id + " -o %N) | head -n 1").out, node);
  EXPECT_EQ(sh("scontrol show node $(squeue -h -j " + id + " -o %N) | grep -c NodeName=").out,
            "1\n");
  EXPECT_EQ(sh("scontrol update jobid=" + id + " timelimit=20").exit, 0);
  EXPECT_EQ(sh("squeue -h -j " + id + " -o %l").out, "20:00\n");
  const json answer = json::parse(sh("squeue --json -j " + id).out);
  EXPECT_EQ(answer["jobs"][0]["job_state"], json::array({"RUNNING"}));
  EXPECT_EQ(answer["jobs"][0]["standard_output"],
            sh("scontrol show job " + id + " | grep -oP 'StdOut=\\K.*' | tr -d '\\n'").out);
  // Its processes are here, so sstat and listpids see them.
  EXPECT_THAT(sh("sstat -a -n -P -o jobid,ntasks -j " + id).out, HasSubstr(id + ".batch|1\n"));
  EXPECT_THAT(sh("scontrol listpids " + id).out, HasSubstr(" batch "));
  EXPECT_EQ(sh("scancel " + id).exit, 0);
  ASSERT_TRUE(eventually(
      [&] { return sh("sacct -j " + id + " -X -n -P -o State").out.starts_with("CANCELLED"); }));
  EXPECT_EQ(sh("squeue -h -t all -j " + id + " -o %t").out, "CA\n");
}

// "Where does my script lie?", which many scripts ask in this way.
TEST_F(SlurmIdioms, FindTheScriptOfAJob) {
  const std::string path = served_.folder().file(
      "where am i.sh",
      "#!/bin/sh\nscontrol show job $SLURM_JOB_ID | awk -F= '/Command=/{print $2}' | head -n 1 > "
      "found\n");
  const Ran ran = sh("sbatch --parsable 'where am i.sh' --lr 0.1");
  ASSERT_EQ(ran.exit, 0) << ran.err;
  ASSERT_TRUE(eventually([&] { return served_.is_over(std::stoull(ran.out)); })) << served_.log();
  EXPECT_EQ(served_.folder().read("found"), path + " --lr 0.1\n");
}

TEST_F(SlurmIdioms, TellHowJobsEnded) {
  const std::string good = submit("-J good", "exit 0"), bad = submit("-J bad", "exit 7");
  const std::string killed = submit("-J killed", "kill -9 $$");
  for (const std::string& job : {good, bad, killed})
    ASSERT_TRUE(eventually([&] { return served_.is_over(std::stoull(job)); })) << served_.log();
  EXPECT_EQ(
      sh("sacct -X -n -P -o jobname,state,exitcode -j " + good + "," + bad + "," + killed).out,
      "good|COMPLETED|0:0\nbad|FAILED|7:0\nkilled|FAILED|0:9\n");
  EXPECT_EQ(sh("scontrol show job " + bad + " | grep -oP 'ExitCode=\\K\\S+' | head -n 1").out,
            "7:0\n");
  EXPECT_THAT(sh("seff " + bad).out, HasSubstr("State: FAILED (exit code 7)\n"));
  EXPECT_EQ(sh("sacct -n -X -P -o jobname -s F | sort").out, "bad\nkilled\n");
}

// What snakemake's executor plugin for Slurm and nextflow ask again and again.
TEST_F(SlurmIdioms, AnswerWorkflowPrograms) {
  const std::string one = submit("-J run-1 --comment=rule_a", "exit 0");
  const std::string two = submit("-J run-1 --comment=rule_b", "exit 1");
  for (const std::string& job : {one, two})
    ASSERT_TRUE(eventually([&] { return served_.is_over(std::stoull(job)); })) << served_.log();
  EXPECT_EQ(sh("sacct -X --parsable2 --noheader --format=JobIdRaw,State --starttime now-2days "
               "--endtime now+1day --name run-1")
                .out,
            fmt::format("{}|COMPLETED\n{}|FAILED\n", one, two));
  EXPECT_EQ(sh("sacct -j " + one + " -o JobID,State -P -n -X | cut -d'|' -f2").out, "COMPLETED\n");
  EXPECT_EQ(sh("squeue --noheader -o '%i %t' -t all -u $(id -un) | sort").out,
            fmt::format("{} CD\n{} F\n", one, two));
  EXPECT_NE(sh("sinfo -h -o '%P %l'").out.find("* infinite"), std::string::npos);
  EXPECT_EQ(sh("sacctmgr show 2>/dev/null; squeue -h -j 4711; echo $?").out, "1\n");
}

TEST_F(SlurmIdioms, HoldReleaseAndChangeWhatWaits) {
  const std::string id = submit("-J later --hold", "exit 0");
  EXPECT_EQ(sh("squeue -h -j " + id + " -o '%T %r'").out, "PENDING JobHeldUser\n");
  EXPECT_EQ(sh("scontrol update job=" + id + " name=sooner priority=9 comment=x").exit, 0);
  EXPECT_EQ(sh("squeue -h -j " + id + " -O name:10,priority:4,comment:4").out, "sooner    9   x\n");
  EXPECT_EQ(sh("scontrol write batch_script " + id + " - | tail -n 1").out, "exit 0\n");
  EXPECT_EQ(sh("scontrol release " + id).exit, 0);
  ASSERT_TRUE(comes_to(id, "COMPLETED"));
  EXPECT_EQ(sh("scontrol release " + id).exit, 1);
}

TEST_F(SlurmIdioms, SignalTheShellAlone) {
  const std::string id =
      submit("-J shell",
             "trap \"echo shell >> heard\" USR1; sh -c \"trap \\\"echo child >> heard\\\" USR1; "
             "echo > ready; "
             "while :; do sleep 0.1; done\" & while :; do wait; sleep 0.05; done");
  ASSERT_TRUE(eventually([&] { return served_.folder().has("ready"); })) << served_.log();
  EXPECT_EQ(sh("scancel -b -s USR1 " + id).exit, 0);
  ASSERT_TRUE(eventually([&] { return served_.folder().has("heard"); }));
  EXPECT_EQ(sh("scancel -s USR1 " + id).exit, 0);  // and this one to both
  ASSERT_TRUE(eventually(
      [&] { return served_.folder().read("heard").find("child") != std::string::npos; }));
  const std::string heard = served_.folder().read("heard");
  EXPECT_TRUE(heard.starts_with("shell\n")) << heard;
  EXPECT_EQ(sh("scancel " + id).exit, 0);
}

TEST_F(SlurmIdioms, TellAndEndSteps) {
  const std::string id = submit("-J steps -n 2", "srun -n 2 sleep 600; echo $? > code; exit 0");
  ASSERT_TRUE(eventually([&] {
    return sh("squeue -h -s -j " + id + " -o %i | grep -c '\\.0$'").out == "1\n";
  })) << served_.log();
  EXPECT_EQ(sh("squeue -h -s -j " + id + " -O stepid:8,stepname:6,numtasks:3").out,
            fmt::format("{:<8}batch 1\n{:<8}sleep 2\n", id + ".batch", id + ".0"));
  EXPECT_EQ(sh("scontrol show step " + id + ".0 | grep -o 'Tasks=. Name=[a-z]*'").out,
            "Tasks=2 Name=sleep\n");
  ASSERT_TRUE(
      eventually([&] { return sh("sstat -n -P -o jobid,ntasks -j " + id).out == id + ".0|2\n"; }));
  EXPECT_THAT(sh("scontrol listpids " + id + ".0").out, HasSubstr(" 0 "));
  const Ran ended = sh("scancel " + id + ".0");
  EXPECT_EQ(ended.exit, 0) << ended.err;
  ASSERT_TRUE(comes_to(id, "COMPLETED")) << served_.log();  // the script went on
  EXPECT_NE(served_.folder().read("code"), "0\n");
  EXPECT_EQ(sh("sacct -n -P -o jobid,jobname,ntasks,exitcode -j " + id + " | cut -d'|' -f1-3").out,
            fmt::format("{0}|steps|\n{0}.batch|batch|1\n{0}.0|sleep|2\n", id));
  EXPECT_NE(sh("sacct -n -P -o state -j " + id + ".0").out, "COMPLETED\n");
  EXPECT_EQ(sh("sacct -n -X -P -o state -j " + id).out, "COMPLETED\n");
  EXPECT_THAT(sh("seff " + id).out, HasSubstr("CPU Utilized: 00:00:0"));
}

TEST_F(SlurmIdioms, DrainAndResumeTheNode) {
  const std::string node = sh("sinfo -h -N -o %N | head -n 1 | tr -d '\\n'").out;
  EXPECT_EQ(sh("scontrol update nodename=" + node + " state=drain reason=fan").exit, 0);
  ASSERT_TRUE(eventually([&] { return sh("sinfo -h -N -o %t | head -n 1").out == "drain\n"; }));
  EXPECT_THAT(sh("scontrol show node " + node).out, HasSubstr("State=IDLE+DRAIN "));
  EXPECT_EQ(sh("scontrol update nodename=" + node + " state=resume").exit, 0);
  ASSERT_TRUE(eventually([&] { return sh("sinfo -h -N -o %t | head -n 1").out == "idle\n"; }));
  EXPECT_THAT(sh("scontrol ping").out, HasSubstr("is UP"));
  EXPECT_EQ(sh("sshare -a -n -P > /dev/null; sprio -h").exit, 0);
}

}  // namespace
}  // namespace berth::test::slurm_idioms_tests
