// The program under Slurm's names.
#include <ctime>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "client/played_scheduler.h"
#include "project_paths.h"

namespace berth::test::slurm_names_tests {
namespace {

using nlohmann::json;
using testing::HasSubstr;

TEST(Sbatch, SubmitsAnUnchangedScript) {
  PlayedScheduler scheduler;
  scheduler.folder().file(
      "train.sh",
      "#!/bin/bash\n#SBATCH -J resnet\n#SBATCH -p gpu --gres=gpu:a100:2\n#SBATCH -t 0-04:00\n"
      "#SBATCH -c 8 --mem=32G -o logs/%x-%j.out\n\npython train.py \"$@\"\n");
  const Ran ran = scheduler.sh("sbatch --export=NONE --time=60 train.sh --lr 0.1");
  EXPECT_EQ(ran.exit, 0) << ran.err;
  EXPECT_EQ(ran.out, "Submitted batch job 100\n");
  EXPECT_EQ(ran.err, "");
  json sent = scheduler.sent("POST", "/api/v1/jobs");
  sent.erase("script");
  sent.erase("key");
  sent.erase("submit_host");
  EXPECT_EQ(sent, (json{{"command", {"--lr", "0.1"}},
                        {"cpus", 8},
                        {"env",
                         {{"SLURM_CPUS_PER_TASK", "8"},
                          {"SLURM_EXPORT_ENV", "NONE"},
                          {"SLURM_TRES_PER_TASK", "cpu=8"},
                          {"BERTH_SCRIPT", scheduler.folder() / "train.sh"}}},
                        {"gpu_type", "a100"},
                        {"gpus", 2},
                        {"memory_mib", 32'768},
                        {"name", "resnet"},
                        {"output", "logs/%x-%j.out"},
                        {"queue", "gpu"},
                        {"time_limit", 3'600},
                        {"workdir", scheduler.folder().path()}}));
}

TEST(Sbatch, WrapsParsesAndReadsStandardInput) {
  PlayedScheduler scheduler;
  EXPECT_EQ(scheduler.sh("sbatch --parsable --wrap 'echo $HOME'").out, "100\n");
  json sent = scheduler.sent("POST", "/api/v1/jobs");
  EXPECT_EQ(sent["script"], "#!/bin/sh\necho $HOME\n");
  EXPECT_EQ(sent["name"], "wrap");
  EXPECT_EQ(sent["gpus"], 0);  // as under Slurm: it names none
  EXPECT_EQ(sent["cpus"], 1);
  EXPECT_EQ(scheduler.sh("printf '#!/bin/sh\\n#SBATCH -n 3\\n' | sbatch").out,
            "Submitted batch job 101\n");
  EXPECT_EQ(scheduler.sent("POST", "/api/v1/jobs")["cpus"], 3);
  EXPECT_EQ(
      scheduler.sh("SBATCH_PARTITION=night SBATCH_TIMELIMIT=5 sbatch -p day --wrap true").exit, 0);
  sent = scheduler.sent("POST", "/api/v1/jobs");
  EXPECT_EQ(sent["queue"], "day");  // the command line wins over the environment
  EXPECT_EQ(sent["time_limit"], 300);
}

TEST(Sbatch, ComplainsUnderItsName) {
  PlayedScheduler scheduler;
  Ran ran = scheduler.sh("sbatch --timme=3 x.sh");
  EXPECT_EQ(ran.exit, 2);
  EXPECT_THAT(ran.err, HasSubstr("sbatch: no option is called '--timme' (did you mean --time"));
  ran = scheduler.sh("sbatch missing.sh");
  EXPECT_EQ(ran.exit, 2);
  EXPECT_THAT(ran.err, HasSubstr("sbatch: missing.sh: no such script"));
  EXPECT_THAT(scheduler.sh("sbatch --wrap true x.sh").err, HasSubstr("either --wrap or a script"));
  EXPECT_THAT(scheduler.sh("SBATCH_GPUS=x sbatch --wrap true").err,
              HasSubstr("SBATCH_GPUS: --gpus: 'x'"));
}

/// What docs/live.md tells an admin to type, below the folder's `root` instead of /.
std::string install_commands() {
  std::ifstream guide(BERTH_SOURCE_DIR "/docs/live.md");
  std::string commands = "set -e\n";
  for (std::string line; std::getline(guide, line);) {
    const bool installs =
        line.starts_with("    sudo install ") || line.starts_with("    for name in ");
    const bool is_link = line.starts_with("      sudo ln ") || line == "    done";
    if (installs || is_link) commands += line + "\n";
  }
  const auto replace_all = [&](const std::string& old, const std::string& by) {
    for (auto at = commands.find(old); at != std::string::npos;
         at = commands.find(old, at + by.size()))
      commands.replace(at, old.size(), by);
  };
  replace_all("sudo ", "");
  replace_all(" /usr/", " root/usr/");
  replace_all(" /etc/", " root/etc/");
  replace_all("build/release/src/apps/", "\"$(dirname \"$(readlink -f \"$BERTH\")\")\"/");
  replace_all(" dist/", " " BERTH_SOURCE_DIR "/dist/");
  return commands;
}

// In /usr/bin a package of Slurm's own would replace the names.
TEST(SlurmNames, AreInstalledInAFolderOfTheirOwn) {
  PlayedScheduler scheduler;
  const std::string commands = install_commands();
  Ran ran = scheduler.sh(commands);
  ASSERT_EQ(ran.exit, 0) << commands << ran.err;
  EXPECT_EQ(scheduler.sh("ls root/usr/bin").out, "berth\n");
  EXPECT_EQ(scheduler.sh("ls root/usr/libexec/berth/slurm-names").out,
            "sacct\nsalloc\nsattach\nsbatch\nscancel\nscontrol\nseff\nsinfo\nsprio\nsqueue\nsrun\n"
            "sshare\nsstat\n");
  // A Slurm beside it, and a login shell that reads what was put into /etc/profile.d.
  const std::string slurm =
      "mkdir slurm; for n in sbatch squeue scancel sinfo; do printf '#!/bin/sh\\necho Slurm\\n' > "
      "slurm/$n; chmod +x slurm/$n; done; PATH=$PWD/slurm:/usr/bin:/bin; "
      "sed \"s|/usr/libexec|$PWD/root/usr/libexec|g\" root/etc/profile.d/*.sh > profile.sh; "
      ". ./profile.sh; . ./profile.sh; ";
  ran = scheduler.sh(slurm +
                     "echo $PATH; sbatch --gpus=1 --wrap true; squeue -h | head -n 1; "
                     "sinfo -h | head -n 1; scancel 12; echo $?");
  EXPECT_THAT(ran.out, testing::MatchesRegex(
                           "[^\n]*/root/usr/libexec/berth/slurm-names:[^\n]*/slurm:/usr/bin:/bin\n"
                           "Submitted batch job 100\n[^\n]*100 [^\n]*\n(gpu|day)[^\n]*\n0\n"))
      << ran.err;
}

TEST(Squeue, HasTheColumnsThatScriptsKnow) {
  PlayedScheduler scheduler;
  const Ran ran = scheduler.sh("squeue");
  EXPECT_EQ(ran.exit, 0) << ran.err;
  EXPECT_EQ(ran.out,
            "             JOBID PARTITION     NAME     USER ST       TIME  NODES NODELIST(REASON)\n"
            "                13       gpu      big      bob PD       0:00      1 (Resources)\n"
            "                14       gpu    later      ann PD       0:00      1 (JobHeldUser)\n"
            "     20_[0,5,10%2]       gpu    sweep      bob PD       0:00      1 (Priority)\n"
            "                12       gpu    train      ann  R       1:05      1 n1\n");
}

TEST(Squeue, FoldsTheWaitingOfAnArrayUnlessToldNotTo) {
  PlayedScheduler scheduler;
  EXPECT_EQ(scheduler.sh("squeue -h -j 20 -o '%i %F %K %A'").out, "20_[0,5,10%2] 20 0,5,10%2 20\n");
  EXPECT_EQ(scheduler.sh("squeue -h -r -j 20 -o '%i %r'").out,
            "20_0 Priority\n20_5 Priority\n20_10 Priority\n");
  // What waits for another reason, runs, or has run before has its own line.
  scheduler.set_job({{"number", 20}, {"state", "running"}, {"reason_code", ""}});
  EXPECT_EQ(scheduler.sh("squeue -h -j 20 -o '%i %t'").out, "20_[5,10%2] PD\n20_0 R\n");
  scheduler.set_job({{"number", 21}, {"state", "blocked"}, {"reason_code", "array-limit"}});
  EXPECT_EQ(scheduler.sh("squeue -h -j 20 -o '%i %r'").out,
            "20_[5%2] JobArrayTaskLimit\n20_[10%2] Priority\n20_0 None\n");
  scheduler.set_job({{"number", 22}, {"attempts", 1}});
  EXPECT_EQ(scheduler.sh("squeue -h -j 20 -o %i").out, "20_[5%2]\n20_10\n20_0\n");
}

TEST(Squeue, SaysWhyInTheWordsThatScriptsKnow) {
  PlayedScheduler scheduler;
  const auto word = [&](const char* code) {
    scheduler.set_job({{"number", 13}, {"reason_code", code}});
    return scheduler.sh("squeue -h -j 13 -o %r").out;
  };
  EXPECT_EQ(word("dependency"), "Dependency\n");
  EXPECT_EQ(word("begin-time"), "BeginTime\n");
  EXPECT_EQ(word("held-by-admin"), "JobHeldAdmin\n");
  EXPECT_EQ(word("user-gpus"), "QOSMaxGRESPerUser\n");
  EXPECT_EQ(word("group-jobs"), "AssocGrpJobsLimit\n");
  EXPECT_EQ(word("of-the-future"), "Priority\n");
  EXPECT_EQ(scheduler.sh("squeue -h -t all -j 9 -o %r").out, "NonZeroExitCode\n");
  EXPECT_EQ(scheduler.sh("squeue -h -j 12 -o %r").out, "None\n");
}

TEST(Squeue, TakesTheUsualOptions) {
  PlayedScheduler scheduler;
  EXPECT_EQ(scheduler.sh("squeue -h -u ann -o '%i|%T|%l|%b'").out,
            "14|PENDING|UNLIMITED|gres/gpu:1\n12|RUNNING|2:00:00|gres/gpu:2\n");
  EXPECT_EQ(scheduler.sh("squeue -h -j 12 -o %t").out, "R\n");
  EXPECT_EQ(scheduler.sh("squeue -h -t all -j 9 -o %t").out, "F\n");
  const Ran over = scheduler.sh("squeue -h -j 9 -o %t");  // it is over: scripts wait for silence
  EXPECT_EQ(over.out, "");
  EXPECT_EQ(over.exit, 0);
  EXPECT_EQ(scheduler.sh("squeue -h -r -j 20 -o %A").out, "20\n21\n22\n");  // all of the array
  EXPECT_EQ(scheduler.sh("squeue -h -r -t PD,R -O jobid:6,state:.8").out,
            "13     PENDING\n14     PENDING\n20     PENDING\n21     PENDING\n22     PENDING\n"
            "12     RUNNING\n");
  EXPECT_EQ(scheduler.server().asked("GET", "/api/v1/jobs").back().parameter("state"),
            "held,blocked,pending,starting,running");
  EXPECT_EQ(scheduler.sh("squeue -h -t all -u ann -o %i").out, "14\n12\n");  // 9 ended long ago
  scheduler.set_job({{"number", 9}, {"ended", (std::time(nullptr) - 200) * 1'000'000}});
  EXPECT_EQ(scheduler.sh("squeue -h -t all -u ann -o '%i %t'").out, "14 PD\n12 R\n9 F\n");
  EXPECT_EQ(scheduler.sh("squeue -h -t F,CD -o '%i %t'").out, "9 F\n");
  EXPECT_EQ(scheduler.sh("squeue -h -n train,later -o %i").out, "14\n12\n");
  EXPECT_EQ(scheduler.sh("squeue -h -r -S -i -o %A | head -2").out, "22\n21\n");
  EXPECT_EQ(scheduler.sh("squeue --me -h -o %i").out, "14\n12\n");
  EXPECT_THAT(scheduler.sh("squeue -l").out, HasSubstr("STATE       TIME TIME_LIMI  NODES"));
  EXPECT_EQ(json::parse(scheduler.sh("squeue --json -u ann").out)["jobs"].size(), 2U);
  EXPECT_EQ(scheduler.sh("squeue -o '%!'").exit, 2);
  EXPECT_EQ(scheduler.sh("squeue -t sleeping").exit, 2);
  EXPECT_EQ(scheduler.sh("squeue 12").exit, 2);
  const Ran unknown = scheduler.sh("squeue -h -j 4711");  // what scripts that poll wait for
  EXPECT_EQ(unknown.exit, 1);
  EXPECT_EQ(unknown.err, "squeue: slurm_load_jobs error: Invalid job id specified\n");
  EXPECT_EQ(scheduler.sh("squeue -h -j 12,4711 -o %i").out, "12\n");
}

TEST(Sbatch, SaysItsUsageInAParagraph) {
  PlayedScheduler scheduler;
  const Ran ran = scheduler.sh("sbatch --usage");
  EXPECT_EQ(ran.exit, 0) << ran.err;
  EXPECT_TRUE(ran.out.starts_with("Usage: sbatch [--")) << ran.out;
  EXPECT_THAT(ran.out, HasSubstr("[--signal=[B:]SIG[@SECONDS]]"));
  EXPECT_TRUE(ran.out.ends_with("[SCRIPT [ARGS…]]\n")) << ran.out;
}

TEST(Scancel, NamesJobsArraysAndFilters) {
  PlayedScheduler scheduler;
  constexpr auto kActions = "/api/v1/jobs/actions";
  const Ran ran = scheduler.sh("scancel 12 20_[5,10]");
  EXPECT_EQ(ran.exit, 0) << ran.err;
  EXPECT_EQ(ran.out + ran.err, "");  // silent, as people expect
  EXPECT_EQ(scheduler.sent("POST", kActions), json::parse(R"({"verb":"cancel","ids":[12,21,22]})"));
  EXPECT_EQ(scheduler.sh("scancel 20").exit, 0);
  EXPECT_EQ(scheduler.sent("POST", kActions)["ids"],
            (json{20, 21, 22}));  // the number of an array is all of it
  EXPECT_EQ(scheduler.sh("scancel -u bob -t PENDING -n big").exit, 0);
  EXPECT_EQ(
      scheduler.sent("POST", kActions),
      json::parse(
          R"({"verb":"cancel","user":"bob","name":"big","state":["held","blocked","pending"]})"));
  EXPECT_EQ(scheduler.sh("scancel -s USR1 12").exit, 0);
  EXPECT_EQ(scheduler.sent("POST", kActions),
            json::parse(R"({"verb":"signal","ids":[12],"signal":10})"));
  Ran over = scheduler.sh("scancel 9");  // it is gone, which is what was wanted
  EXPECT_EQ(over.exit, 0);
  EXPECT_EQ(over.err, "");
  over = scheduler.sh("scancel -v 9");
  EXPECT_EQ(over.exit, 0);
  EXPECT_EQ(over.err, "scancel: error: job 9: it is over\n");
  scheduler.first = [](const Asked& asked) -> Told {
    if (asked.path() != kActions) return {.status = 0};
    return {.body = R"({"results":[{"job":9,"done":false,"text":"job 9 is not yours"}]})"};
  };
  EXPECT_EQ(scheduler.sh("scancel 9").err, "scancel: error: job 9 is not yours\n");
  EXPECT_EQ(scheduler.sh("scancel").exit, 2);
  EXPECT_EQ(scheduler.sh("scancel x").exit, 2);
}

TEST(Sinfo, GroupsNodesByState) {
  PlayedScheduler scheduler;
  const Ran ran = scheduler.sh("sinfo");
  EXPECT_EQ(ran.exit, 0) << ran.err;
  EXPECT_EQ(ran.out,
            "PARTITION AVAIL  TIMELIMIT  NODES  STATE NODELIST\n"
            "gpu*         up   infinite      1    mix n1\n"
            "gpu*         up   infinite      1   idle n2\n"
            "gpu*         up   infinite      1  drain n3\n"
            "day          up 1-00:00:00      1    mix n1\n"
            "day          up 1-00:00:00      1   idle n2\n"
            "day          up 1-00:00:00      1  drain n3\n");
  EXPECT_EQ(scheduler.sh("sinfo -N -h -p day").out,
            "n1             1       day mix\n"
            "n2             1       day idle\n"
            "n3             1       day drain\n");
  EXPECT_EQ(scheduler.sh("sinfo -h -p night").out, "");
  EXPECT_EQ(scheduler.sh("sinfo -h -o '%G %D %N'").out, "gpu:a100:4 2 n[1-2]\ngpu:v100:4 1 n3\n");
  EXPECT_EQ(scheduler.sh("sinfo -h -t idle -o %n").out, "n2\n");
  EXPECT_EQ(scheduler.sh("sinfo -R -h").out,
            "new fan              Unknown   Unknown             n3\n");
  EXPECT_EQ(scheduler.sh("sinfo -h -o %C").out, "8/24/16/48\n");
  EXPECT_EQ(scheduler.sh("sinfo -h -s -o '%P %F %N'").out,
            scheduler.sh("sinfo -h -o '%P %F %N'").out);
  EXPECT_EQ(scheduler.sh("sinfo -h -o '%F %N'").out, "1/1/1/3 n[1-3]\n");
  EXPECT_THAT(scheduler.sh("sinfo -s").out,
              HasSubstr("PARTITION AVAIL  TIMELIMIT   NODES(A/I/O/T) NODELIST\n"));
}

}  // namespace
}  // namespace berth::test::slurm_names_tests
