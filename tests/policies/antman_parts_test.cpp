// The parts of AntMan that need no engine: who pays for GPUs, and where there is some to spare.
#include <gtest/gtest.h>

#include <bit>

#include "policies/antman/spare_devices.h"
#include "policies/antman/tenants.h"

namespace berth::antman {
namespace {

TEST(AntmanTenants, WithoutQuotasEverybodyIsOneTenantWithoutLimit) {
  Tenants tenants;
  EXPECT_EQ(tenants.find("a"), tenants.find("b"));
  EXPECT_TRUE(tenants.covers(tenants.find("a"), 1 << 30));
}

TEST(AntmanTenants, QuotasCountAndStrangersHaveNone) {
  Tenants tenants;
  tenants.set_quota("a", 8);
  tenants.set_quota("b", 4);
  const TenantId a = tenants.find("a");
  const TenantId b = tenants.find("b");
  EXPECT_TRUE(tenants.covers(a, 8));
  tenants.use(a, 6);
  EXPECT_FALSE(tenants.covers(a, 4));
  EXPECT_FALSE(tenants.covers(tenants.find("c"), 1));
  tenants.use(b, 2);
  EXPECT_TRUE(tenants.before(b, a)) << "2 of 4 before 6 of 8";
  tenants.give_back(a, 2);
  EXPECT_TRUE(tenants.before(a, b)) << "4 of 8 and 2 of 4: by name";
  EXPECT_TRUE(tenants.before(a, tenants.find("c")));
}

class Spare : public ::testing::Test {
 protected:
  SpareDevices devices_{3, 4};
  void offer(std::uint32_t node, std::vector<double> utilisation) {
    for (std::int32_t i = 0; i < static_cast<std::int32_t>(utilisation.size()); ++i)
      devices_.offer(NodeId{node}, i, utilisation[static_cast<std::size_t>(i)]);
  }
};

TEST_F(Spare, TakesTheLeastUsedOfOneServer) {
  offer(0, {0.5, 0.5, 0.5, 0.5});
  offer(1, {0.7, 0, 0.7, 0});
  EXPECT_EQ(*devices_.choose(1), (std::vector<Slice>{{NodeId{1}, 1, 0b0010}}));
  EXPECT_EQ(*devices_.choose(2), (std::vector<Slice>{{NodeId{1}, 2, 0b1010}}));
  EXPECT_EQ(*devices_.choose(3), (std::vector<Slice>{{NodeId{0}, 3, 0b0111}}))
      << "three at 0.5 rather than one of them at 0.7";
}

TEST_F(Spare, PrefersTheServerWithFewestToSpare) {
  offer(0, {0, 0, 0, 0});
  offer(1, {0, 0});
  EXPECT_EQ(devices_.choose(2)->front().node, NodeId{1});
}

TEST_F(Spare, SpreadsAGangOverAsFewServersAsItCan) {
  offer(0, {0});
  offer(1, {0, 0, 0});
  offer(2, {0, 0});
  const auto slices = *devices_.choose(5);
  ASSERT_EQ(slices.size(), 2U);
  EXPECT_EQ(slices[0].gpus + slices[1].gpus, 5);
  EXPECT_EQ(slices[0].node, NodeId{1});
  EXPECT_FALSE(devices_.choose(7));
}

TEST_F(Spare, ForgetsWhatIsWithdrawn) {
  offer(0, {0, 0.3});
  devices_.withdraw(NodeId{0}, 0);
  EXPECT_FALSE(devices_.choose(2));
  EXPECT_FALSE(devices_.has_idle());
  EXPECT_EQ(devices_.choose(1)->front().devices, 0b0010U);
  devices_.offer(NodeId{0}, 1, 0.9);
  EXPECT_EQ(devices_.candidates(), 1);
}

}  // namespace
}  // namespace berth::antman
