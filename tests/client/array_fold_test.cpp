// squeue's lines of arrays, and Slurm's words for why a job waits.
#include <gtest/gtest.h>

#include "client/array_fold.h"

namespace berth::client {
namespace {

JobRow part(std::int32_t index, JobState state, std::string code) {
  JobRow job;
  job.number = 20 + static_cast<JobNumber>(index);
  job.array = 20;
  job.array_index = index;
  job.state = state;
  job.reason_code = std::move(code);
  job.array_at_once = 2;
  return job;
}

std::vector<std::string> shown(const std::vector<QueueLine>& lines) {
  std::vector<std::string> texts;
  for (const QueueLine& line : lines)
    texts.push_back(line.indices.empty() ? line.job->slurm_id() : line.indices);
  return texts;
}

using Texts = std::vector<std::string>;

TEST(ArrayFold, OneLineForThoseThatWaitAlike) {
  std::vector<JobRow> jobs{part(0, JobState::Running, "")};
  for (const std::int32_t index : {2, 3, 4, 5})
    jobs.push_back(part(index, JobState::Blocked, "array-limit"));
  EXPECT_EQ(shown(folded_arrays(jobs)), (Texts{"20_0", "2-5%2"}));
  EXPECT_EQ(shown(one_line_each(jobs)), (Texts{"20_0", "20_2", "20_3", "20_4", "20_5"}));
}

TEST(ArrayFold, OtherReasonsEarlierAttemptsAndOtherJobsStandAlone) {
  std::vector<JobRow> jobs{
      part(1, JobState::Pending, "resources"), part(2, JobState::Blocked, "array-limit"),
      part(3, JobState::Held, "held-by-user"), part(4, JobState::Pending, "resources")};
  jobs[3].attempts = 1;  // it has run before
  JobRow single;
  single.number = 7;
  single.state = JobState::Pending;
  jobs.push_back(single);
  EXPECT_EQ(shown(folded_arrays(jobs)), (Texts{"1%2", "2%2", "3%2", "20_4", "7"}));
}

TEST(SlurmReason, IsTheWordThatScriptsKnow) {
  const auto word = [](JobState state, std::string code) {
    return slurm_reason(part(0, state, std::move(code)));
  };
  EXPECT_EQ(word(JobState::Pending, "resources"), "Resources");
  EXPECT_EQ(word(JobState::Held, "held-by-admin"), "JobHeldAdmin");
  EXPECT_EQ(word(JobState::Blocked, "dependency"), "Dependency");
  EXPECT_EQ(word(JobState::Blocked, "begin-time"), "BeginTime");
  EXPECT_EQ(word(JobState::Blocked, "array-limit"), "JobArrayTaskLimit");
  EXPECT_EQ(word(JobState::Blocked, "user-gpus"), "QOSMaxGRESPerUser");
  EXPECT_EQ(word(JobState::Blocked, "group-jobs"), "AssocGrpJobsLimit");
  EXPECT_EQ(word(JobState::Blocked, "of-the-future"), "Priority");
  EXPECT_EQ(word(JobState::Running, ""), "None");
  EXPECT_EQ(word(JobState::Failed, ""), "NonZeroExitCode");
  EXPECT_EQ(word(JobState::TimedOut, ""), "TimeLimit");
}

}  // namespace
}  // namespace berth::client
