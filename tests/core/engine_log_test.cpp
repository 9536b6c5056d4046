// What an engine was told is told again to the last bit: each answer of an executor, in the order
// of asking.
#include <gtest/gtest.h>

#include <cstring>
#include <deque>

#include "core/engine_log.h"

namespace berth {
namespace {

/// Says what it is told to say, once.
class Script final : public Executor, public RunObserver {
 public:
  std::optional<Time> advance(Time) override { return now; }
  void collect(Time, std::vector<Event>& due) override { due = events; }
  StartReceipt start(Time, const Action&, const JobTable&) override { return receipt; }
  Time stop(Time, const Action&, const JobTable&) override { return until; }
  JobPast past(JobId) const override { return before; }
  std::optional<TrainingReport> report(Time, JobId, const JobTable&) const override { return said; }
  void losses(Time, JobId, const JobTable&, std::int64_t,
              std::vector<double>& more) const override {
    more.insert(more.end(), {1.5, 1.25});
  }
  void rates(Time, const JobTable&, std::vector<RateChange>& changes) override {
    changes.push_back({JobId{1}, Rate::from(0.75)});
    changes.push_back({JobId{1}, Rate::from(0.5), Duration{5}, RateBasis::Measured});
    changes.push_back({JobId{1}, Rate::from(0.5), {}, RateBasis::Awaited, kNever});
  }
  Entitlements entitlements() override { return {{{"ann", 2.5}}, {{"bob", "ml", 1e9}}}; }
  void append(Time, const Action&) override { ++appended; }
  void instant_done(Time) override { ++done; }

  Time now{Duration{123'456'789}};
  std::vector<Event> events;
  StartReceipt receipt{.held_from = Time{Duration{-5}}, .work_from = kNever, .rate = Rate::from(3)};
  Time until = kNever;
  std::vector<Slice> slices;
  JobPast before;
  std::optional<TrainingReport> said = TrainingReport{.epochs = 0.1, .loss = 1e-300};
  int appended = 0, done = 0;
};

/// Any job: every field differs from what it is by itself.
TraceJob odd_job(Names& names) {
  TraceJob job;
  static_assert(std::is_trivially_copyable_v<TraceJob>);
  std::memset(static_cast<void*>(&job), 1, sizeof job);
  const auto name = names.intern("1");
  for (NameId* id : {&job.id, &job.user, &job.group, &job.queue, &job.name, &job.model, &job.study,
                     &job.gpu_type})
    *id = name;
  job.recorded.reset();  // for reports of a trace: no engine reads it, and no live job has it
  return job;
}

struct Told {
  Told() { slots.jobs.resize(2); }
  Trace slots;
  JobTable table{2};
  std::vector<std::string> passes;
  int caught_up = 0;
};

/// One pass as an engine makes it; what it heard.
std::vector<double> make_pass(EngineLog& log, Told& told) {
  std::vector<double> heard;
  const Time now = *log.advance(kNever);
  heard.push_back(static_cast<double>(now.time_since_epoch().count()));
  std::vector<Event> due;
  log.collect(now, due);
  for (const Event& event : due) heard.push_back(static_cast<double>(event.kind));
  const JobPast past = log.past(JobId{1});
  heard.push_back(static_cast<double>(past.held.count()));
  for (const Slice& slice : past.slices) heard.push_back(static_cast<double>(slice.devices));
  for (const auto& [who, shares] : log.entitlements().shares) heard.push_back(shares);
  const Action action{.kind = ActionKind::Start, .job = JobId{1}, .pool = {}, .slices = {}};
  log.append(now, action);
  const StartReceipt receipt = log.start(now, action, told.table);
  heard.push_back(static_cast<double>(receipt.held_from.time_since_epoch().count()));
  heard.push_back(static_cast<double>(receipt.rate.raw()));
  heard.push_back(
      static_cast<double>(log.stop(now, action, told.table).time_since_epoch().count()));
  heard.push_back(log.report(now, JobId{1}, told.table)->loss);
  log.losses(now, JobId{1}, told.table, 0, heard);
  std::vector<RateChange> changes;
  log.rates(now, told.table, changes);
  for (const RateChange& change : changes) {
    heard.push_back(static_cast<double>(change.rate.raw()));
    heard.push_back(static_cast<double>(change.work.value_or(Duration{-1}).count()));
    heard.push_back(static_cast<double>(change.basis));
    heard.push_back(change.begun == kNever ? 1 : 0);
  }
  log.instant_done(now);
  // Whoever says when to wake it may ask as well.
  heard.push_back(log.report(now, JobId{1}, told.table)->epochs);
  return heard;
}

EngineLog::Parts parts_of(Script& script, Told& told) {
  return {.executor = script,
          .observer = script,
          .slots = told.slots,
          .keep = [&told](std::string pass) { told.passes.push_back(std::move(pass)); }};
}

/// The log of an engine that has made one pass.
std::vector<std::string> log_of_one_pass(Script& script) {
  Told told;
  EngineLog log{parts_of(script, told)};
  static_cast<void>(make_pass(log, told));
  return told.passes;
}

TEST(EngineLog, TellsTheSameAgain) {
  Script script;
  script.slices = {{.node = NodeId{3}, .gpus = 64, .devices = ~std::uint64_t{0}}};
  script.before.held = Duration{77};
  script.before.slices = script.slices;
  script.events = {{.kind = EventKind::Shares, .job = {}, .node = {}},
                   {.kind = EventKind::Arrival, .job = JobId{1}, .node = {}}};
  Told told;
  told.slots.jobs[1] = odd_job(told.slots.names);
  EngineLog first{parts_of(script, told)};
  std::vector<std::vector<double>> heard;
  for (int i = 0; i < 3; ++i) heard.push_back(make_pass(first, told));
  ASSERT_EQ(told.passes.size(), 3U);
  EXPECT_EQ(script.appended, 3);

  Script silent;
  silent.now = Time{Duration{5}};
  silent.events = {{.kind = EventKind::Shares, .job = {}, .node = {}}};
  Told again;
  EngineLog second{parts_of(silent, again)};
  second.replay(told.passes, [&] { ++again.caught_up; });
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(again.caught_up, 0);
    EXPECT_TRUE(second.is_replaying());
    EXPECT_EQ(make_pass(second, again), heard[static_cast<std::size_t>(i)]) << i;
  }
  EXPECT_EQ(again.caught_up, 1);
  EXPECT_EQ(again.slots.jobs[1], told.slots.jobs[1]);
  EXPECT_EQ(silent.appended + silent.done, 0) << "nothing is carried out twice";
  EXPECT_TRUE(again.passes.empty());
  const auto live = make_pass(second, again);
  EXPECT_EQ(live.front(), 5) << "then the executor is asked";
  EXPECT_EQ(again.passes.size(), 1U);
}

TEST(EngineLog, FindsOutAnEngineThatDecidesOtherwise) {
  Script script;
  const auto passes = log_of_one_pass(script);
  Told again;
  EngineLog second{parts_of(script, again)};
  second.replay(passes, [] {});
  const Time now = *second.advance(kNever);
  std::vector<Event> due;
  second.collect(now, due);
  second.append(now, {.kind = ActionKind::Preempt, .job = JobId{0}, .pool = {}, .slices = {}});
  EXPECT_THROW(second.instant_done(now), std::runtime_error);
}

TEST(EngineLog, FindsOutADamagedLog) {
  Script script;
  const std::string whole = log_of_one_pass(script).front();
  for (std::size_t length = 0; length < whole.size(); ++length) {
    Told again;
    EngineLog second{parts_of(script, again)};
    second.replay({whole.substr(0, length)}, [] {});
    EXPECT_THROW(static_cast<void>(make_pass(second, again)), std::runtime_error) << length;
  }
}

// A pass in which nothing was due is no pass; what was asked before it is kept.
TEST(EngineLog, KeepsOnlyPassesThatWereDecidedIn) {
  Script script;
  Told told;
  EngineLog log{parts_of(script, told)};
  static_cast<void>(make_pass(log, told));
  for (int i = 0; i < 3; ++i) {
    const Time now = *log.advance(kNever);
    std::vector<Event> due;
    log.collect(now, due);
    log.instant_done(now);
  }
  EXPECT_EQ(told.passes.size(), 1U);
  EXPECT_EQ(script.done, 4);
}

}  // namespace
}  // namespace berth
