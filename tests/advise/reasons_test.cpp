// Slurm's words for why a job waits, each family with its numbers.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <algorithm>

#include "advise/job_views.h"
#include "advise/limits.h"
#include "advise/reasons.h"
#include "advise/slurm_why.h"
#include "seen_slurm.h"

namespace berth::advise {
namespace {

using test::SeenSlurm;
using testing::Contains;
using testing::HasSubstr;

class SlurmWhy : public testing::Test {
 protected:
  SlurmWhy() { slurm.add_nodes(4, "a100", 8); }

  [[nodiscard]] Sight sight() const {
    Sight seen;
    seen.at = SeenSlurm::kNow * kMicro;
    std::vector<slurm::Job> jobs = slurm.its_jobs;  // by id, as the poller leaves them
    std::ranges::stable_sort(jobs, {}, [](const slurm::Job& job) { return job.key.job; });
    seen.jobs = std::make_shared<const std::vector<slurm::Job>>(std::move(jobs));
    seen.nodes = std::make_shared<const std::vector<slurm::Node>>(slurm.its_nodes);
    seen.partitions = slurm.its_partitions;
    seen.reservations = slurm.its_reservations;
    seen.config = slurm.its_config;
    return seen;
  }
  [[nodiscard]] Why why(std::uint32_t id, const std::string& limits = {}, bool all = true) const {
    const Sight seen = sight();
    return explain_slurm({.sight = seen,
                          .job = *find_job(seen, id).job,
                          .wall = SeenSlurm::kNow * kMicro,
                          .may_see_all = all,
                          .limits = limits});
  }
  static std::int64_t number(const WhyReason& reason, const std::string& key) {
    for (const auto& [name, value] : reason.numbers)
      if (name == key) return std::get<std::int64_t>(value);
    ADD_FAILURE() << "no number " << key;
    return -1;
  }

  SeenSlurm slurm;
};

TEST_F(SlurmWhy, PriorityNamesThoseBeforeItAndTheirPriorities) {
  slurm.wait(10, 8, "Resources").user = "nobody";
  slurm.wait(11, 4, "Priority");
  slurm.wait(12, 1, "Priority");
  slurm.wait(13, 1, "JobHeldUser").priority = 5'000;  // held: before nobody
  const Why told = why(12);
  const WhyReason& reason = told.reasons.front();
  EXPECT_EQ(reason.kind, "priority");
  EXPECT_THAT(told.summary, HasSubstr("Slurm says Priority: 2 jobs of higher priority"));
  EXPECT_EQ(number(reason, "before_it"), 2);
  EXPECT_EQ(number(reason, "gpus_before_it"), 12);
  EXPECT_EQ(number(reason, "priority"), 988);
  EXPECT_EQ(number(reason, "highest_priority"), 990);
  EXPECT_THAT(reason.entities, Contains("job 10 (nobody, 8 GPUs, priority 990)"));
  EXPECT_EQ(told.place, 3U);
}

TEST_F(SlurmWhy, JobsOfOthersAreCountedButNotNamedWhereTheyAreHidden) {
  slurm.wait(10, 8, "Resources").user = "nobody";
  slurm.wait(12, 1, "Priority");
  const WhyReason reason = why(12, {}, false).reasons.front();
  EXPECT_THAT(reason.entities, testing::ElementsAre("1 job of other users"));
  EXPECT_THAT(reason.text, testing::Not(HasSubstr("nobody")));
}

TEST_F(SlurmWhy, ResourcesTellWhatIsFreeAndWhatLacks) {
  for (std::uint32_t i = 1; i <= 4; ++i) slurm.run(i, 7, "n" + std::to_string(i));
  slurm.wait(10, 8, "Resources");
  const Why told = why(10);
  EXPECT_EQ(told.reasons.front().kind, "resources");
  EXPECT_THAT(told.summary, HasSubstr("4 of 32 GPUs are free"));
  EXPECT_EQ(number(told.reasons.front(), "gpus_free"), 4);
  // Each runs since a minute of an hour.
  ASSERT_EQ(told.reasons.size(), 2U);
  EXPECT_THAT(told.reasons[1].text, HasSubstr("ends in at most 59.0 min and gives back 7 a100"));
}

TEST_F(SlurmWhy, EnoughGpusThatAreSpreadAreAProblemOfShape) {
  for (std::uint32_t i = 1; i <= 4; ++i) slurm.run(i, 5, "n" + std::to_string(i));
  slurm.wait(10, 8, "Resources");
  const WhyReason reason = why(10).reasons.front();
  EXPECT_EQ(reason.kind, "shape");
  EXPECT_THAT(reason.text,
              HasSubstr("12 GPUs are free but spread over 4 nodes, at most 3 together"));
}

TEST_F(SlurmWhy, GpusWithoutCoresBesideThemAreToldSo) {
  for (slurm::Node& node : slurm.its_nodes) node.cpus_held = 31;
  slurm.wait(10, 2, "Resources").cpus = 4;
  const WhyReason reason = why(10).reasons.front();
  EXPECT_EQ(reason.kind, "side resource");
  EXPECT_THAT(reason.text, HasSubstr("n1 has 8 GPUs free but only 1 of 4 cores"));
  EXPECT_EQ(number(reason, "cores_needed"), 4);
}

TEST_F(SlurmWhy, NodesOutOfServiceAreNamedWithTheirReason) {
  slurm.its_nodes[0].state = "DOWN";
  slurm.its_nodes[0].reason = "fan is loud";
  for (std::uint32_t i = 2; i <= 4; ++i) slurm.run(i, 8, "n" + std::to_string(i));
  slurm.wait(10, 8, "Resources");
  const Why told = why(10);
  ASSERT_GE(told.reasons.size(), 2U);
  EXPECT_EQ(told.reasons[1].kind, "node state");
  EXPECT_THAT(told.reasons[1].entities, Contains("n1: DOWN (fan is loud)"));
  EXPECT_EQ(told.reasons[1].fix, "scontrol update NodeName=n1 State=RESUME");
}

TEST_F(SlurmWhy, AJobWithoutAReasonThatFitsIsToldSo) {
  slurm.wait(10, 8, "None");
  EXPECT_THAT(why(10).summary, HasSubstr("there is room: 8 of 8 GPUs free on n1"));
}

TEST_F(SlurmWhy, RequiredNodesThatAreNotAvailable) {
  slurm.its_nodes[2].state = "IDLE+DRAIN";
  slurm.its_nodes[2].reason = "dust";
  slurm.wait(10, 1, "ReqNodeNotAvail, UnavailableNodes:n3").required_nodes = {"n3"};
  const WhyReason reason = why(10).reasons.front();
  EXPECT_EQ(reason.kind, "node state");
  EXPECT_THAT(reason.text, HasSubstr("n3: IDLE+DRAIN (dust)"));
  EXPECT_EQ(number(reason, "out_of_service"), 1);
  EXPECT_EQ(reason.who, "operator");
}

TEST_F(SlurmWhy, AReservationThatComesBeforeItsEndKeepsItOffNodes) {
  slurm.its_reservations.push_back({.name = "service",
                                    .begins = SeenSlurm::kNow + 600,
                                    .ends = SeenSlurm::kNow + 4'200,
                                    .nodes = {"n1", "n2", "n3", "n4"}});
  slurm.wait(10, 1, "ReqNodeNotAvail, Reserved for maintenance");
  const Why told = why(10);
  EXPECT_THAT(told.reasons.back().text,
              HasSubstr("reservation service has n[1-4] in 10.0 min, before it would end"));
}

TEST_F(SlurmWhy, ItsOwnReservationHasNotBegun) {
  slurm.its_reservations.push_back({.name = "course",
                                    .begins = SeenSlurm::kNow + 7'200,
                                    .ends = SeenSlurm::kNow + 9'000,
                                    .nodes = {"n1"}});
  slurm.wait(10, 1, "Reservation").reservation = "course";
  const WhyReason reason = why(10).reasons.front();
  EXPECT_EQ(reason.text, "its reservation course begins in 2.0 h");
  EXPECT_EQ(reason.until, (SeenSlurm::kNow + 7'200) * kMicro);
}

TEST_F(SlurmWhy, DependenciesAreToldWithTheStateOfEachJob) {
  slurm.run(3, 1, "n1");
  slurm.wait(10, 1, "Dependency").dependency = "afterok:3(unfulfilled),afterany:77(unfulfilled)";
  const WhyReason reason = why(10).reasons.front();
  EXPECT_EQ(reason.text,
            "waits for job 3 (running) to complete and job 77 (no longer known to Slurm) to end");
  EXPECT_EQ(reason.fix, "scontrol update JobId=10 Dependency=");
}

TEST_F(SlurmWhy, ADependencyThatCanNeverHappenIsNever) {
  slurm.wait(10, 1, "DependencyNeverSatisfied").dependency = "afterok:9(failed)";
  EXPECT_EQ(why(10).reasons.front().when, "never");
}

TEST_F(SlurmWhy, BeginTimeSaysHowLong) {
  slurm.wait(10, 1, "BeginTime").eligible = SeenSlurm::kNow + 1'800;
  const WhyReason reason = why(10).reasons.front();
  EXPECT_THAT(reason.text, HasSubstr("comes in 30.0 min"));
  EXPECT_EQ(reason.until, (SeenSlurm::kNow + 1'800) * kMicro);
}

TEST_F(SlurmWhy, HoldsSayWhoCanReleaseThem) {
  slurm.wait(10, 1, "JobHeldUser").priority = 0;
  slurm.wait(11, 1, "JobHeldAdmin").priority = 0;
  EXPECT_EQ(why(10).reasons.front().who, "user");
  EXPECT_EQ(why(10).reasons.front().fix, "scontrol release 10");
  EXPECT_EQ(why(11).reasons.front().who, "operator");
}

TEST_F(SlurmWhy, APartitionIsDownOrGivesLessTime) {
  slurm.its_partitions.push_back({.name = "main", .nodes = {"n1"}, .max_time = 1'800});
  slurm.wait(10, 1, "PartitionTimeLimit");
  slurm.wait(11, 1, "PartitionDown").time_limit = 60;
  EXPECT_EQ(why(10).reasons.front().text, "asks for 60.0 min, partition main gives 30.0 min");
  EXPECT_EQ(why(10).reasons.front().fix, "scontrol update JobId=10 TimeLimit=30");
  EXPECT_EQ(why(11).reasons.front().fix, "scontrol update PartitionName=main State=UP");
}

TEST_F(SlurmWhy, ARequestThatNoNodeCanMeetSaysWhatTheLargestHas) {
  slurm.wait(10, 16, "BadConstraints");
  const WhyReason reason = why(10).reasons.front();
  EXPECT_THAT(reason.text, HasSubstr("the largest node that it may use has 8 GPUs"));
  EXPECT_EQ(reason.when, "never");
}

TEST_F(SlurmWhy, AnArrayThatRunsAsManyTasksAsItMay) {
  for (std::uint32_t i = 8; i < 10; ++i) {
    slurm.run(i, 1, "n1").array = 7;
    slurm.its_jobs.back().array_tasks = std::to_string(i - 7);
  }
  slurm::Job& rest = slurm.wait(7, 1, "JobArrayTaskLimit");
  rest.array = 7;
  rest.array_tasks = "3-6%2";
  EXPECT_EQ(why(7).reasons.front().text, "2 of its array run, 2 may run together");
}

TEST_F(SlurmWhy, AWordOfANewerSlurmIsExplainedAsThat) {
  slurm.wait(10, 1, "MoonPhase");
  EXPECT_THAT(why(10).summary, HasSubstr("Slurm says MoonPhase: 'MoonPhase' is a word of Slurm"));
}

// As `scontrol show assoc_mgr` of 24.11 writes it, shortened.
constexpr const char* kAssocMgr = R"(Current Association Manager state

Association Records

ClusterName=test Account=lab UserName= Partition= Priority=0 ID=3
    GrpJobs=N(2) GrpJobsAccrue=N(2)
    GrpTRES=cpu=N(2),mem=N(2000),gres/gpu=6(5),gres/gpu:a100=N(0)
    MaxJobs= MaxJobsAccrue= MaxSubmitJobs= MaxWallPJ=
ClusterName=test Account=lab UserName=games(5) Partition= Priority=0 ID=4
    GrpTRES=cpu=N(1),mem=N(1000),gres/gpu=N(2)
    MaxJobs=3(3) MaxJobsAccrue= MaxSubmitJobs= MaxWallPJ=
ClusterName=test Account=lab UserName=nobody(65534) Partition= Priority=0 ID=5
    GrpTRES=cpu=N(1),mem=N(1000),gres/gpu=4(4)
    MaxJobs=1(1)

QOS Records

QOS=small(2)
    GrpJobs=N(1) GrpJobsAccrue=N(1) GrpSubmitJobs=N(2) GrpWall=N(0.00)
    GrpTRES=cpu=8(1),mem=N(1000),gres/gpu=N(2)
    MaxTRESPJ=
    Account Limits
      lab
        MaxJobsPA=N(1) MaxJobsAccruePA=N(1) MaxSubmitJobsPA=N(2)
    User Limits
      nobody(65534)
        MaxTRESPU=cpu=N(1),gres/gpu=2(0)
      games(5)
        MaxJobsPU=N(1) MaxJobsAccruePU=N(1) MaxSubmitJobsPU=N(2)
        MaxTRESPU=cpu=N(1),mem=N(1000),gres/gpu=2(2),gres/gpu:a100=N(0)
)";

TEST_F(SlurmWhy, LimitsAreToldWithWhatIsUsed) {
  slurm.wait(10, 1, "QOSMaxGRESPerUser").qos = "small";
  slurm.wait(11, 1, "AssocGrpGRES");
  slurm.wait(12, 1, "AssocMaxJobsLimit");
  EXPECT_EQ(why(10, kAssocMgr).reasons.front().text,
            "QOS small: 2 in use of 2 gres/gpu per user; it asks for 1 GPU");
  EXPECT_EQ(why(11, kAssocMgr).reasons.front().text,
            "account lab: 5 in use of 6 gres/gpu in all; it asks for 1 GPU");
  EXPECT_EQ(why(12, kAssocMgr).reasons.front().text,
            "games in account lab: 3 in use of 3 jobs at once; it asks for one more");
}

TEST_F(SlurmWhy, ALimitOfWhichNothingIsToldIsExplainedByItsWord) {
  slurm.wait(10, 1, "QOSGrpCpuLimit").qos = "small";
  EXPECT_EQ(why(10).reasons.front().text,
            "QOS small has a limit of cores in all; how much of it is used Slurm does not tell");
  EXPECT_THAT(why(10, kAssocMgr).reasons.front().text, HasSubstr("1 in use of 8 cpu in all"));
}

struct Word {
  const char* word;
  ReasonFamily family;
  WaitCode code;
};
class EveryWord : public testing::TestWithParam<Word> {};

TEST_P(EveryWord, HasAFamilyACodeAndAMeaning) {
  const ReasonWord known = explain_word(GetParam().word);
  EXPECT_EQ(known.family, GetParam().family);
  EXPECT_EQ(known.code, GetParam().code);
  EXPECT_TRUE(!known.text.empty() || limit_of(GetParam().word));
}

INSTANTIATE_TEST_SUITE_P(
    Words, EveryWord,
    testing::Values(Word{"None", ReasonFamily::None, WaitCode::Priority},
                    Word{"", ReasonFamily::None, WaitCode::Priority},
                    Word{"Resources", ReasonFamily::Resources, WaitCode::Resources},
                    Word{"Licenses", ReasonFamily::Licenses, WaitCode::Resources},
                    Word{"JobHeldAdmin", ReasonFamily::Hold, WaitCode::HeldByAdmin},
                    Word{"job requeued in held state", ReasonFamily::Hold, WaitCode::HeldByAdmin},
                    Word{"BurstBufferStageIn", ReasonFamily::Burst, WaitCode::Resources},
                    Word{"InvalidQOS", ReasonFamily::Account, WaitCode::TooSmall},
                    Word{"Cleaning", ReasonFamily::System, WaitCode::Retry},
                    Word{"AssocGrpCpuLimit", ReasonFamily::Limit, WaitCode::GroupGpus},
                    Word{"AssocGrpJobsLimit", ReasonFamily::Limit, WaitCode::GroupJobs},
                    Word{"AssocGrpCPUMinutesLimit", ReasonFamily::Limit, WaitCode::GpuTime},
                    Word{"AssocGrpGRESRunMinutes", ReasonFamily::Limit, WaitCode::GpuTime},
                    Word{"AssocMaxWallDurationPerJobLimit", ReasonFamily::Limit,
                         WaitCode::TooSmall},
                    Word{"QOSMaxJobsPerUserLimit", ReasonFamily::Limit, WaitCode::UserJobs},
                    Word{"QOSMaxGRESPerUser", ReasonFamily::Limit, WaitCode::UserGpus},
                    Word{"QOSMaxCpuPerJobLimit", ReasonFamily::Limit, WaitCode::TooSmall},
                    Word{"QOSMaxMemoryPerNode", ReasonFamily::Limit, WaitCode::TooSmall},
                    Word{"QOSMinGRES", ReasonFamily::Limit, WaitCode::TooSmall},
                    Word{"QOSUsageThreshold", ReasonFamily::Limit, WaitCode::GpuTime}));

}  // namespace
}  // namespace berth::advise
