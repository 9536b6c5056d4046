#include "base/log_limit.h"

#include <gtest/gtest.h>

namespace berth {
namespace {

TEST(LogLimit, ACauseIsSaidOnceAMinuteAndCountedAlways) {
  LogLimit::Clock::time_point now{};
  LogLimit limit({.now = [&] { return now; }});
  EXPECT_EQ(limit.admit("disk"), 0U);
  for (int i = 0; i < 3; ++i) {
    now += std::chrono::seconds{19};
    EXPECT_FALSE(limit.admit("disk"));  // 19, 38, 57 s after it was said
  }
  now += std::chrono::seconds{3};
  EXPECT_EQ(limit.admit("disk"), 3U);  // 60 s: said again, with what was held back
  EXPECT_FALSE(limit.admit("disk"));
  now += std::chrono::hours{1};
  EXPECT_EQ(limit.admit("disk"), 1U);
  ASSERT_EQ(limit.counts().size(), 1U);
  EXPECT_EQ(limit.counts().front(), std::pair(std::string("disk"), std::uint64_t{7}));
}

TEST(LogLimit, OneCauseDoesNotSilenceAnother) {
  LogLimit limit;
  EXPECT_TRUE(limit.admit("disk"));
  EXPECT_TRUE(limit.admit("run-directory"));
  EXPECT_FALSE(limit.admit("disk"));
  EXPECT_EQ(limit.counts().size(), 2U);
}

}  // namespace
}  // namespace berth
