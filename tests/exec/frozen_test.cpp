// A job that stands still when its scheduler dies can be ended by whoever comes: the next
// scheduler, the guard of a shim that was killed, and anybody with a kill -9. Each way of standing
// still: both kinds of control groups, where this machine has them, and SIGSTOP.
#include <csignal>
#include <filesystem>

#include <unistd.h>

#include "exec/host_fixture.h"
#include "exec/process_table.h"

namespace berth::host_test {
namespace {

namespace fs = std::filesystem;

struct Way {
  const char* name;
  const char* place;  // of its groups; empty: signals
  const char* file;   // by which it freezes
};

class Frozen : public HostTest, public ::testing::WithParamInterface<Way> {
 protected:
  void SetUp() override {
    HostTest::SetUp();
    std::string place = GetParam().place;
    if (place.empty()) return;
    if (!exists(place + "/cgroup.procs")) place += "/unified";  // beside v1
    const std::string own = place + "/berth-test-" + std::to_string(::getpid());
    std::error_code problem;
    if (!exists(place + "/cgroup.procs") || !fs::create_directory(own, problem))
      GTEST_SKIP() << "no control group may be made in " << place;
    groups_ = own;
    if (!exists(own + "/" + GetParam().file)) GTEST_SKIP() << place << " does not freeze";
  }
  void TearDown() override {
    if (!groups_.empty()) open_again();  // what is left is thawed and ended
    HostTest::TearDown();
    if (groups_.empty()) return;
    EXPECT_TRUE(eventually([&] {
      std::error_code problem;
      fs::remove(groups_, problem);
      return !exists(groups_);
    }));
  }
  void open_again() {
    open(groups_.empty() ? std::vector<std::string>{} : std::vector<std::string>{groups_});
  }
  /// A job of two processes stands still, and its scheduler is gone.
  void freeze_orphan() {
    open_again();
    ASSERT_TRUE(host().launch(
        script("setsid sh -c 'echo $$ > child; while :; do echo x >> steps; sleep 0.005; done' &\n"
               "echo $$ > pid; wait")));
    job_ = pid_in(file("pid"));
    child_ = pid_in(file("child"));
    ASSERT_TRUE(eventually([&] { return content(file("steps")).size() > 4; }));
    host().suspend({1, 1});
    std::size_t last = 0;
    ASSERT_TRUE(eventually([&] {
      const std::size_t before = std::exchange(last, content(file("steps")).size());
      ::usleep(50'000);  // ten steps' time
      return before == last && content(file("steps")).size() == last;
    }));
    close();
  }
  bool are_gone() {
    return eventually([&] { return !is_running(job_) && !is_running(child_); });
  }

  std::string groups_;
  pid_t job_ = 0, child_ = 0;
};

TEST_P(Frozen, IsEndedByTheNextScheduler) {
  freeze_orphan();
  open_again();
  const auto found = host().look(1, {1, 1});
  ASSERT_TRUE(found && found->found == Found::Alive);
  host().stop({1, 1}, Host::Stop::Kill, 0);
  EXPECT_EQ(wait_for(HostEventKind::Ended).exit.signal, SIGKILL);
  EXPECT_TRUE(are_gone());
}

TEST_P(Frozen, IsWarnedByTheNextScheduler) {
  freeze_orphan();
  open_again();
  const auto found = host().look(1, {1, 1});
  ASSERT_TRUE(found && found->found == Found::Alive);
  host().stop({1, 1}, Host::Stop::Warn, 20);
  EXPECT_EQ(wait_for(HostEventKind::Ended).exit.signal, SIGTERM);
  EXPECT_TRUE(are_gone());
}

TEST_P(Frozen, GoesWithItsShim) {
  freeze_orphan();
  const auto shims = shims_of(root_ + "/run");
  ASSERT_EQ(shims.size(), 1U);
  ::kill(shims.front(), SIGKILL);
  EXPECT_TRUE(are_gone()) << "before any scheduler comes";
  open_again();
  const auto found = host().look(1, {1, 1});
  ASSERT_TRUE(found);
  EXPECT_EQ(found->found, Found::Lost);
}

TEST_P(Frozen, DiesByAnybodysKill) {
  freeze_orphan();
  ::kill(child_, SIGKILL);
  EXPECT_TRUE(eventually([&] { return !is_running(child_); }));
  EXPECT_TRUE(is_running(job_)) << "it still stands still, and does not see that its child is gone";
  ::kill(job_, SIGKILL);
  EXPECT_TRUE(are_gone());
  EXPECT_TRUE(eventually([&] { return shims_of(root_ + "/run").empty(); }));
  open_again();
  const auto found = host().look(1, {1, 1});
  ASSERT_TRUE(found && found->found == Found::Ended);
  EXPECT_EQ(found->exit->signal, SIGKILL);
}

INSTANTIATE_TEST_SUITE_P(Ways, Frozen,
                         ::testing::Values(Way{"Signals", "", ""},
                                           Way{"V1", "/sys/fs/cgroup/freezer", "freezer.state"},
                                           Way{"V2", "/sys/fs/cgroup", "cgroup.freeze"}),
                         [](const auto& way) { return way.param.name; });

}  // namespace
}  // namespace berth::host_test
