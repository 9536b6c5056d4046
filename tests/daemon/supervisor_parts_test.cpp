// The parts of the supervisor on their own: who is on which device, what is written before it is
// sent, when one that makes way may be stopped.
#include <gtest/gtest.h>

#include "daemon/attempt_table.h"
#include "daemon/decision_batch.h"
#include "daemon/departures.h"

namespace berth::supervisor_parts_tests {
namespace {

Cluster two_nodes() {
  Cluster cluster;
  cluster.pools.push_back({.name = "a100"});
  for (const char* name : {"n0", "n1"}) {
    Node node;
    node.name = name;
    node.gpus = 4;
    node.cpus_milli = 8000;
    cluster.nodes.push_back(node);
  }
  return cluster;
}

Slice slice(std::uint32_t node, std::uint64_t devices, std::int32_t gpus) {
  Slice slice{.node = NodeId{node}};
  slice.devices = devices;
  slice.gpus = gpus;
  return slice;
}

Attempt attempt_of(JobNumber job, Slice where) {
  Attempt attempt;
  attempt.id = {1, job};
  attempt.job = job;
  attempt.slices = {where};
  attempt.gpus = where.gpus;
  return attempt;
}

TEST(AttemptTable, KnowsWhoIsOnADeviceUntilItLeaves) {
  const Cluster cluster = two_nodes();
  AttemptTable table{cluster, {}};
  table.add(attempt_of(1, slice(0, 0b0011, 2)));
  table.add(attempt_of(2, slice(0, 0b0010, 1)));  // shares a device
  EXPECT_EQ(table.on_devices(std::vector{slice(0, 0b0010, 1)}), (std::set<JobNumber>{1, 2}));
  EXPECT_EQ(table.job_of({1, 2}), JobNumber{2});
  table.relocate(table.at(1), {slice(1, 0b0001, 1)});
  EXPECT_EQ(table.on_devices(std::vector{slice(0, 0b0011, 2)}), (std::set<JobNumber>{2}));
  table.remove(2);
  EXPECT_TRUE(table.on_devices(std::vector{slice(0, 0b1111, 4)}).empty());
  EXPECT_FALSE(table.job_of({1, 2}));
}

TEST(AttemptTable, CoresAreTakenWithTheDevicesAndGivenBack) {
  const Cluster cluster = two_nodes();
  AttemptTable table{cluster, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}};
  Attempt first = attempt_of(1, slice(1, 0b0011, 2));
  first.where = table.take(first.slices, 2000, nullptr);
  ASSERT_EQ(first.where.size(), 1U);
  EXPECT_EQ(first.where[0].node, "n1");
  EXPECT_EQ(first.where[0].cores, (std::vector<std::int32_t>{8, 9, 10, 11}));
  EXPECT_EQ(table.slices_of(first.where), first.slices);
  table.add(first);
  table.bind(table.at(1), 2);
  EXPECT_EQ(table.at(1).where[0].cores, (std::vector<std::int32_t>{8, 9}));
  table.remove(1);
  EXPECT_EQ(table.take(std::vector{slice(1, 0b1, 1)}, 8000, nullptr)[0].cores.size(), 8U);
}

class FakeJournal final : public Journal {
 public:
  [[nodiscard]] Result<std::vector<Committed>> write(std::vector<RecordBody> bodies) override {
    written.push_back(std::move(bodies));
    return std::vector<Committed>{};
  }
  void write_later(WriteOrder order) override { later.push_back(std::move(order)); }
  std::vector<std::vector<RecordBody>> written;
  std::vector<WriteOrder> later;
};

TEST(DecisionBatch, PassesGoBeforeTheRecordsThatTheyHaveMade) {
  FakeJournal journal;
  DecisionBatch batch;
  batch.record(WishRecord{.job = 1});
  batch.note_pass({.bytes = "pass"});
  EXPECT_TRUE(batch.end_job(1));
  EXPECT_FALSE(batch.end_job(1));
  ASSERT_TRUE(batch.write(journal));
  ASSERT_EQ(journal.written.size(), 1U);
  ASSERT_EQ(journal.written[0].size(), 2U);
  EXPECT_TRUE(std::holds_alternative<EngineRecord>(journal.written[0][0]));
  batch.write_passes_later(journal);
  EXPECT_TRUE(journal.later.empty());  // all are written
  batch.note_pass({.bytes = "next"});
  batch.write_passes_later(journal);
  ASSERT_EQ(journal.later.size(), 1U);
  EXPECT_EQ(journal.later[0].make(Ledger{})->size(), 1U);
}

class DeparturesTest : public ::testing::Test {
 protected:
  DeparturesTest() {
    rules.min_run = std::chrono::seconds{60};
    record.number = 1;
    record.spec = std::make_shared<const JobSpec>();
    Attempt attempt = attempt_of(1, slice(0, 0b0011, 2));
    attempt.since = seconds_to_time(100);
    attempts.add(attempt);
    starts.put(2, {.slices = {slice(0, 0b0001, 1)}, .gpus = 1});
    departures.add(1, "priority");
  }
  const Cluster cluster = two_nodes();
  AttemptTable attempts{cluster, {}};
  PendingStarts starts;
  LedgerJob record;
  JobLookup job = [this](JobNumber) { return std::optional{record}; };
  SupervisorRules rules;
  Departures departures{{attempts, starts, job, rules}};
};

TEST_F(DeparturesTest, NobodyIsStoppedBeforeItHasRunLongEnough) {
  EXPECT_EQ(departures.next_due(), seconds_to_time(160));
  EXPECT_EQ(departures.start_waits_until(2), seconds_to_time(160));
  const auto held = departures.held_starts();
  ASSERT_EQ(held.size(), 1U);
  EXPECT_EQ(held[0].why, "waits until job 1 has run 60 s");
}

TEST_F(DeparturesTest, WhoCannotSaveMakesWayForARivalOnce) {
  record.made_way = {2};
  EXPECT_EQ(departures.next_due(), kNever);
  rules.saves = [](JobNumber) { return true; };
  EXPECT_EQ(departures.next_due(), seconds_to_time(160));
}

TEST_F(DeparturesTest, WhoWasAskedToLeaveIsNamedOnceWhenItStays) {
  departures.warn_at(1, seconds_to_time(110));
  EXPECT_EQ(departures.next_due(), seconds_to_time(110));
  EXPECT_TRUE(departures.take_overdue(seconds_to_time(109)).empty());
  EXPECT_EQ(departures.take_overdue(seconds_to_time(110)), (std::vector<JobNumber>{1}));
  EXPECT_TRUE(departures.take_overdue(seconds_to_time(200)).empty());
}

}  // namespace
}  // namespace berth::supervisor_parts_tests
