// Schedulers and shims that die at the worst moment, and the next life that has to make sense of
// it.
#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include "exec/claim.h"
#include "exec/host_fixture.h"
#include "exec/order_file.h"
#include "exec/process_table.h"
#include "exec/spawn_shim.h"

namespace berth::host_test {
namespace {

constexpr AttemptId kFirst{1, 1};

/// A shim's pipe closes when it is gone.
void wait_until_gone(const Result<Fd>& pipe) {
  ASSERT_TRUE(pipe) << pipe.error().text();
  char byte = 0;
  while (::read(pipe->get(), &byte, 1) > 0) {
  }
}

class HostCrash : public HostTest {
 protected:
  /// Another process launches the order and is killed: by itself at a crash point, or by
  /// kill_driver().
  void drive(const LaunchOrder& order, const std::string& crash_point = "") {
    close();
    const std::string path = file("driver-order");
    std::ofstream(path) << encode_order({.order = order, .cgroups = {}});
    std::string words[] = {BERTH_HOST_DRIVER, root_ + "/run", path};
    char* arguments[] = {words[0].data(), words[1].data(), words[2].data(), nullptr};
    std::string point = "BERTH_CRASH_POINT=" + crash_point;
    char* environment[] = {crash_point.empty() ? nullptr : point.data(), nullptr};
    ASSERT_EQ(::posix_spawn(&driver_, words[0].c_str(), nullptr, nullptr, arguments, environment),
              0);
  }
  void kill_driver() {
    ::kill(driver_, SIGKILL);
    wait_driver();
  }
  void wait_driver() {
    int status = 0;
    ASSERT_EQ(::waitpid(driver_, &status, 0), driver_);
    EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) << status;
    driver_ = 0;
  }
  void TearDown() override {
    if (driver_ > 0) {
      ::kill(driver_, SIGKILL);
      ::waitpid(driver_, nullptr, 0);
    }
    HostTest::TearDown();
  }
  [[nodiscard]] Finding look() {
    const auto found = host().look(101, kFirst);
    EXPECT_TRUE(found) << found.error().text();
    return found.value_or(Finding{});
  }
  /// Until it is so: the shim may be on its way still.
  [[nodiscard]] Finding look_until(Found wanted) {
    Finding found;
    EXPECT_TRUE(eventually([&] { return (found = look()).found == wanted; }));
    return found;
  }

  pid_t driver_ = 0;
};

TEST_F(HostCrash, AJobOutlivesItsSchedulerAndIsAdopted) {
  drive(script("echo $$ > pid; while [ ! -e go ]; do sleep 0.01; done; echo done; exit 5"));
  const pid_t job = pid_in(file("pid"));
  kill_driver();
  EXPECT_TRUE(is_running(job));
  open();
  EXPECT_EQ(look().found, Found::Alive);
  EXPECT_EQ(wait_for(HostEventKind::Started).pid, job);  // told again to whoever adopts it
  std::ofstream(file("go")) << "\n";
  EXPECT_EQ(wait_for(HostEventKind::Ended).exit.exit_code, 5);
  EXPECT_EQ(content(file("out")), "done\n");
}

TEST_F(HostCrash, AnAdoptedJobObeys) {
  drive(script("trap 'exit 9' TERM; echo $$ > pid; while :; do sleep 0.01; done"));
  ASSERT_TRUE(is_running(pid_in(file("pid"))));
  kill_driver();
  open();
  ASSERT_EQ(look().found, Found::Alive);
  host().suspend(kFirst);
  host().resume(kFirst);
  host().stop(kFirst, Host::Stop::Warn, 20);
  const ExitRecord record = wait_for(HostEventKind::Ended).exit;
  EXPECT_EQ(record.exit_code, 9);
  EXPECT_EQ(record.stopped, Stopped::Warned);
}

TEST_F(HostCrash, AnEndWhileNobodyWatchedIsFound) {
  drive(script("echo $$ > pid; while [ ! -e go ]; do sleep 0.01; done; exit 6"));
  const pid_t job = pid_in(file("pid"));
  kill_driver();
  std::ofstream(file("go")) << "\n";
  ASSERT_TRUE(eventually([&] { return !is_running(job) && exists(run_file("exit.1.1")); }));
  open();
  const Finding found = look_until(Found::Ended);
  ASSERT_TRUE(found.exit);
  EXPECT_EQ(found.exit->exit_code, 6);
}

TEST_F(HostCrash, TheLimitHoldsWhileNobodyWatches) {
  LaunchOrder order = script("echo $$ > pid; exec sleep 60");
  order.time_limit = 2;
  drive(order);
  const pid_t job = pid_in(file("pid"));
  kill_driver();
  EXPECT_TRUE(eventually([&] { return !is_running(job); }));
  open();
  const Finding found = look_until(Found::Ended);
  ASSERT_TRUE(found.exit);
  EXPECT_TRUE(found.exit->timed_out);
}

TEST_F(HostCrash, DyingBeforeTheShimIsMadeLeavesAVoidAttempt) {
  drive(script("echo ran > ran"), "host.order_written:1");
  wait_driver();
  open();
  EXPECT_EQ(look().found, Found::Void);
  EXPECT_EQ(look().found, Found::Void);  // and so it stays, however often recovery begins
  EXPECT_FALSE(exists(file("ran")));
}

TEST_F(HostCrash, DyingRightAfterTheSpawnRunsOnceOrNever) {
  for (int round = 0; round < 10; ++round) {
    drive(script("echo ran >> ran; exit 3"), "host.spawned:1");
    wait_driver();
    open();
    // Whoever was faster: the tombstone, or the shim. Never both.
    Finding found = look();
    if (found.found == Found::Alive) found = look_until(Found::Ended);
    if (found.found == Found::Ended) {
      EXPECT_EQ(content(file("ran")), "ran\n");
      EXPECT_EQ(found.exit->exit_code, 3);
    } else {
      EXPECT_EQ(found.found, Found::Void);
      EXPECT_FALSE(exists(file("ran")));
    }
    host().forget(kFirst);
    std::filesystem::remove(file("ran"));
  }
}

TEST_F(HostCrash, ALateShimFindsTheTombstoneAndLeaves) {
  close();
  open();
  EXPECT_EQ(look().found, Found::Void);
  ASSERT_TRUE(host().launch(script("echo ran > ran")));
  wait_for(HostEventKind::LaunchLost);  // "claim exists" comes back as an event
  EXPECT_EQ(look().found, Found::Void);
  EXPECT_FALSE(exists(file("ran")));
}

TEST_F(HostCrash, AShimOnItsWayToAForgottenAttemptFindsNothingToDo) {
  host().forget(kFirst);  // neither order nor claim
  wait_until_gone(spawn_shim(BERTH_SHIM, RunDir(root_ + "/run"), kFirst));
  EXPECT_TRUE(std::filesystem::is_empty(root_ + "/run"));
}

/// Crash points of the shim: what recovery finds, and how often the job ran.
struct ShimDeath {
  const char* point;
  Found found;
  bool has_run;
};
class ShimCrash : public HostCrash, public ::testing::WithParamInterface<ShimDeath> {};

TEST_P(ShimCrash, IsFoundForWhatItIs) {
  drive(script("echo $$ > pid; echo ran >> ran"), std::string(GetParam().point) + ":1");
  // The driver stays alive: only the shim passes this point.
  ASSERT_TRUE(eventually([&] {
    return exists(run_file("attempt.1.1")) && !holder_of(RunDir(root_ + "/run"), kFirst);
  }));
  kill_driver();
  open();
  const Finding found = look_until(GetParam().found);
  EXPECT_EQ(content(file("ran")), GetParam().has_run ? "ran\n" : "");
  EXPECT_TRUE(processes_with("BERTH_CLAIM=" + run_file("attempt.1.1")).empty());
  if (found.found == Found::Ended) {
    EXPECT_EQ(found.exit->exit_code, 0);
  }
  // Nobody can begin it again.
  ASSERT_TRUE(host().launch(script("echo ran >> ran")));
  if (found.found == Found::Ended)
    wait_for(HostEventKind::Ended);
  else
    wait_for(HostEventKind::LaunchLost);
  EXPECT_EQ(content(file("ran")), GetParam().has_run ? "ran\n" : "");
}

INSTANTIATE_TEST_SUITE_P(AtEachPoint, ShimCrash,
                         ::testing::Values(ShimDeath{"shim.claimed", Found::Lost, false},
                                           ShimDeath{"shim.exited", Found::Lost, true},
                                           ShimDeath{"shim.exit_written", Found::Lost, true},
                                           ShimDeath{"shim.exit_renamed", Found::Ended, true}),
                         [](const auto& death) {
                           std::string name = death.param.point + std::strlen("shim.");
                           std::erase(name, '_');
                           return name;
                         });

TEST_F(HostCrash, WhenAShimIsKilledItsJobGoesToo) {
  ASSERT_TRUE(
      host().launch(script("echo $PPID > shim; setsid sh -c 'echo $$ > child; exec sleep 60' & "
                           "echo $$ > pid; wait")));
  const pid_t job = pid_in(file("pid"));
  const pid_t child = pid_in(file("child"));
  const pid_t shim = pid_in(file("shim"));
  ASSERT_EQ(::kill(shim, SIGKILL), 0);
  wait_for(HostEventKind::LaunchLost);
  const Finding found = look_until(Found::Lost);
  EXPECT_EQ(found.why, "its shim was killed");
  EXPECT_FALSE(is_running(job));    // with its parent
  EXPECT_FALSE(is_running(child));  // by us, before anyone gets its devices
}

TEST_F(HostCrash, AShimThatDiesAsItsJobBeginsTakesItAlong) {
  drive(script("setsid sh -c 'echo $$ > child; exec sleep 60' & exec sleep 60"), "shim.started:1");
  ASSERT_TRUE(eventually([&] {
    return exists(run_file("attempt.1.1")) && !holder_of(RunDir(root_ + "/run"), kFirst);
  }));
  kill_driver();
  open();
  EXPECT_EQ(look().found, Found::Lost);
  EXPECT_TRUE(processes_with("BERTH_CLAIM=" + run_file("attempt.1.1")).empty());
}

TEST_F(HostCrash, AnEndIsRecordedEvenIfTheDirectoryWasRemoved) {
  ASSERT_TRUE(
      host().launch(script("echo $$ > pid; while [ ! -e go ]; do sleep 0.01; done; exit 8")));
  ASSERT_TRUE(is_running(pid_in(file("pid"))));
  std::filesystem::remove_all(root_ + "/run");
  std::ofstream(file("go")) << "\n";
  EXPECT_EQ(wait_for(HostEventKind::Ended).exit.exit_code, 8);
}

TEST_F(HostCrash, LaunchedTwiceRunsOnce) {
  const LaunchOrder order = script("echo ran >> ran; while [ ! -e go ]; do sleep 0.01; done");
  drive(order);
  ASSERT_TRUE(eventually([&] { return content(file("ran")) == "ran\n"; }));
  open();
  ASSERT_TRUE(host().launch(order));  // by another scheduler: its shim leaves
  wait_for(HostEventKind::LaunchLost);
  EXPECT_EQ(look().found, Found::Alive);
  ASSERT_TRUE(host().launch(order));  // by the same: nothing happens
  std::ofstream(file("go")) << "\n";
  EXPECT_EQ(wait_for(HostEventKind::Ended).exit.exit_code, 0);
  EXPECT_EQ(content(file("ran")), "ran\n");
}

TEST_F(HostCrash, ARemovedRunDirectoryRunsNothingTwice) {
  ASSERT_TRUE(host().launch(script("echo $$ > pid; exec sleep 60")));
  const pid_t job = pid_in(file("pid"));
  close();
  std::filesystem::remove_all(root_ + "/run");
  open();
  // Its claim is gone, so it cannot be adopted; then it must not run either.
  EXPECT_EQ(look().found, Found::Void);
  EXPECT_FALSE(is_running(job));
}

TEST_F(HostCrash, ADamagedExitRecordIsNotBelieved) {
  run(script("exit 0"));
  std::string bytes = content(run_file("exit.1.1"));
  bytes[bytes.size() / 2] ^= 1;
  std::ofstream(run_file("exit.1.1")) << bytes;
  const Finding found = look();
  EXPECT_EQ(found.found, Found::Lost);
  EXPECT_NE(found.why.find("checksum"), std::string::npos) << found.why;
}

TEST_F(HostCrash, ADamagedOrderIsAnAttemptThatCouldNotStart) {
  std::ofstream(run_file("order.1.1")) << "berth-order 1\nnonsense";
  wait_until_gone(spawn_shim(BERTH_SHIM, RunDir(root_ + "/run"), kFirst));
  const Finding found = look();
  ASSERT_EQ(found.found, Found::Ended);
  EXPECT_FALSE(found.exit->was_started);
  EXPECT_EQ(found.exit->why, "the launch order cannot be read: it is cut short");
}

TEST_F(HostCrash, AClaimOfAnotherBootIsALostAttempt) {
  std::ofstream(run_file("attempt.1.1"))
      << "shim 00000000-0000-0000-0000-000000000000 1 1\njob 1\n";
  const Finding found = look();  // process 1 lives, but it is not the one
  EXPECT_EQ(found.found, Found::Lost);
  EXPECT_EQ(found.why, "the machine was restarted");
}

TEST_F(HostCrash, AnExitRecordOfAnotherBootCounts) {
  ExitRecord record;
  record.job = 101;
  record.attempt = kFirst;
  record.exit_code = 4;
  record.boot_id = "00000000-0000-0000-0000-000000000000";
  std::ofstream(run_file("attempt.1.1")) << "shim 00000000-0000-0000-0000-000000000000 1 1\n";
  std::ofstream(run_file("exit.1.1")) << encode_exit(record);
  const Finding found = look();
  EXPECT_EQ(found.found, Found::Ended);
  EXPECT_EQ(found.exit->boot_id, record.boot_id);
}

TEST_F(HostCrash, AClaimCutShortIsALostAttempt) {
  std::ofstream(run_file("attempt.1.1")) << "";
  EXPECT_EQ(look().found, Found::Lost);
}

TEST_F(HostCrash, AShimThatIsMissingIsAnErrorAndNothingStarts) {
  close();
  const auto refused = LocalHost::open(
      {.run_dir = root_ + "/run", .shim = file("none"), .cgroup_roots = {}, .log = nullptr}, {});
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().text().find("none: cannot run the shim"), std::string::npos);
  std::ofstream(file("broken")) << "not a program";
  std::filesystem::permissions(file("broken"), std::filesystem::perms(0700));
  const auto host = LocalHost::open(
      {.run_dir = root_ + "/run", .shim = file("broken"), .cgroup_roots = {}, .log = nullptr}, {});
  ASSERT_TRUE(host);
  EXPECT_FALSE((*host)->launch(script("true")));
  EXPECT_FALSE(exists(run_file("order.1.1")));
}

}  // namespace
}  // namespace berth::host_test
