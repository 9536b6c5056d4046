// Points where a process dies when a test asks for it.
#include "base/crash_point.h"

#include <gtest/gtest.h>

#include <csignal>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <string>
#include <vector>

#include <sys/wait.h>
#include <unistd.h>

#include "support/temporary_directory.h"

namespace berth {
namespace {

TEST(CrashPoint, AHookHearsOfEachPointWhileItLives) {
  std::vector<std::string> heard;
  {
    const CrashHook hook([&](std::string_view name) { heard.emplace_back(name); });
    crash_point("one");
    crash_point("two");
  }
  crash_point("three");
  EXPECT_EQ(heard, (std::vector<std::string>{"one", "two"}));
}

TEST(CrashPoint, AHookMayThrow) {
  const CrashHook hook([](std::string_view) { throw 7; });
  EXPECT_THROW(crash_point("one"), int);
}

/// Runs the program again, with this test alone and the variable set: the environment is read once
/// per process.
int run_again(const std::string& name, const std::string& value) {
  const pid_t child = ::fork();
  if (child == 0) {
    ::setenv(name.c_str(), value.c_str(), 1);
    ::setenv("BERTH_CRASH_POINT_CHILD", "1", 1);
    ::execl("/proc/self/exe", "crash_point_test", "--gtest_filter=CrashPoint.PassesPointsAsAChild",
            "--gtest_brief=1", nullptr);
    ::_exit(99);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return status;
}

TEST(CrashPoint, PassesPointsAsAChild) {
  if (std::getenv("BERTH_CRASH_POINT_CHILD") == nullptr)
    GTEST_SKIP() << "SKIP: only as a child of the tests below";
  for (int i = 0; i < 3; ++i) {
    crash_point("a");
    crash_point("b");
  }
}

TEST(CrashPoint, KillsAtTheCountedPass) {
  const auto is_killed = [](int status) {
    return WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
  };
  EXPECT_TRUE(is_killed(run_again("BERTH_CRASH_POINT", "b:3")));
  EXPECT_TRUE(is_killed(run_again("BERTH_CRASH_POINT", "a")));
  EXPECT_TRUE(is_killed(run_again("BERTH_CRASH_POINT", "*:6")));
  EXPECT_EQ(run_again("BERTH_CRASH_POINT", "b:4"), 0);
  EXPECT_EQ(run_again("BERTH_CRASH_POINT", "*:7"), 0);
}

TEST(CrashPoint, WritesDownWhatWasPassed) {
  const test::TemporaryDirectory directory;
  const std::string path = directory.path() + "/points";
  EXPECT_EQ(run_again("BERTH_CRASH_COUNT", path), 0);
  std::ifstream in(path);
  const std::string all((std::istreambuf_iterator<char>(in)), {});
  EXPECT_EQ(all, "a\nb\na\nb\na\nb\n");
}

}  // namespace
}  // namespace berth
