// The directory of a job's steps: who gets what, and what becomes of it when somebody dies.
#include <csignal>

#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include "base/file.h"
#include "step/book.h"
#include "support/temporary_directory.h"

namespace berth::test {
namespace {

using Devices = std::vector<std::int32_t>;

JobGrant four() { return {.devices = {0, 1, 4, 5}, .cores = {}, .cpus = 8}; }

StepEntry begin(const StepBook& book, const StepWish& wish) {
  auto entry = book.try_begin(wish, four());
  EXPECT_TRUE(entry && *entry) << (entry ? "busy" : entry.error().text());
  return *std::move(*entry);
}

bool is_busy(const StepBook& book, const StepWish& wish) {
  const auto entry = book.try_begin(wish, four());
  EXPECT_TRUE(entry) << entry.error().text();
  return entry && !*entry;
}

StepWish wish(std::optional<std::int32_t> cpus, std::optional<std::int32_t> gpus) {
  StepWish wish;
  wish.name = "train";
  wish.cpus = cpus;
  wish.gpus = gpus;
  return wish;
}

TEST(StepBook, StepsBesideEachOtherShareNothing) {
  const TemporaryDirectory folder;
  const StepBook book(folder.path());
  const StepEntry first = begin(book, wish(4, 1));
  EXPECT_EQ(first.view().id, "0");
  EXPECT_EQ(first.view().devices, (Devices{0}));
  const StepEntry second = begin(book, wish(4, 2));
  EXPECT_EQ(second.view().id, "1");
  EXPECT_EQ(second.view().devices, (Devices{1, 4}));
  EXPECT_TRUE(is_busy(book, wish(1, 1)));  // a GPU is left, but no core
}

TEST(StepBook, AStepThatNamesNothingTakesAllAndWaitsForOthers) {
  const TemporaryDirectory folder;
  const StepBook book(folder.path());
  StepEntry first = begin(book, wish(1, 1));
  EXPECT_TRUE(is_busy(book, wish(std::nullopt, std::nullopt)));
  StepView ended = first.view();
  ended.state = StepState::Failed;
  ended.exit_code = 3;
  ASSERT_TRUE(first.finish(ended));
  const StepEntry second = begin(book, wish(std::nullopt, std::nullopt));
  EXPECT_EQ(second.view().devices, (Devices{0, 1, 4, 5}));
  const auto steps = read_steps(folder.path());
  ASSERT_EQ(steps.size(), 2U);
  EXPECT_EQ(steps[0].state, StepState::Failed);
  EXPECT_EQ(steps[0].exit_code, 3);
  EXPECT_GT(steps[0].ended, 0);
  EXPECT_EQ(steps[1].state, StepState::Running);
}

TEST(StepBook, StepsThatAskForNoDeviceSeeAllOfThem) {
  const TemporaryDirectory folder;
  const StepBook book(folder.path());
  const StepEntry first = begin(book, wish(1, std::nullopt));
  const StepEntry second = begin(book, wish(1, std::nullopt));
  EXPECT_EQ(first.view().devices, second.view().devices);
  const StepEntry own = begin(book, wish(1, 4));  // theirs alone: nobody else's
  EXPECT_TRUE(is_busy(book, wish(1, 1)));
  EXPECT_EQ(begin(book, wish(1, std::nullopt)).view().devices.size(), 4U);
}

TEST(StepBook, OneThatOverlapsTakesWhatOthersUse) {
  const TemporaryDirectory folder;
  const StepBook book(folder.path());
  const StepEntry all = begin(book, wish(std::nullopt, std::nullopt));
  StepWish look = wish(std::nullopt, std::nullopt);
  look.overlaps = true;
  const StepEntry beside = begin(book, look);
  EXPECT_EQ(beside.view().devices, all.view().devices);
  EXPECT_TRUE(is_busy(book, wish(1, 0)));
}

TEST(StepBook, NothingBeyondTheJob) {
  const TemporaryDirectory folder;
  const StepBook book(folder.path());
  EXPECT_FALSE(book.try_begin(wish(1, 5), four()));
  EXPECT_FALSE(book.try_begin(wish(9, 1), four()));
  EXPECT_TRUE(read_steps(folder.path()).empty());
}

TEST(StepBook, CoresAreDealtOutWhereTheJobIsBound) {
  const TemporaryDirectory folder;
  const StepBook book(folder.path());
  const JobGrant bound{.devices = {}, .cores = {2, 3, 6, 7}, .cpus = 4};
  const auto first = book.try_begin(wish(2, 0), bound);
  ASSERT_TRUE(first && *first);
  EXPECT_EQ((*first)->view().cores, (Devices{2, 3}));
  const auto second = book.try_begin(wish(2, 0), bound);
  ASSERT_TRUE(second && *second);
  EXPECT_EQ((*second)->view().cores, (Devices{6, 7}));
}

TEST(StepBook, AKilledKeeperGivesEverythingBack) {
  const TemporaryDirectory folder;
  const StepBook book(folder.path());
  int ready[2];
  ASSERT_EQ(::pipe(ready), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    const auto entry = book.try_begin(wish(8, 4), four());
    const char said = entry && *entry ? 'y' : 'n';
    static_cast<void>(::write(ready[1], &said, 1));
    for (;;) ::pause();
  }
  char said = 0;
  ASSERT_EQ(::read(ready[0], &said, 1), 1);
  ASSERT_EQ(said, 'y');
  EXPECT_TRUE(is_busy(book, wish(1, 1)));
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  EXPECT_EQ(begin(book, wish(8, 4)).view().id, "1");
  const auto steps = read_steps(folder.path());
  ASSERT_EQ(steps.size(), 2U);
  EXPECT_EQ(steps[0].state, StepState::Cancelled);
  ::close(ready[0]);
  ::close(ready[1]);
}

/// The directory belongs to a user, who may put anything there.
TEST(StepBook, AHostileDirectoryIsReadWithoutHarm) {
  const TemporaryDirectory folder;
  const std::string at = folder.path() + "/";
  ASSERT_EQ(::mkfifo((at + "0.json").c_str(), 0600), 0);
  ASSERT_EQ(::mkfifo((at + "1.lock").c_str(), 0600), 0);
  ASSERT_EQ(::symlink("/etc/passwd", (at + "2.json").c_str()), 0);
  ASSERT_TRUE(write_file(at + "3.json", "not json"));
  ASSERT_TRUE(write_file(at + "4.json", "[1,2]"));
  ASSERT_TRUE(write_file(at + "5.json", std::string(1U << 20U, ' ')));
  ASSERT_TRUE(write_file(at + "1.json",
                         R"({"tasks":-5,"cpus":1e300,"devices":[-1,3,99999999],"state":"gone",)"
                         R"("begun":-7,"exit_code":4000,"signal":"x","cpu_seconds":-1,"name":7})"));
  ASSERT_TRUE(write_file(at + "-1.json", "{}"));
  ASSERT_TRUE(write_file(at + "99999999999.json", "{}"));
  const auto steps = read_steps(folder.path());
  ASSERT_EQ(steps.size(), 1U);
  EXPECT_EQ(steps[0].id, "1");
  EXPECT_EQ(steps[0].tasks, 0);
  EXPECT_EQ(steps[0].devices, (Devices{3}));
  EXPECT_EQ(steps[0].begun, 0);
  EXPECT_LE(steps[0].exit_code, 255);
  EXPECT_GE(steps[0].cpu_seconds, 0);
}

/// What a job can never hold, and in whose words it is refused.
TEST(StepBook, RefusesWhatTheJobDoesNotHold) {
  using Kind = StepRefusal::Kind;
  JobGrant grant = four();
  grant.most_tasks = 8;
  grant.gpu_type = "a100";
  grant.nodes = {"n0", "n1"};
  const auto refused = [&](auto change) {
    StepWish step;
    change(step);
    const auto refusal = refusal_of(step, grant);
    return refusal ? std::optional(refusal->kind) : std::nullopt;
  };
  EXPECT_EQ(refused([](StepWish&) {}), std::nullopt);
  EXPECT_EQ(refused([](StepWish& step) { step.gpus = 5; }), Kind::Devices);
  EXPECT_EQ(refused([](StepWish& step) { step.gpu_types = {"v100"}; }), Kind::Devices);
  EXPECT_EQ(refused([](StepWish& step) { step.gpu_types = {"v100", "A100"}; }), std::nullopt);
  EXPECT_EQ(refused([](StepWish& step) { step.nodes = {"n1"}; }), std::nullopt);
  EXPECT_EQ(refused([](StepWish& step) { step.nodes = {"n1", "zz"}; }), Kind::Nodes);
  EXPECT_EQ(refused([](StepWish& step) { step.cpus = 9; }), Kind::Cores);
  EXPECT_EQ(refused([](StepWish& step) { step.tasks = 8; }), std::nullopt);
  EXPECT_EQ(refused([](StepWish& step) { step.tasks = 9; }), Kind::Cores);
  const auto overcommitted = [](StepWish& step) {
    step.tasks = 9;
    step.cpus = 9;
    step.overcommits = true;
  };
  EXPECT_EQ(refused(overcommitted), std::nullopt);
  grant.most_tasks = 0;  // a job that named no cores has none to exceed
  EXPECT_EQ(refused([](StepWish& step) { step.tasks = 9; }), std::nullopt);
}

TEST(StepBook, OvercommittedStepTakesNoMoreCoresThanThereAre) {
  const TemporaryDirectory folder;
  StepWish many = wish(9, std::nullopt);
  many.tasks = 9;
  many.overcommits = true;
  EXPECT_EQ(begin(StepBook(folder.path()), many).view().cpus, 8);
}

}  // namespace
}  // namespace berth::test
