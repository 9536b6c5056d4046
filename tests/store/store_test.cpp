// What every Store promises, over the real one and the simulated one.
#include <gtest/gtest.h>

#include <fmt/format.h>

#include "store/sqlite_store.h"
#include "support/random_history.h"
#include "support/sim_store.h"
#include "support/temporary_directory.h"

namespace berth {
namespace {

using test::RandomHistory;

struct RealStore {
  std::unique_ptr<Store> open() {
    auto store = SqliteStore::open({.directory = directory.path() + "/state"});
    EXPECT_TRUE(store) << store.error().text();
    return *std::move(store);
  }
  test::TemporaryDirectory directory;
};
struct SimulatedStore {
  std::unique_ptr<Store> open() { return std::make_unique<test::SimStore>(disk); }
  test::SimDisk disk;
};

template <class Kind>
struct StoreTest : ::testing::Test {
  StoreTest() { reopen(); }

  void reopen() {
    store.reset();
    store = kind.open();
    auto recovered = store->recover();
    ASSERT_TRUE(recovered) << recovered.error().text();
    ledger = *std::move(recovered);
  }
  Ledger::Change add(const Record& record) {
    auto change = ledger.apply(record);
    EXPECT_TRUE(change) << change.error().text();
    const auto done = store->append(record, *change);
    EXPECT_TRUE(done) << done.error().text();
    return *change;
  }
  Ledger::Change add(RecordBody body) {
    now += std::chrono::seconds{1};
    wall += 1'000'000;
    return add(Record{now, wall, std::move(body)});
  }
  void commit() {
    const auto done = store->commit();
    ASSERT_TRUE(done) << done.error().text();
  }
  /// A job that ran on two GPUs for ten seconds.
  JobNumber run_job(JobSpec spec, Outcome outcome = Outcome::Completed) {
    const JobNumber job = add(SubmitRecord{ledger.next_number(), std::move(spec)}).job;
    const AttemptId attempt{ledger.generation(), ledger.last_attempt().counter + 1};
    add(IntentRecord{.job = job, .attempt = attempt, .where = {{"n1", {0, 1}, {}}}, .gpus = 2});
    add(EndRecord{.job = job,
                  .attempt = attempt,
                  .outcome = outcome,
                  .exit_code = outcome == Outcome::Failed ? 3 : 0,
                  .gpu_seconds = 20,
                  .run_seconds = 10,
                  .why = "said so"});
    return job;
  }
  std::vector<JobNumber> numbers(const PastQuery& query) {
    std::vector<JobNumber> found;
    const auto jobs = store->past_jobs(query);
    EXPECT_TRUE(jobs) << jobs.error().text();
    for (const PastJob& past : *jobs) found.push_back(past.job.number);
    return found;
  }

  Kind kind;
  std::unique_ptr<Store> store;
  Ledger ledger;
  Time now{};
  std::int64_t wall = 1'000'000'000;
};

using Kinds = ::testing::Types<RealStore, SimulatedStore>;
TYPED_TEST_SUITE(StoreTest, Kinds);

TYPED_TEST(StoreTest, RecoversWhatWasCommitted) {
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    RandomHistory history(seed * 100);
    for (int i = 0; i < 120; ++i) {
      this->add(history.next(this->ledger));
      if (i % 7 == 0) this->commit();
      if (i % 40 != 39) continue;
      this->commit();
      const std::string before = this->ledger.digest();
      this->reopen();
      ASSERT_EQ(this->ledger.digest(), before) << "seed " << seed << " record " << i;
    }
  }
}

TYPED_TEST(StoreTest, RemembersTheLastRunAndWhatItStoodStill) {
  this->add(LifeRecord{.generation = 1});
  const JobNumber job = this->add(SubmitRecord{1, {}}).job;
  const AttemptId first{1, 1}, second{1, 2};
  this->add(IntentRecord{.job = job, .attempt = first, .where = {{"n1", {0}, {}}}, .gpus = 1});
  this->add(WishRecord{job, Wish::Suspend, "ann", ""});
  const std::int64_t since = this->wall;
  this->commit();
  this->reopen();
  EXPECT_EQ(this->ledger.find(job)->attempt->suspended_wall, since);
  this->add(WishRecord{job, Wish::Resume, "ann", ""});
  this->commit();
  this->reopen();
  EXPECT_EQ(this->ledger.find(job)->attempt->suspended_seconds, 1);
  this->add(EndRecord{.job = job,
                      .attempt = first,
                      .outcome = Outcome::Requeued,
                      .is_final = false,
                      .run_seconds = 9});
  this->add(IntentRecord{.job = job, .attempt = second, .where = {{"n1", {0}, {}}}, .gpus = 1});
  const std::int64_t start = this->wall;
  this->add(EndRecord{.job = job,
                      .attempt = second,
                      .outcome = Outcome::Completed,
                      .run_seconds = 4,
                      .suspended_seconds = 2});
  this->commit();
  for (int round = 0; round < 2; ++round, this->reopen()) {
    const auto past = this->store->past(job);
    ASSERT_TRUE(past && *past);
    EXPECT_EQ((*past)->last_start_wall, start);
    EXPECT_EQ((*past)->last_run_seconds, 4);
    EXPECT_EQ((*past)->suspended_seconds, 2);
    EXPECT_EQ((*past)->job.run_seconds, 13);
    const auto attempts = this->store->attempts(job);
    ASSERT_TRUE(attempts && attempts->size() == 2);
    EXPECT_EQ(attempts->front().run_seconds, 9);
    EXPECT_EQ(attempts->back().suspended_seconds, 2);
  }
}

TYPED_TEST(StoreTest, AnswersAboutPastJobs) {
  this->add(LifeRecord{.generation = 1});
  JobSpec spec;
  spec.user = "ann";
  spec.name = "train";
  spec.key = "k1";
  const JobNumber first = this->run_job(spec);
  spec.user = "bob";
  spec.key = "";
  const JobNumber second = this->run_job(spec, Outcome::Failed);
  spec.group = "ml";
  spec.queue = "night";
  const JobNumber third = this->run_job(spec);
  this->commit();
  for (int round = 0; round < 2; ++round, this->reopen()) {
    EXPECT_EQ(this->numbers({}), (std::vector{third, second, first}));  // newest end first
    EXPECT_EQ(this->numbers({.user = "bob"}), (std::vector{third, second}));
    EXPECT_EQ(this->numbers({.group = "ml"}), (std::vector{third}));
    EXPECT_EQ(this->numbers({.queue = "night", .name = "train"}), (std::vector{third}));
    EXPECT_EQ(this->numbers({.outcomes = {Outcome::Failed}}), (std::vector{second}));
    EXPECT_EQ(this->numbers({.limit = 1}), (std::vector{third}));
    EXPECT_EQ(this->numbers({.numbers = {third, 99, first}}), (std::vector{third, first}));
    constexpr auto kByNumber = PastQuery::Order::Number;
    EXPECT_EQ(this->numbers({.order = kByNumber}), (std::vector{first, second, third}));
    EXPECT_EQ(this->numbers({.order = kByNumber, .after = first, .limit = 1}),
              (std::vector{second}));
    EXPECT_EQ(*this->store->count_past({.user = "bob", .order = kByNumber, .after = second}), 2U);
    EXPECT_EQ(*this->store->count_past({.outcomes = {Outcome::Failed}, .limit = 0}), 1U);
    const auto failed = this->store->past(second);
    ASSERT_TRUE(failed && *failed);
    EXPECT_EQ((*failed)->exit_code, 3);
    EXPECT_EQ((*failed)->why, "said so");
    EXPECT_EQ((*failed)->job.gpu_seconds, 20);
    EXPECT_EQ((*failed)->where, (std::vector<HeldDevices>{{"n1", {0, 1}, {}}}));
    EXPECT_EQ(this->numbers({.before = std::pair{(*failed)->ended_wall, second}}),
              (std::vector{first}));
    EXPECT_EQ(this->numbers({.since_wall = (*failed)->ended_wall}), (std::vector{third, second}));
    EXPECT_EQ(this->numbers({.until_wall = (*failed)->ended_wall}), (std::vector{first}));
    EXPECT_EQ(*this->store->by_key("ann", "k1"), first);
    EXPECT_EQ(*this->store->by_key("bob", "k1"), std::nullopt);
    EXPECT_FALSE(*this->store->past(99));
  }
}

TYPED_TEST(StoreTest, KeepsEveryAttempt) {
  this->add(LifeRecord{.generation = 4});
  const JobNumber job = this->add(SubmitRecord{1, {}}).job;
  this->add(IntentRecord{.job = job, .attempt = {4, 1}, .where = {{"n1", {0}, {2, 3}}}, .gpus = 1});
  this->add(EndRecord{.job = job,
                      .attempt = {4, 1},
                      .outcome = Outcome::Preempted,
                      .is_final = false,
                      .gpu_seconds = 5});
  this->add(IntentRecord{.job = job, .attempt = {4, 2}, .where = {{"n2", {1}, {}}}, .gpus = 1});
  this->commit();
  const auto attempts = this->store->attempts(job);
  ASSERT_TRUE(attempts);
  ASSERT_EQ(attempts->size(), 2U);
  EXPECT_EQ(attempts->front().outcome, Outcome::Preempted);
  EXPECT_EQ(attempts->front().where.front().cores, (std::vector<std::int32_t>{2, 3}));
  EXPECT_EQ(attempts->back().id, (AttemptId{4, 2}));
  EXPECT_FALSE(attempts->back().outcome);
  this->reopen();
  ASSERT_TRUE(this->ledger.find(job)->attempt);  // I5: it may be alive, so it holds its devices
  EXPECT_EQ(this->ledger.find(job)->attempt->where.front().node, "n2");
}

TYPED_TEST(StoreTest, KeepsWhatAnAttemptGoesOnWith) {
  this->add(LifeRecord{.generation = 4});
  const JobNumber job = this->add(SubmitRecord{1, {}}).job;
  this->add(IntentRecord{.job = job, .attempt = {4, 1}, .where = {{"n1", {0}, {}}}, .gpus = 1});
  this->add(ResizeRecord{.job = job,
                         .attempt = {4, 1},
                         .where = {{"n1", {0, 2}, {5}}},
                         .gpus = 2,
                         .extra_gpu_seconds = -7.5});
  this->commit();
  EXPECT_EQ(this->store->attempts(job)->front().where.front().devices,
            (std::vector<std::int32_t>{0, 2}));
  this->reopen();
  const auto& attempt = this->ledger.find(job)->attempt;
  ASSERT_TRUE(attempt);
  EXPECT_EQ(attempt->where.front().devices, (std::vector<std::int32_t>{0, 2}));
  EXPECT_EQ(attempt->gpus, 2);
  EXPECT_EQ(attempt->extra_gpu_seconds, -7.5);
}

TYPED_TEST(StoreTest, UsageHalvesWithTime) {
  this->add(LifeRecord{.generation = 1});
  JobSpec spec;
  spec.user = "ann";
  spec.group = "ml";
  this->run_job(spec);
  this->commit();
  const std::int64_t first = this->wall;
  const auto ask = [&](std::int64_t at, double half_life) {
    const auto usage = this->store->usage(at, half_life);
    EXPECT_TRUE(usage && usage->size() == 1 && usage->front().user == "ann");
    return usage->front().gpu_seconds;
  };
  EXPECT_DOUBLE_EQ(ask(first, 100), 20);
  EXPECT_DOUBLE_EQ(ask(first + 100'000'000, 100), 10);
  EXPECT_DOUBLE_EQ(ask(first + 300'000'000, 100), 2.5);
  EXPECT_DOUBLE_EQ(ask(first + 300'000'000, 0), 20);
  this->wall = first + 99'000'000 - 2'000'000;
  this->run_job(spec);  // ends 100 s after the first: 20 / 2 + 20
  this->commit();
  EXPECT_DOUBLE_EQ(ask(first + 100'000'000, 100), 30);
  EXPECT_DOUBLE_EQ(ask(first, 0), 40);
  this->reopen();
  EXPECT_DOUBLE_EQ(ask(first + 200'000'000, 100), 15);  // and from the table the same
}

TYPED_TEST(StoreTest, AnArrayAndAChangeOfOneOfItsJobs) {
  this->add(LifeRecord{.generation = 1});
  JobSpec spec;
  spec.array = ArraySpec{{}, 0};
  for (std::int32_t i = 0; i < 100; ++i) spec.array->indices.push_back(2 * i);
  this->add(SubmitRecord{1, spec});
  this->add(ChangeRecord{17, R"({"priority": 9})", "ann"});
  this->add(EndRecord{.job = 50, .outcome = Outcome::Cancelled});
  this->commit();
  const std::string before = this->ledger.digest();
  this->reopen();
  EXPECT_EQ(this->ledger.digest(), before);
  EXPECT_EQ(this->ledger.jobs().size(), 99U);
  EXPECT_EQ(this->ledger.find(17)->spec->priority, 9);
  EXPECT_EQ(this->ledger.find(100)->array_index, 198);
  // Told once in the tables, shared in memory.
  EXPECT_EQ(this->ledger.find(1)->spec, this->ledger.find(100)->spec);
}

TYPED_TEST(StoreTest, NothingAppendedIsNoCommit) {
  this->commit();
  EXPECT_GT(this->store->space_left(), 0U);
  EXPECT_TRUE(this->numbers({}).empty());
}

}  // namespace
}  // namespace berth
