#include "support/live_world.h"

#include <algorithm>
#include <cstdlib>

#include <fmt/format.h>

#include "base/crash_point.h"

namespace berth::test {

namespace {
constexpr std::int64_t kWallOffset = 1'700'000'000'000'000;
}

JobSpec spec_of(std::vector<std::string> command, std::int32_t gpus) {
  JobSpec spec;
  spec.command = std::move(command);
  spec.workdir = "/";
  spec.user = "root";
  spec.gpus = gpus;
  return spec;
}

/// Waiting is what makes time pass.
class LiveWorld::WorldInbox final : public Inbox {
 public:
  WorldInbox(LiveWorld& world, const LiveClock& clock) : world_(world), clock_(clock) {}
  void post(Message message) { messages_.push_back(std::move(message)); }
  void wait(Time until) override {
    while (messages_.empty()) {
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
  void take(std::vector<Message>& messages) override {
    messages.swap(messages_);
    messages_.clear();
  }

 private:
  LiveWorld& world_;
  const LiveClock& clock_;
  std::vector<Message> messages_;
};

struct LiveWorld::Life {
  Life(LiveWorld& world, Ledger ledger)
      : store(world.disk_),
        clock(world, ledger.now()),
        inbox(world, clock),
        generation(ledger.generation() + 1),
        board(ledger),
        scribe(store, std::move(ledger), clock, [this](auto records) { publish(records); }),
        pen(scribe) {}

  void publish(std::span<const Committed> records) {
    crash_point("world.publishing");
    if (std::getenv("BERTH_WORLD_LOG") != nullptr) {
      for (const Committed& committed : records) {
        fmt::print(stderr, "{:.6f} {} {}\n", to_seconds(committed.record.at),
                   kind_of(committed.record.body), encode(committed.record.body));
      }
    }
    board.publish(records, clock.wall());
    for (const Committed& committed : records) {
      const auto* wish = std::get_if<WishRecord>(&committed.record.body);
      const bool ours = std::holds_alternative<IntentRecord>(committed.record.body) ||
                        std::holds_alternative<EndRecord>(committed.record.body) ||
                        std::holds_alternative<StartedRecord>(committed.record.body) ||
                        std::holds_alternative<LifeRecord>(committed.record.body) ||
                        (wish != nullptr && wish->by == kSchedulerName);
      if (!ours) inbox.post(committed);
    }
  }

  SimStore store;
  LiveClock clock;
  WorldInbox inbox;
  std::uint64_t generation;
  Board board;
  Scribe scribe;
  PlainPen pen;
  std::unique_ptr<Yard> yard;
  std::unique_ptr<Scheduler> scheduler;
  std::unique_ptr<Admission> admission;
  std::unique_ptr<LiveService> service;
};

LiveWorld::LiveWorld(WorldOptions options)
    : options_(std::move(options)),
      cluster_(*load_cluster(options_.cluster)),
      host_(options_.host),
      rng_(options_.seed) {
  if (options_.edit_cluster) options_.edit_cluster(cluster_);
}

LiveWorld::~LiveWorld() = default;

std::int64_t LiveWorld::wall_micros() const { return kWallOffset + micros_; }
std::string LiveWorld::boot_id() const { return fmt::format("boot-{}", boots_); }

void LiveWorld::at(double seconds, Deed deed) {
  script_.emplace(static_cast<std::int64_t>(seconds * 1e6) + 1'000'000, std::move(deed));
}

void LiveWorld::crash_at(std::uint64_t point, CrashKind kind) {
  crash_at_ = point;
  crash_kind_ = kind;
}

JobNumber LiveWorld::submit(LiveService& service, JobSpec spec) {
  const auto answer = service.submit(kRoot, std::move(spec));
  if (!answer) {
    violations_.push_back("a submit was refused: " + answer.error().messages.front());
    return 0;
  }
  for (std::size_t i = 0; i < answer->count; ++i)
    acknowledged_.insert(answer->first + static_cast<JobNumber>(i));
  return answer->first;
}

Why LiveWorld::why(JobNumber job) const {
  const auto view = life_->service->job(kRoot, job);
  return life_->scheduler->explain(*view, true);
}

/// The earliest thing that happens by itself, not after `until`. False: nothing will.
bool LiveWorld::step(std::optional<std::int64_t> until) {
  const auto host = host_.next();
  const bool script_first = !script_.empty() && (!host || script_.begin()->first <= *host);
  const std::optional<std::int64_t> next =
      script_first ? std::optional{script_.begin()->first} : host;
  if (!next) return false;
  if (until && *next > *until) {
    micros_ = *until;
    host_.set_now(micros_);
    return true;
  }
  micros_ = std::max(micros_, *next);
  host_.set_now(micros_);
  if (!script_first) {
    host_.step(micros_);
    return true;
  }
  const Deed deed = script_.begin()->second;
  script_.erase(script_.begin());
  try {
    deed(*life_->service);
  } catch (const CrashHere&) {
    script_.emplace(micros_ + 1000, deed);
    throw;
  }
  return true;
}

bool LiveWorld::live() {
  ++lives_;
  points_ = 0;
  const CrashHook hook{[this](std::string_view name) {
    ++names_[std::string(name)];
    if (++points_ == crash_at_) throw CrashHere{};
  }};
  bool crashed = false;
  try {
    SimStore reader{disk_};
    auto ledger = reader.recover();
    if (!ledger) {
      violations_.push_back("recovery: " + ledger.error().text());
      return false;
    }
    life_ = std::make_unique<Life>(*this, *ledger);
    Life& life = *life_;
    static_cast<void>(life.store.recover());
    host_.set_sink([&life](HostEvent event) { life.inbox.post(std::move(event)); });
    LifeRecord record;
    record.generation = life.generation;
    record.boot_id = boot_id();
    record.boot_clock = micros_;
    std::vector<RecordBody> first;
    first.emplace_back(std::move(record));
    if (const auto written = life.pen.write(std::move(first)); !written)
      violations_.push_back(written.error().text());
    life.yard = std::make_unique<Yard>(Yard::Parts{
        .cluster = cluster_,
        .host = host_,
        .pen = life.pen,
        .clock = life.clock,
        .generation = life.generation,
        .job = [&life](JobNumber job) { return life.board.find(job); },
        .order = [](const LedgerJob& job, const Attempt& attempt) -> Result<LaunchOrder> {
          LaunchOrder order;
          order.job = job.number;
          order.attempt = attempt.id;
          order.command = job.spec->command;
          order.time_limit = job.spec->time_limit;
          for (const HeldDevices& held : attempt.where) {
            for (const std::int32_t device : held.devices)
              order.env.emplace_back("DEVICE", fmt::format("{}/{}", held.node, device));
          }
          return order;
        },
        .machine_cores = {}});
    life.scheduler = std::make_unique<Scheduler>(Scheduler::Parts{.store = life.store,
                                                                  .board = life.board,
                                                                  .yard = *life.yard,
                                                                  .inbox = life.inbox,
                                                                  .clock = life.clock,
                                                                  .cluster = cluster_,
                                                                  .options = options_.scheduling});
    life.admission = std::make_unique<Admission>(cluster_, options_.scheduling.placement,
                                                 options_.admission, [&life](JobNumber job) {
                                                   if (life.board.find(job)) return true;
                                                   const auto past = life.store.past(job);
                                                   return past && past->has_value();
                                                 });
    life.service = std::make_unique<LiveService>(LiveService::Parts{
        .board = life.board,
        .store = life.store,
        .pen = life.pen,
        .clock = life.clock,
        .scheduler = *life.scheduler,
        .admission = *life.admission,
        .cluster = cluster_,
        .generation = life.generation,
        .ask_engine =
            [&life](std::function<void()> ask) { life.inbox.post(Question{std::move(ask)}); },
        .signal = [](JobNumber, int) {},
        .explain = [&life](const JobView& job,
                           bool all) { return life.scheduler->explain(job, all); },
        .more_metrics = {},
        .options = {}});
    if (const auto recovered = life.yard->recover(life.scribe.ledger()); !recovered) {
      violations_.push_back("recovery: " + recovered.error().text());
      return false;
    }
    if (const auto ran = life.scheduler->run(); !ran)
      violations_.push_back("the scheduler ended: " + ran.error().text());
  } catch (const CrashHere&) {
    crashed = true;
  }
  host_.set_sink({});
  if (!crashed) {
    check_after_life(*life_);
    life_.reset();
    return false;
  }
  life_.reset();
  crash_at_.reset();
  if (crash_kind_ != CrashKind::Kill) disk_.crash(Crash::Power, rng_);
  if (crash_kind_ == CrashKind::Kill) disk_.crash(Crash::Kill, rng_);
  if (crash_kind_ == CrashKind::Power) {
    host_.power_off();
    ++boots_;
  }
  return true;
}

void LiveWorld::run(int most_crashes) {
  for (int crashes = 0; live(); ++crashes) {
    if (crashes == most_crashes) {
      violations_.push_back("L1: too many crashes");
      return;
    }
  }
}

void LiveWorld::check_after_life(Life& life) {
  for (const std::string& violation : host_.violations()) violations_.push_back(violation);
  over_.clear();
  for (const JobNumber job : acknowledged_) {
    const auto view = life.service->job(kRoot, job);
    if (!view) {
      violations_.push_back(fmt::format("I1: job {} was acknowledged and is lost", job));
      continue;
    }
    over_[job] = *view;
    if (!is_over(view->state)) {
      violations_.push_back(fmt::format("L1: job {} is {} ({}) and nothing will happen any more",
                                        job, to_string(view->state), view->reason));
    }
  }
  if (host_.alive() > 0) violations_.push_back("L1: processes are left");
}

}  // namespace berth::test
