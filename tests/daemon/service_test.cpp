// What the service of a running scheduler tells, to whom.
#include <algorithm>
#include <map>

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

Caller user(const std::string& name, Role role = Role::User) {
  return {.user = name, .uid = 1'000, .gid = 1'000, .role = role};
}

TEST(Service, RevokesATokenByTheNameItWasGivenOrAsListed) {
  LiveWorld world{{}};
  bool done = false;
  world.at(1, [&](LiveService& service) {
    done = true;
    const auto make = [&](const Caller& caller, const std::string& name) {
      TokenView asked;
      asked.name = name;
      const auto made = service.make_token(caller, asked);
      EXPECT_TRUE(made);
      return made.value_or("");
    };
    const auto revoke = [&](const Caller& caller, const std::string& name) {
      return service.revoke_token(caller, name).has_value();
    };
    const Caller ann = user("ann"), bob = user("bob");
    const std::string of_ann = make(ann, "laptop"), of_bob = make(bob, "laptop");
    const std::string of_root = make(kRoot, "laptop");
    EXPECT_FALSE(revoke(ann, "bob.laptop"));
    EXPECT_FALSE(revoke(user("op", Role::Operator), "laptop"));
    EXPECT_TRUE(revoke(ann, "laptop"));  // hers, not root's of that name
    EXPECT_FALSE(service.caller_of(of_ann));
    EXPECT_TRUE(service.caller_of(of_bob));
    EXPECT_TRUE(service.caller_of(of_root));
    EXPECT_FALSE(revoke(ann, "laptop"));  // what is left is not hers
    EXPECT_TRUE(revoke(kRoot, "bob.laptop"));
    EXPECT_FALSE(service.caller_of(of_bob));
    EXPECT_TRUE(revoke(kRoot, "laptop"));
    EXPECT_FALSE(service.caller_of(of_root));
    make(bob, "other");
    EXPECT_TRUE(revoke(bob, "bob.other"));  // as he sees it listed
    EXPECT_TRUE(service.tokens(kRoot)->empty());
  });
  world.run();
  EXPECT_TRUE(done);
}

TEST(Service, MakesNoTokenThatIsGoodForNothing) {
  LiveWorld world{{}};
  bool done = false;
  world.at(1, [&](LiveService& service) {
    done = true;
    TokenView asked;
    asked.name = "late";
    asked.expires = world.wall_micros() / 1'000'000;
    const auto refused = service.make_token(kRoot, asked);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().kind, FaultKind::BadRequest);
    asked.expires += 60;
    EXPECT_TRUE(service.make_token(kRoot, asked));
  });
  world.run();
  EXPECT_TRUE(done);
}

// All of them are in memory, and read again whenever one of them changes.
TEST(Service, AUserHasOnlySoManyTokens) {
  LiveWorld world{{}};
  std::size_t made = 0;
  world.at(1, [&](LiveService& service) {
    TokenView asked;
    for (; made < 1'000; ++made) {
      asked.name = std::to_string(made);
      const auto token = service.make_token(user("ann"), asked);
      if (token) continue;
      EXPECT_EQ(token.error().kind, FaultKind::TooMany);
      break;
    }
    EXPECT_TRUE(service.make_token(user("bob"), asked));
  });
  world.run();
  EXPECT_EQ(made, 100U);
}

// Of a job that runs its user may shorten the limit and an operator extend it; nothing else.
TEST(Service, ALimitOfARunningJobIsShortenedByItsUserAndExtendedByAnOperator) {
  LiveWorld world{{}};
  bool looked = false;
  world.at(1, [&](LiveService& service) {
    JobSpec spec = spec_of({"run", "100"});
    spec.time_limit = 1000;
    static_cast<void>(world.submit(service, spec));
  });
  world.at(5, [&](LiveService& service) {
    looked = true;
    const auto owner = service.job(kRoot, 1)->spec->user;
    const Caller user{.user = owner, .role = Role::User};
    const Caller other{.user = owner + "2", .role = Role::User};
    const auto kind = [&](const Caller& caller, const std::string& changes) {
      const auto changed = service.change(caller, 1, changes);
      return changed ? std::nullopt : std::optional{changed.error().kind};
    };
    const auto limit = [](std::int64_t seconds) {
      return "{\"time_limit\":" + std::to_string(seconds) + "}";
    };
    EXPECT_EQ(kind(other, limit(10)), FaultKind::Forbidden);
    EXPECT_EQ(kind(user, limit(1001)), FaultKind::Forbidden);
    EXPECT_EQ(kind(user, limit(0)), FaultKind::Forbidden);  // none is the longest
    EXPECT_EQ(kind(user, R"({"gpus":2})"), FaultKind::Conflict);
    EXPECT_EQ(kind(user, R"({"time_limit":10,"gpus":2})"), FaultKind::Conflict);
    EXPECT_EQ(kind(user, limit(900)), std::nullopt);
    EXPECT_EQ(kind(user, limit(1000)), FaultKind::Forbidden);  // what was given up is gone
    EXPECT_EQ(kind(kRoot, limit(2000)), std::nullopt);
    EXPECT_EQ(kind(kRoot, limit(kMaxLimitOfRunning + 1)), FaultKind::Impossible);
    EXPECT_EQ(service.job(kRoot, 1)->spec->time_limit, 2000);
    EXPECT_EQ(kind(user, limit(50)), std::nullopt);
  });
  world.run();
  EXPECT_TRUE(looked);
  EXPECT_EQ(world.over().at(1).state, LiveState::TimedOut);
}

// What the command line refuses by itself comes over the API all the same.
TEST(Service, AJobOfNoGpuTakesACoreAndAShareIsSaidToBeAWholeDevice) {
  LiveWorld world{{.cluster = "1x2"}};
  bool looked = false;
  world.at(1, [&](LiveService& service) {
    looked = true;
    JobSpec none = spec_of({"run", "1"}, 0);
    none.hold = true;
    const auto answer = service.submit(kRoot, none);
    ASSERT_TRUE(answer);
    EXPECT_EQ(answer->notes, std::vector<std::string>{"gpus: none, so that it takes a core: 1"});
    none.gpu_type = "a100";
    ASSERT_FALSE(service.submit(kRoot, none));

    JobSpec half = spec_of({"run", "1"});
    half.gpu_milli = 500;
    half.hold = true;
    const auto taken = service.submit(kRoot, half);
    ASSERT_TRUE(taken);
    EXPECT_EQ(taken->notes,
              std::vector<std::string>{
                  "share: placement best-fit gives out whole devices: the job takes one"});
    const auto changed = service.change(kRoot, taken->first, R"({"gpus":0,"cpus":4})");
    ASSERT_TRUE(changed);
    EXPECT_EQ(service.job(kRoot, taken->first)->spec->gpus, 0);
    static_cast<void>(service.act(kRoot, Verb::Cancel, {.user = "root"}, "", 0));
  });
  world.run();
  EXPECT_TRUE(looked);
  EXPECT_EQ(world.violations(), std::vector<std::string>{});
}

// One device, and everybody has another reason.
TEST(Service, TellsWhyAJobWaitsInAWord) {
  LiveWorld world{{.cluster = "1x1"}};
  bool looked = false;
  world.at(1, [&](LiveService& service) {
    const auto submit = [&](const auto& edit) {
      JobSpec spec = spec_of({"run", "50"});
      edit(spec);
      static_cast<void>(world.submit(service, spec));
    };
    submit([](JobSpec&) {});                                                              // 1 runs
    submit([](JobSpec&) {});                                                              // 2
    submit([](JobSpec& spec) { spec.hold = true; });                                      // 3
    submit([](JobSpec& spec) { spec.dependencies = {{DependencyKind::AfterAny, 1}}; });   // 4
    submit([&](JobSpec& spec) { spec.begin = world.wall_micros() / 1'000'000 + 1000; });  // 5
    submit([](JobSpec& spec) { spec.array = ArraySpec{{0, 1}, 1}; });                     // 6, 7
  });
  world.at(10, [&](LiveService& service) {
    looked = true;
    const auto code = [&](JobNumber job) { return to_string(service.job(kRoot, job)->code); };
    EXPECT_EQ(code(1), "");
    EXPECT_EQ(code(2), "resources");
    EXPECT_EQ(code(3), "held-by-user");
    EXPECT_EQ(code(4), "dependency");
    EXPECT_EQ(code(5), "begin-time");
    EXPECT_EQ(code(6), "resources");
    EXPECT_EQ(code(7), "array-limit");
    static_cast<void>(service.act(kRoot, Verb::Release, {.numbers = {3}}, "", 0));
  });
  world.run();
  EXPECT_TRUE(looked);
}

const Caller kAnn{.user = "ann", .uid = 1001, .gid = 1001, .role = Role::User};
const Caller kBob{.user = "bob", .uid = 1002, .gid = 1002, .role = Role::User};

// Both ask for something that has the same shape: nothing of this cluster can hold it.
TEST(Service, ARefusalHoldsNobodyElsesWords) {
  LiveWorld world{{.cluster = "1x2:v100"}};
  world.at(1, [&](LiveService& service) {
    const auto refusal = [&](const Caller& caller, const std::string& type) {
      JobSpec spec = spec_of({"run", "1"});
      spec.user = "";
      spec.gpu_type = type;
      const auto answer = service.submit(caller, spec);
      EXPECT_FALSE(answer);
      return answer ? std::string{} : answer.error().messages.front();
    };
    EXPECT_EQ(refusal(kAnn, "secret-project"),
              "asks for device type 'secret-project', which this cluster does not have");
    EXPECT_EQ(refusal(kBob, "h100"),
              "asks for device type 'h100', which this cluster does not have");
  });
  world.run();
}

TEST(Service, UnlimitedIsAsLongAsTheQueueGives) {
  AdmissionOptions admission;
  admission.queues = {{.name = "main", .default_time_limit = 86'400, .max_time_limit = 7 * 86'400},
                      {.name = "free", .default_time_limit = 3'600}};
  LiveWorld world{{.cluster = "1x2", .admission = admission}};
  world.at(1, [&](LiveService& service) {
    const auto asked = [&](const std::string& queue, std::int64_t limit) {
      JobSpec spec = spec_of({"run", "1"});
      spec.user = "";
      spec.queue = queue;
      spec.time_limit = limit;
      spec.hold = true;
      const auto answer = service.submit(kAnn, spec);
      EXPECT_TRUE(answer);
      return std::pair{service.job(kAnn, answer->first)->spec->time_limit, answer->notes};
    };
    using Notes = std::vector<std::string>;
    EXPECT_EQ(asked("main", kUnlimitedTime),
              (std::pair{std::int64_t{7 * 86'400},
                         Notes{"no time limit was asked for: it gets 7.0 d, the most in queue "
                               "'main'"}}));
    EXPECT_EQ(asked("free", kUnlimitedTime),
              (std::pair{std::int64_t{0}, Notes{"it has no time limit: queue 'free' sets none"}}));
    EXPECT_EQ(asked("main", 0), (std::pair{std::int64_t{86'400}, Notes{}})) << "nothing said";
    EXPECT_EQ(asked("free", 7'200), (std::pair{std::int64_t{7'200}, Notes{}}));
    for (JobNumber job = 1; job <= 4; ++job) {
      JobFilter which;
      which.numbers = {job};
      EXPECT_TRUE(service.act(kRoot, Verb::Cancel, which, "", 0));
    }
  });
  world.run();
}

// The answer to a submit was lost; meanwhile the queue is full of that very job.
TEST(Service, ARepeatedSubmitIsAnsweredWhateverHasChanged) {
  AdmissionOptions admission;
  admission.max_jobs = 1;
  LiveWorld world{{.cluster = "1x2", .admission = admission}};
  world.at(1, [&](LiveService& service) {
    JobSpec spec = spec_of({"run", "1"});
    spec.user = "ann";
    spec.key = "k";
    const auto first = service.submit(kAnn, spec);
    ASSERT_TRUE(first);
    const auto second = service.submit(kAnn, spec);
    ASSERT_TRUE(second) << second.error().messages.front();
    EXPECT_TRUE(second->is_repeat);
    EXPECT_EQ(second->first, first->first);
    spec.key = "other";
    EXPECT_FALSE(service.submit(kAnn, spec)) << "another job does not fit";
  });
  world.run();
}

// Fifty jobs of an array that wait, some of them for another reason, among others.
TEST(Service, FoldsTheJobsOfAnArrayThatWaitAlike) {
  LiveWorld world{{.cluster = "1x2"}};
  world.at(1, [&](LiveService& service) {
    JobSpec front = spec_of({"run", "600"}, 2);
    world.submit(service, front);
    JobSpec array = spec_of({"run", "1"});
    array.array = ArraySpec{.indices = {}, .at_once = 3};
    for (std::int32_t i = 1; i <= 50; ++i) array.array->indices.push_back(2 * i);
    ASSERT_EQ(world.submit(service, array), 2U);
    ASSERT_EQ(world.submit(service, spec_of({"run", "1"})), 52U);
    JobFilter held;
    held.numbers = {5, 6};
    ASSERT_TRUE(service.act(kRoot, Verb::Hold, held, "", 0));
  });
  world.at(2, [&](LiveService& service) {
    for (const std::size_t limit : {1U, 2U, 3U, 4U, 1000U}) {
      JobFilter filter;
      filter.rows = Rows::Folded;
      filter.limit = limit;
      std::map<std::pair<JobNumber, LiveState>, std::vector<std::int32_t>> indices;
      std::size_t rows = 0;
      for (int pages = 0; pages < 100; ++pages) {
        const auto page = service.jobs(kRoot, filter);
        ASSERT_TRUE(page);
        EXPECT_EQ(page->total, 52U);
        EXPECT_LE(page->jobs.size(), limit);
        rows += page->jobs.size();
        for (const JobView& job : page->jobs) {
          auto& all = indices[{job.array, job.state}];
          if (job.folded.empty()) all.push_back(job.array_index);
          all.insert(all.end(), job.folded.begin(), job.folded.end());
          EXPECT_EQ(job.output, "") << "brief";
        }
        if (!page->next) break;
        filter.after = page->next;
      }
      if (limit == 1000) {
        EXPECT_LE(rows, 5U);
      }
      std::vector<std::int32_t> all;
      for (auto& [key, part] : indices)
        if (key.first == 2) all.insert(all.end(), part.begin(), part.end());
      std::ranges::sort(all);
      std::vector<std::int32_t> expected;
      for (std::int32_t i = 1; i <= 50; ++i) expected.push_back(2 * i);
      EXPECT_EQ(all, expected) << "each of them once, limit " << limit;
      EXPECT_EQ((indices[{2, LiveState::Held}]), (std::vector<std::int32_t>{8, 10}));
    }
    JobFilter both;  // with those that are over nothing is folded
    both.states = every_state();
    both.rows = Rows::Folded;
    both.limit = 1000;
    EXPECT_EQ(service.jobs(kRoot, both)->jobs.size(), 52U);
    JobFilter held;
    held.numbers = {5, 6};
    ASSERT_TRUE(service.act(kRoot, Verb::Release, held, "", 0));
  });
  world.run();
}

}  // namespace
}  // namespace berth::test
