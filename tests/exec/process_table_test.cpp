// Processes by their names for ever: number and start.
#include "exec/process_table.h"

#include <gtest/gtest.h>

#include <csignal>
#include <future>
#include <thread>

#include <sched.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

namespace berth {
namespace {

/// A child that waits for a signal, gone at the end of the test.
class Sleeper {
 public:
  Sleeper() : pid_(::fork()) {
    if (pid_ == 0)
      for (;;) ::pause();
  }
  ~Sleeper() {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  Sleeper(const Sleeper&) = delete;
  Sleeper& operator=(const Sleeper&) = delete;
  [[nodiscard]] pid_t pid() const { return pid_; }

 private:
  pid_t pid_;
};

TEST(ProcessTable, ANumberUsedAgainIsAnotherProcess) {
  const Sleeper child;
  auto row = process_row(child.pid());
  ASSERT_TRUE(row);
  EXPECT_EQ(row->parent, ::getpid());
  EXPECT_GT(row->start, 0U);
  ProcessRow other = *row;
  other.start -= 1;  // the one that had the number before
  EXPECT_FALSE(send_signal(other, SIGKILL));
  EXPECT_TRUE(process_row(child.pid())->is_alive());
  EXPECT_TRUE(send_signal(*row, SIGCONT));
}

TEST(ProcessTable, ANameWithBracketsConfusesNobody) {
  const auto before = process_row(::getpid());
  char old[16];
  ::prctl(PR_GET_NAME, old);
  ::prctl(PR_SET_NAME, ") Z 1 (\n 2 3");
  const auto row = process_row(::getpid());
  ::prctl(PR_SET_NAME, old);
  ASSERT_TRUE(row && before);
  EXPECT_EQ(row->parent, ::getppid());
  EXPECT_EQ(row->start, before->start);
  EXPECT_TRUE(row->is_alive());
}

TEST(ProcessTable, DescendantsAreFoundAndTheDeadAreNot) {
  const Sleeper child;
  const pid_t dead = ::fork();
  if (dead == 0) ::_exit(0);
  siginfo_t over{};
  ASSERT_EQ(::waitid(P_PID, static_cast<id_t>(dead), &over, WEXITED | WNOWAIT), 0);
  bool has_child = false, has_dead = false;
  for (const ProcessRow& row : descendants_of(::getpid())) {
    has_child = has_child || row.pid == child.pid();
    has_dead = has_dead || row.pid == dead;
  }
  ::waitpid(dead, nullptr, 0);
  EXPECT_TRUE(has_child);
  EXPECT_FALSE(has_dead);
}

TEST(ProcessTable, AllThreadsAreBound) {
  cpu_set_t ours;
  ASSERT_EQ(::sched_getaffinity(0, sizeof ours, &ours), 0);
  std::int32_t last = -1;
  for (std::int32_t core = 0; core < CPU_SETSIZE; ++core)
    if (CPU_ISSET(static_cast<std::size_t>(core), &ours)) last = core;
  std::promise<void> go;
  std::promise<int> count;
  std::thread other([&, ready = go.get_future()]() mutable {
    ready.wait();
    cpu_set_t mine;
    CPU_ZERO(&mine);
    ::sched_getaffinity(0, sizeof mine, &mine);
    count.set_value(CPU_ISSET(static_cast<std::size_t>(last), &mine) ? CPU_COUNT(&mine) : -1);
  });
  EXPECT_TRUE(bind_process(::getpid(), {last}));
  go.set_value();
  EXPECT_EQ(count.get_future().get(), 1);
  other.join();
  EXPECT_FALSE(bind_process(::getpid(), {8000}));  // no such core
  ASSERT_EQ(::sched_setaffinity(0, sizeof ours, &ours), 0);
}

}  // namespace
}  // namespace berth
