// --history: what estimators know before the run, through the real program.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "e2e/cli/program.h"

namespace berth::test::history_tests {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr const char* kHead = "job_id,submit_time,gpus,duration,user,name\n";

// The history of the specification predicts 4628.571 s for a job that takes just that: no error.
TEST(History, PredictionsBeginWithIt) {
  const TempFolder folder;
  folder.file("h.csv", std::string(kHead) +
                           "1,0,4,3600,u1,resnet50_lr0.1\n"
                           "2,0,8,20000,u1,bert_base\n"
                           "3,30000,4,5400,u1,resnet50_lr0.01\n"
                           "4,40000,4,4500,u1,resnet50_lr0.3\n");
  folder.file("t.csv", std::string(kHead) + "1,0,4,4628.571429,u1,resnet50_lr0.5\n");
  const std::vector<std::string> run{"simulate", "-t", "t.csv", "-c",
                                     "1x4",      "-p", "qssf",  "--json"};
  const Ran without = berth(folder, run);
  ASSERT_EQ(without.exit, 0) << without.err;
  EXPECT_THAT(without.out, HasSubstr("\"avg_estimate_error\": 0.25")) << "ln(4628.57 / 3600)";
  std::vector<std::string> more = run;
  more.insert(more.end(), {"--history", "h.csv"});
  const Ran with = berth(folder, more);
  ASSERT_EQ(with.exit, 0) << with.err;
  EXPECT_THAT(with.out, HasSubstr("\"avg_estimate_error\": 0"));
  EXPECT_THAT(with.out, Not(HasSubstr("\"avg_estimate_error\": 0.")));
  EXPECT_THAT(with.err, HasSubstr("note: history: 4 jobs of h.csv"));
  EXPECT_THAT(with.err, Not(HasSubstr("nobody in this run learns")));
}

TEST(History, ComparesPoliciesAndSaysIfNobodyLearns) {
  const TempFolder folder;
  const std::string trace = example("traces/philly-small.csv");
  const Ran some = berth(folder, {"compare", "-t", trace, "--from", "3d", "-c", "8x4", "-p",
                                  "fifo,qssf,pai", "--history", trace});
  ASSERT_EQ(some.exit, 0) << some.err;
  EXPECT_THAT(some.err, HasSubstr("jobs left out, they ended after the run begins"))
      << "one file has one clock";
  const Ran none = berth(folder, {"simulate", "-t", trace, "--from", "3d", "-c", "8x4", "-p",
                                  "fifo", "--history", trace});
  EXPECT_THAT(none.err, HasSubstr("nobody in this run learns from it"));
}

TEST(History, IsRefusedWithThePlaceOfEveryFault) {
  const TempFolder folder;
  folder.file("t.csv", "job_id,submit_time,gpus,duration\n1,0,1,10\n");
  folder.file("bad.csv", "job_id,submit_time,gpus,duration\n1,0,1,10\n2,0,0,10\n3,0,1,-1\n");
  folder.file("empty.csv", "job_id,submit_time,gpus,duration\n");
  const auto with = [&](const std::string& history) {
    return berth(folder, {"simulate", "-t", "t.csv", "-c", "1x4", "-p", "qssf", "--history",
                          history, "--out", "run"});
  };
  const Ran bad = with("bad.csv");
  EXPECT_EQ(bad.exit, 2);
  EXPECT_THAT(bad.err, HasSubstr("bad.csv:3:"));
  EXPECT_THAT(bad.err, HasSubstr("bad.csv:4:"));
  EXPECT_EQ(with("nowhere.csv").exit, 2);
  EXPECT_THAT(with("nowhere.csv").err, HasSubstr("nowhere.csv: cannot open"));
  EXPECT_EQ(with("empty.csv").exit, 2);
  const Ran future = with("t.csv");
  EXPECT_EQ(future.exit, 2);
  EXPECT_THAT(future.err, HasSubstr("no job of the history was over when the run begins"));
  EXPECT_FALSE(folder.has("run"));
}

}  // namespace
}  // namespace berth::test::history_tests
