// The commands about how fast jobs run, and what the program says to bad input there.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "e2e/cli/program.h"

namespace berth::test {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST(Models, ListsTheCatalogueAndShowsSourcesAndErrors) {
  const TempFolder folder;
  const Ran all = berth(folder, {"models"});
  EXPECT_EQ(all.exit, 0) << all.err;
  EXPECT_THAT(all.out, HasSubstr("resnet-50"));
  const Ran one = berth(folder, {"models", "ResNet50"});
  EXPECT_EQ(one.exit, 0) << one.err;
  EXPECT_THAT(one.out, HasSubstr("points"));
  const Ran none = berth(folder, {"models", "resnet51"});
  EXPECT_EQ(none.exit, 2);
  EXPECT_THAT(none.err, HasSubstr("resnet-50?"));
}

TEST(Topology, DrawsAClusterAndThisMachine) {
  const TempFolder folder;
  const Ran drawn = berth(folder, {"topology", "4x8:a100"});
  EXPECT_EQ(drawn.exit, 0) << drawn.err;
  EXPECT_THAT(drawn.out, HasSubstr("x4"));
  EXPECT_EQ(berth(folder, {"topology", "local", "--json"}).exit, 0);
  EXPECT_EQ(berth(folder, {"topology", "4xx8"}).exit, 2);
  EXPECT_EQ(berth(folder, {"topology"}).exit, 2);
}

TEST(Fit, FitsCoresAndRefusesBadPointsWithTheirPlace) {
  const TempFolder folder;
  folder.file("cores.csv",
              "model,cores,speed\nm,1,5\nm,2,38\nm,4,75\nm,8,123\nm,16,160\nm,20,158\n");
  const Ran fitted = berth(folder, {"fit", "cpu", "cores.csv", "-o", "mine.yaml"});
  EXPECT_EQ(fitted.exit, 0) << fitted.err;
  const Ran shown = berth(folder, {"models", "m", "--profiles", "mine.yaml"});
  EXPECT_EQ(shown.exit, 0) << shown.err;
  EXPECT_THAT(shown.out, HasSubstr("below 12 cores"));

  folder.file("bad.csv", "model,cores,speed\nm,1,5\nm,2,-3\nm,x,7\n");
  const Ran bad = berth(folder, {"fit", "cpu", "bad.csv"});
  EXPECT_EQ(bad.exit, 2);
  EXPECT_THAT(bad.err, HasSubstr("bad.csv:3:"));
  EXPECT_THAT(bad.err, HasSubstr("bad.csv:4:"));
  EXPECT_EQ(berth(folder, {"fit", "nonsense", "cores.csv"}).exit, 2);
}

TEST(Profiles, AreRefusedWithThePlaceOfEveryFault) {
  const TempFolder folder;
  folder.file("bad.yaml",
              "profiles:\n"
              "  - name: m\n"
              "    iteration: {alpha: -1, beta: 0.1}\n"
              "    speeds: {v100: 0}\n");
  const Ran ran = berth(folder, {"simulate", "--trace", example("traces/t6.csv"), "--cluster",
                                 "1x4", "--policy", "sjf-bsbf", "--profiles", "bad.yaml"});
  EXPECT_EQ(ran.exit, 2);
  EXPECT_THAT(ran.err, HasSubstr("bad.yaml:3:"));
  EXPECT_THAT(ran.err, HasSubstr("bad.yaml:4:"));
}

TEST(Effects, AreCheckedAtTheDoor) {
  const TempFolder folder;
  const std::vector<std::string> run{"simulate",  "--trace", example("traces/t6.csv"),
                                     "--cluster", "1x4",     "--policy"};
  const auto with = [&](std::vector<std::string> more) {
    std::vector<std::string> all = run;
    all.insert(all.end(), more.begin(), more.end());
    return berth(folder, all);
  };
  EXPECT_THAT(with({"fifo", "--effects", "locallity"}).err, HasSubstr("unknown effect"));
  EXPECT_EQ(with({"fifo", "--effects", "locallity"}).exit, 2);
  EXPECT_EQ(with({"fifo", "--cpu", "more"}).exit, 2);
  const Ran counted = with({"sjf-bsbf", "--placement", "count"});
  EXPECT_EQ(counted.exit, 2);
  EXPECT_THAT(counted.err, HasSubstr("knows no devices"));
  EXPECT_EQ(with({"fifo", "--effects", "all", "--cpu", "aware"}).exit, 0);
}

TEST(Summary, SaysHowManyJobsRanByTheClassDefault) {
  const TempFolder folder;
  const Ran ran = berth(folder, {"simulate", "--trace", example("traces/t6.csv"), "--cluster",
                                 "1x4", "--policy", "sjf-bsbf", "--json"});
  EXPECT_EQ(ran.exit, 0) << ran.err;
  EXPECT_THAT(ran.out, HasSubstr("\"without_profile\": 6"));
}

TEST(Reproduce, ListsAndRuns) {
  const TempFolder folder;
  EXPECT_THAT(berth(folder, {"reproduce"}).out, HasSubstr("sjf-bsbf"));
  const Ran ran = berth(folder, {"reproduce", "sjf-bsbf", "--quick"});
  EXPECT_EQ(ran.exit, 0) << ran.err;
  EXPECT_THAT(ran.out, HasSubstr("480 jobs"));
  const Ran lacks = berth(folder, {"reproduce", "fgd"});
  EXPECT_EQ(lacks.exit, 2);
  EXPECT_THAT(lacks.err, HasSubstr("--data"));
  EXPECT_EQ(berth(folder, {"reproduce", "sjf-bsfb"}).exit, 2);
}

}  // namespace
}  // namespace berth::test
