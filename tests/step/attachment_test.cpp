// The client's end on a real terminal.
#include <gtest/gtest.h>

#include <sys/wait.h>
#include <csignal>

#include "step/hosted.h"

namespace berth::step {
namespace {

SessionOptions program(const std::string& text, bool on_terminal) {
  SessionOptions options;
  options.program.words = {"/bin/sh", "-c", text};
  options.program.on_terminal = on_terminal;
  return options;
}

std::function<int()> attached_to(const HostProcess& host, AttachOptions options = {}) {
  return [&host, options] {
    const AttachEnd end = attach(host.connect(), options);
    return end.kind == AttachEnd::Kind::Lost ? 99 : end.code;
  };
}

TEST(Attachment, KeysGoToTheProgramAndTheTerminalIsRestored) {
  HostProcess host(program("echo ready; read line; echo \"<$line>\"; exit 5", true));
  TerminalClient client({.rows = 40, .columns = 100}, attached_to(host));
  ASSERT_TRUE(client.shows("ready"));
  EXPECT_TRUE(client.is_raw());
  client.type("hello\r");
  EXPECT_TRUE(client.shows("<hello>"));
  EXPECT_EQ(client.exit_code(), 5);
  EXPECT_FALSE(client.is_raw());
}

TEST(Attachment, SizeOfTheTerminalFollows) {
  HostProcess host(program("trap 'stty size' WINCH; stty size; while :; do sleep 0.1; done", true));
  TerminalClient client({.rows = 40, .columns = 100}, attached_to(host));
  ASSERT_TRUE(client.shows("40 100"));
  client.resize({.rows = 55, .columns = 132});
  EXPECT_TRUE(client.shows("55 132"));
}

// Ctrl-C, Ctrl-Z and Ctrl-\ are the remote terminal's: the shell there keeps its jobs.
TEST(Attachment, KeysThatMakeSignalsWorkInTheSession) {
  SessionOptions options;
  options.program.words = {"/bin/bash", "--norc", "--noprofile", "-i"};
  options.program.on_terminal = true;
  HostProcess host(options);
  TerminalClient client({.rows = 40, .columns = 100}, attached_to(host));
  client.type("PS1='$ '; echo rea''dy\r");
  ASSERT_TRUE(client.shows("ready"));
  client.type("sleep 1000\r");
  ASSERT_TRUE(client.shows("sleep 1000"));
  becomes_true([&, rounds = 0]() mutable { return ++rounds > 30; });  // until it runs
  client.type("\x1a");
  ASSERT_TRUE(client.shows("Stopped"));
  client.type("fg\r");
  becomes_true([&, rounds = 0]() mutable { return ++rounds > 30; });
  client.type("\x03");
  client.type("echo code=$?\r");
  ASSERT_TRUE(client.shows("code=130"));
  client.type("exit 4\r");
  EXPECT_EQ(client.exit_code(), 4);
}

TEST(Attachment, SignalsThatEndItRestoreTheTerminalAndLeaveTheSession) {
  for (const int number : {SIGTERM, SIGHUP}) {
    HostProcess host(program("echo ready; read line; echo \"<$line>\"", true));
    TerminalClient client({.rows = 40, .columns = 100}, attached_to(host));
    ASSERT_TRUE(client.shows("ready"));
    client.kill(number);
    EXPECT_EQ(client.exit_code(), 128 + number);
    EXPECT_FALSE(client.is_raw());
    TerminalClient again({.rows = 30, .columns = 90}, attached_to(host));
    ASSERT_TRUE(again.shows("ready"));
    again.type("back\r");
    EXPECT_TRUE(again.shows("<back>"));
    EXPECT_EQ(again.exit_code(), 0);
  }
}

TEST(Attachment, KilledClientLosesNothing) {
  HostProcess host(program("echo ready; read line; echo \"<$line>\"", true));
  TerminalClient client({.rows = 40, .columns = 100}, attached_to(host));
  ASSERT_TRUE(client.shows("ready"));
  client.kill(SIGKILL);
  EXPECT_EQ(client.exit_code(), 137);
  TerminalClient again({.rows = 30, .columns = 90}, attached_to(host));
  ASSERT_TRUE(again.shows("ready"));
  again.type("back\r");
  EXPECT_TRUE(again.shows("<back>"));
}

TEST(Attachment, WithoutATerminalTheFirstCtrlCOnlyWarnsAndTheSecondInterrupts) {
  HostProcess host(
      program("trap 'echo caught; exit 8' INT; echo ready; while :; do sleep 0.1; done", false));
  TerminalClient client({.rows = 40, .columns = 100}, attached_to(host, {.what = "job 12"}));
  ASSERT_TRUE(client.shows("ready"));
  EXPECT_FALSE(client.is_raw());
  client.type("\x03");
  ASSERT_TRUE(client.shows("srun: interrupt (one more within 1 sec to abort)"));
  // On a busy machine the second may come too late to be one: then it is a first again.
  EXPECT_TRUE(becomes_true([&] {
    client.type("\x03");
    return client.screen().find("caught") != std::string::npos || client.shows("caught");
  }));
  EXPECT_EQ(client.exit_code(), 8);
  // The step itself tells what it passes on.
  EXPECT_EQ(client.screen().find("sending Ctrl-C"), std::string::npos);
}

TEST(Attachment, ThirdCtrlCKills) {
  HostProcess host(program("trap '' INT; echo ready; while :; do sleep 0.1; done", false));
  TerminalClient client({.rows = 40, .columns = 100}, attached_to(host));
  ASSERT_TRUE(client.shows("ready"));
  EXPECT_TRUE(becomes_true([&, rounds = 0]() mutable {
    if (rounds++ % 5 == 0) client.type("\x03");
    siginfo_t ended{};
    return ::waitid(P_PID, static_cast<id_t>(host.pid()), &ended, WEXITED | WNOHANG | WNOWAIT) ==
               0 &&
           ended.si_pid == host.pid();
  }));
  EXPECT_EQ(client.exit_code(), 137);
}

TEST(Attachment, CtrlZStopsTheClientAlone) {
  HostProcess host(
      program("trap 'echo stopped' TSTP; echo ready; i=0; "
              "while [ $i -lt 20 ]; do sleep 0.1; i=$((i+1)); done; echo done",
              false));
  TerminalClient client({.rows = 40, .columns = 100}, attached_to(host));
  ASSERT_TRUE(client.shows("ready"));
  client.type("\x1a");
  // A process that leads its session cannot be stopped by the key: nobody could continue it. So
  // the program must at least not have heard of it.
  EXPECT_TRUE(client.shows("done"));
  EXPECT_EQ(client.screen().find("stopped"), std::string::npos);
}

TEST(Attachment, EndOfInputOnTheTerminalIsPassedOn) {
  HostProcess host(program("cat; echo over", false));
  TerminalClient client({.rows = 40, .columns = 100}, attached_to(host));
  client.type("line\n");
  ASSERT_TRUE(client.shows("line\r\nline"));
  client.type("\x04");
  EXPECT_TRUE(client.shows("over"));
  EXPECT_EQ(client.exit_code(), 0);
}

/// A process that is not the first of its terminal: nobody sends it a SIGHUP when that goes away.
std::function<int()> not_leading(const std::function<int()>& body) {
  return [body] {
    ::signal(SIGHUP, SIG_IGN);  // of the terminal, to us alone
    const pid_t child = ::fork();
    if (child == 0) ::_exit(body());
    int status = 0;
    ::waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 98;
  };
}

// A closed window is no end of input: a shell would take it for `exit`.
TEST(Attachment, TerminalThatGoesAwayLeavesTheSession) {
  for (const bool on_terminal : {true, false}) {
    for (const bool is_leader : {true, false}) {
      HostProcess host(program("echo ready; read line; echo \"<$line>\"", on_terminal));
      const auto body = attached_to(host);
      TerminalClient client({.rows = 40, .columns = 100}, is_leader ? body : not_leading(body));
      ASSERT_TRUE(client.shows("ready"));
      client.close();
      EXPECT_EQ(client.exit_code(), 128 + SIGHUP) << on_terminal << is_leader;
      TerminalClient again({.rows = 30, .columns = 90}, attached_to(host));
      ASSERT_TRUE(again.shows("ready"));
      again.type("back\r");
      EXPECT_TRUE(again.shows("<back>")) << on_terminal << is_leader;
      EXPECT_EQ(again.exit_code(), 0);
    }
  }
}

TEST(Attachment, TerminalThatGoesAwayWhileItIsWrittenToLeavesTheSession) {
  HostProcess host(program(
      "while :; do echo busy; sleep 0.01; done & read line; kill $!; echo \"<$line>\"", true));
  TerminalClient client({.rows = 40, .columns = 100}, not_leading(attached_to(host)));
  ASSERT_TRUE(client.shows("busy"));
  client.close();
  EXPECT_EQ(client.exit_code(), 128 + SIGHUP);
  TerminalClient again({.rows = 30, .columns = 90}, attached_to(host));
  again.type("back\r");
  EXPECT_TRUE(again.shows("<back>"));
}

// The one who watches is told everything and changes nothing: no end of input, no key, no size.
TEST(Attachment, WhoWatchesChangesNothing) {
  HostProcess host(program("echo ready; read line; stty size; echo \"<$line>\"", true));
  {
    TerminalClient first({.rows = 40, .columns = 100}, attached_to(host));
    ASSERT_TRUE(first.shows("ready"));
    first.kill(SIGKILL);
    ASSERT_EQ(first.exit_code(), 137);
  }
  {
    TerminalClient watcher({.rows = 20, .columns = 60},
                           attached_to(host, {.input = InputUse::Withheld}));
    ASSERT_TRUE(watcher.shows("ready"));
    EXPECT_FALSE(watcher.is_raw());
    watcher.type("ignored\r\x04");
    watcher.resize({.rows = 21, .columns = 61});
    watcher.type("\x03");
    EXPECT_EQ(watcher.exit_code(), 128 + SIGINT);
  }
  FrameClient again(host.connect());  // without a size of its own
  again.say(FrameKind::Input, "back\r");
  EXPECT_TRUE(again.hears_output("40 100"));
  EXPECT_TRUE(again.hears_output("<back>"));
  EXPECT_EQ(again.hears_exit(), 0);
}

TEST(Attachment, HostThatIsKilledIsALostConnection) {
  HostProcess host(program("echo ready; exec sleep 1000", true));
  TerminalClient client({.rows = 40, .columns = 100}, attached_to(host));
  ASSERT_TRUE(client.shows("ready"));
  host.kill(SIGKILL);
  EXPECT_EQ(client.exit_code(), 99);
  EXPECT_FALSE(client.is_raw());
}

}  // namespace
}  // namespace berth::step
