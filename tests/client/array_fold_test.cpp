// squeue's lines of arrays, and Slurm's words for why a job waits.
#include <gtest/gtest.h>

#include "client/array_fold.h"

namespace berth::client::array_fold_tests {
namespace {

JobRow part(std::int32_t index, LiveState state, WaitCode code) {
  JobRow job;
  job.number = 20 + static_cast<JobNumber>(index);
  job.array = 20;
  job.array_index = index;
  job.state = state;
  job.code = code;
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
  std::vector<JobRow> jobs{part(0, LiveState::Running, WaitCode::None)};
  for (const std::int32_t index : {2, 3, 4, 5})
    jobs.push_back(part(index, LiveState::Blocked, WaitCode::ArrayLimit));
  EXPECT_EQ(shown(folded_arrays(jobs)), (Texts{"20_0", "2-5%2"}));
  EXPECT_EQ(shown(one_line_each(jobs)), (Texts{"20_0", "20_2", "20_3", "20_4", "20_5"}));
}

TEST(ArrayFold, TwoNeighboursAreARange) {
  const std::vector<JobRow> jobs{part(1, LiveState::Pending, WaitCode::Resources),
                                 part(2, LiveState::Pending, WaitCode::Resources)};
  EXPECT_EQ(shown(folded_arrays(jobs)), (Texts{"1-2%2"}));
}

TEST(ArrayFold, OtherReasonsEarlierAttemptsAndOtherJobsStandAlone) {
  std::vector<JobRow> jobs{part(1, LiveState::Pending, WaitCode::Resources),
                           part(2, LiveState::Blocked, WaitCode::ArrayLimit),
                           part(3, LiveState::Held, WaitCode::HeldByUser),
                           part(4, LiveState::Pending, WaitCode::Resources)};
  jobs[3].attempts = 1;  // it has run before
  JobRow single;
  single.number = 7;
  single.state = LiveState::Pending;
  jobs.push_back(single);
  EXPECT_EQ(shown(folded_arrays(jobs)), (Texts{"1%2", "2%2", "3%2", "20_4", "7"}));
}

TEST(SlurmReason, IsTheWordThatScriptsKnow) {
  const auto word = [](LiveState state, WaitCode code) {
    return slurm_reason(part(0, state, code));
  };
  EXPECT_EQ(word(LiveState::Pending, WaitCode::Resources), "Resources");
  EXPECT_EQ(word(LiveState::Held, WaitCode::HeldByAdmin), "JobHeldAdmin");
  EXPECT_EQ(word(LiveState::Blocked, WaitCode::Dependency), "Dependency");
  EXPECT_EQ(word(LiveState::Blocked, WaitCode::BeginTime), "BeginTime");
  EXPECT_EQ(word(LiveState::Blocked, WaitCode::ArrayLimit), "JobArrayTaskLimit");
  EXPECT_EQ(word(LiveState::Blocked, WaitCode::UserGpus), "QOSMaxGRESPerUser");
  EXPECT_EQ(word(LiveState::Blocked, WaitCode::GroupJobs), "AssocGrpJobsLimit");
  EXPECT_EQ(word(LiveState::Blocked, WaitCode::None), "Priority");
  EXPECT_EQ(word(LiveState::Running, WaitCode::None), "None");
  EXPECT_EQ(word(LiveState::Failed, WaitCode::None), "NonZeroExitCode");
  EXPECT_EQ(word(LiveState::TimedOut, WaitCode::None), "TimeLimit");
}

}  // namespace
}  // namespace berth::client::array_fold_tests
