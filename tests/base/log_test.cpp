// Log lines: one fact, one line, whatever the values hold.
#include "base/log.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <thread>
#include <vector>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace berth {
namespace {

constexpr std::int64_t kThen = 1'794'843'565'123;  // 2026-11-16T15:39:25.123Z

std::string text(std::string_view message, std::initializer_list<LogField> fields) {
  return log_line(LogFormat::Text, LogLevel::Info, kThen, "host", message, fields);
}
std::string json(std::string_view message, std::initializer_list<LogField> fields) {
  return log_line(LogFormat::Json, LogLevel::Warn, kThen, "host", message, fields);
}

TEST(Log, TextIsForPeople) {
  EXPECT_EQ(
      text("attempt ended", {{"job", 17}, {"attempt", "3.17"}, {"load", 0.5}, {"final", true}}),
      "info  2026-11-16T15:39:25.123Z host attempt ended job=17 attempt=3.17 load=0.5 final=true");
}

TEST(Log, JsonIsForMachines) {
  EXPECT_EQ(
      json("attempt ended", {{"job", 18'446'744'073'709'551'615U}, {"why", "a \"b\""}}),
      R"({"time":"2026-11-16T15:39:25.123Z","level":"warn","part":"host","message":"attempt ended",)"
      R"("job":18446744073709551615,"why":"a \"b\""})");
}

TEST(Log, NoValueEndsTheLineOrPretendsToBeAField) {
  EXPECT_EQ(text("x", {{"name", "a b"}}).substr(36), "x name=\"a b\"");
  EXPECT_EQ(text("x", {{"name", "a\njob=1"}}).substr(36), "x name=\"a\\njob=1\"");
  EXPECT_EQ(text("x", {{"name", ""}}).substr(36), "x name=\"\"");
  EXPECT_EQ(text("x", {{"name", "\x1b[31m\\"}}).substr(36), "x name=\"\\x1b[31m\\\\\"");
  EXPECT_EQ(text("a\nb", {}).substr(36), "a\\nb");
  EXPECT_EQ(text("x", {{"name", "\xff\xc2\x9b\xc3\xa9"}}).substr(36),
            "x name=\\xff\\xc2\\x9b\xc3\xa9");
  EXPECT_NE(json("x", {{"name", "\xff\n"}}).find("\"name\":\"\xef\xbf\xbd\\n\""),
            std::string::npos);
}

TEST(Log, AnyBytesGiveOneLine) {
  for (int first = 0; first < 256; ++first) {
    for (int second = 0; second < 256; ++second) {
      const std::string bytes{static_cast<char>(first), static_cast<char>(second)};
      for (const std::string& line :
           {text(bytes, {{bytes, bytes}}), json(bytes, {{bytes, bytes}})}) {
        EXPECT_TRUE(std::all_of(line.begin(), line.end(),
                                [](char c) { return static_cast<unsigned char>(c) >= 0x20; }));
      }
    }
  }
}

/// A pipe to write into and what came out of it.
class LogPipe : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_EQ(::pipe2(ends_, O_CLOEXEC | O_NONBLOCK), 0); }
  void TearDown() override {
    ::close(ends_[0]);
    if (ends_[1] >= 0) ::close(ends_[1]);
  }
  std::string written() {
    std::string all;
    char part[4096];
    for (ssize_t got = 0; (got = ::read(ends_[0], part, sizeof part)) > 0;)
      all.append(part, static_cast<std::size_t>(got));
    return all;
  }
  int ends_[2] = {-1, -1};
};

TEST_F(LogPipe, ALevelThatIsOffLooksAtNothing) {
  Logger log({.level = LogLevel::Warn, .fd = ends_[1], .now = [] { return kThen; }});
  int looked = 0;
  BERTH_LOG(log, Info, "host", "quiet", {"n", ++looked});
  EXPECT_EQ(looked, 0);
  EXPECT_EQ(written(), "");
  BERTH_LOG(log, Error, "host", "loud", {"n", ++looked});
  BERTH_LOG(log, Warn, "host", "plain");
  EXPECT_EQ(looked, 1);
  EXPECT_EQ(
      written(),
      "error 2026-11-16T15:39:25.123Z host loud n=1\nwarn  2026-11-16T15:39:25.123Z host plain\n");
  log.set_level(LogLevel::Off);
  log.write(LogLevel::Error, "host", "nobody listens");
  log.write(LogLevel::Off, "host", "not a level to write at");
  EXPECT_EQ(written(), "");
}

TEST_F(LogPipe, LinesOfManyThreadsStayWhole) {
  Logger log({.fd = ends_[1], .now = [] { return kThen; }});
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([&] {
      for (int n = 0; n < 100; ++n) log.write(LogLevel::Info, "host", "line", {{"n", 1}});
    });
  for (std::thread& thread : threads) thread.join();
  std::string all = written();
  const std::string line = "info  2026-11-16T15:39:25.123Z host line n=1\n";
  ASSERT_EQ(all.size(), 400 * line.size());
  for (std::size_t at = 0; at < all.size(); at += line.size())
    EXPECT_EQ(all.substr(at, line.size()), line);
}

TEST_F(LogPipe, ALineThatCannotBeWrittenIsCounted) {
  Logger log({.fd = -1});
  log.write(LogLevel::Info, "host", "into nothing");
  EXPECT_EQ(log.lost(), 1U);
}

TEST(Log, LevelsAndFormatsByName) {
  EXPECT_EQ(log_level_from("debug"), LogLevel::Debug);
  EXPECT_EQ(log_level_from("loud"), std::nullopt);
  EXPECT_EQ(log_format_from("json"), LogFormat::Json);
  EXPECT_EQ(log_format_from("xml"), std::nullopt);
}

}  // namespace
}  // namespace berth
