#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include <unistd.h>

#include "step/attach_protocol.h"
#include "step/idle_watch.h"
#include "step/join_request.h"
#include "step/kept_output.h"
#include "step/process_use.h"

namespace berth::step {
namespace {

constexpr std::int64_t kSecond = 1'000'000;

TEST(AttachProtocol, FramesComeBackHoweverTheyAreCut) {
  std::string bytes;
  append_frames(bytes, FrameKind::Output, std::string(kMaxPayload + 10, 'a'));
  bytes += frame(FrameKind::Exit, "\x07");
  FrameReader reader;
  std::vector<Frame> found;
  for (const char c : bytes) {
    reader.add({&c, 1});
    const auto next = reader.next();
    ASSERT_TRUE(next);
    if (*next) found.push_back(**next);
  }
  ASSERT_EQ(found.size(), 3U);
  EXPECT_EQ(found[0].payload.size() + found[1].payload.size(), kMaxPayload + 10);
  EXPECT_EQ(found[2].kind, FrameKind::Exit);
  EXPECT_EQ(byte_from(found[2].payload), 7);
}

TEST(AttachProtocol, NonsenseIsAnError) {
  for (const std::string& bytes :
       {std::string("\x00\x00\x00\x00\x00", 5), std::string("\x02\x00\x01\x00\x01", 5),
        std::string("\x63\x00\x00\x00\x00", 5)}) {
    FrameReader reader;
    reader.add(bytes);
    EXPECT_FALSE(reader.next());
  }
}

TEST(AttachProtocol, GreetingIsReadStrictly) {
  const Hello hello{.takes_over = true, .size = {.rows = 24, .columns = 300}, .term = "xterm"};
  const auto back = hello_from(payload_of(hello));
  ASSERT_TRUE(back);
  EXPECT_TRUE(back->takes_over);
  EXPECT_EQ(back->size, hello.size);
  EXPECT_EQ(back->term, "xterm");
  EXPECT_FALSE(hello_from(""));
  EXPECT_FALSE(hello_from(std::string("\x02\x00\x00\x00\x00\x00", 6)));          // version 2
  EXPECT_FALSE(hello_from(payload_of(Hello{.term = std::string("a\x1b[2J")})));  // commands
}

TEST(KeptOutput, KeepsTheLatest) {
  KeptOutput kept(10);
  kept.add(FrameKind::Output, "0123456");
  kept.add(FrameKind::ErrorOutput, "abcde");
  std::string out;
  for (const Frame& piece : kept.pieces()) out += piece.payload;
  EXPECT_EQ(out, "23456abcde");
  kept.add(FrameKind::Output, std::string(100, 'x') + "end");
  ASSERT_EQ(kept.pieces().size(), 1U);
  EXPECT_EQ(kept.pieces().front().payload, "xxxxxxxend");
}

using Verdict = IdleWatch::Verdict;

TEST(IdleWatch, WarnsAtFourFifthsAndEndsAtTheLimit) {
  IdleWatch watch(1000 * kSecond, 0);
  std::vector<std::pair<std::int64_t, Verdict>> said;
  for (std::int64_t now = 30; now <= 1020; now += 30) {
    const Verdict verdict = watch.look({.now = now * kSecond});
    if (verdict != Verdict::Fine) said.emplace_back(now, verdict);
  }
  // 810 is the first look past 800, 1020 the first past 1000
  const std::vector<std::pair<std::int64_t, Verdict>> expected{{810, Verdict::Warn},
                                                               {1020, Verdict::End}};
  EXPECT_EQ(said, expected);
}

TEST(IdleWatch, UseBeginsTheTimeAnewAndIsWarnedOfAgain) {
  IdleWatch watch(100 * kSecond, 0);
  std::vector<Verdict> said;
  for (std::int64_t now = 5; now <= 300; now += 5) {
    if (now == 90) watch.note_use(now * kSecond);
    const Verdict verdict = watch.look({.now = now * kSecond});
    if (verdict != Verdict::Fine) said.push_back(verdict);
    if (verdict == Verdict::End) {
      EXPECT_EQ(now, 190);
      break;
    }
  }
  EXPECT_EQ(said, (std::vector{Verdict::Warn, Verdict::Warn, Verdict::End}));
}

TEST(IdleWatch, AHundredthOfACoreIsUseLessIsNot) {
  IdleWatch busy(100 * kSecond, 0), idle(100 * kSecond, 0);
  for (std::int64_t now = 5; now <= 95; now += 5) {
    EXPECT_EQ(busy.look({.now = now * kSecond, .cpu_micros = 50'000}),
              Verdict::Fine);  // 1 % of 5 s
    static_cast<void>(idle.look({.now = now * kSecond, .cpu_micros = 49'000}));
  }
  EXPECT_EQ(busy.look({.now = 100 * kSecond, .cpu_micros = 0}), Verdict::Fine);
  EXPECT_EQ(idle.look({.now = 100 * kSecond, .cpu_micros = 0}), Verdict::End);
}

TEST(IdleWatch, BusyGpusAndTimeSuspendedAreNotIdle) {
  IdleWatch watch(100 * kSecond, 0);
  EXPECT_EQ(watch.look({.now = 5 * kSecond}), Verdict::Fine);
  EXPECT_EQ(watch.look({.now = 500 * kSecond}), Verdict::Fine);  // it stood still in between
  for (std::int64_t now = 505; now <= 900; now += 5)
    EXPECT_EQ(watch.look({.now = now * kSecond, .are_gpus_busy = true}), Verdict::Fine);
}

TEST(IdleWatch, WithoutALimitNothingHappens) {
  IdleWatch watch(0, 0);
  EXPECT_FALSE(watch.has_limit());
  EXPECT_EQ(watch.look({.now = 1000 * kSecond}), Verdict::Fine);
}

TEST(ProcessUse, NameOfAProcessMayHoldAnything) {
  const auto process = process_from(
      "77 (a) S 1 (b)) S 12 77 76 0 -1 4194304 1 2 3 4 100 50 20 30 20 0 1 0 9999 1 1 1\n");
  ASSERT_TRUE(process);
  EXPECT_EQ(process->pid, 77);
  EXPECT_EQ(process->parent, 12);
  EXPECT_EQ(process->session, 76);
  EXPECT_EQ(process->start, 9999U);
  EXPECT_EQ(process->cpu_micros, 200 * 10'000);  // 100 ticks a second
  EXPECT_FALSE(process_from("nonsense"));
}

TEST(CpuMeter, CountsWhatIsNewAndForgetsWhoIsGone) {
  CpuMeter meter;
  EXPECT_EQ(meter.micros_since({{.pid = 5, .start = 1, .cpu_micros = 100}}), 0);
  EXPECT_EQ(meter.micros_since({{.pid = 5, .start = 1, .cpu_micros = 130}}), 30);
  // 5 is gone and its number was used again: all that the new one has used is new
  EXPECT_EQ(meter.micros_since({{.pid = 5, .start = 9, .cpu_micros = 40}}), 40);
}

TEST(JoinRequest, IsReadOnceAndOnlyIfItMakesSense) {
  const auto directory =
      std::filesystem::temp_directory_path() / ("berth-join-" + std::to_string(::getpid()));
  std::filesystem::create_directories(directory);
  const JoinRequest asked{.words = {"srun", "--pty", "a b", ""},
                          .is_srun = true,
                          .on_terminal = true,
                          .workdir = "/tmp"};
  const auto number = put_join(directory, asked);
  ASSERT_TRUE(number);
  EXPECT_LE(*number, kMaxJoin);
  const auto taken = take_join(directory, *number);
  ASSERT_TRUE(taken);
  EXPECT_EQ(taken->words, asked.words);
  EXPECT_TRUE(taken->is_srun && taken->on_terminal);
  EXPECT_EQ(taken->workdir, "/tmp");
  EXPECT_FALSE(take_join(directory, *number));
  for (const char* nonsense : {"", "{}", R"({"words":[]})", R"({"words":[1]})", "[1]"}) {
    std::ofstream(directory / "join-9.request") << nonsense;
    EXPECT_FALSE(take_join(directory, 9)) << nonsense;
  }
  std::filesystem::remove_all(directory);
}

}  // namespace
}  // namespace berth::step
