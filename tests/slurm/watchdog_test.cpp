// When the queue is handed back; the heartbeat as a file.
#include "slurm/watchdog.h"

#include <fstream>

#include <sys/stat.h>

#include <gtest/gtest.h>

#include "slurm/heartbeat.h"
#include "support/temporary_directory.h"

namespace berth::slurm {
namespace {

using std::chrono::seconds;
using Verdict = Watchdog::Verdict;

TEST(Watchdog, HandsBackAfterSilenceAndAgainAMinuteLater) {
  Watchdog dog(seconds(20), seconds(60));
  EXPECT_EQ(dog.look(5, seconds(100)), Verdict::Silent);  // the first look knows no earlier one
  EXPECT_EQ(dog.look(6, seconds(110)), Verdict::Alive);
  EXPECT_EQ(dog.look(6, seconds(120)), Verdict::Silent);
  EXPECT_EQ(dog.look(6, seconds(130)), Verdict::HandBack);  // 20 s after the last change
  EXPECT_EQ(dog.look(6, seconds(150)), Verdict::Gone);
  EXPECT_EQ(dog.look(6, seconds(170)), Verdict::Gone);
  EXPECT_EQ(dog.look(6, seconds(190)), Verdict::HandBack);
  EXPECT_EQ(dog.look(7, seconds(191)), Verdict::Back);
  EXPECT_EQ(dog.look(8, seconds(192)), Verdict::Alive);
}

TEST(Watchdog, AClockThatWasSetBackIsASignOfLife) {
  Watchdog dog(seconds(20), seconds(60));
  EXPECT_EQ(dog.look(5000, seconds(0)), Verdict::Silent);
  EXPECT_EQ(dog.look(40, seconds(19)), Verdict::Alive);  // somebody wrote it
  EXPECT_EQ(dog.look(9000, seconds(38)), Verdict::Alive);
}

TEST(Watchdog, AMissingFileIsSilenceAndTheSameFileAgainNoLife) {
  Watchdog dog(seconds(20), seconds(60));
  EXPECT_EQ(dog.look(std::nullopt, seconds(0)), Verdict::Silent);
  EXPECT_EQ(dog.look(std::nullopt, seconds(20)), Verdict::HandBack);
  EXPECT_EQ(dog.look(5, seconds(21)), Verdict::Back);
  EXPECT_EQ(dog.look(std::nullopt, seconds(31)), Verdict::Silent);
  EXPECT_EQ(dog.look(5, seconds(32)), Verdict::Silent);
  EXPECT_EQ(dog.look(std::nullopt, seconds(42)), Verdict::HandBack);
}

TEST(Watchdog, TimeInWhichItDidNotRunIsNotCounted) {
  Watchdog dog(seconds(60), seconds(60));
  EXPECT_EQ(dog.look(5, seconds(0)), Verdict::Silent);
  EXPECT_EQ(dog.look(5, seconds(3600)), Verdict::Silent);  // an hour asleep counts 30 s
  EXPECT_EQ(dog.look(5, seconds(3630)), Verdict::HandBack);
}

TEST(Heartbeat, IsWrittenWholeAndReadByEverybody) {
  const test::TemporaryDirectory dir;
  const std::string path = dir.path() + "/heartbeat";
  EXPECT_EQ(last_beat(path), std::nullopt);
  ASSERT_TRUE(beat(path, 1795000000));
  EXPECT_EQ(last_beat(path), 1795000000);
  struct stat found {};
  ASSERT_EQ(::stat(path.c_str(), &found), 0);
  EXPECT_EQ(found.st_mode & 0777U, 0644U);
  EXPECT_FALSE(beat(dir.path() + "/no/heartbeat", 1));
}

TEST(Heartbeat, WhatIsNoTimeIsNoLife) {
  const test::TemporaryDirectory dir;
  const std::string path = dir.path() + "/heartbeat";
  for (const char* text : {"", "x", "12x", "99999999999999999999"}) {
    std::ofstream(path) << text;
    EXPECT_EQ(last_beat(path), std::nullopt) << text;
  }
  const std::string pipe = dir.path() + "/pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_EQ(last_beat(pipe), std::nullopt);  // and did not wait for a writer
  EXPECT_EQ(last_beat(dir.path()), std::nullopt);
}

}  // namespace
}  // namespace berth::slurm
