// One life of the scheduler in a LiveWorld: everything that a crash takes with it.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "base/crash_point.h"
#include "support/live_world.h"

namespace berth::test {

/// Waiting is what makes time pass.
class LiveWorld::WorldMessageQueue final : public MessageQueue {
 public:
  WorldMessageQueue(LiveWorld& world, const LiveClock& clock) : world_(world), clock_(clock) {}
  void post(Message message) { messages_.push_back(std::move(message)); }
  void wait(Time until) override {
    world_.check_alive();
    sleep(until);
    world_.oversleep();
  }
  void take(std::vector<Message>& messages) override {
    messages.swap(messages_);
    messages_.clear();
  }

 private:
  void sleep(Time until) {
    while (messages_.empty()) {
      if (world_.seconds() > world_.options_.deadline) {
        world_.violations_.push_back("L1: it does not come to an end");
        return post(StopOrder{});
      }
      std::optional<std::int64_t> target;
      if (until != kNever) target = world_.micros_ + clock_.until(until).count();
      if (target && *target <= world_.micros_) return;
      if (!world_.step(target)) {
        if (target) {
          world_.micros_ = *target;
          world_.host_.set_now(*target);
          return;
        }
        post(StopOrder{});
      }
    }
  }

  LiveWorld& world_;
  const LiveClock& clock_;
  std::vector<Message> messages_;
};

/// A journal that cannot be written is the end of the scheduler, whoever wrote.
class LiveWorld::WorldJournal final : public Journal {
 public:
  WorldJournal(LiveWorld& world, JournalWriter& writer) : world_(world), writer_(writer) {}
  Result<std::vector<Committed>> write(std::vector<RecordBody> bodies) override {
    Result<std::vector<Committed>> answer;
    write_later({.make = [&](const Ledger&) -> Result<std::vector<RecordBody>> { return bodies; },
                 .done = [&](const Result<std::vector<Committed>>& result) { answer = result; }});
    return answer;
  }
  void write_later(WriteOrder order) override {
    if (writer_.write({&order, 1})) return;
    world_.crash_kind_ = CrashKind::Controller;
    world_.dying_at_ = "disk";
    throw CrashHere{};
  }

 private:
  LiveWorld& world_;
  JournalWriter& writer_;
};

/// Programs that switch machines of the world, named by what they do: ".../suspend". A life that is
/// over takes its programs with it.
class LiveWorld::WorldPrograms final : public ProgramRunner {
 public:
  WorldPrograms(LiveWorld& world, WorldMessageQueue& messages)
      : world_(world), messages_(messages) {}
  void run(ProgramOrder order) override {
    const std::string what = order.program == "/bin/true"    ? "resume"
                             : order.program == "/bin/false" ? "suspend"
                                                             : "check";
    world_.asked_.push_back(what + " " + order.node);
    const ProgramBehaviour program =
        world_.program_ ? world_.program_(what, order.node) : ProgramBehaviour{};
    const double limit = to_seconds(order.limit);
    const bool is_late = program.hangs || program.seconds > limit;
    const std::weak_ptr<bool> alive = alive_;
    // Who is asked twice finds a machine that is on its way.
    auto& way = world_.on_their_way_[what + " " + order.node];
    if (way <= world_.seconds()) way = world_.seconds() + (is_late ? limit : program.seconds);
    world_.at(way - 1, [=, this](LiveService&) {
      if (alive.expired()) return;
      ProgramEnd end{.ticket = order.ticket, .is_good = !is_late && !program.fails};
      if (!end.is_good) end.why = is_late ? "killed" : "exit 3";
      if (end.is_good && what == "suspend") world_.machines_off_.insert(order.node);
      if (end.is_good && what == "resume") world_.machines_off_.erase(order.node);
      messages_.post(std::move(end));
    });
  }
  void kill(std::uint64_t) override {}

 private:
  LiveWorld& world_;
  WorldMessageQueue& messages_;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

struct LiveWorld::Life {
  Life(LiveWorld& its_world, std::unique_ptr<SimStore> opened, Ledger ledger)
      : world(its_world),
        own_store(std::move(opened)),
        store(*own_store),
        clock(world, last_time(ledger, store), world.last_boot_, world.last_life_.first,
              world.last_life_.second),
        messages(world, clock),
        generation(ledger.generation() + 1),
        board(ledger),
        journal_writer(store, std::move(ledger), clock, [this](auto records) { publish(records); }),
        journal(world, journal_writer) {}

  [[nodiscard]] static Time last_time(const Ledger& ledger, SimStore& store) {
    const auto passes = store.engine();
    return std::max(ledger.now(), passes->empty() ? Time{} : passes->back().at);
  }

  void publish(std::span<const Committed> records) {
    crash_point("world.publishing");
    world.handle(records);
    board.publish(records, clock.wall());
    for (const Committed& committed : records) {
      const auto* wish = std::get_if<WishRecord>(&committed.record.body);
      const bool ours = std::holds_alternative<IntentRecord>(committed.record.body) ||
                        std::holds_alternative<EndRecord>(committed.record.body) ||
                        std::holds_alternative<StartedRecord>(committed.record.body) ||
                        std::holds_alternative<LifeRecord>(committed.record.body) ||
                        std::holds_alternative<EngineRecord>(committed.record.body) ||
                        (wish != nullptr && wish->by == kSchedulerName);
      if (!ours) messages.post(committed);
    }
  }

  LiveWorld& world;
  std::unique_ptr<SimStore> own_store;
  SimStore& store;
  LiveClock clock;
  WorldMessageQueue messages;
  std::uint64_t generation;
  StatusBoard board;
  JournalWriter journal_writer;
  WorldJournal journal;
  std::unique_ptr<JobSupervisor> supervisor;
  std::unique_ptr<WorldPrograms> programs;
  std::unique_ptr<NodePower> power;
  std::unique_ptr<Scheduler> scheduler;
  std::unique_ptr<Admission> admission;
  std::unique_ptr<LiveService> service;
};

}  // namespace berth::test
