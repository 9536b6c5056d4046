#include <gtest/gtest.h>

#include <csignal>
#include <filesystem>

#include <unistd.h>

#include "step/hosted.h"
#include "step/local_socket.h"

namespace berth::step {
namespace {

SessionOptions shell(const std::string& text, bool on_terminal = false) {
  SessionOptions options;
  options.program.words = {"/bin/sh", "-c", text};
  options.program.on_terminal = on_terminal;
  return options;
}

TEST(Session, PassesInputOnAndKeepsOutputAndErrorsApart) {
  HostProcess host(shell("cat; echo wrong >&2; exit 7"));
  FrameClient client(host.connect());
  client.say(FrameKind::Input, "one\ntwo\n");
  client.say(FrameKind::EndOfInput);
  EXPECT_EQ(client.hears_exit(), 7);
  EXPECT_EQ(client.output, "one\ntwo\n");
  EXPECT_EQ(client.error, "wrong\n");
  EXPECT_EQ(host.exit_code(), 7);
  EXPECT_EQ(host.reason(), "");  // the program ended by itself
}

TEST(Session, ProgramKilledByASignalIsToldAsAShellDoes) {
  HostProcess host(shell("kill -9 $$"));
  FrameClient client(host.connect());
  EXPECT_EQ(client.hears_exit(), 137);
  EXPECT_EQ(host.exit_code(), 137);
}

TEST(Session, ProgramThatIsNotThereIsToldOf) {
  SessionOptions options;
  options.program.words = {"no-such-program-here"};
  HostProcess host(options);
  FrameClient client(host.connect());
  EXPECT_EQ(client.hears_exit(), 127);
  EXPECT_NE(client.error.find("no-such-program-here: No such file"), std::string::npos);
}

TEST(Session, TerminalHasTheClientsSizeAndName) {
  HostProcess host(shell("stty size; echo $TERM; read x; stty size", true));
  FrameClient client(host.connect(), {.size = {.rows = 33, .columns = 77}, .term = "vt220"});
  EXPECT_TRUE(client.hears_output("33 77"));
  EXPECT_TRUE(client.hears_output("vt220"));
  client.say(FrameKind::Resize, payload_of(WindowSize{.rows = 50, .columns = 120}));
  client.say(FrameKind::Input, "\r");
  EXPECT_TRUE(client.hears_output("50 120"));
  EXPECT_EQ(client.hears_exit(), 0);
}

TEST(Session, CtrlCOnTheTerminalInterruptsTheProgram) {
  HostProcess host(shell("echo ready; sleep 1000", true));
  FrameClient client(host.connect());
  ASSERT_TRUE(client.hears_output("ready"));
  // A shell that is just about to begin the program may lose the first.
  for (int tries = 0; tries < 100 && !client.code; ++tries) {
    client.say(FrameKind::Input, "\x03");
    client.hear_until([&, rounds = 0]() mutable { return client.code || ++rounds > 2; });
  }
  EXPECT_EQ(client.code, 130);
}

// A program that reads nothing must still hear signals: input is sent against credit.
TEST(Session, SignalDoesNotWaitBehindInputThatNobodyReads) {
  HostProcess host(shell("echo ready; exec sleep 1000"));
  FrameClient client(host.connect());
  ASSERT_TRUE(client.hears_output("ready"));
  for (int i = 0; i < 4; ++i) client.say(FrameKind::Input, std::string(16U << 10U, 'x'));
  client.say(FrameKind::Signal, std::string(1, static_cast<char>(SIGINT)));
  EXPECT_EQ(client.hears_exit(), 130);
}

TEST(Session, MoreInputThanThereIsCreditForEndsTheConnectionNotTheSession) {
  HostProcess host(shell("echo ready; exec sleep 1000"));
  FrameClient greedy(host.connect());
  ASSERT_TRUE(greedy.hears_output("ready"));
  EXPECT_EQ(greedy.credit, kFirstCredit);
  for (int i = 0; i < 20; ++i) greedy.say(FrameKind::Input, std::string(kMaxPayload, 'x'));
  EXPECT_TRUE(greedy.is_dropped());
  FrameClient next(host.connect());
  EXPECT_TRUE(next.hears_output("ready"));
}

TEST(Session, InputOfManyMebibytesFlowsAgainstCredit) {
  HostProcess host(shell("wc -c"));
  FrameClient client(host.connect());
  std::size_t sent = 0;
  const std::size_t all = 3U << 20U;
  while (sent < all && client.hear_until([&] { return client.credit > 0; })) {
    const std::size_t part = std::min({client.credit, all - sent, kMaxPayload});
    client.say(FrameKind::Input, std::string(part, 'x'));
    client.credit -= part;
    sent += part;
  }
  client.say(FrameKind::EndOfInput);
  EXPECT_EQ(client.hears_exit(), 0);
  EXPECT_EQ(std::stoul(client.output), all);
}

TEST(Session, ClientThatIsLostFindsEverythingAgain) {
  HostProcess host(shell("echo first; read line; echo got $line; exit 3"));
  FrameClient lost(host.connect());
  ASSERT_TRUE(lost.hears_output("first"));
  lost.go();
  FrameClient again(host.connect());
  EXPECT_TRUE(again.hears_output("first"));
  again.say(FrameKind::Input, "hello\n");
  EXPECT_EQ(again.hears_exit(), 3);
  EXPECT_EQ(again.output, "first\ngot hello\n");
}

TEST(Session, OutputMadeWhileNobodyWasThereIsKeptToItsEnd) {
  HostProcess host(shell("read go; seq 1 100000; echo last; read end"));
  FrameClient lost(host.connect());
  lost.say(FrameKind::Input, "go\n");
  ASSERT_TRUE(lost.hears_output("1\n"));
  lost.go();  // in the middle; the program is not held up
  FrameClient again(host.connect(), {.takes_over = true});
  EXPECT_TRUE(again.hears_output("last\n"));
  EXPECT_NE(again.output.find("100000\n"), std::string::npos);
}

TEST(Session, SecondClientIsRefusedUnlessItTakesOver) {
  HostProcess host(shell("echo here; read x"));
  FrameClient first(host.connect());
  ASSERT_TRUE(first.hears_output("here"));
  FrameClient second(host.connect());
  EXPECT_TRUE(second.is_dropped());
  EXPECT_EQ(second.refusal, "somebody is attached to it already");
  FrameClient third(host.connect(), {.takes_over = true});
  EXPECT_TRUE(third.hears_output("here"));
  EXPECT_TRUE(first.is_dropped());
  EXPECT_EQ(first.refusal, "attached from elsewhere");
}

TEST(Session, NonsenseEndsTheConnectionNotTheSession) {
  HostProcess host(shell("echo here; read x"));
  FrameClient good(host.connect());
  ASSERT_TRUE(good.hears_output("here"));
  for (const std::string& nonsense :
       {std::string("GET / HTTP/1.1\r\n\r\n"), std::string("\x01\xff\xff\xff\xff", 5),
        frame(FrameKind::Hello, "?"), frame(FrameKind::Exit, "x"), frame(FrameKind::Input, "x")}) {
    Fd socket = host.connect();
    ASSERT_EQ(::write(socket.get(), nonsense.data(), nonsense.size()),
              static_cast<ssize_t>(nonsense.size()));
    char byte = 0;
    EXPECT_LE(::read(socket.get(), &byte, 1), 0);  // hung up on
  }
  good.say(FrameKind::Input, "\n");
  EXPECT_EQ(good.hears_exit(), 0);
}

TEST(Session, EndsWhenNobodyEverComes) {
  SessionOptions options = shell("echo never");
  options.first_wait_seconds = 1;
  HostProcess host(options);
  EXPECT_EQ(host.exit_code(), 1);
  EXPECT_EQ(host.reason(), "nobody attached to the session within 1 s");
}

TEST(Session, IsHungUpAfterItsGraceAndKilledIfItStays) {
  SessionOptions options = shell("trap '' HUP; echo stubborn; while :; do sleep 1; done");
  options.grace_seconds = 1;
  options.kill_seconds = 1;
  HostProcess host(options);
  FrameClient lost(host.connect());
  ASSERT_TRUE(lost.hears_output("stubborn"));
  lost.go();
  EXPECT_EQ(host.exit_code(), 137);
  EXPECT_EQ(host.reason(), "nobody was attached to the session for 1 s");
}

TEST(Session, SignalToTheHostHangsUp) {
  HostProcess host(shell("echo ready; exec sleep 1000", true));
  FrameClient client(host.connect());
  ASSERT_TRUE(client.hears_output("ready"));
  host.kill(SIGTERM);
  EXPECT_EQ(client.hears_exit(), 129);  // by SIGHUP
  EXPECT_EQ(host.exit_code(), 129);
}

TEST(Session, KilledHostTakesItsProgramAlong) {
  HostProcess host(shell("echo $$; exec sleep 1000"));
  FrameClient client(host.connect());
  ASSERT_TRUE(client.hear_until([&] { return client.output.ends_with("\n"); }));
  const pid_t program = std::stoi(client.output);
  ASSERT_EQ(::kill(program, 0), 0);
  host.kill(SIGKILL);
  EXPECT_EQ(host.exit_code(), 137);
  EXPECT_TRUE(becomes_true([&] { return ::kill(program, 0) != 0; }));
}

TEST(Session, OutputThatNobodyReadsAnyMoreIsClosed) {
  HostProcess host(shell("yes"));
  FrameClient client(host.connect());
  ASSERT_TRUE(client.hears_output("y\n"));
  client.say(FrameKind::OutputClosed, "\x01");
  EXPECT_EQ(client.hears_exit(), 141);  // SIGPIPE
}

TEST(Session, DirectoryMayHaveAnyLength) {
  const std::string part(60, 'd');
  HostProcess host(shell("echo far"), part + "/" + part + "/" + part);
  ASSERT_GT(host.directory().size(), 107U);  // what a socket's path can hold
  FrameClient client(host.connect());
  EXPECT_TRUE(client.hears_output("far"));
}

TEST(Session, IdleOneIsWarnedAndEnded) {
  SessionOptions options = shell("echo ready; read x", true);
  options.idle_seconds = 3;
  HostProcess host(options);
  FrameClient client(host.connect());
  ASSERT_TRUE(client.hears_output("ready"));
  EXPECT_TRUE(client.hears_exit().has_value());
  EXPECT_NE(client.notices.find("this session has been idle for"), std::string::npos);
  EXPECT_NE(client.notices.find("unless used"), std::string::npos);
  EXPECT_NE(host.exit_code(), 0);
  EXPECT_NE(host.reason().find("the limit of this queue is 3 s"), std::string::npos);
}

TEST(Session, OneThatComputesIsNotIdle) {
  SessionOptions options =
      shell("end=$(($(date +%s) + 5)); while [ $(date +%s) -lt $end ]; do :; done; echo worked");
  options.idle_seconds = 2;
  HostProcess host(options);
  FrameClient client(host.connect());
  EXPECT_EQ(client.hears_exit(), 0);
  EXPECT_EQ(client.output, "worked\n");
}

}  // namespace
}  // namespace berth::step
