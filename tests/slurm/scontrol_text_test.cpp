// What squeue and scontrol print: of three versions of Slurm, of hostile users, of a Slurm that was
// cut off, of one that is newer than us.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "project_paths.h"
#include "slurm/scontrol_text.h"
#include "slurm/squeue_text.h"
#include "support/squeue_row.h"

namespace berth::slurm {
namespace {

using test::SqueueRow;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

std::string sample(const std::string& version, const std::string& name) {
  const auto path = std::filesystem::path(BERTH_SHARED_DIR) / "slurm" / "samples" / version / name;
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// The blocks of `scontrol show` as the lines of `scontrol -o show`.
std::string as_one_line(const std::string& text) {
  std::string line;
  for (std::size_t at = 0; at < text.size(); ++at) {
    const bool is_break = text[at] == '\n' && at + 1 < text.size();
    line += is_break ? ' ' : text[at];
  }
  return line;
}

class Samples : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    if (sample(GetParam(), "scontrol_show_node.txt").empty())
      GTEST_SKIP() << "shared data is not here: ../shared/slurm/samples";
  }
};
INSTANTIATE_TEST_SUITE_P(OfEveryVersion, Samples, testing::Values("22.05", "24.11", "26.05"),
                         [](const auto& parameter) {
                           std::string name = parameter.param;
                           name[2] = '_';
                           return "Slurm" + name;
                         });

TEST_P(Samples, OfANode) {
  const auto nodes = parse_nodes(as_one_line(sample(GetParam(), "scontrol_show_node.txt")));
  ASSERT_TRUE(nodes) << nodes.error().text();
  ASSERT_EQ(nodes->size(), 1U);
  const Node& node = nodes->front();
  EXPECT_EQ(node.name, "n2");
  EXPECT_EQ(node.state, "MIXED");
  EXPECT_TRUE(node.is_usable());
  EXPECT_EQ(node.cpus, 32);
  EXPECT_EQ(node.cpus_held, 1);
  EXPECT_EQ(node.sockets, 2);
  EXPECT_EQ(node.memory_mib, 256'000);
  EXPECT_EQ(node.memory_held_mib, 1000);
  EXPECT_THAT(node.partitions, ElementsAre("main"));
  EXPECT_THAT(node.features, ElementsAre("v100"));
  EXPECT_THAT(node.gres, ElementsAre(GresCount{"gpu", "v100", 4}, GresCount{"shard", "v100", 16}));
  // 22.05 says 1 where 2 are held; its AllocTRES is right.
  EXPECT_THAT(node.gres_held,
              ElementsAre(GresCount{"gpu", "v100", 0}, GresCount{"shard", "v100", 2, {0}}));
}

TEST_P(Samples, OfTheTopology) {
  const auto switches = parse_topology(sample(GetParam(), "scontrol_show_topology.txt"));
  ASSERT_TRUE(switches) << switches.error().text();
  ASSERT_EQ(switches->size(), 3U);
  EXPECT_EQ((*switches)[0].name, "s1");
  EXPECT_THAT((*switches)[0].nodes, ElementsAre("n1", "n2"));
  EXPECT_EQ((*switches)[2].name, "core");
  EXPECT_EQ((*switches)[2].level, 1);
  EXPECT_THAT((*switches)[2].switches, ElementsAre("s1", "s2"));
  EXPECT_EQ((*switches)[2].nodes.size(), 4U);
}

TEST_P(Samples, OfWhatJobsHold) {
  const JobDetails details =
      parse_job_details(sample(GetParam(), "scontrol_show_job_oneliner.txt"));
  EXPECT_THAT(details.doubtful, IsEmpty());
  ASSERT_TRUE(details.held.contains(2));
  const auto& held = details.held.at(2);
  ASSERT_EQ(held.size(), 2U);
  EXPECT_EQ(held[0].node, "n3");
  EXPECT_EQ(held[1].node, "n4");
  for (const HeldNode& node : held) {
    EXPECT_THAT(node.gres, ElementsAre(GresCount{"gpu", "a100", 8, {0, 1, 2, 3, 4, 5, 6, 7}}));
    EXPECT_EQ(node.cpus, 8);
    EXPECT_EQ(node.memory_mib, 8000);
  }
  ASSERT_TRUE(details.held.contains(5));
  ASSERT_EQ(details.held.at(5).size(), 1U);
  const GresCount shards = details.held.at(5)[0].gres.at(0);
  EXPECT_EQ(shards.name, "shard");
  EXPECT_EQ(shards.count, 2);
  EXPECT_THAT(shards.indices, ElementsAre(0));
  EXPECT_THAT(details.held.at(6), IsEmpty());  // it waits
}

TEST(Scontrol, NodesOfAnAdminWhoWritesAnything) {
  const auto nodes = parse_nodes(
      "NodeName=n1 CPUTot=8 State=IDLE+DRAIN OS=Linux 6.1 #1 SMP  RealMemory=100 Reason=bad "
      "State=IDLE [root@2026-11-18T11:02:39]\n"
      "rest of the reason State=IDLE\n"
      "NodeName=n2 State=IDLE Weird NewKey=7 CPUTot=99999999999999999999\n");
  ASSERT_TRUE(nodes) << nodes.error().text();
  ASSERT_EQ(nodes->size(), 2U);
  EXPECT_EQ((*nodes)[0].state, "IDLE+DRAIN");
  EXPECT_EQ((*nodes)[0].memory_mib, 100);
  EXPECT_THAT((*nodes)[0].reason, HasSubstr("bad"));
  EXPECT_EQ((*nodes)[1].cpus, 0);  // absurd: not known
}

TEST(Scontrol, WhatIsCutOffIsAnError) {
  const auto nodes = parse_nodes("NodeName=n1 State=IDLE\nNodeName=n2 Sta");
  ASSERT_FALSE(nodes);
  EXPECT_THAT(nodes.error().text(), HasSubstr("cut off"));
  EXPECT_THAT(nodes.error().text(), HasSubstr("NodeName=n2 Sta"));
}

TEST(Scontrol, PartitionsHaveEveryKey) {
  const auto partitions = parse_partitions(
      "PartitionName=main AllowGroups=ALL Default=YES DefaultTime=NONE MaxTime=1-00:00:00 "
      "Nodes=n[1-4] PriorityTier=3 OverSubscribe=FORCE:4 State=UP TRES=cpu=128,mem=1000G\n"
      "PartitionName=old State=DOWN Nodes=(null) MaxTime=UNLIMITED DefaultTime=30:00\n");
  ASSERT_TRUE(partitions) << partitions.error().text();
  const Partition& main = partitions->at(0);
  EXPECT_TRUE(main.is_up && main.is_default && main.shares_nodes);
  EXPECT_EQ(main.nodes.size(), 4U);
  EXPECT_EQ(main.max_time, 86'400);
  EXPECT_EQ(main.default_time, 0);
  EXPECT_EQ(main.priority_tier, 3);
  EXPECT_EQ(main.all.at("TRES"), "cpu=128,mem=1000G");
  const Partition& old = partitions->at(1);
  EXPECT_FALSE(old.is_up || old.is_default || old.shares_nodes);
  EXPECT_EQ(old.max_time, 0);
  EXPECT_EQ(old.default_time, 1800);
}

TEST(Scontrol, ReservationsAndBlocksAndConfig) {
  const auto reservations = parse_reservations(
      "ReservationName=r1 StartTime=2026-11-18T12:00:00 EndTime=2026-11-18T13:00:00 Nodes=n[1-2] "
      "Flags=MAINT,SPEC_NODES Users=root,alice Accounts=(null) State=ACTIVE\n");
  ASSERT_TRUE(reservations) << reservations.error().text();
  EXPECT_EQ(reservations->at(0).ends - reservations->at(0).begins, 3600);
  EXPECT_THAT(reservations->at(0).users, ElementsAre("root", "alice"));
  EXPECT_TRUE(reservations->at(0).is_active);
  const auto none = parse_reservations("No reservations in the system\n");
  ASSERT_TRUE(none);
  EXPECT_THAT(*none, IsEmpty());

  const auto blocks = parse_topology("BlockName=b1 BlockIndex=0 Nodes=n[1-2] BlockSize=2\n");
  ASSERT_TRUE(blocks);
  EXPECT_EQ(blocks->at(0).name, "b1");

  const Config config = parse_config(
      "Configuration data as of 2026-11-18T10:58:49\n"
      "AuthInfo                = socket=/run/munge,cred_expire=5\n"
      "PrivateData             = none\nSLURM_VERSION           = 24.11.5\n"
      "\nCgroup Support Configuration:\nPrivateData = jobs\nJobSubmitPlugins = (null)\n");
  EXPECT_EQ(config.value("AuthInfo"), "socket=/run/munge,cred_expire=5");
  EXPECT_EQ(config.value("SLURM_VERSION"), "24.11.5");
  EXPECT_EQ(config.value("PrivateData"), "none");  // the first counts
  EXPECT_EQ(config.value("JobSubmitPlugins"), "");
  EXPECT_EQ(config.value("NoSuchKey"), "");
}

// Because a user who writes line breaks into a name could otherwise give away others' GPUs.
TEST(Scontrol, ALineThatLooksLikeAnotherJobMakesThatOneDoubtful) {
  const JobDetails details = parse_job_details(
      "JobId=1 JobName=evil\n"
      "JobId=2 JobName=x  Nodes=n9 CPU_IDs=0 Mem=1 GRES=gpu:8(IDX:0-7) MinCPUsNode=1\n"
      "JobId=2 JobName=good JOB_GRES=gpu:1  Nodes=n1 CPU_IDs=0 Mem=1 GRES=gpu:1(IDX:3) "
      "MinCPUsNode=1\n"
      "JobId=3 JobName=other JOB_GRES=gpu:1  Nodes=n1 CPU_IDs=1 Mem=1 GRES=gpu:1(IDX:2) "
      "MinCPUsNode=1 Comment= Nodes=n7 CPU_IDs=0 Mem=1 GRES=gpu:8(IDX:0-7)\n");
  EXPECT_THAT(details.doubtful, ElementsAre(2));
  EXPECT_FALSE(details.held.contains(2));
  EXPECT_EQ(details.held.at(3).size(), 1U);
  EXPECT_THAT(details.held.at(3)[0].gres[0].indices, ElementsAre(2));
  // Asked for alone, every line is its own.
  const auto alone = parse_one_job_detail(
      "JobId=2 JobName=a\nb JOB_GRES=gpu:1  Nodes=n1 CPU_IDs=0-1 Mem=5 GRES=gpu:1(IDX:3) "
      "MinCPUsNode=1\n");
  ASSERT_EQ(alone.size(), 1U);
  EXPECT_EQ(alone[0].cpus, 2);
}

TEST(Squeue, TellsEverythingOfARunningJob) {
  const SqueueForm form{.mark = "00ff"};
  const auto jobs = parse_squeue(SqueueRow{}
                                     .set("JobID", "2")
                                     .set("State", "RUNNING")
                                     .set("tres-per-node", "gres/gpu:a100:8")
                                     .set("tres-alloc", "cpu=16,mem=16000M,node=2,gres/gpu=16")
                                     .set("NumNodes", "2")
                                     .set("NodeList", "n[3-4]")
                                     .set("StartTime", "2026-11-17T03:58:40")
                                     .set("EndTime", "2026-11-17T04:28:40")
                                     .set("TimeLimit", "30:00")
                                     .set("PriorityLong", "4294901758")
                                     .set("Name", "bert")
                                     .text(form),
                                 form);
  ASSERT_TRUE(jobs) << jobs.error().text();
  ASSERT_EQ(jobs->size(), 1U);
  const Job& job = jobs->front();
  EXPECT_EQ(job.key.job, 2U);
  EXPECT_EQ(job.phase, JobPhase::Running);
  EXPECT_EQ(job.gpus(), 16);
  EXPECT_EQ(job.gpu_type(), "a100");
  EXPECT_EQ(job.held.size(), 2U);
  EXPECT_EQ(job.tres_held, job.tres_requested);
  EXPECT_EQ(job.memory_mib, 16'000);
  EXPECT_EQ(job.time_limit, 1800);
  EXPECT_EQ(job.ended, 0);  // squeue says when it would have to end
  EXPECT_EQ(job.priority, 4'294'901'758U);
  EXPECT_EQ(job.name, "bert");
  EXPECT_EQ(job.array, 0U);
}

TEST(Squeue, KnowsEveryState) {
  const SqueueForm form{.mark = "00ff"};
  const auto phase = [&](const char* word) {
    const auto jobs = parse_squeue(SqueueRow{}.set("State", word).text(form), form);
    EXPECT_TRUE(jobs) << jobs.error().text();
    return jobs ? jobs->front() : Job{};
  };
  EXPECT_EQ(phase("PENDING").phase, JobPhase::Pending);
  EXPECT_EQ(phase("TIMEOUT").phase, JobPhase::TimedOut);
  EXPECT_EQ(phase("OUT_OF_MEMORY").phase, JobPhase::OutOfMemory);
  EXPECT_EQ(phase("SPECIAL_EXIT").phase, JobPhase::Pending);
  EXPECT_TRUE(phase("COMPLETING").completing);
  EXPECT_TRUE(phase("CONFIGURING").configuring);
  EXPECT_EQ(phase("QUANTUM_TUNNELLING").phase, JobPhase::Unknown);
  EXPECT_FALSE(is_over(JobPhase::Unknown));
}

TEST(Squeue, ArraysThatWaitTogetherAndTasksThatRun) {
  const SqueueForm form{.mark = "00ff"};
  const auto jobs = parse_squeue(
      SqueueRow{}.set("JobID", "8").set("ArrayJobID", "7").set("ArrayTaskID", "1").text(form) +
          SqueueRow{}
              .set("JobID", "7")
              .set("ArrayJobID", "7")
              .set("ArrayTaskID", "2-4%2")
              .text(form),
      form);
  ASSERT_TRUE(jobs) << jobs.error().text();
  ASSERT_EQ(jobs->size(), 2U);
  EXPECT_EQ(jobs->at(0).key.job, 7U);  // in the order of their ids
  EXPECT_EQ(jobs->at(0).array_tasks, "2-4%2");
  EXPECT_EQ(jobs->at(1).array, 7U);
  EXPECT_EQ(jobs->at(1).array_tasks, "1");
}

// Because users name their jobs, and one who knows the form could write a whole row.
TEST(Squeue, NoNameCanPassForAnotherJob) {
  const SqueueForm form{.mark = "5eed00000000cafe"};
  const SqueueForm guessed{.mark = "5eed00000000beef"};
  const std::string forged = SqueueRow{}.set("JobID", "99").text(guessed);
  for (const std::string& name :
       {forged, std::string("a\x1e\nb"), std::string("\x1f\x1f\x1f"), std::string("JobId=9 a|b\tc"),
        std::string("\xff\xfe\x80"), std::string(), std::string("(null)"),
        std::string(100'000, 'x')}) {
    const auto jobs = parse_squeue(
        SqueueRow{}.set("JobID", "1").set("Name", name).set("Comment", name).text(form) +
            SqueueRow{}.set("JobID", "2").text(form),
        form);
    ASSERT_TRUE(jobs) << jobs.error().text();
    ASSERT_EQ(jobs->size(), 2U);
    EXPECT_EQ(jobs->at(0).name, name);
    EXPECT_EQ(jobs->at(1).key.job, 2U);
  }
}

// Because a job that is missing in a reading would look as if it had ended.
TEST(Squeue, AReadingThatIsNotWholeIsAnError) {
  const SqueueForm form{.mark = "00ff"};
  const std::string whole =
      SqueueRow{}.set("JobID", "1").text(form) + SqueueRow{}.set("JobID", "2").text(form);
  ASSERT_TRUE(parse_squeue(whole, form));
  for (std::size_t length = 1; length < whole.size(); ++length) {
    const auto jobs = parse_squeue(std::string_view(whole).substr(0, length), form);
    if (jobs) {
      EXPECT_EQ(jobs->size(), 1U) << length;  // only between two rows
      EXPECT_EQ(length, whole.size() / 2) << length;
    }
  }
  EXPECT_TRUE(parse_squeue("", form)->empty());
}

TEST(Squeue, SaysWhatANewerOneSaysOtherwise) {
  const SqueueForm form{.mark = "00ff"};
  const auto fewer = parse_squeue(SqueueRow{}.without("Requeue").text(form), form);
  ASSERT_FALSE(fewer);
  EXPECT_THAT(fewer.error().text(), HasSubstr("columns where"));
  const auto odd = parse_squeue(SqueueRow{}.set("SubmitTime", "yesterday").text(form), form);
  ASSERT_FALSE(odd);
  EXPECT_THAT(odd.error().text(), HasSubstr("SubmitTime 'yesterday'"));
  const auto no_id = parse_squeue(SqueueRow{}.set("JobID", "99999999999").text(form), form);
  ASSERT_FALSE(no_id);
  EXPECT_THAT(no_id.error().text(), HasSubstr("JobID"));
  const auto absurd = parse_squeue(SqueueRow{}
                                       .set("NumCPUs", "99999999999999999999")
                                       .set("NumNodes", "-3")
                                       .set("RestartCnt", "x")
                                       .text(form),
                                   form);
  ASSERT_TRUE(absurd) << absurd.error().text();
  EXPECT_EQ(absurd->front().cpus, 0);
  EXPECT_EQ(absurd->front().min_nodes, 1);
}

TEST(Squeue, WhoWantsItsNodesAloneIsToldInTwoWays) {
  const SqueueColumns newer = columns_by_help("EndTime  ExcNodes   Exclusive   exit_code \n");
  EXPECT_TRUE(newer.has_exclusive && newer.has_excluded_nodes);
  const SqueueColumns older = columns_by_help("EndTime  ExcNodes   exit_code \n");
  EXPECT_TRUE(!older.has_exclusive && older.has_excluded_nodes);
  const auto is_alone = [](const SqueueColumns& columns, const char* word) {
    const SqueueForm form{.mark = "00ff", .columns = columns};
    const auto jobs = parse_squeue(
        SqueueRow{}.set(columns.has_exclusive ? "Exclusive" : "OverSubscribe", word).text(form),
        form);
    EXPECT_TRUE(jobs) << jobs.error().text();
    return jobs && jobs->front().exclusive;
  };
  EXPECT_TRUE(is_alone(older, "NO"));
  EXPECT_FALSE(is_alone(older, "OK"));
  EXPECT_FALSE(is_alone(newer, "NO"));
  EXPECT_TRUE(is_alone(newer, "NODE"));
}

TEST(Squeue, ExcludedNodesAreAskedForApartWhereThereIsNoColumn) {
  const SqueueForm form{.mark = "00ff", .columns = kOldColumns};
  EXPECT_THAT(squeue_format(form), testing::Not(HasSubstr("ExcNodes")));
  ASSERT_TRUE(parse_squeue(SqueueRow{}.text(form), form));
  const auto excluded = parse_excluded(
      "7\x1fn[1-2]\x1e"
      "00ff\n8\x1f\x1e"
      "00ff\n",
      "00ff");
  ASSERT_TRUE(excluded) << excluded.error().text();
  EXPECT_EQ(excluded->size(), 1U);
  EXPECT_THAT(excluded->at(7), ElementsAre("n1", "n2"));
  EXPECT_FALSE(
      parse_excluded("7\x1fn[1-2]\x1e"
                     "00",
                     "00ff"));
}

TEST(Squeue, ExitsAreToldInTwoWays) {
  const SqueueForm form{.mark = "00ff"};
  const auto exit = [&](const char* text) {
    const auto jobs =
        parse_squeue(SqueueRow{}.set("State", "FAILED").set("exit_code", text).text(form), form);
    EXPECT_TRUE(jobs) << jobs.error().text();
    return std::pair(jobs->front().exit_code, jobs->front().signal);
  };
  EXPECT_EQ(exit("3:0"), std::pair(3, 0));
  EXPECT_EQ(exit("0:9"), std::pair(0, 9));
  EXPECT_EQ(exit("768"), std::pair(3, 0));  // 22.05: 3 * 256
  EXPECT_EQ(exit("9"), std::pair(0, 9));
}

}  // namespace
}  // namespace berth::slurm
