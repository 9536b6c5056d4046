// Real programs through real shims: how they begin, what they are given, how they end.
#include <sched.h>
#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fstream>

#include <sys/stat.h>
#include <unistd.h>

#include "base/boot_clock.h"
#include "exec/host_fixture.h"
#include "exec/process_table.h"

namespace berth::host_test {
namespace {

namespace fs = std::filesystem;
using HostRun = HostTest;

TEST_F(HostRun, TellsTheStartAndTheEnd) {
  const std::int64_t before = boot_clock_micros();
  ASSERT_TRUE(host().launch(script("echo hello; echo $$ > pid; exec sleep 0.05")));
  const HostEvent started = wait_for(HostEventKind::Started);
  EXPECT_EQ(started.job, 101U);
  const HostEvent ended = wait_for(HostEventKind::Ended);
  EXPECT_EQ(started.pid, pid_in(file("pid")));
  EXPECT_EQ(ended.exit.exit_code, 0);
  EXPECT_EQ(ended.exit.signal, 0);
  EXPECT_EQ(ended.exit.job, 101U);
  EXPECT_TRUE(ended.exit.was_started);
  EXPECT_FALSE(ended.exit.timed_out);
  EXPECT_EQ(ended.exit.stopped, Stopped::No);
  EXPECT_EQ(ended.exit.boot_id, boot_id());
  EXPECT_GE(ended.exit.begun_clock, before);
  EXPECT_GE(ended.exit.ended_clock - ended.exit.begun_clock, 50'000);
  EXPECT_LE(ended.exit.ended_clock, boot_clock_micros());
  EXPECT_GT(ended.exit.max_rss_kib, 0);
  EXPECT_EQ(content(file("out")), "hello\n");
}

TEST_F(HostRun, RecordsExitCodesAndSignalsAsTheyWere) {
  EXPECT_EQ(run(script("exit 0", 1)).exit_code, 0);
  EXPECT_EQ(run(script("exit 1", 2)).exit_code, 1);
  EXPECT_EQ(run(script("exit 255", 3)).exit_code, 255);
  const ExitRecord killed = run(script("kill -SEGV $$", 4));
  EXPECT_EQ(killed.signal, SIGSEGV);
  EXPECT_EQ(killed.exit_code, 0);
  EXPECT_EQ(run(script("kill -KILL $$", 5)).signal, SIGKILL);
  EXPECT_EQ(run(script("kill -TERM $$", 6)).signal, SIGTERM);
}

TEST_F(HostRun, CountsTheTimeItComputed) {
  const ExitRecord record = run(script("i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done"));
  EXPECT_GT(record.cpu_seconds, 0.01);
  EXPECT_LT(record.cpu_seconds, 60);
}

TEST_F(HostRun, WordsReachTheProgramUnread) {
  // because no shell stands between: each would be an accident if one did
  const std::vector<std::string> words{"$(touch pwned)", "a b", "", "'\"", ";exit 3", "*", "\n"};
  LaunchOrder order = script("printf '<%s>' \"$@\"");
  order.command = words;
  EXPECT_EQ(run(order).exit_code, 0);
  EXPECT_EQ(content(file("out")), "<$(touch pwned)><a b><><'\"><;exit 3><*><\n>");
  LaunchOrder direct = command({"printf", "<%s>", "`id`", "$HOME"}, 2);
  EXPECT_EQ(run(direct).exit_code, 0);
  EXPECT_EQ(content(file("out")), "<`id`><$HOME>");
}

TEST_F(HostRun, TheEnvironmentIsWhatWasOrdered) {
  ::setenv("BERTH_TEST_SECRET", "of the scheduler", 1);
  LaunchOrder order = command({"env", "-u", "BERTH_SHIM", "-u", "SLURM_TASK_PID", "-u",
                               "SLURM_TMPDIR", "-u", "BERTH_TMPDIR", "env"});
  order.env.push_back({"ODD", "a=b\nc"});
  order.env.push_back({"RANK", "9"});                // a rank is the task's, whoever says otherwise
  order.env.push_back({"TMPDIR", "/var/tmp/mine"});  // a place of one's own stays
  order.ranks = true;
  EXPECT_EQ(run(order).exit_code, 0);
  ::unsetenv("BERTH_TEST_SECRET");
  EXPECT_EQ(content(file("out")),
            "PATH=/usr/bin:/bin\nODD=a=b\nc\nTMPDIR=/var/tmp/mine\nSLURM_PROCID=0\n"
            "SLURM_LOCALID=0\nBERTH_TASK=0\nBERTH_CLAIM=" +
                run_file("attempt.1.1") + "\nBERTH_STEPS=" + run_file("steps.1.1") +
                "\nSLURM_GTIDS=0\nRANK=0\nLOCAL_RANK=0\n");
}

TEST_F(HostRun, InheritsNothingButItsThreeFiles) {
  EXPECT_EQ(run(command({"ls", "/proc/self/fd"})).exit_code, 0);
  EXPECT_EQ(content(file("out")), "0\n1\n2\n3\n");  // 3 is the listing itself
  EXPECT_EQ(
      run(script("grep -E 'Sig(Blk|Ign)' /proc/self/status; umask; pwd; readlink /proc/self/fd/0",
                 2))
          .exit_code,
      0);
  EXPECT_EQ(content(file("out")), "SigBlk:\t0000000000000000\nSigIgn:\t0000000000000000\n0022\n" +
                                      root_ + "\n/dev/null\n");
}

TEST_F(HostRun, ReadsItsInputAndKeepsErrorsApart) {
  std::ofstream(file("in")) << "from a file\n";
  LaunchOrder order = script("cat; echo wrong >&2");
  order.input = file("in");
  order.error = file("err");
  run(order);
  EXPECT_EQ(content(file("out")), "from a file\n");
  EXPECT_EQ(content(file("err")), "wrong\n");
}

TEST_F(HostRun, EmptiesOrExtendsItsOutput) {
  run(script("echo one", 1));
  run(script("echo two", 2));
  EXPECT_EQ(content(file("out")), "two\n");
  LaunchOrder more = script("echo three; echo four >&2", 3);
  more.append_output = true;
  run(more);
  EXPECT_EQ(content(file("out")), "two\nthree\nfour\n");
}

TEST_F(HostRun, HugeOutputArrivesWhole) {
  EXPECT_EQ(run(script("head -c 67108864 /dev/zero | tr '\\0' x")).exit_code, 0);
  EXPECT_EQ(fs::file_size(file("out")), 67108864U);
}

TEST_F(HostRun, SaysWhyAProgramCouldNotBeStarted) {
  const auto why = [&](LaunchOrder order, std::uint64_t counter) {
    order.attempt.counter = counter;
    const ExitRecord record = run(order);
    EXPECT_FALSE(record.was_started);
    EXPECT_FALSE(record.why.empty());
    return record.why;
  };
  EXPECT_EQ(why(command({"no-such-program"}), 1),
            "no-such-program: no such program in PATH /usr/bin:/bin");
  EXPECT_EQ(why(command({"./missing"}), 2), "./missing: does not exist");
  LaunchOrder nowhere = script("true");
  nowhere.workdir = file("nowhere");
  EXPECT_EQ(why(nowhere, 3),
            file("nowhere") + ": cannot enter the working directory: No such file or directory");
  LaunchOrder lost = script("true");
  lost.output = file("missing/out");
  EXPECT_EQ(why(lost, 4),
            file("missing/out") + ": cannot open the output file: No such file or directory");
  LaunchOrder plain = script("");
  plain.script = "echo hello\n";
  EXPECT_EQ(why(plain, 5), "the script does not begin with #! and a program to run it");
  plain.script = "#!/no/such/shell -e\n";
  EXPECT_EQ(why(plain, 6), "the script wants /no/such/shell, which does not exist");
  plain.script = "#!/bin/sh\r\necho\r\n";
  EXPECT_EQ(why(plain, 7), "the script has Windows line ends (run dos2unix on it)");
  LaunchOrder input = script("true");
  input.input = file("missing");
  EXPECT_EQ(why(input, 8),
            file("missing") + ": cannot open the input file: No such file or directory");
  LaunchOrder bound = script("true");
  bound.cores = {8000};
  EXPECT_EQ(why(bound, 9), "cannot run on cores 8000: Invalid argument");
  ASSERT_EQ(::mkfifo(file("pipe").c_str(), 0600), 0);
  LaunchOrder pipe = script("true");
  pipe.output = file("pipe");  // nobody reads it: the shim must not wait for ever
  EXPECT_EQ(why(pipe, 10),
            file("pipe") + ": cannot open the output file: No such device or address");
}

TEST_F(HostRun, RunsAsAnotherUserWithTheirRightsOnly) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root: jobs of other users";
  constexpr std::uint32_t kNobody = 65534;
  fs::create_directory(file("theirs"));
  ASSERT_EQ(::chown(file("theirs").c_str(), kNobody, kNobody), 0);
  LaunchOrder order = script(
      "id -u; id -g; id -G; test -r \"$0\" && cat order.* ../run/order.* 2>&1 | head -1; "
      "grep -E '^Cap(Inh|Prm|Eff|Amb)' /proc/self/status");
  order.uid = order.gid = kNobody;
  order.groups = {kNobody, 12345};
  order.workdir = file("theirs");
  order.output = file("theirs/out-%t");
  EXPECT_EQ(run(order).exit_code, 0);
  const std::string text = content(file("theirs/out-0"));
  EXPECT_TRUE(text.starts_with("65534\n65534\n65534 12345\n")) << text;
  EXPECT_NE(text.find("CapEff:\t0000000000000000"), std::string::npos) << text;
  struct stat made {};
  ASSERT_EQ(::stat(file("theirs/out-0").c_str(), &made), 0);
  EXPECT_EQ(made.st_uid, kNobody);  // opened by them, not for them

  // A file that only root could write stays as it is, also through a link of theirs.
  std::ofstream(file("root-only")) << "precious";
  fs::permissions(file("root-only"), fs::perms(0600));
  fs::create_symlink(file("root-only"), file("theirs/link"));
  order.attempt = {1, 2};
  order.output = file("theirs/link");
  const ExitRecord refused = run(order);
  EXPECT_FALSE(refused.was_started);
  EXPECT_EQ(refused.why, file("theirs/link") + ": cannot open the output file: Permission denied");
  EXPECT_EQ(content(file("root-only")), "precious");
}

TEST_F(HostRun, OnlyTheSchedulerReadsOrders) {
  ASSERT_TRUE(host().launch(script("exec sleep 30")));
  wait_for(HostEventKind::Started);
  for (const char* name : {"order.1.1", "attempt.1.1", "script.1.1"}) {
    struct stat made {};
    ASSERT_EQ(::stat(run_file(name).c_str(), &made), 0) << name;
    EXPECT_EQ(made.st_mode & 077U, 0U) << name;
  }
}

TEST_F(HostRun, TheShimIsOutOfOurFamilyAndSmall) {
  ASSERT_TRUE(host().launch(script("echo $PPID > shim; exec sleep 30")));
  const pid_t shim = pid_in(file("shim"));
  const auto row = process_row(shim);
  ASSERT_TRUE(row);
  EXPECT_NE(row->parent, ::getpid());
  EXPECT_NE(::getsid(shim), ::getsid(0));
  EXPECT_NE(::getpgid(shim), ::getpgrp());
  std::ifstream rollup("/proc/" + std::to_string(shim) + "/smaps_rollup");
  long private_kib = 0;
  for (std::string word; rollup >> word;) {
    long kib = 0;
    if (word.starts_with("Private_") && rollup >> kib) private_kib += kib;
  }
  RecordProperty("shim_private_kib", static_cast<int>(private_kib));
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  EXPECT_LT(private_kib, 2048);
#endif
  EXPECT_GT(private_kib, 0) << "smaps_rollup was not read";
}

/// Times it was put to sleep and woken again: by itself or by the kernel.
std::string switches_of(const std::string& thread) {
  std::ifstream status(thread + "/status");
  std::string counts;
  for (std::string line; std::getline(status, line);)
    if (line.find("ctxt_switches") != std::string::npos) counts += line + "\n";
  return counts;
}

TEST_F(HostRun, NobodyWakesWhileAJobJustRuns) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "the thread sanitizer has a thread of its own, which wakes";
#endif
  LaunchOrder order = script("echo $PPID > shim; exec sleep 30");
  order.time_limit = 3600;
  ASSERT_TRUE(host().launch(order));
  const std::string shim = "/proc/" + std::to_string(pid_in(file("shim")));
  wait_for(HostEventKind::Started);
  std::vector<std::string> threads{shim};  // and ours but the one that asks
  for (const auto& entry : fs::directory_iterator("/proc/self/task"))
    if (entry.path().filename() != std::to_string(::getpid())) threads.push_back(entry.path());
  ASSERT_EQ(threads.size(), 2U);
  ASSERT_TRUE(eventually([&] {  // the dust of the start has settled
    const auto row = process_row(pid_in(file("shim")));
    return row && row->state == 'S';
  }));
  ::usleep(100'000);
  std::vector<std::string> before;
  for (const std::string& thread : threads) before.push_back(switches_of(thread));
  ::usleep(500'000);
  for (std::size_t i = 0; i < threads.size(); ++i) {
    ASSERT_FALSE(before[i].empty());
    EXPECT_EQ(switches_of(threads[i]), before[i]) << threads[i];
  }
}

TEST_F(HostRun, ATaskKnowsItsRankAndWritesItsOwnFile) {
  LaunchOrder order =
      script("echo rank $RANK of 3, local $LOCAL_RANK $SLURM_PROCID $SLURM_LOCALID $BERTH_TASK");
  order.tasks = 3;
  order.ranks = true;
  order.output = file("task-%2t-100%%.out");
  EXPECT_EQ(run(order).exit_code, 0);
  for (const std::string rank : {"0", "1", "2"}) {
    EXPECT_EQ(
        content(file("task-0" + rank + "-100%.out")),
        "rank " + rank + " of 3, local " + rank + " " + rank + " " + rank + " " + rank + "\n");
  }
}

TEST_F(HostRun, TasksThatShareAFileDoNotWriteOverEachOther) {
  std::ofstream(file("out")) << "old\n";
  LaunchOrder order = script("for i in 1 2 3 4 5 6 7 8 9 10; do echo task $RANK line $i; done");
  order.tasks = 8;
  order.ranks = true;
  run(order);
  std::ifstream in(file("out"));
  std::vector<std::string> lines;
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  EXPECT_EQ(lines.size(), 80U);
  std::sort(lines.begin(), lines.end());
  EXPECT_EQ(std::unique(lines.begin(), lines.end()), lines.end());
}

TEST_F(HostRun, TheFirstTaskThatFailsEndsTheGang) {
  LaunchOrder order = script(
      "echo $$ > task.$RANK; if [ $RANK = 1 ]; then "
      "while [ ! -s task.0 ] || [ ! -s task.2 ]; do sleep 0.01; done; exit 7; fi; exec sleep 60");
  order.tasks = 3;
  order.ranks = true;
  const ExitRecord record = run(order);
  EXPECT_EQ(record.exit_code, 7);
  EXPECT_EQ(record.signal, 0);
  EXPECT_EQ(record.why, "task 1 failed first");
  EXPECT_FALSE(is_running(pid_in(file("task.0"))));
  EXPECT_FALSE(is_running(pid_in(file("task.2"))));
}

TEST_F(HostRun, AGangOfWhichOneCannotStartDoesNotRun) {
  LaunchOrder order = script("echo $$ > task.$RANK; exec sleep 60");
  order.tasks = 2;
  order.ranks = true;
  fs::create_directory(file("o-0"));
  order.output = file("o-%t/out");  // only the first has its folder
  const ExitRecord record = run(order);
  EXPECT_FALSE(record.was_started);
  EXPECT_NE(record.why.find("o-1/out"), std::string::npos);
  EXPECT_EQ(count(HostEventKind::Started), 0U);
}

TEST_F(HostRun, TwoHundredAtOnce) {
  constexpr std::uint64_t kJobs = 200;
  for (std::uint64_t i = 1; i <= kJobs; ++i) {
    LaunchOrder order = script("echo $$; exit " + std::to_string(i % 50), i);
    order.output = file("out." + std::to_string(i));
    ASSERT_TRUE(host().launch(order));
  }
  for (std::uint64_t i = 1; i <= kJobs; ++i) {
    EXPECT_EQ(wait_for(HostEventKind::Ended, {1, i}).exit.exit_code, static_cast<int>(i % 50));
    EXPECT_EQ(std::ranges::count(content(file("out." + std::to_string(i))), '\n'), 1);
    host().forget({1, i});
  }
  EXPECT_EQ(count(HostEventKind::Started), kJobs);
  EXPECT_EQ(count(HostEventKind::LaunchLost), 0U);
  EXPECT_TRUE(fs::is_empty(file("run")));  // nothing is left of what was forgotten
}

}  // namespace
}  // namespace berth::host_test
