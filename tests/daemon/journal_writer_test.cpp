// The journal writer on its own thread: who goes first, and what those hear who come too late.
#include <gtest/gtest.h>

#include <future>
#include <thread>

#include <fmt/format.h>

#include "daemon/journal_writer.h"
#include "daemon/message_queue.h"
#include "support/sim_store.h"

namespace berth::test {
namespace {

std::vector<RecordBody> setting(std::string key) {
  std::vector<RecordBody> bodies;
  bodies.emplace_back(SettingRecord{.key = std::move(key), .value = "1", .by = "test"});
  return bodies;
}

class JournalThreadTest : public testing::Test {
 protected:
  JournalThreadTest()
      : store_(disk_), writer_(store_, recovered(), clock_, [this](auto records) {
          for (const Committed& committed : records) {
            if (const auto* set = std::get_if<SettingRecord>(&committed.record.body))
              order_.push_back(set->key);
          }
        }) {
    std::vector<RecordBody> life;
    life.emplace_back(LifeRecord{.generation = 1});
    EXPECT_TRUE(writer_.write(std::move(life)));
  }

  [[nodiscard]] Ledger recovered() {
    auto ledger = store_.recover();
    EXPECT_TRUE(ledger);
    return std::move(*ledger);
  }

  /// The journal writer is at work on this order until the answer is given.
  [[nodiscard]] std::promise<void> keep_busy(JournalThread& thread) {
    std::promise<void> go;
    auto begun = std::make_shared<std::promise<void>>();
    auto told = begun->get_future();
    thread.write_later({.make =
                            [begun, wait = go.get_future().share()](const Ledger&) {
                              begun->set_value();
                              wait.wait();
                              return Result<std::vector<RecordBody>>{setting("first")};
                            },
                        .done = {}});
    told.wait();
    return go;
  }

  SimDisk disk_;
  SimStore store_;
  MachineClock machine_;
  LiveClock clock_{machine_, Time{}};
  std::vector<std::string> order_;
  JournalWriter writer_;
};

TEST_F(JournalThreadTest, WhoWaitsForItGoesBeforeThoseWhoDoNot) {
  JournalThread thread(writer_, [](const Error&) {});
  std::promise<void> go = keep_busy(thread);
  constexpr int kCancels = 2'000;
  for (int i = 0; i < kCancels; ++i)
    thread.write_later({.make = [i](const Ledger&) -> Result<std::vector<RecordBody>> {
                          return setting(fmt::format("later{}", i));
                        },
                        .done = {}});
  auto engine = std::async(std::launch::async, [&] { return thread.write(setting("engine")); });
  while (thread.in_line() < kCancels + 1) std::this_thread::yield();
  go.set_value();
  const auto written = engine.get();
  EXPECT_TRUE(written) << written.error().text();
  thread.stop();
  ASSERT_EQ(order_.size(), 2U + kCancels);
  EXPECT_EQ(order_[0], "first");
  EXPECT_EQ(order_[1], "engine");
  for (std::size_t i = 0; i < kCancels; ++i) EXPECT_EQ(order_[i + 2], fmt::format("later{}", i));
}

TEST_F(JournalThreadTest, AfterAFailedCommitEverybodyIsTold) {
  std::promise<std::string> failed;
  JournalThread thread(writer_, [&](const Error& error) { failed.set_value(error.text()); });
  std::promise<void> go = keep_busy(thread);
  std::promise<bool> later;
  thread.write_later(
      {.make = [](const Ledger&) -> Result<std::vector<RecordBody>> { return setting("later"); },
       .done = [&](const auto& written) { later.set_value(written.has_value()); }});
  disk_.fail_after(0, DiskFault::Eio);
  go.set_value();
  EXPECT_FALSE(later.get_future().get());
  EXPECT_FALSE(failed.get_future().get().empty());
  EXPECT_FALSE(thread.write(setting("too late")));
}

// Because a second record that cannot follow is our mistake and the end, but whoever has asked for
// something in the same batch, or waits for the engine, must not wait for ever.
TEST_F(JournalThreadTest, AfterALaterRecordThatCannotFollowEverybodyIsTold) {
  std::promise<std::string> failed;
  JournalThread thread(writer_, [&](const Error& error) { failed.set_value(error.text()); });
  std::promise<void> go = keep_busy(thread);
  std::promise<bool> before, broken, after;
  thread.write_later(
      {.make = [](const Ledger&) -> Result<std::vector<RecordBody>> { return setting("before"); },
       .done = [&](const auto& written) { before.set_value(written.has_value()); }});
  thread.write_later({.make = [](const Ledger&) -> Result<std::vector<RecordBody>> {
                        auto bodies = setting("fine");
                        bodies.emplace_back(
                            WishRecord{.job = 77, .wish = Wish::Hold, .by = "test"});
                        return bodies;
                      },
                      .done = [&](const auto& written) { broken.set_value(written.has_value()); }});
  thread.write_later(
      {.make = [](const Ledger&) -> Result<std::vector<RecordBody>> { return setting("after"); },
       .done = [&](const auto& written) { after.set_value(written.has_value()); }});
  go.set_value();
  EXPECT_FALSE(before.get_future().get());
  EXPECT_FALSE(broken.get_future().get());
  EXPECT_FALSE(after.get_future().get());
  EXPECT_EQ(failed.get_future().get(), "there is no job 77");
  EXPECT_FALSE(thread.write(setting("too late")));
}

TEST_F(JournalThreadTest, WhatARequestThrowsIsItsOwnMatter) {
  JournalThread thread(writer_, [](const Error&) {});
  std::promise<std::string> answer;
  thread.write_later({.make = [](const Ledger&) -> Result<std::vector<RecordBody>> {
                        throw std::out_of_range("map::at");
                      },
                      .done =
                          [&](const auto& written) {
                            answer.set_value(written ? "written" : written.error().text());
                          }});
  EXPECT_EQ(answer.get_future().get(), "something went wrong inside, this is a bug: map::at");
  EXPECT_TRUE(thread.write(setting("goes on")));
}

// Because an API thread waits for the answer to its signal, and the server for its threads.
TEST_F(JournalThreadTest, AQuestionAfterTheLastPassIsAnswered) {
  BlockingMessageQueue messages{clock_};
  int asked = 0, late = 0;
  const Question question{.ask = [&] { ++asked; }, .too_late = [&] { ++late; }};
  messages.post(question);
  messages.close();
  EXPECT_EQ(late, 1);
  messages.post(question);
  EXPECT_EQ(late, 2);
  EXPECT_EQ(asked, 0);
}

TEST_F(JournalThreadTest, WhatWasAskedBeforeTheEndIsWritten) {
  JournalThread thread(writer_, [](const Error&) {});
  for (int i = 0; i < 1'000; ++i)
    thread.write_later({.make = [i](const Ledger&) -> Result<std::vector<RecordBody>> {
                          return setting(fmt::format("{}", i));
                        },
                        .done = {}});
  thread.stop();
  EXPECT_EQ(order_.size(), 1'000U);
  EXPECT_FALSE(thread.write(setting("too late")));
}

}  // namespace
}  // namespace berth::test
