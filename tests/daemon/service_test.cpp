// What the service of a running scheduler tells, to whom.
#include <algorithm>

#include <gtest/gtest.h>

#include "support/live_world.h"

namespace berth::test {
namespace {

using Numbers = std::vector<JobNumber>;

std::vector<LiveState> every_state() {
  std::vector<LiveState> states;
  for (auto i = 0; i <= static_cast<int>(LiveState::Rejected); ++i)
    states.push_back(static_cast<LiveState>(i));
  return states;
}

/// All pages one after the other; each must tell the same total, and numbers must grow.
Numbers paged(LiveService& service, JobFilter filter) {
  Numbers numbers;
  for (int pages = 0; pages < 100; ++pages) {
    const auto page = service.jobs(kRoot, filter);
    EXPECT_TRUE(page);
    EXPECT_LE(page->jobs.size(), filter.limit);
    for (const JobView& job : page->jobs) numbers.push_back(job.number);
    if (!page->next) {
      EXPECT_EQ(page->total, numbers.size());
      EXPECT_TRUE(std::ranges::is_sorted(numbers));
      return numbers;
    }
    EXPECT_EQ(page->jobs.size(), filter.limit);
    filter.after = page->next;
  }
  ADD_FAILURE() << "the pages do not end";
  return numbers;
}

// Jobs 1 to 12 on two devices. Odd ones take a second and are over when we look, every third of
// them failed; even ones are held. So live and past alternate, and every page has both.
TEST(Service, ListsJobsThatAreOverAmongThoseThatAreNot) {
  LiveWorld world{{.cluster = "1x2"}};
  world.at(1, [&](LiveService& service) {
    for (JobNumber number = 1; number <= 12; ++number) {
      JobSpec spec = spec_of({"run", "1", number % 3 == 0 ? "1" : "0"});
      spec.name = number <= 4 ? "early" : "late";
      spec.hold = number % 2 == 0;
      ASSERT_EQ(world.submit(service, spec), number);
    }
  });
  bool looked = false;
  world.at(100, [&](LiveService& service) {
    looked = true;
    for (const std::size_t limit : {1U, 2U, 5U, 11U, 12U, 13U}) {
      const auto list = [&](JobFilter filter) {
        filter.limit = limit;
        return paged(service, std::move(filter));
      };
      EXPECT_EQ(list({}), (Numbers{2, 4, 6, 8, 10, 12})) << limit;
      EXPECT_EQ(list({.states = every_state()}), (Numbers{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}));
      EXPECT_EQ(list({.states = {LiveState::Failed}}), (Numbers{3, 9}));
      EXPECT_EQ(list({.states = {LiveState::Failed, LiveState::Held}, .name = "late"}),
                (Numbers{6, 8, 9, 10, 12}));
      EXPECT_EQ(list({.states = every_state(), .numbers = {9, 2, 1, 9, 77}}), (Numbers{1, 2, 9}));
      EXPECT_EQ(list({.states = every_state(), .user = "nobody"}), Numbers{});
      EXPECT_EQ(list({.states = every_state(), .ended_since = world.wall_micros() - 1'000'000}),
                (Numbers{2, 4, 6, 8, 10, 12}));  // the past ended long before, the living never did
    }
  });
  world.at(200, [](LiveService& service) {
    static_cast<void>(service.act(kRoot, Verb::Cancel, {.user = "root"}, "", 0));
  });
  world.run();
  EXPECT_TRUE(looked);
  EXPECT_EQ(world.violations(), std::vector<std::string>{});
}

}  // namespace
}  // namespace berth::test
