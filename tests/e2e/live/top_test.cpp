// berth top in a pseudo-terminal: the screen, the keys, and the terminal as it was before.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <csignal>

#include <fcntl.h>
#include <poll.h>
#include <pty.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include "client/played_scheduler.h"

namespace berth::test {
namespace {

using nlohmann::json;
using testing::HasSubstr;

/// The program in a terminal of 80 by 24.
class Terminal {
 public:
  Terminal(const PlayedScheduler& scheduler, std::vector<std::string> words) {
    winsize size{24, 80, 0, 0};
    child_ = ::forkpty(&master_, nullptr, nullptr, &size);
    if (child_ == 0) {
      ::setenv("BERTH_SOCKET", scheduler.socket().c_str(), 1);
      ::setenv("TERM", "xterm", 1);
      ::unsetenv("BERTH_URL");
      ::unsetenv("NO_COLOR");
      std::string program = BERTH_PROGRAM;
      std::vector<char*> argv{program.data()};
      for (std::string& word : words) argv.push_back(word.data());
      argv.push_back(nullptr);
      ::execv(program.c_str(), argv.data());
      std::_Exit(127);
    }
    ::tcgetattr(master_, &before_);
  }
  ~Terminal() {
    if (child_ > 0) {
      ::kill(child_, SIGKILL);
      ::waitpid(child_, nullptr, 0);
    }
    ::close(master_);
  }
  Terminal(const Terminal&) = delete;
  Terminal& operator=(const Terminal&) = delete;

  void type(std::string_view keys) const {
    [[maybe_unused]] const auto written = ::write(master_, keys.data(), keys.size());
  }
  void resize(unsigned short columns, unsigned short rows) const {
    const winsize size{rows, columns, 0, 0};
    ::ioctl(master_, TIOCSWINSZ, &size);
  }
  void signal(int which) const { ::kill(child_, which); }
  /// Everything that has come so far.
  const std::string& seen() {
    pollfd ready{master_, POLLIN, 0};
    while (::poll(&ready, 1, 0) > 0) {
      char block[65'536];
      const ssize_t got = ::read(master_, block, sizeof block);
      if (got <= 0) break;
      seen_.append(block, static_cast<std::size_t>(got));
    }
    return seen_;
  }
  bool shows(const std::string& text) {
    return eventually([&] { return seen().find(text) != std::string::npos; });
  }
  /// The same, of what comes from now on.
  void forget() {
    static_cast<void>(seen());
    seen_.clear();
  }
  /// Its exit code, once it has ended.
  int exit() {
    int status = 0;
    const bool ended = eventually([&] {
      static_cast<void>(seen());  // a full terminal would keep it from ending
      return ::waitpid(child_, &status, WNOHANG) == child_;
    });
    if (!ended) return -1;
    child_ = -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }
  [[nodiscard]] bool is_as_before() const {
    termios now{};
    ::tcgetattr(master_, &now);
    return now.c_lflag == before_.c_lflag && now.c_iflag == before_.c_iflag;
  }

 private:
  int master_ = -1;
  int child_ = -1;
  termios before_{};
  std::string seen_;
};

constexpr auto kEnter = "\x1b[?1049h";
constexpr auto kLeave = "\x1b[?1049l";

TEST(Top, ShowsTheClusterAndLeavesTheTerminalAsItWas) {
  PlayedScheduler scheduler;
  Terminal terminal(scheduler, {"top"});
  ASSERT_TRUE(terminal.shows("train")) << terminal.seen();
  EXPECT_THAT(terminal.seen(), HasSubstr(kEnter));
  EXPECT_TRUE(terminal.shows("1 running, 2 waiting"));
  EXPECT_TRUE(terminal.shows("q quit"));
  EXPECT_FALSE(terminal.is_as_before());
  terminal.type("q");
  EXPECT_EQ(terminal.exit(), 0);
  EXPECT_THAT(terminal.seen(), HasSubstr(kLeave));
  EXPECT_TRUE(terminal.is_as_before());
}

TEST(Top, LeavesTheTerminalAsItWasAfterSignals) {
  for (const int which : {SIGTERM, SIGINT, SIGHUP}) {
    PlayedScheduler scheduler;
    Terminal terminal(scheduler, {"top"});
    ASSERT_TRUE(terminal.shows("train"));
    terminal.signal(which);
    EXPECT_EQ(terminal.exit(), 0) << which;
    EXPECT_THAT(terminal.seen(), HasSubstr(kLeave)) << which;
    EXPECT_TRUE(terminal.is_as_before()) << which;
  }
}

TEST(Top, StopsAndGoesOn) {
  PlayedScheduler scheduler;
  Terminal terminal(scheduler, {"top"});
  ASSERT_TRUE(terminal.shows("train"));
  terminal.signal(SIGTSTP);
  EXPECT_TRUE(terminal.shows(kLeave));
  EXPECT_TRUE(eventually([&] { return terminal.is_as_before(); }));
  terminal.forget();
  terminal.signal(SIGCONT);
  EXPECT_TRUE(terminal.shows(kEnter));
  EXPECT_TRUE(terminal.shows("train"));
  terminal.type("q");
  EXPECT_EQ(terminal.exit(), 0);
}

TEST(Top, CancelsTheSelectedJobAfterAsking) {
  PlayedScheduler scheduler;
  Terminal terminal(scheduler, {"top"});
  ASSERT_TRUE(terminal.shows("train"));
  terminal.type("\x1b[B");  // down: the first job is selected
  ASSERT_TRUE(terminal.shows("\x1b[7m"));
  terminal.type("c");
  ASSERT_TRUE(terminal.shows("cancel job 12? (y/n)"));
  terminal.type("n");
  terminal.type("\x1b[B");
  terminal.type("c");
  ASSERT_TRUE(terminal.shows("cancel job 13? (y/n)"));
  terminal.type("y");
  ASSERT_TRUE(terminal.shows("job 13: done: cancel"));
  EXPECT_EQ(scheduler.server().asked("POST", "/api/v1/jobs/actions").size(), 1U);  // "n" was heard
  EXPECT_EQ(scheduler.sent("POST", "/api/v1/jobs/actions"),
            json::parse(R"({"verb":"cancel","ids":[13]})"));
}

TEST(Top, FiltersSortsAndFollowsItsSize) {
  PlayedScheduler scheduler;
  Terminal terminal(scheduler, {"top"});
  ASSERT_TRUE(terminal.shows("sort:state"));
  terminal.type("s");
  ASSERT_TRUE(terminal.shows("sort:user"));
  terminal.type("/bob\r");
  ASSERT_TRUE(terminal.shows("filter:bob"));
  terminal.forget();
  terminal.resize(40, 10);
  ASSERT_TRUE(terminal.shows("sweep"));
  EXPECT_EQ(terminal.seen().find("train"), std::string::npos) << terminal.seen();
}

TEST(Top, IsDrivenByEvents) {
  PlayedScheduler scheduler;
  std::atomic<bool> is_told = false;
  scheduler.first = [&](const Asked& asked) {
    if (asked.path() != "/api/v1/events") return Told{.status = 0};
    return Told{.stream = [&](const Told::Write& write) {
      while (!is_told && write("")) std::this_thread::sleep_for(std::chrono::milliseconds(2));
      write("id: 1\nevent: job\ndata: {}\n\n");
      while (write("")) std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }};
  };
  Terminal terminal(scheduler, {"top"});
  ASSERT_TRUE(terminal.shows("train"));
  scheduler.set_job({{"number", 13}, {"state", "starting"}});
  is_told = true;
  EXPECT_TRUE(terminal.shows("starting"));
}

TEST(Top, StaysWhenTheSchedulerGoes) {
  PlayedScheduler scheduler;
  std::atomic<bool> is_gone = false;
  scheduler.first = [&](const Asked&) {
    return is_gone ? Told{.cut_after = 0} : Told{.status = 0};
  };
  Terminal terminal(scheduler, {"top"});
  ASSERT_TRUE(terminal.shows("train"));
  is_gone = true;
  ASSERT_TRUE(terminal.shows("closed in the middle"));
  is_gone = false;
  terminal.forget();
  ASSERT_TRUE(eventually([&] {
    const std::string& screen = terminal.seen();
    const auto last = screen.rfind("\x1b[H");
    return last != std::string::npos &&
           screen.find("closed in the middle", last) == std::string::npos;
  }));
  terminal.type("q");
  EXPECT_EQ(terminal.exit(), 0);
}

TEST(Top, PrintsOnceWhereThereIsNoTerminal) {
  PlayedScheduler scheduler;
  const Ran ran = scheduler.run("top");
  EXPECT_EQ(ran.exit, 0) << ran.err;
  EXPECT_THAT(ran.out, testing::StartsWith(
                           "berth 0.1.0  las  up 2.0 h  1 running, 2 waiting, 0 held\nGPUs [####"));
  EXPECT_THAT(ran.out, HasSubstr("n3    drained"));
  EXPECT_THAT(ran.out, HasSubstr(" 12  train"));
  EXPECT_EQ(ran.out.find('\x1b'), std::string::npos);
}

TEST(Queue, HasColoursOnATerminalOnly) {
  PlayedScheduler scheduler;
  Terminal terminal(scheduler, {"queue"});
  EXPECT_TRUE(terminal.shows("\x1b[32mrunning\x1b[0m"));
  EXPECT_EQ(terminal.exit(), 0);
  EXPECT_EQ(scheduler.run("queue").out.find('\x1b'), std::string::npos);
}

}  // namespace
}  // namespace berth::test
