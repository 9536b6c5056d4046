// Who holds a job, and what is given back to Slurm.
#include "slurm/release_all.h"

#include <gtest/gtest.h>

#include "slurm/fake_site.h"

namespace berth::slurm {
namespace {

using test::FakeSite;

TEST(HeldJobs, BothFormsOfJsonAreRead) {
  const auto old_form = waiting_jobs_of(
      R"({"jobs": [{"job_id": 7, "job_state": "PENDING", "priority": 0, "state_reason": "JobHeldUser",
                    "admin_comment": "berth=held", "array_job_id": 0, "eligible_time": 0},
                   {"job_id": 8, "job_state": "RUNNING", "priority": 5}]})");
  const auto new_form = waiting_jobs_of(
      R"({"jobs": [{"job_id": 7, "job_state": ["PENDING", "REQUEUED"], "priority": {"set": true, "number": 0},
                    "array_job_id": {"set": true, "number": 3}, "array_task_string": "1-4%2",
                    "admin_comment": "berth=held", "eligible_time": {"set": false, "number": 9}}]})");
  ASSERT_TRUE(old_form && new_form);
  ASSERT_EQ(old_form->size(), 1U);
  EXPECT_EQ(old_form->front().ref, "7");
  EXPECT_EQ(holder_of(old_form->front()), Holder::Berth);
  EXPECT_EQ(new_form->front().ref, "3_[1-4%2]");
  EXPECT_EQ(new_form->front().eligible, 0);
  EXPECT_FALSE(waiting_jobs_of("slurm_load_jobs error"));
  EXPECT_FALSE(waiting_jobs_of("{}"));
}

TEST(HeldJobs, AHoldIsWhoseItIs) {
  WaitingJob job;
  job.is_held = true;
  job.reason = "JobHeldUser";
  EXPECT_EQ(holder_of(job), Holder::User);
  job.mark = HoldMark{};
  EXPECT_EQ(holder_of(job), Holder::Berth);
  job.eligible = kUserHold;
  EXPECT_EQ(holder_of(job), Holder::User);
  job.eligible = 0;
  job.reason = "JobHeldAdmin";
  EXPECT_EQ(holder_of(job), Holder::Admin);
  job.is_held = false;
  EXPECT_EQ(holder_of(job), Holder::Nobody);
}

TEST(ReleaseAll, FreesOnlyWhatBerthHolds) {
  FakeSite site("ClusterName=x\n");
  site.jobs = {
      {.id = 1, .admin_comment = "berth=held", .required_nodes = "n4"},
      {.id = 2, .admin_comment = "berth=held;nodes=n1;n=1-2", .required_nodes = "n3"},
      {.id = 3},                                                           // a user's
      {.id = 4, .admin_comment = "berth=held", .reason = "JobHeldAdmin"},  // an admin's
      {.id = 5, .admin_comment = "berth=held", .eligible = kUserHold},     // a user's, of ours
      {.id = 6, .admin_comment = "berth=held", .tasks = "1-3"},
      {.id = 8, .admin_comment = "berth=held", .required_nodes = "n2", .priority = 9}};
  const auto released = release_all(site, {});
  ASSERT_TRUE(released);
  EXPECT_EQ(released->released, 3U);
  EXPECT_EQ(released->left_held, 3U);
  EXPECT_EQ(released->nodes_cleared, 3U);
  const std::vector<std::string> expected{
      "scontrol update jobid=1 reqnodelist=", "scontrol update jobid=2 reqnodelist=n1 numnodes=1-2",
      "scontrol update jobid=8 reqnodelist=", "scontrol release 1,2", "scontrol release 6_[1-3]"};
  EXPECT_EQ(released->actions, expected);
  EXPECT_EQ(site.job(5)->eligible, kUserHold);
  const auto again = release_all(site, {});
  EXPECT_TRUE(again->actions.empty());
}

TEST(ReleaseAll, ForGoodNoMarkIsLeft) {
  FakeSite site("ClusterName=x\n");
  site.jobs = {{.id = 1, .admin_comment = "site berth=held"},
               {.id = 5, .admin_comment = "berth=held;begin=1795003457", .eligible = kUserHold}};
  const auto released = release_all(site, {.is_for_good = true});
  ASSERT_TRUE(released);
  EXPECT_EQ(released->released, 1U);
  EXPECT_EQ(site.job(1)->admin_comment, "site");
  EXPECT_EQ(site.job(5)->admin_comment, "");
  EXPECT_EQ(site.job(5)->eligible, 1795003457);
  EXPECT_EQ(site.job(5)->priority, 0U);  // its user still holds it
}

TEST(ReleaseAll, OneThatIsRefusedDoesNotKeepTheOthers) {
  FakeSite site("ClusterName=x\n");
  for (std::uint32_t id = 1; id <= 250; ++id)
    site.jobs.push_back({.id = id, .admin_comment = "berth=held"});
  site.refused_id = "120";
  const auto released = release_all(site, {});
  ASSERT_TRUE(released);
  EXPECT_EQ(released->released, 249U);
  ASSERT_EQ(released->failures.size(), 1U);
  EXPECT_NE(released->failures.front().find("release 120"), std::string::npos);
}

TEST(ReleaseAll, StopsWhenBerthIsBack) {
  FakeSite site("ClusterName=x\n");
  for (std::uint32_t id = 1; id <= 250; ++id)
    site.jobs.push_back({.id = id, .admin_comment = "berth=held"});
  int asked = 0;
  const auto released = release_all(site, {.should_stop = [&] { return ++asked > 1; }});
  ASSERT_TRUE(released);
  EXPECT_TRUE(released->was_stopped);
  EXPECT_EQ(released->released, 100U);
}

TEST(ReleaseAll, ARehearsalDoesNothing) {
  FakeSite site("ClusterName=x\n");
  site.jobs = {{.id = 1, .admin_comment = "berth=held"}};
  const auto released = release_all(site, {.is_rehearsal = true});
  EXPECT_EQ(released->released, 1U);
  EXPECT_EQ(site.job(1)->priority, 0U);
  site.is_down = true;
  EXPECT_FALSE(release_all(site, {}));
}

}  // namespace
}  // namespace berth::slurm
