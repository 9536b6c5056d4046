// The simulated disk and the store on it: what a crash leaves, and that recovery finds it.
#include <gtest/gtest.h>

#include <chrono>
#include <set>

#include <fmt/format.h>

#include "support/random_history.h"
#include "support/sim_store.h"

namespace berth::test {
namespace {

TEST(SimDisk, WhatIsSyncedStays) {
  Rng rng(1);
  SimDisk disk;
  ASSERT_TRUE(disk.create("a") && disk.write("a", 0, "hello") && disk.sync("a"));
  ASSERT_TRUE(disk.sync_directory());
  ASSERT_TRUE(disk.write("a", 5, " world"));
  disk.crash(Crash::Kill, rng);
  EXPECT_EQ(disk.read("a"), "hello world");
  std::set<std::string> images;
  for (int i = 0; i < 50; ++i) {
    SimDisk copy;
    ASSERT_TRUE(copy.create("a") && copy.write("a", 0, "hello") && copy.sync("a"));
    ASSERT_TRUE(copy.sync_directory() && copy.write("a", 5, " world"));
    copy.crash(Crash::Power, rng);
    images.insert(copy.read("a"));
  }
  EXPECT_EQ(images, (std::set<std::string>{"hello", "hello world"}));  // one page: all or nothing
}

TEST(SimDisk, PagesArriveOneByOneAndTheLastInPart) {
  std::set<std::string> images;
  for (std::uint64_t seed = 1; seed < 2'000; ++seed) {
    Rng rng(seed);
    SimDisk disk;
    ASSERT_TRUE(disk.create("a") && disk.sync_directory());
    ASSERT_TRUE(disk.write("a", 0, std::string(3 * PagedFile::kPage, 'x')));
    disk.crash(Crash::Power, rng);
    images.insert(disk.read("a"));
  }
  // Two pages in four ways; of the third nothing, all, or 1 to 7 sectors.
  EXPECT_EQ(images.size(), 4U * 9);
}

TEST(SimDisk, NamesNeedTheirDirectory) {
  std::set<std::string> seen;
  for (std::uint64_t seed = 1; seed < 200; ++seed) {
    Rng rng(seed);
    SimDisk disk;
    ASSERT_TRUE(disk.create("tmp") && disk.write("tmp", 0, "x") && disk.sync("tmp"));
    ASSERT_TRUE(disk.rename("tmp", "exit"));
    EXPECT_FALSE(disk.create("exit"));  // because it is there
    disk.crash(Crash::Power, rng);
    seen.insert(fmt::format("{}{}", disk.exists("tmp"), disk.exists("exit")));
  }
  EXPECT_EQ(seen, (std::set<std::string>{"falsefalse", "truefalse", "falsetrue"}));
}

TEST(SimDisk, FailsAsAskedAndThenAlways) {
  SimDisk disk;
  ASSERT_TRUE(disk.create("a"));
  disk.fail_after(1, DiskFault::Enospc);
  EXPECT_TRUE(disk.write("a", 0, "1"));
  EXPECT_FALSE(disk.write("a", 1, "2"));
  EXPECT_FALSE(disk.sync("a"));
  disk.clear_fault();
  EXPECT_TRUE(disk.sync("a"));
}

struct Filled {
  SimDisk disk;
  Ledger ledger;
  std::vector<std::string> digests;  // after each record

  void run(SimStore& store, RandomHistory& history, int records) {
    if (digests.empty()) digests.push_back(ledger.digest());
    for (int i = 0; i < records; ++i) {
      const Record record = history.next(ledger);
      const auto change = ledger.apply(record);
      ASSERT_TRUE(change && store.append(record, *change));
      digests.push_back(ledger.digest());
    }
  }
};

// Journal tail [Submit, Intent] unsynced: 3 legal images (0, 1, 2 records), not 4.
TEST(SimStore, AnUnsyncedTailSurvivesAsAPrefix) {
  std::set<std::size_t> found;
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    Rng rng(seed);
    SimDisk disk;
    SimStore store(disk);
    Ledger ledger = *store.recover();
    const auto add = [&](RecordBody body) {
      const Record record{ledger.now(), 0, std::move(body)};
      ASSERT_TRUE(store.append(record, *ledger.apply(record)));
    };
    add(LifeRecord{.generation = 3});
    ASSERT_TRUE(store.commit());
    add(SubmitRecord{1, {}});
    // Two pages: the submit is in the first, the intent in both.
    add(IntentRecord{.job = 1, .attempt = {3, 1}, .reason = std::string(5'000, 'x')});
    disk.crash(Crash::Power, rng);
    SimStore after(disk);
    const auto ledger_after = after.recover();
    ASSERT_TRUE(ledger_after) << ledger_after.error().text();
    found.insert(after.records());
  }
  EXPECT_EQ(found, (std::set<std::size_t>{1, 2, 3}));
}

TEST(SimStore, EveryCrashLeavesAPrefixWithAllThatWasCommitted) {
  std::size_t dropped = 0;
  for (std::uint64_t seed = 1; seed <= 400; ++seed) {
    Rng rng(seed);
    RandomHistory history(seed);
    Filled filled;
    for (int life = 0; life < 3; ++life) {
      SimStore store(filled.disk);
      filled.ledger = *store.recover();
      filled.digests.resize(store.records() + 1, filled.ledger.digest());
      filled.run(store, history, static_cast<int>(rng.below(20)));
      ASSERT_TRUE(store.commit());
      const std::size_t committed = store.records();
      filled.run(store, history, static_cast<int>(rng.below(12)));
      const Crash kind = rng.below(3) == 0 ? Crash::Kill : Crash::Power;
      const std::size_t written = store.records();
      filled.disk.crash(kind, rng);
      SimStore after(filled.disk);
      const auto ledger = after.recover();
      ASSERT_TRUE(ledger) << ledger.error().text();
      ASSERT_GE(after.records(), committed);
      if (kind == Crash::Kill) {
        ASSERT_EQ(after.records(), written);
      }
      ASSERT_EQ(ledger->digest(), filled.digests[after.records()]) << "seed " << seed;
      dropped += after.dropped_bytes();
      SimStore again(filled.disk);  // L2: once more gives the same
      ASSERT_EQ(again.recover()->digest(), ledger->digest());
      ASSERT_EQ(again.dropped_bytes(), 0U);
    }
  }
  EXPECT_GT(dropped, 0U);
}

TEST(SimStore, AFailedSyncIsFinal) {
  SimDisk disk;
  SimStore store(disk);
  Ledger ledger = *store.recover();
  const Record life{Time{}, 0, LifeRecord{.generation = 1}};
  const auto change = ledger.apply(life);
  ASSERT_TRUE(store.append(life, *change));
  disk.fail_after(0, DiskFault::Eio);
  const auto done = store.commit();
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().text(), "sync: input/output error");
  disk.clear_fault();
  EXPECT_EQ(store.commit().error().text(), "the store stopped: sync: input/output error");
  EXPECT_FALSE(store.recover());
}

TEST(SimStore, AnyDamagedByteEndsTheJournalThere) {
  RandomHistory history(5);
  Filled filled;
  {
    SimStore store(filled.disk);
    ASSERT_TRUE(store.recover());
    filled.run(store, history, 30);
    ASSERT_TRUE(store.commit());
  }
  const std::string good = filled.disk.read("journal");
  for (std::size_t at = 0; at < good.size(); at += 37) {
    SimDisk disk;
    std::string bad = good;
    bad[at] = static_cast<char>(bad[at] ^ 0x10);
    ASSERT_TRUE(disk.create("journal") && disk.write("journal", 0, bad));
    SimStore store(disk);
    const auto ledger = store.recover();
    ASSERT_TRUE(ledger) << ledger.error().text();
    ASSERT_LT(store.records(), 30U);
    ASSERT_EQ(ledger->digest(), filled.digests[store.records()]);
    ASSERT_GT(store.dropped_bytes(), 0U);
  }
}

}  // namespace
}  // namespace berth::test
