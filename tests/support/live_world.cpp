#include "support/live_world.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/crash_point.h"
#include "support/live_world_life.h"

namespace berth::test {

namespace {
constexpr std::int64_t kWallOffset = 1'700'000'000'000'000;

Result<std::optional<MachineUser>> everybody_is_known(const std::string& name) {
  return std::optional(MachineUser{.uid = name == "root" ? 0U : 5'000U});
}
}  // namespace

JobSpec spec_of(std::vector<std::string> command, std::int32_t gpus) {
  JobSpec spec;
  spec.command = std::move(command);
  spec.workdir = "/";
  spec.user = "root";
  spec.gpus = gpus;
  return spec;
}

LiveWorld::LiveWorld(WorldOptions options)
    : options_(std::move(options)),
      cluster_(*load_cluster(options_.cluster)),
      host_(options_.host),
      rng_(options_.seed),
      sleep_rng_(rng_.fork("sleep")),
      training_(options_.seed),
      honest_(host_, options_.seed, options_.honest) {
  if (options_.edit_cluster) options_.edit_cluster(cluster_);
  if (!options_.service.identity.lookup) options_.service.identity.lookup = everybody_is_known;
  host_.set_fault_counter([this](std::string_view what) { count_fault(what); });
}

LiveWorld::~LiveWorld() = default;

std::int64_t LiveWorld::wall_micros() const { return kWallOffset + wall_offset_ + micros_; }
std::string LiveWorld::boot_id() const { return fmt::format("boot-{}", boots_); }

void LiveWorld::at(double seconds, ScriptStep step) {
  script_.emplace(static_cast<std::int64_t>(seconds * 1e6) + 1'000'000, std::move(step));
}

void LiveWorld::crash_at(std::uint64_t point, CrashKind kind) {
  crash_at_ = point;
  crash_kind_ = kind;
}

void LiveWorld::at_point(std::string name, std::uint64_t passing, ScriptStep step) {
  at_points_.emplace(std::pair{std::move(name), passing}, std::move(step));
}

void LiveWorld::crash_at_time(double seconds, CrashKind kind) {
  auto happened = std::make_shared<bool>(false);
  at(seconds, [this, kind, happened](LiveService&) {
    if (std::exchange(*happened, true)) return;
    crash_kind_ = kind;
    dying_at_ = "any time";
    throw CrashHere{};
  });
}

void LiveWorld::fail_disk_after(std::uint64_t operations, DiskFault fault) {
  disk_.fail_after(operations, fault);
}

void LiveWorld::set_space_left(std::uint64_t bytes) {
  space_left_ = bytes;
  if (life_) life_->store.set_space_left(bytes);
}

JobNumber LiveWorld::submit(LiveService& service, JobSpec spec) {
  const std::string key = spec.key;
  const auto answer = service.submit(kRoot, std::move(spec));
  if (!answer) {
    violations_.push_back("a submit was refused: " + answer.error().messages.front());
    return 0;
  }
  acknowledge(key, *answer);
  return answer->first;
}

Why LiveWorld::why(JobNumber job, bool may_see_all) const {
  const auto view = life_->service->job(kRoot, job);
  return life_->scheduler->explain(*view, may_see_all);
}

std::optional<std::string> LiveWorld::refusal_of(const JobSpec& spec) const {
  return life_->scheduler->refusal_of(spec);
}

void LiveWorld::acknowledge(const std::string& key, const Submitted& answer) {
  for (std::size_t i = 0; i < answer.count; ++i)
    acknowledged_.insert(answer.first + static_cast<JobNumber>(i));
  if (key.empty()) return;
  const auto [known, is_new] = keys_.emplace(key, answer.first);
  if (!is_new && known->second != answer.first) {
    violations_.push_back(
        fmt::format("I1: key {} is job {} and job {}", key, known->second, answer.first));
  }
}

void LiveWorld::count_fault(std::string_view what) {
  if (life_) ++struck_[{std::string(what), std::string(life_->store.last_kind())}];
}

void LiveWorld::note(std::string line) {
  if (!options_.keeps_log) return;
  log_.push_back(fmt::format("{:.6f} {}", seconds(), line));
  if (log_.size() > 200) log_.pop_front();
}

/// The earliest thing that happens by itself, not after `until`. False: nothing will.
bool LiveWorld::step(std::optional<std::int64_t> until) {
  const auto said = options_.hears_progress ? honest_.next() : std::nullopt;
  auto host = host_.next();
  const bool says_first = said && (!host || *said < *host);
  if (says_first) host = said;
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
  if (!script_first && says_first) {
    life_->messages.post(Question{.ask = [] {}});
    honest_.announce();
    return true;
  }
  if (!script_first) {
    host_.step(micros_);
    return true;
  }
  const ScriptStep action = script_.begin()->second;
  script_.erase(script_.begin());
  try {
    action(*life_->service);
  } catch (const CrashHere&) {
    script_.emplace(micros_ + 1000, action);
    throw;
  }
  return true;
}

/// Nobody wakes at the microsecond, and a scheduler that was away finds everything at once.
void LiveWorld::oversleep() {
  constexpr double kSecond = 1e6;
  const Oversleeping& how = options_.oversleeping;
  if (how.most_micros == 0) return;
  double late = 1 + sleep_rng_.uniform() * static_cast<double>(how.most_micros);
  const bool is_seconds = sleep_rng_.uniform() < how.seconds;
  const bool is_hours = sleep_rng_.uniform() < how.hours;
  if (is_seconds) late = sleep_rng_.uniform() * 10 * kSecond;
  if (is_hours) late = sleep_rng_.uniform() * 6 * 3600 * kSecond;
  if (is_seconds || is_hours) {
    count_fault("late-wakes");
    note(fmt::format("away for {:.3f} s", late / kSecond));
  }
  const std::int64_t end = micros_ + static_cast<std::int64_t>(late);
  while (micros_ < end && step(end)) {
  }
  micros_ = std::max(micros_, end);
  host_.set_now(micros_);
}

/// Processes do not wait until the scheduler has done its work. People do: who acts inside a pass is
/// scripted by at_point().
void LiveWorld::linger(std::string_view point) {
  const double often = options_.oversleeping.in_passes;
  const bool is_between = point.starts_with("supervisor.") || point == "store.committed";
  if (often == 0 || is_recovering_ || !is_between) return;
  if (sleep_rng_.uniform() >= often) return;
  count_fault("slow-passes");
  const std::int64_t end = micros_ + static_cast<std::int64_t>(sleep_rng_.uniform() * 1e7);
  for (auto next = host_.next(); next && *next <= end; next = host_.next()) {
    micros_ = std::max(micros_, *next);
    host_.step(micros_);
  }
  micros_ = end;
  host_.set_now(micros_);
}

bool LiveWorld::live() {
  ++lives_;
  points_ = 0;
  const CrashHook hook{[this](std::string_view name) {
    const std::uint64_t passing = ++names_[std::string(name)];
    if (++points_ == crash_at_) {
      dying_at_ = name;
      throw CrashHere{};
    }
    linger(name);
    const auto step = at_points_.extract({std::string(name), passing});
    if (!step.empty()) step.mapped()(*life_->service);
  }};
  try {
    if (!begin_life()) return false;
    if (const auto ran = life_->scheduler->run(); !ran)
      violations_.push_back("the scheduler ended: " + ran.error().text());
    host_.set_sink({});
    check_after_life(*life_);
    life_.reset();
    return false;
  } catch (const CrashHere&) {
    die();
  }
  return true;
}

void LiveWorld::die() {
  host_.set_sink({});
  constexpr const char* kKinds[] = {"kill", "power", "controller"};
  const char* kind = kKinds[static_cast<std::size_t>(crash_kind_)];
  note(fmt::format("CRASH: {} at {}", kind, dying_at_));
  count_fault(dying_at_ == "disk" ? "disk" : kind);
  died_in_recovery_ = std::exchange(is_recovering_, false);
  if (died_in_recovery_) count_fault("in-recovery");
  ++deaths_at_[std::exchange(dying_at_, {})];
  if (life_) check_engines(*life_);
  life_.reset();
  crash_at_.reset();
  disk_.clear_fault();
  disk_.crash(crash_kind_ == CrashKind::Kill ? Crash::Kill : Crash::Power, rng_);
  if (crash_kind_ == CrashKind::Power) {
    host_.power_off();
    ++boots_;
  }
}

void LiveWorld::plant(RecordBody body) {
  SimStore store{disk_};
  auto ledger = store.recover();
  if (!ledger) return violations_.push_back("plant: " + ledger.error().text());
  const Record record{.at = ledger->now(), .wall = wall_micros(), .body = std::move(body)};
  const auto change = ledger->replay(record);
  if (!change || !store.append(record, *change) || !store.commit())
    violations_.push_back("plant: cannot follow");
}

void LiveWorld::stay_dead_until(double seconds) {
  const auto until = static_cast<std::int64_t>(seconds * 1e6) + 1'000'000;
  for (auto next = host_.next(); next && *next <= until; next = host_.next()) {
    micros_ = std::max(micros_, *next);
    host_.step(micros_);
  }
  micros_ = std::max(micros_, until);
  host_.set_now(micros_);
}

bool LiveWorld::begin_life() {
  is_recovering_ = true;
  auto store = std::make_unique<SimStore>(disk_);
  auto ledger = store->recover();
  if (!ledger) {
    violations_.push_back("recovery: " + ledger.error().text());
    return false;
  }
  life_ = std::make_unique<Life>(*this, std::move(store), *std::move(ledger));
  Life& life = *life_;
  life.store.set_space_left(space_left_);
  last_boot_ = boot_id();
  last_life_ = {micros_, life.clock.now()};
  check_recovered(life);
  host_.set_sink([&life](HostEvent event) { life.messages.post(std::move(event)); });
  LifeRecord record;
  record.generation = life.generation;
  record.boot_id = boot_id();
  record.boot_clock = micros_;
  std::vector<RecordBody> first;
  first.emplace_back(std::move(record));
  if (const auto written = life.journal.write(std::move(first)); !written)
    violations_.push_back(written.error().text());
  make_supervisor(life);
  make_power(life);
  make_service(life);
  if (const auto recovered = life.supervisor->recover(life.journal_writer.ledger()); !recovered) {
    violations_.push_back("recovery: " + recovered.error().text());
    return false;
  }
  is_recovering_ = false;
  return true;
}

void LiveWorld::make_supervisor(Life& life) {
  life.supervisor = std::make_unique<JobSupervisor>(JobSupervisor::Parts{
      .cluster = cluster_,
      .host = host_,
      .journal = life.journal,
      .clock = life.clock,
      .generation = life.generation,
      .job = [&life](JobNumber job) { return life.board.find(job); },
      .order = [this](const LedgerJob& job, const Attempt& attempt) -> Result<LaunchOrder> {
        LaunchOrder order;
        order.job = job.number;
        order.attempt = attempt.id;
        order.command = job.spec->command;
        order.time_limit = job.spec->time_limit;
        for (const HeldDevices& held : attempt.where) {
          if (machines_off_.contains(held.node))
            violations_.push_back(
                fmt::format("job {} is started on {}, which is off", job.number, held.node));
          for (const std::int32_t device : held.devices)
            order.env.emplace_back("DEVICE", fmt::format("{}/{}", held.node, device));
        }
        return order;
      },
      .machine_cores = {}});
}

void LiveWorld::make_power(Life& life) {
  if (!options_.power) return;
  keep_on(cluster_, *options_.power);
  life.programs = std::make_unique<WorldPrograms>(*this, life.messages);
  life.power = std::make_unique<NodePower>(
      NodePower::Parts{.cluster = cluster_,
                       .options = *options_.power,
                       .runner = life.programs.get(),
                       .journal = life.journal,
                       .clock = life.clock,
                       .generation = life.generation,
                       .is_vacant =
                           [&life](NodeId node) {
                             for (const auto& [job, attempt] : life.supervisor->attempts()) {
                               for (const Slice& slice : attempt.slices)
                                 if (slice.node == node) return false;
                             }
                             return true;
                           }},
      life.journal_writer.ledger().settings());
}

TrainingChannel* LiveWorld::training() {
  if (options_.hears_nonsense) return &training_;
  return options_.hears_progress ? &honest_ : options_.training;
}

void LiveWorld::make_service(Life& life) {
  honest_.begin_life();
  life.scheduler =
      std::make_unique<Scheduler>(Scheduler::Parts{.store = life.store,
                                                   .board = life.board,
                                                   .supervisor = *life.supervisor,
                                                   .messages = life.messages,
                                                   .clock = life.clock,
                                                   .cluster = cluster_,
                                                   .options = options_.scheduling,
                                                   .training = training(),
                                                   .hub = nullptr,
                                                   .log = nullptr,
                                                   .power = life.power.get(),
                                                   .around_policy = options_.around_policy});
  life.admission = std::make_unique<Admission>(cluster_, options_.scheduling.placement,
                                               options_.admission, [&life](JobNumber job) {
                                                 if (life.board.find(job)) return true;
                                                 const auto past = life.store.past(job);
                                                 return past && past->has_value();
                                               });
  life.service = std::make_unique<LiveService>(LiveService::Parts{
      .board = life.board,
      .store = life.store,
      .journal = life.journal,
      .clock = life.clock,
      .scheduler = *life.scheduler,
      .admission = *life.admission,
      .cluster = cluster_,
      .generation = life.generation,
      .ask_engine = [&life](Question question) { life.messages.post(std::move(question)); },
      .signal = [](JobNumber, SentSignal) {},
      .explain = [&life](const JobView& job,
                         bool all) { return life.scheduler->explain(job, all); },
      .more_metrics = {},
      .options = options_.service,
      .refusal_of = options_.asks_policy
                        ? [&life](const JobSpec& spec) { return life.scheduler->refusal_of(spec); }
                        : std::function<std::optional<std::string>(const JobSpec&)>{}});
}

void LiveWorld::set_options(const SchedulerOptions& options) {
  Life& life = *life_;
  life.messages.post(Question{[&life, options] { life.scheduler->set_options(options); }});
}

void LiveWorld::run(int most_crashes) {
  for (int crashes = 0; live(); ++crashes) {
    if (crashes == most_crashes) {
      violations_.push_back("L1: too many crashes");
      return;
    }
  }
}

}  // namespace berth::test
