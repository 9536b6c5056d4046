// What only the store on a real disk promises: one scheduler per directory, versions of the file,
// failures that are final, a journal that can be checked and shortened.
#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <thread>

#include <sys/wait.h>
#include <unistd.h>

#include <fmt/format.h>

#include "base/crash_point.h"
#include "store/schema.h"
#include "store/sqlite_store.h"
#include "support/random_history.h"
#include "support/recording_vfs.h"
#include "support/temporary_directory.h"

namespace berth {
namespace {

using test::RandomHistory;
using test::RecordingVfs;

struct SqliteStoreTest : ::testing::Test {
  std::string state() const { return directory.path() + "/state"; }
  std::string file() const { return state() + "/berth.db"; }
  std::unique_ptr<SqliteStore> open(const std::string& vfs = "") {
    auto store = SqliteStore::open({.directory = state(), .vfs = vfs});
    EXPECT_TRUE(store) << store.error().text();
    return store ? *std::move(store) : nullptr;
  }
  std::string refusal() {
    const auto store = SqliteStore::open({.directory = state()});
    return store ? "opened" : store.error().text();
  }
  void add(SqliteStore& store, const Record& record) {
    auto change = ledger.apply(record);
    ASSERT_TRUE(change) << change.error().text();
    ASSERT_TRUE(store.append(record, *change));
  }
  void add_some(SqliteStore& store, int count) {
    for (int i = 0; i < count; ++i) {
      add(store, history.next(ledger));
      if (i % 5 == 4) {
        ASSERT_TRUE(store.commit());
      }
    }
    ASSERT_TRUE(store.commit());
  }
  void run_sql(const std::string& sql) {
    auto database = Database::open(file(), Database::Access::ReadWrite, "");
    ASSERT_TRUE(database);
    const auto done = database->run(sql);
    ASSERT_TRUE(done) << done.error().text();
  }
  /// As an older version did: a change is written down as it was asked for.
  void add_as_before(SqliteStore& store, const Record& record) {
    auto change = ledger.replay(record);
    ASSERT_TRUE(change) << change.error().text();
    ASSERT_TRUE(store.append(record, *change));
    ASSERT_TRUE(store.commit());
  }
  test::TemporaryDirectory directory;
  RandomHistory history{7};
  Ledger ledger;
};

TEST_F(SqliteStoreTest, ASecondSchedulerIsRefused) {
  const auto store = open();
  EXPECT_EQ(refusal(),
            fmt::format("{}: another scheduler (process {}) works on this directory (stop it, or "
                        "choose another directory)",
                        state(), ::getpid()));
}

// A scheduler is killed while it makes a process: that one has its locks until it is another
// program.
TEST_F(SqliteStoreTest, AProcessThatWasBeingMadeIsWaitedFor) {
  auto store = open();
  const pid_t copy = ::fork();
  if (copy == 0) {
    ::usleep(200'000);
    ::_exit(0);
  }
  store.reset();
  EXPECT_EQ(refusal(), "opened");
  ::waitpid(copy, nullptr, 0);
}

TEST_F(SqliteStoreTest, TheLockGoesWithItsHolder) {
  open().reset();
  EXPECT_EQ(refusal(), "opened");
}

// A lock that did not hold (its file was removed, or the file system is shared) must not let two
// lives write into one journal.
TEST_F(SqliteStoreTest, ANewerLifeOnTheSameFilesStopsTheOlder) {
  const auto older = open();
  add(*older, {Time{}, 0, LifeRecord{.generation = 1}});
  ASSERT_TRUE(older->commit());
  std::filesystem::remove(state() + "/lock");
  {
    const auto newer = open();
    Ledger theirs = *newer->recover();
    const Record life{Time{}, 0, LifeRecord{.generation = 2}};
    ASSERT_TRUE(newer->append(life, *theirs.apply(life)));
    ASSERT_TRUE(newer->commit());
  }
  add(*older, {Time{}, 0, SubmitRecord{1, {}}});
  const auto done = older->commit();
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().text(),
            "another scheduler (life 2, this one is 1) has written to this store");
  EXPECT_FALSE(older->recover());
}

TEST_F(SqliteStoreTest, FilesAreForTheOwnerOnly) {
  const auto store = open();
  using std::filesystem::perms;
  EXPECT_EQ(std::filesystem::status(file()).permissions() & (perms::group_all | perms::others_all),
            perms::none);
  EXPECT_EQ(std::filesystem::status(state()).permissions() & (perms::group_all | perms::others_all),
            perms::none);
}

TEST_F(SqliteStoreTest, AFileOfANewerVersionIsRefused) {
  open().reset();
  run_sql("PRAGMA user_version = 99");
  EXPECT_EQ(refusal(), fmt::format("{}: written by a newer version of berth (schema 99, this one "
                                   "knows up to {}): use that version",
                                   file(), migrations().size()));
}

TEST_F(SqliteStoreTest, AnOlderFileIsBroughtUpToDate) {
  auto store = open();
  add_some(*store, 50);
  store.reset();
  // A version that does not exist yet: a column more, filled from what is there.
  std::vector<const char*> steps(migrations().begin(), migrations().end());
  steps.push_back("ALTER TABLE jobs ADD COLUMN colour TEXT; UPDATE jobs SET colour = 'blue'");
  auto database = Database::open(file(), Database::Access::ReadWrite, "");
  ASSERT_TRUE(database);
  const auto done = migrate(*database, steps, file());
  ASSERT_TRUE(done) << done.error().text();
  EXPECT_EQ(*database->number("PRAGMA user_version"), static_cast<std::int64_t>(steps.size()));
  EXPECT_EQ(*database->number("SELECT count(*) FROM jobs WHERE colour = 'blue'"),
            static_cast<std::int64_t>(ledger.next_number() - 1));
}

// Schema 1 had one mark for both kinds of suspension.
TEST_F(SqliteStoreTest, WhoSuspendedAJobIsFoundInAnOldJournal) {
  std::filesystem::create_directories(state());
  {
    auto database = Database::open(file(), Database::Access::ReadWrite, "");
    ASSERT_TRUE(database);
    ASSERT_TRUE(migrate(*database, migrations().first(1), file()));
  }
  for (const char* by : {"ann", "@scheduler"}) {
    const int job = by[0] == 'a' ? 1 : 2;
    run_sql(fmt::format(
        "INSERT INTO jobs (number, spec, array, array_index, submitted, submitted_wall, is_held, "
        "held_by, held_why, is_suspended, attempts, failures, preemptions, first_start_wall, "
        "gpu_seconds, run_seconds) VALUES ({}, 1, 0, 0, 0, 0, 0, '', '', 1, 1, 0, 0, 0, 0, 0)",
        job));
    run_sql(fmt::format("INSERT INTO journal VALUES ({}, 0, 0, 'wish', '{}', 0, NULL)", job,
                        encode(WishRecord{static_cast<JobNumber>(job), Wish::Suspend, by, "hot"})));
  }
  auto database = Database::open(file(), Database::Access::ReadWrite, "");
  ASSERT_TRUE(migrate(*database, migrations(), file()));
  EXPECT_EQ(*database->text("SELECT group_concat(is_frozen || frozen_by || frozen_why || "
                            "is_suspended, ' ') FROM (SELECT * FROM jobs ORDER BY number)"),
            "1annhot0 01");
}

TEST_F(SqliteStoreTest, AFailedMigrationLeavesTheOldFile) {
  open().reset();
  std::vector<const char*> steps(migrations().begin(), migrations().end());
  steps.push_back("CREATE TABLE half (x); SELECT no_such_column FROM jobs");
  {
    auto database = Database::open(file(), Database::Access::ReadWrite, "");
    EXPECT_FALSE(migrate(*database, steps, file()));
  }
  auto database = Database::open(file(), Database::Access::ReadWrite, "");
  EXPECT_EQ(*database->number("SELECT count(*) FROM sqlite_master WHERE name = 'half'"), 0);
  EXPECT_EQ(*database->number("PRAGMA user_version"),
            static_cast<std::int64_t>(migrations().size()));
}

TEST_F(SqliteStoreTest, SomebodyElsesDatabaseIsLeftAlone) {
  std::filesystem::create_directories(state());
  run_sql("CREATE TABLE recipes (name)");
  EXPECT_EQ(refusal(),
            fmt::format("{}: a database of another program (choose another directory)", file()));
}

TEST_F(SqliteStoreTest, ADamagedFileSaysSo) {
  open().reset();
  std::ofstream(file(), std::ios::binary) << std::string(8'192, 'x');
  EXPECT_NE(refusal().find("is damaged or no database (restore it from a copy)"), std::string::npos)
      << refusal();
}

TEST_F(SqliteStoreTest, ADirectoryThatCannotBeMadeSaysSo) {
  const auto store = SqliteStore::open({.directory = "/dev/null/state"});
  ASSERT_FALSE(store);
  EXPECT_NE(store.error().text().find("choose one that can be written"), std::string::npos)
      << store.error().text();
}

TEST_F(SqliteStoreTest, AReadOnlyDirectorySaysSo) {
  if (::geteuid() == 0) GTEST_SKIP() << "SKIP: root may write everywhere";
  std::filesystem::create_directories(state());
  std::filesystem::permissions(
      state(), std::filesystem::perms::owner_read | std::filesystem::perms::owner_exec);
  EXPECT_NE(refusal().find("must be writable"), std::string::npos) << refusal();
}

// A commit that failed is final, whichever write or sync of it did: no call does anything any more,
// and what is there afterwards is what was acknowledged.
TEST_F(SqliteStoreTest, AFailedCommitIsFinal) {
  for (const auto fault : {RecordingVfs::Fault::Eio, RecordingVfs::Fault::Full}) {
    int failed = 0;
    for (std::int64_t operation = 0; operation < 8; ++operation) {
      test::TemporaryDirectory own;
      RecordingVfs vfs("berth-failing");
      Ledger acknowledged, all;
      RandomHistory lives(3);
      const auto append = [&](SqliteStore& store) {
        const Record record = lives.next(all);
        ASSERT_TRUE(store.append(record, *all.apply(record)));
      };
      {
        auto store = *SqliteStore::open({.directory = own.path(), .vfs = vfs.name()});
        for (int i = 0; i < 20; ++i) append(*store);
        ASSERT_TRUE(store->commit());
        acknowledged = all;
        vfs.fail_after(operation, fault);
        for (int i = 0; i < 5; ++i) append(*store);
        const auto done = store->commit();
        if (done) continue;  // it needed fewer operations than that
        ++failed;
        const std::string text = done.error().text();
        EXPECT_NE(text.find(fault == RecordingVfs::Fault::Full ? "no space left" : "disk reports"),
                  std::string::npos)
            << text;
        vfs.clear_fault();
        EXPECT_FALSE(store->commit());
        EXPECT_FALSE(store->append({Time{}, 0, SettingRecord{"a", "1", ""}}, {}));
        EXPECT_FALSE(store->past(1));
        EXPECT_FALSE(store->usage(0, 10));
        EXPECT_FALSE(store->recover());
      }
      auto store = *SqliteStore::open({.directory = own.path()});
      const std::string found = store->recover()->digest();
      // All of the batch or nothing of it: SQLite may have got it to the disk before the error.
      EXPECT_TRUE(found == acknowledged.digest() || found == all.digest());
      EXPECT_TRUE(store->verify());
    }
    EXPECT_GE(failed, 3);
  }
}

TEST_F(SqliteStoreTest, TheJournalAddsUpToTheTables) {
  const auto store = open();
  add_some(*store, 300);
  const auto checked = store->verify();
  ASSERT_TRUE(checked) << checked.error().text();
  EXPECT_EQ(*checked, 300U);
}

// Passes of the engine stand beside the journal: since it last began, in order, to the last byte.
TEST_F(SqliteStoreTest, KeepsWhatTheEngineWasToldSinceItBegan) {
  const std::string odd{"\0\xff'\n", 4};
  {
    const auto store = open();
    add_some(*store, 20);
    const auto note = [&](bool begins, const std::string& bytes) {
      const Record record{Time{Duration{7}}, 0, EngineRecord{begins, bytes}};
      ASSERT_TRUE(store->append(record, {}));
    };
    note(true, "first");
    note(false, "of the first");
    note(true, "second");
    note(false, odd);
    ASSERT_TRUE(store->commit());
    note(false, "never committed");
  }
  const auto store = open();
  const auto passes = store->engine();
  ASSERT_TRUE(passes);
  ASSERT_EQ(passes->size(), 2U);
  EXPECT_EQ(passes->front().bytes, "second");
  EXPECT_EQ(passes->back().bytes, odd);
  EXPECT_EQ(passes->back().at, Time{Duration{7}});
  EXPECT_EQ(store->verify(), 20U);
}

TEST_F(SqliteStoreTest, TamperingIsFound) {
  const std::pair<const char*, const char*> cases[] = {
      {"UPDATE journal SET body = replace(body, 'train', 'trial') WHERE sequence = "
       "(SELECT max(sequence) FROM journal WHERE kind = 'submit')",
       "is damaged or not the one after"},
      {"DELETE FROM journal WHERE sequence = 20", "journal: record 21 is damaged or not the one"},
      {"DELETE FROM journal WHERE sequence = (SELECT max(sequence) FROM journal)", "journal: ends"},
      {"UPDATE jobs SET preemptions = preemptions + 1 WHERE number = "
       "(SELECT max(number) FROM jobs WHERE outcome IS NULL)",
       "are not what the journal adds up to"},
      {"UPDATE jobs SET exit_code = 77 WHERE number = "
       "(SELECT max(number) FROM jobs WHERE outcome IS NOT NULL)",
       "the table and the journal differ"}};
  for (const auto& [sql, expected] : cases) {
    std::filesystem::remove_all(state());
    ledger = {};
    add_some(*open(), 100);
    run_sql(sql);
    const auto checked = open()->verify();
    ASSERT_FALSE(checked) << sql;
    EXPECT_NE(checked.error().text().find(expected), std::string::npos) << checked.error().text();
  }
}

TEST_F(SqliteStoreTest, AShortenedJournalStillAddsUp) {
  auto store = open();
  std::size_t dropped = 0;
  for (int round = 0; round < 6; ++round) {
    add_some(*store, 100);
    const auto gone = store->compact(ledger.now() - std::chrono::seconds{30}, 70);
    ASSERT_TRUE(gone) << gone.error().text();
    dropped += *gone;
    const auto checked = store->verify();
    ASSERT_TRUE(checked) << checked.error().text();
    EXPECT_EQ(*checked + dropped, 100U * static_cast<std::size_t>(round + 1));
    store.reset();
    store = open();
    EXPECT_EQ(store->recover()->digest(), ledger.digest());
  }
  EXPECT_EQ(dropped, 6U * 70);
  // Everything, and then it goes on as if nothing had been.
  ASSERT_TRUE(store->compact(ledger.now() + std::chrono::seconds{1}));
  EXPECT_EQ(*store->verify(), 0U);
  add_some(*store, 100);
  EXPECT_EQ(*store->verify(), 100U);
  EXPECT_EQ(store->recover()->digest(), ledger.digest());
}

TEST_F(SqliteStoreTest, ReadersAndTheWriterDoNotWaitForEachOther) {
  const auto store = open();
  add_some(*store, 50);
  std::atomic<bool> is_over{false};
  std::atomic<std::size_t> answers{0};
  std::vector<std::jthread> readers;
  for (int i = 0; i < 3; ++i) {
    readers.emplace_back([&] {
      while (!is_over) {
        const auto jobs = store->past_jobs({});
        const auto usage = store->usage(1'700'000'100'000'000, 50);
        if (!jobs || !usage || !store->attempts(1) || !store->by_key("u0", "key-1")) {
          ADD_FAILURE() << "a reader was refused";
          return;
        }
        ++answers;
      }
    });
  }
  add_some(*store, 300);
  while (answers < 10) std::this_thread::yield();
  is_over = true;
  readers.clear();
  EXPECT_TRUE(store->verify());
  // The sums that were kept while it went on are those of the table.
  const auto kept = store->usage(1'700'000'200'000'000, 50);
  const auto fresh = store->usage(1'700'000'200'000'000, 50.0000001);
  ASSERT_EQ(kept->size(), fresh->size());
  for (std::size_t i = 0; i < kept->size(); ++i)
    EXPECT_NEAR((*kept)[i].gpu_seconds, (*fresh)[i].gpu_seconds, 1e-6 * (*kept)[i].gpu_seconds);
}

TEST_F(SqliteStoreTest, ACommitPassesItsCrashPoints) {
  const auto store = open();
  std::vector<std::string> passed;
  const CrashHook hook([&](std::string_view name) { passed.emplace_back(name); });
  add(*store, {Time{}, 0, LifeRecord{.generation = 1}});
  ASSERT_TRUE(store->commit());
  EXPECT_EQ(passed, (std::vector<std::string>{"store.appended", "store.committing", "store.written",
                                              "store.committed"}));
}

// Dying at each point: before the commit returned nothing or all of the batch is there, afterwards
// all of it.
TEST_F(SqliteStoreTest, DyingAtAnyPointKeepsWhatWasAcknowledged) {
  struct Death {};
  for (const std::string point :
       {"store.appended", "store.committing", "store.written", "store.committed"}) {
    auto store = open();
    ledger = *store->recover();
    add_some(*store, 10);
    const std::string before = ledger.digest();
    const auto batch = [&] {
      add(*store, history.next(ledger));
      static_cast<void>(store->commit());
    };
    {
      const CrashHook hook([&](std::string_view name) {
        if (name == point) throw Death{};
      });
      EXPECT_THROW(batch(), Death);
    }
    const std::string after = ledger.digest();
    store.reset();
    EXPECT_EQ(open()->recover()->digest(), point == "store.committed" ? after : before) << point;
  }
}

// Because version 0.1.0 wrote `berth change N gpus=0` into the journal, and a journal that cannot
// be read any more loses everybody's jobs.
TEST_F(SqliteStoreTest, AChangeThatNoJobCanHaveIsReadAndNotWritten) {
  JobSpec spec;
  spec.command = {"true"};
  spec.workdir = "/";
  {
    auto store = open();
    add(*store, {Time{}, 1, LifeRecord{.generation = 1}});
    add(*store, {Time{}, 2, SubmitRecord{1, spec}});
    EXPECT_FALSE(ledger.apply({Time{}, 3, ChangeRecord{1, R"({"gpus":-1})", "ann"}}));
    EXPECT_EQ(ledger.find(1)->spec->gpus, 1);
    add_as_before(*store, {Time{}, 3, ChangeRecord{1, R"({"gpus":-1})", "ann"}});
  }
  auto store = open();
  const auto recovered = store->recover();
  ASSERT_TRUE(recovered) << recovered.error().text();
  EXPECT_EQ(recovered->find(1)->spec->gpus, -1);
  EXPECT_EQ(recovered->digest(), ledger.digest());
  EXPECT_EQ(store->verify().value_or(0), 3U);
  EXPECT_EQ(store->compact(Time{} + std::chrono::hours{1}, 100).value_or(0), 3U);
  EXPECT_EQ(store->verify().value_or(1), 0U);
}

}  // namespace
}  // namespace berth
