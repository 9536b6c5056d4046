// `berth slurm capture` with commands that only play Slurm: what it writes, and what it says when Slurm
// does not answer, hides its nodes or keeps no accounts.
#include <ctime>
#include <filesystem>
#include <string>
#include <vector>

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "e2e/cli/program.h"

namespace berth::test {
namespace {

using testing::HasSubstr;

const std::time_t kHourAgo = std::time(nullptr) - 3600;

std::string slurm_time(std::time_t seconds) {
  return fmt::format("{:%Y-%m-%dT%H:%M:%S}", fmt::gmtime(seconds));
}

/// A folder with commands; what they answer can be replaced.
class PlayedSlurm {
 public:
  PlayedSlurm() {
    std::filesystem::create_directory(folder / "bin");
    folder.file("config",
                "Configuration data as of 2026-11-17T00:00:00\n"
                "AccountingStorageType   = accounting_storage/slurmdbd\n"
                "ClusterName             = lab\n"
                "SLURM_VERSION           = 24.11.5\n");
    folder.file("nodes",
                "NodeName=n1 CPUTot=32 AvailableFeatures=v100 ActiveFeatures=v100 Gres=gpu:v100:4 "
                "RealMemory=256000 Sockets=2 State=IDLE Partitions=main\n"
                "NodeName=n2 CPUTot=32 AvailableFeatures=v100 ActiveFeatures=v100 Gres=gpu:v100:4 "
                "RealMemory=256000 Sockets=2 State=IDLE Partitions=main\n");
    folder.file("partitions",
                "PartitionName=main Default=YES MaxTime=UNLIMITED Nodes=n[1-2] State=UP\n");
    folder.file("topology", "SwitchName=s1 Level=0 LinkSpeed=1 Nodes=n[1-2]\n");
    // 1 ran for 10 s at once, 2 waited 10 s for the GPUs of 1.
    folder.file(
        "sacct.rows",
        fmt::format("1|ann|lab|main|COMPLETED|{0}|{0}|{1}|10|30||cpu=1,gres/gpu=8|n[1-2]|1||a\n"
                    "2|bob|lab|main|FAILED|{0}|{1}|{2}|20|30||cpu=1,gres/gpu=4|n1|1||b\n",
                    kHourAgo, kHourAgo + 10, kHourAgo + 30));
    command("scontrol",
            "case \"$*\" in\n"
            "*version*|-V) echo slurm 24.11.5 ;;\n"
            "*config) cat config ;;\n*node) cat nodes ;;\n*partition) cat partitions ;;\n"
            "*topology) cat topology ;;\n*) exit 1 ;;\nesac");
    command("squeue",
            "echo 'slurm_load_jobs error: Unable to contact slurm controller' >&2; exit 1");
    // The mark stands behind every field of a row, as with --parsable.
    command("sacct",
            "for word; do case $word in --delimiter=*) mark=${word#*=} ;; esac; done\n"
            "sed \"s/|/$mark/g; s/\\$/${mark}1$mark/\" sacct.rows");
  }

  void command(const std::string& name, const std::string& script) const {
    const std::string path = folder.file(
        "bin/" + name, "#!/bin/sh\ncd " + folder.path() + " || exit 1\n" + script + "\n");
    std::filesystem::permissions(path, std::filesystem::perms::owner_all);
  }

  [[nodiscard]] Ran capture(std::vector<std::string> more = {"-o", "out"}) const {
    std::vector<std::string> words{"slurm",        "capture", "--commands",
                                   folder / "bin", "--days",  "3650"};
    words.insert(words.end(), more.begin(), more.end());
    return berth(folder, words);
  }

  TempFolder folder;
};

TEST(SlurmCapture, WritesWhatCheckAndCompareRead) {
  const PlayedSlurm slurm;
  const Ran done = slurm.capture();
  ASSERT_EQ(done.exit, 0) << done.err;
  EXPECT_THAT(done.err, HasSubstr("wrote out: 2 nodes with 8 GPUs, 2 jobs that ran, 0 that wait"));
  EXPECT_THAT(done.err, HasSubstr("squeue: "));  // it goes on without
  EXPECT_THAT(slurm.folder.read("out/cluster.yaml"), HasSubstr("nodes: \"n[1-2]\""));
  EXPECT_THAT(slurm.folder.read("out/cluster.yaml"), HasSubstr("rack: \"s1\""));
  EXPECT_FALSE(slurm.folder.has("out/waiting.csv"));
  EXPECT_THAT(slurm.folder.read("out/README.md"), HasSubstr("berth compare --trace out/trace.csv"));
  EXPECT_EQ(berth(slurm.folder, {"check", "out/cluster.yaml", "out/trace.csv"}).exit, 0);

  // JCT 10 and 30, waiting 0 and 10; 8 x 10 + 4 x 20 = 160 GPU-seconds of 8 x 30.
  const Ran compared =
      berth(slurm.folder, {"compare", "--trace", "out/trace.csv", "--cluster", "out/cluster.yaml",
                           "--policies", "fifo", "--baseline", "recorded", "--json"});
  ASSERT_EQ(compared.exit, 0) << compared.err;
  EXPECT_THAT(compared.out, HasSubstr("\"label\": \"as recorded\""));
  EXPECT_THAT(compared.out, HasSubstr("\"recorded\": true"));
  EXPECT_THAT(compared.out, HasSubstr("\"avg_jct\": 20"));
  EXPECT_THAT(compared.out, HasSubstr("\"avg_queue_time\": 5"));
  EXPECT_THAT(compared.out, HasSubstr("\"makespan\": 30"));
  EXPECT_THAT(compared.out, HasSubstr("\"gpu_utilization\": 0.6666666666666666"));
  EXPECT_THAT(compared.err, HasSubstr("as recorded is no simulation"));
  // On fewer GPUs than were held at once the rows do not compare.
  const Ran smaller = berth(slurm.folder, {"compare", "--trace", "out/trace.csv", "--cluster",
                                           "1x4", "--policies", "fifo"});
  EXPECT_THAT(smaller.out, HasSubstr("as recorded"));
}

TEST(SlurmCapture, AFolderWithFilesNeedsForce) {
  const PlayedSlurm slurm;
  std::filesystem::create_directory(slurm.folder / "out");
  ASSERT_EQ(slurm.capture().exit, 0);  // an empty one is as good as none
  EXPECT_EQ(slurm.capture().exit, 2);
  slurm.folder.file("out/waiting.csv", "of an earlier capture\n");
  slurm.folder.file("out/mine.txt", "kept\n");
  ASSERT_EQ(slurm.capture({"-o", "out", "--force"}).exit, 0);
  EXPECT_FALSE(slurm.folder.has("out/waiting.csv"));
  EXPECT_TRUE(slurm.folder.has("out/mine.txt"));
}

TEST(SlurmCapture, WhereNobodyKeepsAccountsTheFileOfJobcompIsRead) {
  const PlayedSlurm slurm;
  slurm.folder.file("config",
                    "SLURM_VERSION = 24.11.5\nAccountingStorageType = (null)\nJobCompType = "
                    "jobcomp/filetxt\nJobCompLoc = " +
                        slurm.folder / "jobcomp" + "\n");
  Ran done = slurm.capture();
  EXPECT_EQ(done.exit, 1);
  EXPECT_THAT(done.err, HasSubstr("keeps no accounting"));
  EXPECT_FALSE(slurm.folder.has("out"));
  slurm.folder.file(
      "jobcomp",
      fmt::format("JobId=3 UserId=ann(5) GroupId=ann(60) Name=x JobState=COMPLETED Partition=main "
                  "TimeLimit=30 StartTime={1} EndTime={2} NodeList=n1 NodeCnt=1 ProcCnt=1 "
                  "WorkDir=/tmp ReservationName= Tres=cpu=1,gres/gpu=2 Account=lab QOS=normal "
                  "WcKey= Cluster=c SubmitTime={0} EligibleTime={0}\n",
                  slurm_time(kHourAgo), slurm_time(kHourAgo + 10), slurm_time(kHourAgo + 20)));
  done = slurm.capture();
  ASSERT_EQ(done.exit, 0) << done.err;
  EXPECT_THAT(slurm.folder.read("out/trace.csv"), HasSubstr("\n3,"));
  EXPECT_THAT(slurm.folder.read("out/README.md"), HasSubstr("jobcomp"));
}

TEST(SlurmCapture, SaysWhatIsMissingAndWritesNothing) {
  const PlayedSlurm slurm;
  slurm.folder.file(
      "config", "SLURM_VERSION = 24.11.5\nAccountingStorageType = (null)\nJobCompType = (null)\n");
  EXPECT_THAT(slurm.capture().err, HasSubstr("JobCompType is"));
  slurm.command("scontrol", "echo 'slurm_load_node error: Access/permission denied' >&2; exit 1");
  EXPECT_EQ(slurm.capture().exit, 1);
  const Ran nothing =
      berth(slurm.folder, {"slurm", "capture", "-o", "out", "--commands", "nowhere"});
  EXPECT_EQ(nothing.exit, 1);
  EXPECT_THAT(nothing.err, HasSubstr("--commands DIR"));
  EXPECT_FALSE(slurm.folder.has("out"));
}

TEST(SlurmCapture, ACutAnswerOfSacctIsNoTrace) {
  const PlayedSlurm slurm;
  slurm.command("sacct", "printf '1<half'");
  const Ran done = slurm.capture();
  EXPECT_EQ(done.exit, 1);
  EXPECT_THAT(done.err, HasSubstr("not whole"));
  slurm.command("sacct", "echo 'sacct: error: slurm_persist_conn_open' >&2; exit 1");
  EXPECT_THAT(slurm.capture().err, HasSubstr("slurm_persist_conn_open"));
  EXPECT_FALSE(slurm.folder.has("out"));
}

TEST(SlurmCapture, MisuseIsToldAtOnce) {
  const TempFolder folder;
  const Ran done = berth(folder, {"slurm", "capture", "--days", "0"});
  EXPECT_EQ(done.exit, 2);
  EXPECT_THAT(done.err, HasSubstr("-o DIR"));
  EXPECT_THAT(done.err, HasSubstr("--days: '0'"));
  EXPECT_THAT(berth(folder, {"slurm", "captur"}).err, HasSubstr("capture"));
  EXPECT_EQ(berth(folder, {"slurm"}).exit, 2);
  EXPECT_THAT(berth(folder, {"slurm", "capture", "--dayz", "3"}).err, HasSubstr("--dayz"));
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"slurm", "capture", "--help"},
        std::vector<std::string>{"help", "slurm", "capture"}}) {
    const Ran help = berth(folder, words);
    EXPECT_EQ(help.exit, 0);
    EXPECT_THAT(help.out, HasSubstr("berth slurm capture -o lab"));
    EXPECT_THAT(help.out, HasSubstr("--anonymous"));
  }
  EXPECT_THAT(berth(folder, {"slurm", "--help"}).out, HasSubstr("berth slurm COMMAND"));
}

}  // namespace
}  // namespace berth::test
