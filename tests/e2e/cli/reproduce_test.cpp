// The reproductions, through the real program: what lacks its data is named, and those that replay
// or use public tables run on small settings where the tables are.
#include <filesystem>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "e2e/cli/program.h"
#include "project_paths.h"

namespace berth::test {
namespace {

using testing::HasSubstr;
using testing::Not;

const std::string kData = BERTH_SHARED_DIR "/data";

TEST(Reproduce, NamesWhatTheDataFolderLacks) {
  const TempFolder folder;
  const Ran none = berth(folder, {"reproduce", "testbed"});
  EXPECT_EQ(none.exit, 2);
  EXPECT_THAT(none.err, HasSubstr("--data DIR"));
  const Ran empty = berth(folder, {"reproduce", "testbed", "--data", folder.path()});
  EXPECT_EQ(empty.exit, 2);
  EXPECT_THAT(empty.err, HasSubstr("muri/testbed"));
}

TEST(Reproduce, ABrokenTableIsAFailureWithItsPlace) {
  const TempFolder folder;
  std::filesystem::create_directories(folder / "muri/testbed");
  folder.file("muri/testbed/cluster_trace.csv", "job_id,num_gpu\n1,8\n");
  const Ran ran = berth(folder, {"reproduce", "testbed", "--data", folder.path()});
  EXPECT_EQ(ran.exit, 1);
  EXPECT_THAT(ran.err, HasSubstr("cluster_trace.csv"));
}

struct Quick {
  std::string name;
  std::string says;  // of its table
};

class ReproduceWithData : public testing::TestWithParam<Quick> {};

TEST_P(ReproduceWithData, RunsOnSmallSettings) {
  if (!std::filesystem::exists(kData)) GTEST_SKIP() << "no shared traces at " << kData;
  const TempFolder folder;
  const Ran ran =
      berth(folder, {"reproduce", GetParam().name, "--quick", "--markdown", "--data", kData});
  ASSERT_EQ(ran.exit, 0) << ran.err;
  EXPECT_THAT(ran.out, HasSubstr("## " + GetParam().name + "\n"));
  EXPECT_THAT(ran.out, HasSubstr(GetParam().says));
  EXPECT_THAT(ran.out, Not(HasSubstr("nan")));
  EXPECT_THAT(ran.err, HasSubstr(GetParam().name + ": "));  // how long it took
}

INSTANTIATE_TEST_SUITE_P(NewNames, ReproduceWithData,
                         testing::Values(Quick{"testbed", "| SRSF as srsf |"},
                                         Quick{"shockwave", "gavel-ftf"},
                                         Quick{"philly", "locality relaxed never"},
                                         Quick{"pai", "mean wait of SJGG against FIFO"},
                                         Quick{"qssf", "jobs of an hour and more"},
                                         Quick{"ces", "wake-ups"}),
                         [](const auto& one) { return one.param.name; });

}  // namespace
}  // namespace berth::test
