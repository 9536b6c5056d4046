// A journal that has grown for years: how long recovery takes must depend on what is alive, not on
// what has been.
//   BERTH_JOURNAL_RECORDS=N   so many records instead of 20,000
#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>

#include <fmt/format.h>

#include "store/sqlite_store.h"
#include "support/temporary_directory.h"

namespace berth {
namespace {

using Steady = std::chrono::steady_clock;

double seconds_since(Steady::time_point begun) {
  return std::chrono::duration<double>(Steady::now() - begun).count();
}

class LongJournal : public ::testing::Test {
 protected:
  void write(RecordBody body) {
    const Record record{Time{Duration{++clock_}}, clock_, std::move(body)};
    auto change = ledger_.apply(record);
    ASSERT_TRUE(change) << change.error().text();
    ASSERT_TRUE(store_->append(record, *change));
    if (++records_ % 4096 == 0) {
      ASSERT_TRUE(store_->commit());
    }
  }
  /// Submitted, begun, over.
  void run_a_job() {
    const JobNumber job = ledger_.next_number();
    JobSpec spec;
    spec.command = {"true"};
    spec.user = "somebody";
    write(SubmitRecord{.first = job, .spec = spec});
    const AttemptId attempt{1, ++attempts_};
    write(IntentRecord{.job = job, .attempt = attempt, .where = {{"n0", {0}, {}}}, .gpus = 1});
    EndRecord end;
    end.job = job;
    end.attempt = attempt;
    end.outcome = Outcome::Completed;
    write(end);
  }
  test::TemporaryDirectory directory_;
  std::unique_ptr<SqliteStore> store_;
  Ledger ledger_;
  std::int64_t clock_ = 0;
  std::uint64_t records_ = 0, attempts_ = 0;
};

TEST_F(LongJournal, IsRecoveredByWhatIsAliveNotByWhatHasBeen) {
  const char* asked = std::getenv("BERTH_JOURNAL_RECORDS");
  const std::uint64_t wanted = asked == nullptr ? 20'000 : std::strtoull(asked, nullptr, 10);
  auto opened = SqliteStore::open({.directory = directory_.path()});
  ASSERT_TRUE(opened) << opened.error().text();
  store_ = *std::move(opened);
  const auto begun = Steady::now();
  write(LifeRecord{.generation = 1});
  while (records_ < wanted && !HasFatalFailure()) run_a_job();
  write(SubmitRecord{.first = ledger_.next_number(), .spec = {}});  // the one that is alive
  ASSERT_TRUE(store_->commit());
  const double writing = seconds_since(begun);
  store_.reset();
  const auto died = Steady::now();
  auto again = SqliteStore::open({.directory = directory_.path()});
  ASSERT_TRUE(again) << again.error().text();
  const auto ledger = (*again)->recover();
  const double recovery = seconds_since(died);
  ASSERT_TRUE(ledger) << ledger.error().text();
  EXPECT_EQ(ledger->digest(), ledger_.digest());
  EXPECT_EQ(ledger->jobs().size(), 1U);
  fmt::print("journal: {} records written in {:.1f} s, recovered in {:.3f} s\n", records_, writing,
             recovery);
  EXPECT_LT(recovery, 3) << "of one job, whatever has been";
}

}  // namespace
}  // namespace berth
