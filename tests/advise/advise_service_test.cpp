// What people are told of a Slurm that schedules by itself, and that nothing in it changes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "advise/advise_service.h"
#include "seen_slurm.h"
#include "why/why_json.h"

namespace berth::advise {
namespace {

using test::SeenBooks;
using test::SeenSlurm;
using testing::HasSubstr;

class Advice : public testing::Test {
 protected:
  Advice() {
    slurm.add_nodes(2, "v100", 4);
    slurm.add_nodes(2, "a100", 8);
    slurm.its_partitions.push_back(
        {.name = "main", .is_default = true, .nodes = {"n1", "n2", "n3", "n4"}});
  }
  AdviseService& service() {
    if (!made_) {
      AdviceOptions options{.version = "1", .scheduling = {}};
      options.scheduling.policy.policy = policy;
      made_ = std::make_unique<AdviseService>(AdviseService::Parts{
          .link = slurm, .books = books, .log = log, .options = options, .wall = [this] {
            return wall;
          }});
    }
    return *made_;
  }
  void poll() { static_cast<void>(service().poller().poll_once()); }
  std::vector<JobView> queue(JobFilter filter = {}, const Caller& caller = kGames) {
    const auto page = service().jobs(caller, filter);
    return page ? page->jobs : std::vector<JobView>{};
  }
  Why why(JobNumber job) {
    const auto text = service().why(kGames, job);
    EXPECT_TRUE(text) << (text ? "" : text.error().messages.front());
    return text ? why_from_json(*text).value_or(Why{}) : Why{};
  }
  std::string advice(JobNumber job) {
    for (const WhyReason& reason : why(job).reasons)
      if (reason.kind == "berth") return reason.text;
    return {};
  }

  static inline const Caller kGames{.user = "games", .uid = 5, .gid = 60};
  SeenSlurm slurm;
  SeenBooks books;
  Logger log{{.level = LogLevel::Off}};
  std::string policy = "easy";
  std::int64_t wall = SeenSlurm::kNow * kMicro;

 private:
  std::unique_ptr<AdviseService> made_;
};

TEST_F(Advice, TheQueueShowsSlurmsJobsUnderTheirIds) {
  slurm.run(3, 3, "n1");
  slurm.wait(4, 8, "Resources").account = "other";
  slurm::Job& rest = slurm.wait(7, 1, "JobArrayTaskLimit");
  rest.array = 7;
  rest.array_tasks = "2-4%2";
  slurm.wait(9, 0, "JobHeldUser").priority = 0;
  poll();
  const auto jobs = queue();
  ASSERT_EQ(jobs.size(), 4U);
  EXPECT_EQ(jobs[0].number, 3U);
  EXPECT_EQ(jobs[0].state, LiveState::Running);
  EXPECT_EQ(jobs[0].granted, 3);
  EXPECT_EQ(jobs[0].where.front().devices, (std::vector<std::int32_t>{0, 1, 2}));
  EXPECT_DOUBLE_EQ(jobs[0].run_seconds, 60);
  EXPECT_DOUBLE_EQ(jobs[0].gpu_seconds, 180);
  EXPECT_EQ(jobs[1].spec->group, "other");
  EXPECT_EQ(jobs[1].code, WaitCode::Resources);
  EXPECT_EQ(jobs[1].started, 0);  // a start that Slurm expects is none
  EXPECT_EQ(jobs[2].folded, (std::vector<std::int32_t>{2, 3, 4}));
  EXPECT_EQ(jobs[2].array_at_once, 2);
  EXPECT_EQ(jobs[3].state, LiveState::Held);
  EXPECT_EQ(jobs[3].spec->gpus, 0);
}

TEST_F(Advice, ATaskThatWaitsWithItsArrayIsFoundByArrayAndIndex) {
  slurm::Job& rest = slurm.wait(7, 1, "Resources");
  rest.array = 7;
  rest.array_tasks = "2-4";
  poll();
  const auto task = service().job(kGames, task_number(7, 3));
  ASSERT_TRUE(task);
  EXPECT_EQ(task->array_index, 3);
  EXPECT_TRUE(task->folded.empty());
  EXPECT_FALSE(service().job(kGames, task_number(7, 5)));
}

TEST_F(Advice, PagesGoOnBehindANumberAndSayHowManyThereAre) {
  for (std::uint32_t i = 1; i <= 5; ++i) slurm.wait(i, 1, "Priority");
  poll();
  const auto first = service().jobs(kGames, {.limit = 2});
  ASSERT_TRUE(first);
  EXPECT_EQ(first->total, 5U);
  ASSERT_EQ(first->next, std::optional<JobNumber>{2});
  EXPECT_EQ(queue({.after = first->next, .limit = 2}).front().number, 3U);
}

TEST_F(Advice, NodesShowWhoIsOnWhichGpu) {
  slurm.run(3, 3, "n1");
  slurm.its_nodes[3].state = "IDLE+DRAIN";
  slurm.its_nodes[3].reason = "dust";
  poll();
  const auto nodes = service().nodes(kGames);
  ASSERT_EQ(nodes.size(), 4U);
  EXPECT_EQ(nodes[0].type, "v100");
  EXPECT_EQ(nodes[0].gpus_used, 3);
  EXPECT_EQ(nodes[0].devices[2], (std::vector<JobNumber>{3}));
  EXPECT_TRUE(nodes[0].devices[3].empty());
  EXPECT_EQ(nodes[3].state, "drained");
  EXPECT_EQ(nodes[3].reason, "dust");
  const ClusterView view = service().cluster(kGames);
  EXPECT_EQ(view.gpus, 24);
  EXPECT_EQ(view.gpus_used, 3);
  EXPECT_EQ(view.queues.front().name, "main");
  EXPECT_EQ(view.trouble, "");
}

TEST_F(Advice, BesideSlurmsReasonStandsWhatThePolicyWouldDo) {
  slurm.run(1, 4, "n3");
  slurm.wait(10, 4, "Priority");
  poll();
  // n1 is the first node with four free; best fit takes the one that it fills.
  EXPECT_THAT(advice(10), HasSubstr("under easy it would start now on n"));
  EXPECT_THAT(advice(10), HasSubstr("(4 of "));
}

TEST_F(Advice, JobsThatRunStayWhereTheyAreInTheTrial) {
  slurm.run(1, 8, "n3");
  slurm.run(2, 8, "n4");
  slurm::Job& typed = slurm.wait(10, 8, "Resources");
  typed.per_node.front().type = "a100";
  poll();
  EXPECT_THAT(advice(10), HasSubstr("under easy it would wait: waits for 8 a100"));
  EXPECT_THAT(advice(10), HasSubstr("0 of 8 a100 are free"));
}

TEST_F(Advice, AJobThatAsksForOneNodeIsNotSpread) {
  slurm.run(1, 5, "n3");
  slurm.run(2, 5, "n4");
  slurm::Job& typed = slurm.wait(10, 6, "Resources");  // 3 + 3 are free
  typed.per_node.front().type = "a100";
  poll();
  EXPECT_THAT(advice(10), HasSubstr("under easy it would wait"));
}

TEST_F(Advice, AHeldJobIsAskedAboutAsIfItCompetedAndStandsInNobodysWay) {
  slurm.run(1, 8, "n3");
  slurm.wait(9, 8, "JobHeldUser").priority = 0;  // it would take n4
  slurm.wait(10, 8, "Priority");
  poll();
  EXPECT_THAT(advice(9), HasSubstr("once it competes: under easy it would start now"));
  EXPECT_THAT(advice(10), HasSubstr("under easy it would start now on n4 (8 of 8 GPUs free)"));
}

TEST_F(Advice, NodesOutOfServiceAreOutInTheTrialToo) {
  slurm.its_nodes[3].state = "DOWN";
  slurm.run(1, 8, "n3");
  slurm.wait(10, 8, "Resources");
  poll();
  EXPECT_THAT(advice(10), HasSubstr("under easy it would wait"));
}

TEST_F(Advice, APolicyThatPreemptsSaysInWhosePlace) {
  policy = "tiresias-l";
  for (std::uint32_t i = 0; i < 4; ++i) {
    slurm::Job& job = slurm.run(i + 1, i < 2 ? 4 : 8, "n" + std::to_string(i + 1));
    job.started = SeenSlurm::kNow - 100'000;  // far beyond the first queue
    job.key.submitted = SeenSlurm::kNow - 100'001;
  }
  slurm.wait(10, 4, "Resources");
  poll();
  EXPECT_THAT(advice(10), HasSubstr("under tiresias-l it would start now on n"));
  EXPECT_THAT(advice(10), HasSubstr("in the place of job "));
}

TEST_F(Advice, AJobOfCoresAloneIsAskedAboutToo) {
  slurm.add_nodes(1, "", 0);
  slurm.wait(10, 0, "Resources").cpus = 33;
  slurm.wait(11, 0, "Priority").cpus = 32;
  poll();
  EXPECT_THAT(advice(10), HasSubstr("it would wait"));
  EXPECT_THAT(advice(11), HasSubstr("it would start now on n"));
}

TEST_F(Advice, OldAnswersSayHowOldTheyAre) {
  slurm.wait(10, 1, "Priority");
  poll();
  slurm.is_down = true;
  wall += 90 * kMicro;
  poll();
  wall += 30 * kMicro;
  EXPECT_EQ(queue().size(), 1U);  // what was known stays
  EXPECT_EQ(why(10).age_seconds, 120);
  EXPECT_THAT(service().cluster(kGames).trouble,
              HasSubstr("Slurm does not answer since 30.0 s: what follows is 2.0 min old"));
  EXPECT_THAT(service().metrics(), HasSubstr("berth_slurm_failures_total{what=\"jobs\"} 1"));
  EXPECT_THAT(service().metrics(), HasSubstr("berth_slurm_snapshot_age_seconds 120"));
  slurm.is_down = false;
  poll();
  EXPECT_EQ(service().cluster(kGames).trouble, "");
}

TEST_F(Advice, ASlurmThatIsDownFromTheStartIsWaitedFor) {
  slurm.is_down = true;
  poll();
  EXPECT_TRUE(queue().empty());
  EXPECT_THAT(service().cluster(kGames).trouble, HasSubstr("nothing of it is known yet"));
  slurm.is_down = false;
  slurm.wait(1, 1, "Priority");
  poll();
  EXPECT_EQ(queue().size(), 1U);
  EXPECT_EQ(service().cluster(kGames).queues.size(), 1U);  // read at once, not in a minute
}

TEST_F(Advice, PausesGrowWhileSlurmIsDownUpToAMinute) {
  slurm.is_down = true;
  std::vector<std::int64_t> pauses;
  for (int i = 0; i < 6; ++i) pauses.push_back(service().poller().poll_once().count());
  EXPECT_EQ(pauses, (std::vector<std::int64_t>{10'000, 20'000, 40'000, 60'000, 60'000, 60'000}));
  slurm.is_down = false;
  EXPECT_EQ(service().poller().poll_once().count(), 5'000);
}

TEST_F(Advice, WhatLimitsAnswersForGoodIsTold) {
  slurm.its_version = {.year = 19, .month = 5, .micro = 0};
  slurm.its_config.all["AccountingStorageType"] = "accounting_storage/none";
  slurm.its_config.all["PrivateData"] = "jobs,usage";
  slurm.its_config.all["SlurmUser"] = "somebody-else(77)";
  poll();
  const std::string trouble = service().cluster(kGames).trouble;
  EXPECT_THAT(trouble, HasSubstr("Slurm 19.05.0 is not one that Berth was tried with"));
  EXPECT_THAT(trouble, HasSubstr("Slurm keeps no accounting"));
  if (geteuid() != 0) {  // root is shown everything
    EXPECT_THAT(trouble, HasSubstr("no jobs of others (PrivateData=jobs,usage)"));
  }
}

TEST_F(Advice, WhatSlurmHidesFromUsersBerthHidesToo) {
  slurm.its_config.all["PrivateData"] = "jobs";
  slurm.run(1, 2, "n1").user = "nobody";
  slurm.wait(2, 1, "Priority");
  poll();
  EXPECT_EQ(queue().size(), 1U);
  EXPECT_EQ(service().job(kGames, 1).error().kind, FaultKind::NotFound);
  EXPECT_TRUE(service().nodes(kGames)[0].devices[0].empty());
  EXPECT_EQ(service().nodes(kGames)[0].gpus_used, 2);
  const Caller root{.user = "root", .uid = 0, .gid = 0, .role = Role::Admin};
  EXPECT_EQ(queue({}, root).size(), 2U);
}

TEST_F(Advice, WithoutAccountingHistoryIsWhatWasSeenToEnd) {
  slurm.its_config.all["AccountingStorageType"] = "accounting_storage/none";
  slurm.run(1, 1, "n1");
  poll();
  EXPECT_TRUE(service().history(kGames, {})->jobs.empty());
  slurm.its_jobs.front().phase = slurm::JobPhase::Failed;
  slurm.its_jobs.front().ended = SeenSlurm::kNow;
  slurm.its_jobs.front().exit_code = 3;
  poll();
  poll();  // seen twice, told once
  const auto past = service().history(kGames, {});
  ASSERT_EQ(past->jobs.size(), 1U);
  EXPECT_EQ(past->jobs.front().state, LiveState::Failed);
  EXPECT_EQ(past->jobs.front().exit_code, 3);
  EXPECT_TRUE(books.asked.empty());
}

TEST_F(Advice, HistoryAsksAccountingForAsMuchAsAPageNeeds) {
  for (std::uint32_t i = 1; i <= 5; ++i) {
    slurm::Job job;
    job.key = {.job = i, .restarts = 0, .submitted = 1};
    job.user = "games";
    job.phase = slurm::JobPhase::Completed;
    job.started = SeenSlurm::kNow - 4'000 - i * 1'000;
    job.ended = SeenSlurm::kNow - i * 1'000;
    books.past.push_back(job);
  }
  poll();
  const auto first = service().history(kGames, {.limit = 2});
  ASSERT_EQ(first->jobs.size(), 2U);
  EXPECT_EQ(first->jobs[0].number, 1U);  // the latest end first
  EXPECT_EQ(books.asked.size(), 1U);     // all of them are in the last six hours
  ASSERT_TRUE(first->next);
  PastQuery more{.limit = 10};
  more.before = std::pair{first->jobs[1].ended, first->jobs[1].number};
  const auto rest = service().history(kGames, more);
  ASSERT_EQ(rest->jobs.size(), 3U);
  EXPECT_EQ(rest->jobs[0].number, 3U);
  EXPECT_FALSE(rest->next);
  EXPECT_LE(books.asked.size(), 12U);  // wider and wider: a year is a handful of questions
}

TEST_F(Advice, AnIdThatComesBackWithAnotherSubmitTimeIsAnotherJob) {
  slurm.wait(5, 1, "Priority");
  poll();
  std::vector<std::string> events;
  const auto heard =
      service().subscribe(0, [&](const ServiceEvent& event) { events.push_back(event.json); });
  slurm.its_jobs.front().key.submitted += 500;  // slurmctld was killed and gave the id out again
  slurm.its_jobs.front().name = "another";
  poll();
  ASSERT_EQ(events.size(), 1U);
  EXPECT_THAT(events.front(), HasSubstr("\"what\":\"submit\""));
  EXPECT_THAT(service().metrics(), HasSubstr("berth_slurm_jobs_vanished_total 1"));
}

TEST_F(Advice, AJobThatVanishesIsGoneFromTheQueue) {
  slurm.wait(5, 1, "Priority");
  poll();
  slurm.its_jobs.clear();
  poll();
  EXPECT_TRUE(queue().empty());
  EXPECT_EQ(service().why(kGames, 5).error().kind, FaultKind::NotFound);
}

TEST_F(Advice, AClockThatIsAheadIsTold) {
  slurm.wait(5, 1, "Priority").key.submitted = SeenSlurm::kNow + 7'200;
  poll();
  EXPECT_THAT(service().cluster(kGames).trouble, HasSubstr("the clock of Slurm is 2.0 h ahead"));
  EXPECT_EQ(queue().size(), 1U);
}

TEST_F(Advice, WhateverWouldChangeSomethingIsRefusedWithSlurmsOwnCommand) {
  slurm.wait(5, 1, "Priority");
  poll();
  AdviseService& its = service();
  const auto refused = [](const auto& answer) {
    return answer ? std::string{"done"} : answer.error().messages.front();
  };
  EXPECT_THAT(refused(its.submit(kGames, {})), HasSubstr("use `sbatch`"));
  EXPECT_THAT(refused(its.act(kGames, Verb::Cancel, {.numbers = {5}}, "", {})),
              HasSubstr("use `scancel 5`"));
  EXPECT_THAT(refused(its.act(kGames, Verb::Hold, {.numbers = {task_number(7, 2)}}, "", {})),
              HasSubstr("use `scontrol hold 7_2`"));
  EXPECT_THAT(refused(its.act(kGames, Verb::Signal, {.numbers = {5}}, "", {10})),
              HasSubstr("use `scancel --signal=10 5`"));
  EXPECT_THAT(refused(its.change(kGames, 5, "{}")), HasSubstr("scontrol update JobId=5"));
  EXPECT_THAT(refused(its.set_node(kGames, "n1", "drain", "")),
              HasSubstr("scontrol update NodeName=n1 State=DRAIN"));
  EXPECT_EQ(its.submit(kGames, {}).error().kind, FaultKind::Forbidden);
}

TEST_F(Advice, MetricsCountJobsAndGpus) {
  slurm.run(1, 3, "n1");
  slurm.wait(2, 1, "Priority");
  slurm::Job& tasks = slurm.wait(7, 1, "Priority");
  tasks.array = 7;
  tasks.array_tasks = "1-4";
  poll();
  const std::string text = service().metrics();
  EXPECT_THAT(text, HasSubstr("berth_slurm_jobs{partition=\"main\",state=\"pending\"} 5"));
  EXPECT_THAT(text, HasSubstr("berth_slurm_gpus{type=\"v100\",state=\"used\"} 3"));
  EXPECT_THAT(text, HasSubstr("berth_slurm_gpus{type=\"a100\",state=\"free\"} 16"));
  EXPECT_THAT(text, HasSubstr("berth_node_gpus_used{node=\"n1\"} 3"));
  EXPECT_THAT(text, HasSubstr("slurm=\"24.11.5\""));
}

TEST(Sacct, RowsAreReadAndNamesCannotPretendToBeRows) {
  const std::string row =
      "7_1#22#games#5#lab#main#normal#CANCELLED by 0#2:9#100#101#110#150#30#"
      "cpu=4,mem=4000M,node=1#cpu=4,gres/gpu:v100=2,gres/gpu=2,node=1#n[1-2]#4#";
  const auto jobs = read_sacct(
      row + "two\nlines\n" + "8#8#games#5#lab#main#normal#RUNNING#0:0#1#1#1#Unknown#30####4#x\n",
      "#");
  ASSERT_EQ(jobs.size(), 1U);  // one is not over, and the rest of a name is no row
  const slurm::Job& job = jobs.front();
  EXPECT_EQ(job.key.job, 22U);
  EXPECT_EQ(job.array, 7U);
  EXPECT_EQ(job.array_tasks, "1");
  EXPECT_EQ(job.phase, slurm::JobPhase::Cancelled);
  EXPECT_EQ(job.exit_code, 2);
  EXPECT_EQ(job.signal, 9);
  EXPECT_EQ(job.time_limit, 1'800);
  EXPECT_EQ(job.gpus(), 2);
  ASSERT_EQ(job.held.size(), 2U);
  EXPECT_EQ(job.name, "two");
}

}  // namespace
}  // namespace berth::advise
