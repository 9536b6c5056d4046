#include "support/slurm_world.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/crash_point.h"
#include "daemon/job_supervisor.h"
#include "daemon/live_abilities.h"
#include "daemon/scheduler.h"
#include "daemon/status_board.h"
#include "slurm_host/slurm_cluster.h"
#include "slurm_host/slurm_host.h"
#include "support/sim_store.h"

namespace berth::test {

namespace {
constexpr std::int64_t kWallOffset = 1'700'000'000'000'000;
constexpr std::int64_t kSecond = 1'000'000;
struct Killed {};  // thrown where the scheduler dies
}  // namespace

/// Waiting is what makes time pass.
class SlurmWorld::Queue final : public MessageQueue {
 public:
  Queue(SlurmWorld& world, const LiveClock& clock) : world_(world), clock_(clock) {}
  void post(Message message) { messages_.push_back(std::move(message)); }
  void take(std::vector<Message>& messages) override {
    messages.swap(messages_);
    messages_.clear();
  }
  void wait(Time until) override;

 private:
  SlurmWorld& world_;
  const LiveClock& clock_;
  std::vector<Message> messages_;
};

class SlurmWorld::DirectJournal final : public Journal {
 public:
  explicit DirectJournal(JournalWriter& writer) : writer_(writer) {}
  Result<std::vector<Committed>> write(std::vector<RecordBody> bodies) override {
    Result<std::vector<Committed>> answer;
    write_later({.make = [&](const Ledger&) -> Result<std::vector<RecordBody>> { return bodies; },
                 .done = [&](const Result<std::vector<Committed>>& result) { answer = result; }});
    return answer;
  }
  void write_later(WriteOrder order) override { static_cast<void>(writer_.write({&order, 1})); }

 private:
  JournalWriter& writer_;
};

struct SlurmWorld::Life {
  Life(SlurmWorld& its_world, std::unique_ptr<SimStore> opened, Ledger ledger)
      : world(its_world),
        store(std::move(opened)),
        clock(world, last_time(ledger, *store), "boot", world.last_life_.first,
              world.last_life_.second),
        messages(world, clock),
        generation(ledger.generation() + 1),
        board(ledger),
        writer(*store, std::move(ledger), clock, [this](auto records) { publish(records); }),
        journal(writer) {}

  [[nodiscard]] static Time last_time(const Ledger& ledger, SimStore& store) {
    const auto passes = store.engine();
    return std::max(ledger.now(), passes->empty() ? Time{} : passes->back().at);
  }

  void publish(std::span<const Committed> records) {
    board.publish(records, clock.wall());
    for (const Committed& committed : records) {
      const RecordBody& body = committed.record.body;
      if (world.options_.keeps_log) world.note(fmt::format("{} {}", kind_of(body), encode(body)));
      if (std::holds_alternative<IntentRecord>(body)) ++world.intents_;
      if (const auto* end = std::get_if<EndRecord>(&body); end != nullptr && end->is_final) {
        if (!world.ended_.insert(end->job).second)
          world.violations_.push_back(fmt::format("I4: job {} ended twice", end->job));
      }
      const auto* wish = std::get_if<WishRecord>(&body);
      const bool is_news = std::holds_alternative<SubmitRecord>(body) ||
                           std::holds_alternative<ChangeRecord>(body) ||
                           std::holds_alternative<SettingRecord>(body) ||
                           (wish != nullptr && wish->by != kSchedulerName);
      if (is_news) messages.post(committed);
    }
  }

  SlurmWorld& world;
  std::unique_ptr<SimStore> store;
  LiveClock clock;
  Queue messages;
  std::uint64_t generation;
  StatusBoard board;
  JournalWriter writer;
  DirectJournal journal;
  std::unique_ptr<SlurmHost> host;
  std::unique_ptr<JobSupervisor> supervisor;
  std::unique_ptr<Scheduler> scheduler;
  std::int64_t next_turn = 0;
};

/// A turn of the host each second, as its thread would make it.
void SlurmWorld::Queue::wait(Time until) {
  while (messages_.empty()) {
    if (world_.is_done()) return post(StopOrder{});
    if (world_.seconds() > world_.options_.deadline) {
      world_.violations_.push_back("L1: it does not come to an end");
      return post(StopOrder{});
    }
    std::int64_t target = world_.life_->next_turn;
    if (until != kNever) target = std::min(target, world_.micros_ + clock_.until(until).count());
    world_.pass(target);
    if (world_.micros_ >= world_.life_->next_turn) {
      world_.life_->next_turn = world_.micros_ + kSecond;
      static_cast<void>(world_.life_->host->turn());
    }
    if (until != kNever && clock_.until(until) <= Duration::zero()) return;
  }
}

SlurmWorld::SlurmWorld(SlurmWorldOptions options)
    : options_(std::move(options)), slurm_(options_.slurm), rng_(options_.seed) {
  const auto nodes = slurm_.nodes();
  cluster_ = *cluster_from(**nodes, {}, "sim");
  slurm_.set_now(wall_micros() / kSecond);
  slurm_.set_place_check([this](const slurm::Job& job, const slurm::Placement& placement) {
    check_place(job, placement);
    return std::string{};
  });
}

SlurmWorld::~SlurmWorld() = default;

double SlurmWorld::seconds() const noexcept {
  return static_cast<double>(micros_ - kSecond) * 1e-6;
}
std::int64_t SlurmWorld::wall_micros() const { return kWallOffset + micros_; }

void SlurmWorld::note(std::string line) {
  if (options_.keeps_log) log_.push_back(fmt::format("{:.3f} {}", seconds(), std::move(line)));
}

void SlurmWorld::at(double seconds, std::function<void(SimSlurm&)> act) {
  script_.emplace(static_cast<std::int64_t>(seconds * 1e6) + kSecond,
                  [this, act = std::move(act)] { act(slurm_); });
}

void SlurmWorld::crash_at(std::uint64_t point, double away) {
  crash_at_ = point;
  away_ = away;
}

void SlurmWorld::crash_at_time(double seconds, double away) {
  script_.emplace(static_cast<std::int64_t>(seconds * 1e6) + kSecond, [this, away] {
    if (!life_) return;
    is_killed_ = true;
    away_ = away;
  });
}

void SlurmWorld::wish_at(double seconds, WishRecord wish) {
  script_.emplace(static_cast<std::int64_t>(seconds * 1e6) + kSecond, [this, wish] {
    if (!life_) return;
    std::vector<RecordBody> bodies;
    bodies.emplace_back(wish);
    static_cast<void>(life_->journal.write(std::move(bodies)));  // it may be over by now
  });
}

void SlurmWorld::pass(std::int64_t until) {
  for (;;) {
    const bool has_next = !script_.empty() && script_.begin()->first <= until;
    micros_ = std::max(micros_, has_next ? script_.begin()->first : until);
    slurm_.set_now(wall_micros() / kSecond);
    if (!has_next) return;
    const auto act = script_.begin()->second;
    script_.erase(script_.begin());
    act();
    if (std::exchange(is_killed_, false)) {
      deaths_at_.insert("any time");
      throw Killed{};
    }
  }
}

/// Nothing is released that the journal does not know: the attempt, its claim, and the same nodes.
void SlurmWorld::check_place(const slurm::Job& job, const slurm::Placement& placement) {
  const auto wrong = [&](const char* what) {
    violations_.push_back(fmt::format("S1: job {} ({}) is placed on {}: {}", job.key.job,
                                      job.array_tasks, fmt::join(placement.nodes, ","), what));
  };
  for (const auto& [key, value] : life_->writer.ledger().settings()) {
    const auto claim = claim_from(key, value);
    if (!claim) continue;
    const auto& [number, its] = *claim;
    const bool is_it = job.array != 0 ? its.name.job == job.array &&
                                            fmt::format("{}", its.name.task) == job.array_tasks
                                      : its.name.job == job.key.job;
    if (!is_it || its.submitted != job.key.submitted || its.restarts != job.key.restarts) continue;
    const LedgerJob* ours = life_->writer.ledger().find(number);
    if (ours == nullptr) continue;
    if (!ours->attempt || ours->attempt->id != its.attempt) return wrong("no attempt of it lives");
    if (its.nodes != placement.nodes) return wrong("its claim says other nodes");
    return;
  }
  wrong("the journal has no claim");
}

bool SlurmWorld::is_done() const {
  if (!script_.empty() || !slurm_.is_quiet()) return false;
  return life_->writer.ledger().jobs().empty();
}

void SlurmWorld::begin_life() {
  auto store = std::make_unique<SimStore>(disk_);
  auto ledger = store->recover();
  if (!ledger) {
    violations_.push_back("recovery: " + ledger.error().text());
    return;
  }
  life_ = std::make_unique<Life>(*this, std::move(store), *std::move(ledger));
  Life& life = *life_;
  last_life_ = {micros_, life.clock.now()};
  LifeRecord record;
  record.generation = life.generation;
  record.boot_id = boot_id();
  record.boot_clock = micros_;
  std::vector<RecordBody> first;
  first.emplace_back(std::move(record));
  if (const auto written = life.journal.write(std::move(first)); !written)
    violations_.push_back(written.error().text());
  life.host = std::make_unique<SlurmHost>(
      SlurmHost::Parts{
          .link = slurm_,
          .cluster = cluster_,
          .journal = life.journal,
          .job = [&life](JobNumber job) { return life.board.find(job); },
          .past_key = [&life](const std::string& user,
                              const std::string& key) { return life.store->by_key(user, key); },
          .setting = [&life](const std::string& key) { return life.board.setting(key); },
          .tell = [&life](HostEvent event) { life.messages.post(std::move(event)); },
          .now = [this] { return wall_micros() / kSecond; },
          .rules = options_.rules},
      life.writer.ledger());
  life.next_turn = micros_ + kSecond;
  static_cast<void>(life.host->turn());
  life.supervisor = std::make_unique<JobSupervisor>(JobSupervisor::Parts{
      .cluster = cluster_,
      .host = *life.host,
      .journal = life.journal,
      .clock = life.clock,
      .generation = life.generation,
      .job = [&life](JobNumber job) { return life.board.find(job); },
      .order = [](const LedgerJob& job, const Attempt& attempt) -> Result<LaunchOrder> {
        LaunchOrder order;
        order.job = job.number;
        order.attempt = attempt.id;
        order.where = attempt.where;
        return order;
      },
      .machine_cores = {}});
  life.scheduler = std::make_unique<Scheduler>(Scheduler::Parts{.store = *life.store,
                                                                .board = life.board,
                                                                .supervisor = *life.supervisor,
                                                                .messages = life.messages,
                                                                .clock = life.clock,
                                                                .cluster = cluster_,
                                                                .options = options_.scheduling,
                                                                .host = slurm_traits()});
  if (const auto recovered = life.supervisor->recover(life.writer.ledger()); !recovered)
    violations_.push_back("recovery: " + recovered.error().text());
}

bool SlurmWorld::live() {
  ++lives_;
  points_ = 0;
  const CrashHook hook{[this](std::string_view name) {
    if (++points_ != crash_at_) return;
    deaths_at_.insert(std::string(name));
    throw Killed{};
  }};
  try {
    begin_life();
    if (!life_) return false;
    if (const auto ran = life_->scheduler->run(); !ran)
      violations_.push_back("the scheduler ended: " + ran.error().text());
    if (life_->scheduler->figures().failures > 0) violations_.push_back("R9: an engine failed");
    for (const auto& [number, job] : life_->writer.ledger().jobs())
      violations_.push_back(
          fmt::format("L1: job {} ({}) is not over", number, job.spec->command.at(1)));
    for (const slurm::Job& job : slurm_.all())
      if (!is_over(job.phase))
        violations_.push_back(fmt::format("L1: job {} of Slurm is {} with priority {}", job.key.job,
                                          to_string(job.phase), job.priority));
    for (JobNumber job = 1; job < life_->writer.ledger().next_number(); ++job) {
      const auto past = life_->store->past(job);
      if (past && *past) over_[(*past)->job.spec->command.at(1)] = (*past)->outcome;
    }
    for (const std::string& violation : slurm_.violations()) violations_.push_back(violation);
    life_.reset();
    return false;
  } catch (const Killed&) {
    note("KILLED");
    life_.reset();
    crash_at_.reset();
    disk_.crash(Crash::Kill, rng_);
  }
  return true;
}

void SlurmWorld::run(int most_crashes) {
  for (int crashes = 0; live(); ++crashes) {
    if (crashes == most_crashes) {
      violations_.push_back("L1: too many crashes");
      return;
    }
    pass(micros_ + static_cast<std::int64_t>(away_ * 1e6));
  }
}

}  // namespace berth::test
