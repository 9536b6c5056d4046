// Static locality analysis: the worked figures of three model classes, labels, when to relax.
#include <gtest/gtest.h>

#include "perf/locality.h"
#include "support/interference_scores.h"

namespace berth {
namespace {

/// One plus sigma, for a class that computes `seconds` and exchanges `bytes`.
double slowdown(double seconds, double bytes, std::int32_t gpus, Level level) {
  const IterationParams params{.alpha = seconds, .beta = 0, .gradient_bytes = bytes, .overlap = 2};
  return 1 + locality_sensitivity(params, 32, gpus, Links{})[static_cast<std::size_t>(level)];
}
LocalityLabel label(double seconds, double bytes, std::int32_t gpus) {
  const IterationParams params{.alpha = seconds, .beta = 0, .gradient_bytes = bytes, .overlap = 2};
  return locality_label(locality_sensitivity(params, 32, gpus, Links{}));
}

struct Row {
  double seconds, bytes;
  std::int32_t gpus;
  double pcie, socket, rack, cross_rack;
};

// Slowdown against NVLink with the default links and gamma 2.
TEST(Locality, WorkedFigures) {
  const std::vector<Row> rows{{.20, 528e6, 2, 1.0237, 1.0420, 1.1307, 1.4545},  // as VGG16
                              {.20, 528e6, 4, 1.0526, 1.0922, 1.2756, 1.8739},
                              {.18, 98e6, 4, 1.0023, 1.0041, 1.0134, 1.0526},    // as ResNet-50
                              {.10, 250e6, 4, 1.0474, 1.0832, 1.2505, 1.8050}};  // as an LSTM
  for (const Row& row : rows) {
    EXPECT_NEAR(slowdown(row.seconds, row.bytes, row.gpus, Level::Nvlink), 1, 1e-12);
    EXPECT_NEAR(slowdown(row.seconds, row.bytes, row.gpus, Level::Pcie), row.pcie, 5e-5);
    EXPECT_NEAR(slowdown(row.seconds, row.bytes, row.gpus, Level::Server), row.socket, 5e-5);
    EXPECT_NEAR(slowdown(row.seconds, row.bytes, row.gpus, Level::Rack), row.rack, 5e-5);
    EXPECT_NEAR(slowdown(row.seconds, row.bytes, row.gpus, Level::CrossRack), row.cross_rack, 5e-5);
  }
}

TEST(Locality, LabelsAtTheJobsSize) {
  EXPECT_EQ(label(.20, 528e6, 4), LocalityLabel::Strict);  // sigma_rack 0.2756
  EXPECT_EQ(label(.10, 250e6, 4), LocalityLabel::Strict);  // 0.2505
  EXPECT_EQ(label(.18, 98e6, 4), LocalityLabel::Any);
  EXPECT_EQ(label(.20, 528e6, 2), LocalityLabel::Prefer);  // 0.1307
  EXPECT_EQ(label(.20, 528e6, 1), LocalityLabel::Any);     // alone there is nothing to exchange
}

TEST(Locality, TheLabelPicksTheFirstLevelButNeverLessThanTheGangNeeds) {
  EXPECT_EQ(first_level(LocalityLabel::Strict, Level::Nvlink), Level::Server);
  EXPECT_EQ(first_level(LocalityLabel::Strict, Level::CrossRack), Level::CrossRack);
  EXPECT_EQ(first_level(LocalityLabel::Prefer, Level::Device), Level::Rack);
  EXPECT_EQ(first_level(LocalityLabel::Any, Level::Device), Level::CrossRack);
}

// 3600 s left at 1.3 times the slowdown lose 1080 s: worth waiting 600 s for, not 1500 s.
TEST(Locality, RelaxesWhenTheWaitCostsMoreThanTheDistance) {
  EXPECT_FALSE(should_relax(3600, 1.3, 600));
  EXPECT_TRUE(should_relax(3600, 1.3, 1500));
}

TEST(Locality, GiveAndTakeAreMeansOverAllPartners) {
  ProfileSet profiles;  // 0 is the class default
  Profile loud;
  loud.name = "loud";
  loud.bus = 0.9;
  Profile calm;
  calm.name = "calm";
  calm.bus = 0.2;
  const ProfileId a = profiles.add(loud);
  const ProfileId b = profiles.add(calm);
  profiles.edit(ProfileSet::fallback()).bus = 0.3;
  for (const ProfileId of : {ProfileId{0}, a, b}) {
    for (const ProfileId beside : {ProfileId{0}, a, b}) profiles.set_slowdown(of, beside, 1);
  }
  profiles.set_slowdown(b, a, 1.6);  // calm suffers beside loud
  profiles.set_slowdown(a, b, 1.3);
  EXPECT_NEAR(device_interference(profiles, a).give, (1 + 1 + 1.6) / 3, 1e-12);
  EXPECT_NEAR(device_interference(profiles, a).take, (1 + 1 + 1.3) / 3, 1e-12);
  // on a server: 1 + 0.4 * max(0, bus + bus - 1) beside 0.3, 0.9 and 0.2
  EXPECT_NEAR(server_interference(profiles, a).take, (1.08 + 1.32 + 1.04) / 3, 1e-12);
}

}  // namespace
}  // namespace berth
