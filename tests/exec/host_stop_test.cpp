// Ending, suspending and binding jobs that would rather not.
#include <csignal>
#include <fstream>

#include <sched.h>
#include <unistd.h>

#include "exec/host_fixture.h"
#include "exec/process_table.h"

namespace berth::host_test::host_stop_tests {
namespace {

using HostStop = HostTest;
constexpr AttemptId kFirst{1, 1};

TEST_F(HostStop, AWarningIsHeardAndRecorded) {
  LaunchOrder order =
      script("trap 'echo saved; exit 3' USR1; echo ready > ready; while :; do sleep 0.01; done");
  order.warn_signal = SIGUSR1;
  order.error = file("err");  // where the shell tells of its sleep: every process hears the signal
  ASSERT_TRUE(host().launch(order));
  ASSERT_TRUE(eventually([&] { return exists(file("ready")); }));
  host().stop(kFirst, Host::Stop::Warn, 30);
  const ExitRecord record = wait_for(HostEventKind::Ended).exit;
  EXPECT_EQ(record.exit_code, 3);
  EXPECT_EQ(record.stopped, Stopped::Warned);
  EXPECT_EQ(content(file("out")), "saved\n");
}

TEST_F(HostStop, WhoIgnoresTheWarningIsKilledAfterTheGrace) {
  ASSERT_TRUE(
      host().launch(script("trap '' TERM; echo ready > ready; while :; do sleep 0.01; done")));
  ASSERT_TRUE(eventually([&] { return exists(file("ready")); }));
  const auto before = std::chrono::steady_clock::now();
  host().stop(kFirst, Host::Stop::Warn, 1);
  const ExitRecord record = wait_for(HostEventKind::Ended).exit;
  EXPECT_GE(std::chrono::steady_clock::now() - before, std::chrono::milliseconds(990));
  EXPECT_EQ(record.signal, SIGKILL);
  EXPECT_EQ(record.stopped, Stopped::Killed);
}

TEST_F(HostStop, AKillNeedsNoGrace) {
  LaunchOrder order = script("trap '' TERM; echo ready > ready; while :; do sleep 0.01; done");
  order.grace_seconds = 1000;
  ASSERT_TRUE(host().launch(order));
  ASSERT_TRUE(eventually([&] { return exists(file("ready")); }));
  host().stop(kFirst, Host::Stop::Kill, 0);
  const ExitRecord record = wait_for(HostEventKind::Ended).exit;
  EXPECT_EQ(record.signal, SIGKILL);
  EXPECT_EQ(record.stopped, Stopped::Killed);
}

TEST_F(HostStop, AStopRightAfterTheLaunchIsNotLost) {
  // because the shim has claimed nothing yet: the command waits for it
  ASSERT_TRUE(host().launch(script("exec sleep 60")));
  host().stop(kFirst, Host::Stop::Kill, 0);
  EXPECT_EQ(wait_for(HostEventKind::Ended).exit.stopped, Stopped::Killed);
}

TEST_F(HostStop, ChildrenLeftBehindGoWithTheJob) {
  // one in its own session that ignores the request, one plain
  const ExitRecord record =
      run(script("setsid sh -c 'trap \"\" TERM; echo $$ > a; while :; do sleep 0.01; done' & "
                 "sleep 60 & echo $! > b; while [ ! -s a ]; do sleep 0.01; done; exit 0"));
  EXPECT_EQ(record.exit_code, 0);
  EXPECT_EQ(record.stopped, Stopped::No);
  EXPECT_FALSE(is_running(pid_in(file("a"))));
  EXPECT_FALSE(is_running(pid_in(file("b"))));
}

TEST_F(HostStop, ADaemonThatForksTwiceIsCaught) {
  LaunchOrder order = script(
      "(setsid sh -c '(trap \"\" HUP TERM; echo $(exec sh -c \"echo \\$PPID\") > d; "
      "while :; do sleep 0.01; done) & exit 0' &) ; while [ ! -s d ]; do sleep 0.01; done");
  EXPECT_EQ(run(order).exit_code, 0);
  EXPECT_FALSE(is_running(pid_in(file("d"))));
}

TEST_F(HostStop, AJobThatForksFasterThanItIsKilledEndsAtLast) {
  // each generation makes the next before it is found, in a session of its own
  std::ofstream(file("bomb.sh")) << "trap '' TERM\nsetsid sh bomb.sh & sleep 0.02\n";
  ASSERT_TRUE(host().launch(script("sh bomb.sh & echo ready > ready; exec sleep 60")));
  ASSERT_TRUE(eventually([&] { return exists(file("ready")); }));
  host().stop(kFirst, Host::Stop::Kill, 0);
  wait_for(HostEventKind::Ended);
  EXPECT_TRUE(processes_with("BERTH_CLAIM=" + run_file("attempt.1.1")).empty());
}

TEST_F(HostStop, TheLimitEndsAJobAndIsRecorded) {
  LaunchOrder order = script("exec sleep 60");
  order.time_limit = 1;
  const ExitRecord record = run(order);
  EXPECT_TRUE(record.timed_out);
  EXPECT_EQ(record.signal, SIGTERM);
  EXPECT_EQ(record.stopped, Stopped::No);  // nobody asked
  EXPECT_GE(record.ended_clock - record.begun_clock, 1'000'000);
}

TEST_F(HostStop, TheOutputSaysThatTheLimitWasReached) {
  LaunchOrder order = script("echo begun; exec sleep 60");
  order.time_limit = 1;
  order.env.emplace_back("BERTH_NODE", "n7");
  run(order);
  const std::string said = content(file("out"));
  EXPECT_TRUE(said.starts_with("begun\nberth: error: *** JOB ")) << said;
  EXPECT_TRUE(said.ends_with(" DUE TO TIME LIMIT ***\n")) << said;
  EXPECT_NE(said.find(" ON n7 CANCELLED AT 2"), std::string::npos) << said;
}

/// Where nothing can be written any more the job ends all the same.
TEST_F(HostStop, AnOutputThatIsGoneDoesNotKeepTheLimitFromEndingAJob) {
  LaunchOrder order = script("rm -f out; mkfifo out; exec sleep 60");
  order.time_limit = 1;
  const ExitRecord record = run(order);
  EXPECT_TRUE(record.timed_out);
  EXPECT_LT(record.ended_clock - record.begun_clock, 5'000'000);
}

TEST_F(HostStop, AWarningComesBeforeTheLimit) {
  LaunchOrder order = script("");
  order.script =
      "#!/bin/bash\ntrap 'echo checkpoint; exit 0' USR2; trap '' USR1; while :; do read -t 0.01 <> "
      "<(:); done\n";
  order.time_limit = 3;
  order.warn_seconds = 2;
  order.warn_signal = SIGUSR2;
  const ExitRecord record = run(order);
  EXPECT_FALSE(record.timed_out);  // it went by itself
  EXPECT_EQ(record.exit_code, 0);
  EXPECT_GE(record.ended_clock - record.begun_clock, 1'000'000);
  EXPECT_LT(record.ended_clock - record.begun_clock, 3'000'000);
  EXPECT_EQ(content(file("out")), "checkpoint\n");
}

TEST_F(HostStop, AWarningForTheShellReachesNobodyElse) {
  LaunchOrder order = script(
      "trap 'echo checkpoint; exit 0' USR2; "
      "sh -c 'trap \"echo heard > heard\" USR2; while :; do sleep 0.01; done' & wait");
  order.time_limit = 3;
  order.warn_seconds = 2;
  order.warn_signal = SIGUSR2;
  order.warn_shell = true;
  const ExitRecord record = run(order);
  EXPECT_FALSE(record.timed_out);
  EXPECT_EQ(record.exit_code, 0);
  EXPECT_EQ(content(file("out")), "checkpoint\n");
  EXPECT_FALSE(exists(file("heard")));
}

TEST_F(HostStop, WhatAWarnedShellLeavesBehindIsAskedToGo) {
  LaunchOrder order = script("trap 'exit 3' USR1; sleep 300 & echo ready > ready; wait");
  order.warn_signal = SIGUSR1;
  order.warn_shell = true;
  ASSERT_TRUE(host().launch(order));
  ASSERT_TRUE(eventually([&] { return exists(file("ready")); }));
  host().stop(kFirst, Host::Stop::Warn, 200);  // far beyond our patience
  EXPECT_EQ(wait_for(HostEventKind::Ended).exit.exit_code, 3);
}

TEST_F(HostStop, ARunningJobTakesAShorterLimit) {
  LaunchOrder order = script("echo ready > ready; exec sleep 60");
  order.time_limit = 1000;
  ASSERT_TRUE(host().launch(order));
  ASSERT_TRUE(eventually([&] { return exists(file("ready")); }));
  host().set_limit(kFirst, 1);
  const ExitRecord record = wait_for(HostEventKind::Ended).exit;
  EXPECT_TRUE(record.timed_out);
  EXPECT_GE(record.ended_clock - record.begun_clock, 1'000'000);
}

TEST_F(HostStop, ARunningJobTakesALongerLimitAndNone) {
  for (const std::int64_t limit : {100, 0}) {
    LaunchOrder order = script("exec sleep 2.2");
    order.attempt.counter = static_cast<std::uint64_t>(limit) + 1;
    order.time_limit = 2;
    ASSERT_TRUE(host().launch(order));
    host().set_limit(order.attempt, limit);
    const ExitRecord record = wait_for(HostEventKind::Ended, order.attempt).exit;
    EXPECT_FALSE(record.timed_out) << limit;
    EXPECT_EQ(record.exit_code, 0) << limit;
  }
}

TEST_F(HostStop, WhoIgnoresTheLimitIsKilled) {
  LaunchOrder order = script("trap '' TERM; while :; do sleep 0.01; done");
  order.time_limit = 1;
  const ExitRecord record = run(order);
  EXPECT_TRUE(record.timed_out);
  EXPECT_EQ(record.signal, SIGKILL);
}

TEST_F(HostStop, SuspendedJobsMakeNoProgressAndTimeStandsStill) {
  LaunchOrder order = script(
      "setsid sh -c 'while :; do echo x >> steps; sleep 0.005; done' & "
      "while :; do sleep 0.01; done");
  order.time_limit = 3;
  ASSERT_TRUE(host().launch(order));
  ASSERT_TRUE(eventually([&] { return content(file("steps")).size() > 5; }));
  host().suspend(kFirst);
  const auto claim = "BERTH_CLAIM=" + run_file("attempt.1.1");
  std::string states;
  ASSERT_TRUE(eventually([&] {
    states.clear();
    for (const ProcessRow& row : processes_with(claim)) states += row.state;
    // D: the shell waits for a child that was stopped between vfork and exec
    return !states.empty() && states.find_first_not_of("TtD") == std::string::npos;
  })) << states;
  const std::string then = content(file("steps"));
  // Longer than the limit: only running time counts. There is no condition to wait for but time.
  ::usleep(3'200'000);
  EXPECT_EQ(content(file("steps")), then);
  EXPECT_EQ(count(HostEventKind::Ended), 0U);
  host().resume(kFirst);
  EXPECT_TRUE(eventually([&] { return content(file("steps")).size() > then.size(); }));
  const ExitRecord record = wait_for(HostEventKind::Ended).exit;  // the rest of its limit
  EXPECT_TRUE(record.timed_out);
  EXPECT_GE(record.ended_clock - record.begun_clock, 6'000'000);
}

TEST_F(HostStop, ASuspendedJobHearsAWarning) {
  LaunchOrder order =
      script("trap 'exit 4' TERM; echo ready > ready; while :; do sleep 0.01; done");
  ASSERT_TRUE(host().launch(order));
  ASSERT_TRUE(eventually([&] { return exists(file("ready")); }));
  host().suspend(kFirst);
  host().stop(kFirst, Host::Stop::Warn, 20);
  const ExitRecord record = wait_for(HostEventKind::Ended).exit;
  EXPECT_EQ(record.exit_code, 4);
  EXPECT_EQ(record.stopped, Stopped::Warned);
}

TEST_F(HostStop, AJobRunsSoMuchOfTheTimeAsItIsTold) {
  const auto paced = [](const std::string& name) {
    return "trap 'exit 4' TERM; while :; do echo x >> " + name + "; sleep 0.02; done";
  };
  constexpr AttemptId kSecond{1, 2};
  ASSERT_TRUE(host().launch(script(paced("free"))));
  ASSERT_TRUE(host().launch(script(paced("held"), 2)));
  const auto steps = [&](const std::string& name) {
    return static_cast<double>(content(file(name)).size());
  };
  ASSERT_TRUE(eventually([&] { return steps("free") > 10 && steps("held") > 10; }));
  /// Steps of the second while the first makes two hundred.
  const auto share = [&] {
    const double free = steps("free"), held = steps("held");
    EXPECT_TRUE(eventually([&] { return steps("free") >= free + 200; }));
    return (steps("held") - held) / (steps("free") - free);
  };
  host().set_rate(kSecond, 250);
  EXPECT_LT(share(), 0.5);
  host().suspend(kSecond);  // beats the rate
  EXPECT_LT(share(), 0.05);
  host().resume(kSecond);
  const double slow = share();
  EXPECT_GT(slow, 0.05);
  EXPECT_LT(slow, 0.5);
  host().set_rate(kSecond, 1000);
  EXPECT_GT(share(), 0.6);
  host().set_rate(kSecond, 10);
  host().stop(kSecond, Host::Stop::Warn, 20);  // who rests hears a warning at once
  const ExitRecord record = wait_for(HostEventKind::Ended, kSecond).exit;
  EXPECT_EQ(record.exit_code, 4);
  EXPECT_EQ(record.stopped, Stopped::Warned);
}

TEST_F(HostStop, AnySignalReachesAllProcesses) {
  LaunchOrder order = script(
      "trap 'echo parent >> heard' USR1\nsh -c 'trap \"echo child >> heard; exit\" USR1; "
      "echo ready > ready; while :; do sleep 0.01; done'\nwait; echo over >> heard");
  ASSERT_TRUE(host().launch(order));
  ASSERT_TRUE(eventually([&] { return exists(file("ready")); }));
  host().signal(kFirst, SIGUSR1);
  const ExitRecord record = wait_for(HostEventKind::Ended).exit;
  EXPECT_EQ(record.exit_code, 0);
  EXPECT_EQ(record.stopped, Stopped::No);
  const std::string heard = content(file("heard"));
  EXPECT_NE(heard.find("parent"), std::string::npos);
  EXPECT_NE(heard.find("child"), std::string::npos);
}

TEST_F(HostStop, ASignalToTheShellLeavesAloneWhatItStarted) {
  LaunchOrder order = script(
      "sh -c 'trap \"echo child >> heard\" USR1; echo ready > ready; while :; do sleep 0.01; done' "
      "&\ntrap 'echo parent >> heard' USR1\nwhile [ ! -e ready ]; do sleep 0.01; done\n"
      "echo go > go; wait; kill $!; wait");
  ASSERT_TRUE(host().launch(order));
  ASSERT_TRUE(eventually([&] { return exists(file("go")); }));
  host().signal_shell(kFirst, SIGUSR1);
  static_cast<void>(wait_for(HostEventKind::Ended));
  EXPECT_EQ(content(file("heard")), "parent\n");
}

std::vector<int> cores_of(pid_t thread) {
  cpu_set_t set;
  CPU_ZERO(&set);
  std::vector<int> cores;
  if (::sched_getaffinity(thread, sizeof set, &set) != 0) return cores;
  for (int core = 0; core < CPU_SETSIZE; ++core)
    if (CPU_ISSET(static_cast<std::size_t>(core), &set)) cores.push_back(core);
  return cores;
}

TEST_F(HostStop, CoresAreSetAtTheStartAndWhileItRuns) {
  const std::vector<int> ours = cores_of(0);
  if (ours.size() < 2) GTEST_SKIP() << "needs two cores";
  LaunchOrder order = script("setsid sleep 60 & echo $! > child; echo $$ > parent; wait");
  order.cores = {ours[1]};
  ASSERT_TRUE(host().launch(order));
  const pid_t parent = pid_in(file("parent"));
  const pid_t child = pid_in(file("child"));
  EXPECT_EQ(cores_of(parent), std::vector<int>{ours[1]});
  EXPECT_EQ(cores_of(child), std::vector<int>{ours[1]});
  host().set_cores(kFirst, {ours[0]});
  EXPECT_TRUE(eventually([&] {
    return cores_of(parent) == std::vector<int>{ours[0]} &&
           cores_of(child) == std::vector<int>{ours[0]};
  }));
  open();  // the next scheduler is told where it is, not where it was started
  const auto found = host().look(order.job, kFirst);
  ASSERT_TRUE(found && found->found == Found::Alive);
  EXPECT_EQ(found->cores, std::vector<std::int32_t>{ours[0]});
  host().set_cores(kFirst, {});  // any
  EXPECT_TRUE(eventually([&] { return cores_of(child).size() >= ours.size(); }));
}

}  // namespace
}  // namespace berth::host_test::host_stop_tests
