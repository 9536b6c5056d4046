#include "daemon/job_supervisor.h"

#include <algorithm>
#include <bit>

#include <fmt/format.h>

#include "base/check.h"
#include "base/crash_point.h"
#include "base/device_mask.h"

namespace berth {

namespace {

template <class Visit>
void visit_devices(std::span<const Slice> slices, Visit visit) {
  for (const Slice& slice : slices) {
    for (const std::int32_t device : DeviceMask{slice.devices})
      visit(std::pair{slice.node.value, device});
  }
}

Wish wish_of(Ending ending) {
  switch (ending) {
    case Ending::Cancel:
    case Ending::Kill: return Wish::Cancel;
    case Ending::Requeue: return Wish::Requeue;
    case Ending::ByItself:
    case Ending::Preempt: break;
  }
  return Wish::Preempt;
}

}  // namespace

JobSupervisor::JobSupervisor(Parts parts)
    : parts_(std::move(parts)), cores_(parts_.cluster, parts_.machine_cores) {}

const Attempt* JobSupervisor::alive(JobNumber job) const {
  const auto found = attempts_.find(job);
  return found == attempts_.end() ? nullptr : &found->second;
}

void JobSupervisor::begin_engine(Rules rules) {
  rules_ = std::move(rules);
  end_engine();
}

void JobSupervisor::end_engine() {
  while (!asked_.empty()) static_cast<void>(answer(asked_.begin()->first, std::nullopt));
  pending_.clear();
  resuming_.clear();
  leaving_.clear();
  // What was asked is answered, and that is where the next engine finds it.
  std::erase_if(moves_, [](const auto& entry) { return !entry.second.until; });
  for (auto& [job, move] : moves_) move.to.slices = move.asked;
  for (auto& [job, attempt] : attempts_) {
    attempt.is_granted = attempt.is_left_alone = false;
    attempt.held_counted = attempt.work_counted = attempt.since;
  }
}

// --- what the engine wants

bool JobSupervisor::start(JobNumber job, std::span<const Slice> slices, std::int32_t gpus,
                          Reason reason, std::int32_t cores_milli) {
  const auto found = attempts_.find(job);
  if (found != attempts_.end() && found->second.ending == Ending::ByItself) {
    Attempt& own = found->second;
    const bool has_all = std::ranges::equal(own.slices, slices);
    const bool is_requested_otherwise = !own.requested.empty() && own.requested != own.slices;
    const bool is_asked = moves_.contains(job);
    if ((!has_all || is_requested_otherwise || is_asked) && can_change_in_place(job, slices)) {
      moves_[job].to = {.slices = {slices.begin(), slices.end()},  // after what it is asked now
                        .gpus = gpus,
                        .reason = reason,
                        .cores_milli = cores_milli};
      own.is_granted = true;
      own.held_counted = own.work_counted = parts_.clock.now();
      leaving_.erase(job);
      push_aside(job, slices);
      return true;
    }
    if (has_all) {
      own.is_granted = true;
      moves_.erase(job);
      leaving_.erase(job);
      push_aside(job, slices);
      if (own.is_suspended) resuming_.insert(job);
      return true;
    }
    preempt(job, "goes on elsewhere");
  }
  pending_[job] = {.slices = {slices.begin(), slices.end()},
                   .gpus = gpus,
                   .reason = reason,
                   .cores_milli = cores_milli};
  push_aside(job, slices);
  return false;
}

void JobSupervisor::keep(JobNumber job, Time held_from, Time work_from) {
  Attempt& own = attempts_.at(job);
  own.is_granted = true;
  own.held_counted = held_from;
  own.work_counted = work_from;
  if (own.is_suspended) resuming_.insert(job);
}

/// Whoever is on these devices without the engine's knowledge has to go: it was there before a
/// restart, and its policy has other plans for the place now.
void JobSupervisor::push_aside(JobNumber by, std::span<const Slice> slices) {
  for (const JobNumber other : on_devices(slices)) {
    const Attempt& attempt = attempts_.at(other);
    const bool in_the_way =
        other != by && !attempt.is_granted && !attempt.is_left_alone && !attempt.is_suspended;
    if (in_the_way && attempt.ending == Ending::ByItself && !leaving_.contains(other))
      preempt(other, "its devices are needed");
  }
}

std::set<JobNumber> JobSupervisor::on_devices(std::span<const Slice> slices) const {
  std::set<JobNumber> jobs;
  visit_devices(slices, [&](const auto& device) {
    const auto found = on_device_.find(device);
    if (found != on_device_.end()) jobs.insert(found->second.begin(), found->second.end());
  });
  return jobs;
}

void JobSupervisor::want_stop(Attempt& attempt, Ending ending, std::string why,
                              const std::set<JobNumber>& rivals) {
  attempt.is_granted = false;
  resuming_.erase(attempt.job);
  leaving_.erase(attempt.job);
  const bool is_final = attempt.ending == Ending::Cancel || attempt.ending == Ending::Kill;
  moves_.erase(attempt.job);
  const bool is_stronger = attempt.ending == Ending::ByItself ||
                           (ending == Ending::Cancel && attempt.ending != Ending::Cancel) ||
                           (ending == Ending::Kill && !is_final);
  if (!is_stronger) return;
  attempt.ending = ending;
  if (ending == Ending::Kill) attempt.ending_why = why;
  const auto record = parts_.job(attempt.job);
  // A cancel or a requeue by name is on record already: that is how we heard of it.
  const bool by_us = ending == Ending::Preempt || ending == Ending::Kill;
  if (by_us) {
    records_.emplace_back(WishRecord{.job = attempt.job,
                                     .wish = wish_of(ending),
                                     .by = kSchedulerName,
                                     .why = std::move(why),
                                     .for_jobs = {rivals.begin(), rivals.end()}});
  }
  // Whoever makes way is asked to save and leave before it is warned; who listens to nobody, or is
  // not wanted any more, is warned at once.
  const bool awake =
      attempt.is_running && !attempt.is_suspended && !attempt.is_frozen && !attempt.is_silent;
  if (ending == Ending::Preempt && awake && rules_.training != nullptr &&
      rules_.training->is_listening(attempt.job)) {
    asked_to_leave_[attempt.job] = parts_.clock.now() + rules_.answer;
    signals_.push_back({.kind = Signal::Kind::Leave, .attempt = attempt.id, .job = attempt.job});
    return;
  }
  asked_to_leave_.erase(attempt.job);
  signals_.push_back({.kind = Signal::Kind::Stop,
                      .attempt = attempt.id,
                      .grace = record ? record->spec->grace_seconds : 0});
}

void JobSupervisor::warn_who_stayed() {
  const Time now = parts_.clock.now();
  for (auto next = asked_to_leave_.begin(); next != asked_to_leave_.end();) {
    if (next->second > now) {
      ++next;
      continue;
    }
    const auto record = parts_.job(next->first);
    if (parts_.log != nullptr)
      BERTH_LOG(*parts_.log, Warn, "training",
                "code that was asked to save and leave is still there: it is warned by signal",
                {"job", next->first}, {"after", to_seconds(rules_.answer)});
    signals_.push_back({.kind = Signal::Kind::Stop,
                        .attempt = attempts_.at(next->first).id,
                        .grace = record ? record->spec->grace_seconds : 0});
    next = asked_to_leave_.erase(next);
  }
}

void JobSupervisor::stop(JobNumber job, Ending ending, std::string why) {
  pending_.erase(job);
  const auto found = attempts_.find(job);
  if (found != attempts_.end()) want_stop(found->second, ending, std::move(why));
}

void JobSupervisor::leave_alone(JobNumber job) {
  pending_.erase(job);
  leaving_.erase(job);
  moves_.erase(job);
  const auto found = attempts_.find(job);
  if (found == attempts_.end()) return;
  Attempt& attempt = found->second;
  attempt.is_granted = false;
  attempt.is_left_alone = true;
  if (attempt.is_suspended)
    want_stop(attempt, Ending::Preempt, "it sleeps, and nobody plans to wake it");
}

void JobSupervisor::suspend(JobNumber job) {
  pending_.erase(job);
  moves_.erase(job);
  const auto found = attempts_.find(job);
  if (found == attempts_.end()) return;
  Attempt& attempt = found->second;
  attempt.is_granted = false;
  resuming_.erase(job);
  if (attempt.is_suspended) return;
  if (attempt.ending != Ending::ByItself) return;
  if (const auto record = parts_.job(job); record && !record->spec->preemptible) {
    static_cast<void>(preempt(job, "its slice is over"));  // goes on to its end
    return;
  }
  attempt.is_suspended = true;
  attempt.held_counted = attempt.work_counted = kNever;
  records_.emplace_back(WishRecord{
      .job = job, .wish = Wish::Suspend, .by = kSchedulerName, .why = "its slice is over"});
  signals_.push_back({.kind = Signal::Kind::Suspend, .attempt = attempt.id});
}

void JobSupervisor::freeze(JobNumber job) {
  const auto found = attempts_.find(job);
  if (found == attempts_.end()) return;
  found->second.is_frozen = true;
  signals_.push_back({.kind = Signal::Kind::Suspend, .attempt = found->second.id});
}

void JobSupervisor::thaw(JobNumber job) {
  const auto found = attempts_.find(job);
  if (found == attempts_.end()) return;
  found->second.is_frozen = false;
  if (!found->second.is_suspended)
    signals_.push_back({.kind = Signal::Kind::Resume, .attempt = found->second.id});
}

void JobSupervisor::set_cores(JobNumber job, std::int32_t cores) {
  const auto found = attempts_.find(job);
  if (found == attempts_.end() || found->second.where.size() != 1) return;
  Attempt& attempt = found->second;
  const HeldDevices& held = attempt.where.front();
  cores_.give(held.node, held.cores);
  hold_cores(attempt, cores_.take(held.node, cores));
  signals_.push_back(
      {.kind = Signal::Kind::Cores, .attempt = attempt.id, .grace = 0, .cores = held.cores});
}

/// The journal has those it was started with.
void JobSupervisor::hold_cores(Attempt& attempt, std::vector<std::int32_t> cores) {
  attempt.where.front().cores = std::move(cores);
  if (parts_.show_cores) parts_.show_cores(attempt.job, attempt.where.front().cores);
}

void JobSupervisor::set_rate(JobNumber job, std::int32_t milli) {
  if (const auto start = pending_.find(job); start != pending_.end()) {
    start->second.rate_milli = milli;
    return;
  }
  const auto found = attempts_.find(job);
  if (found == attempts_.end() || found->second.rate_milli == milli) return;
  found->second.rate_milli = milli;
  signals_.push_back(
      {.kind = Signal::Kind::Rate, .attempt = found->second.id, .cores = {}, .rate = milli});
}

void JobSupervisor::set_limit(JobNumber job, std::int64_t seconds) {
  const auto found = attempts_.find(job);
  if (found == attempts_.end() || seconds > kMaxLimitOfRunning) return;
  signals_.push_back(
      {.kind = Signal::Kind::Limit, .attempt = found->second.id, .cores = {}, .limit = seconds});
}

bool JobSupervisor::end_without_attempt(JobNumber job, Outcome outcome, std::string why) {
  pending_.erase(job);
  if (!parts_.job(job)) return false;  // it was over before, by another way
  if (!over_.insert(job).second) return false;
  EndRecord record;
  record.job = job;
  record.outcome = outcome;
  record.why = std::move(why);
  records_.emplace_back(std::move(record));
  return true;
}

void JobSupervisor::set_aside(JobNumber job, std::string why) {
  if (over_.contains(job) || !parts_.job(job)) return;
  leave_alone(job);
  records_.emplace_back(WishRecord{
      .job = job, .wish = Wish::Hold, .by = kSchedulerName, .why = "set aside: " + std::move(why)});
}

void JobSupervisor::let_go(JobNumber job) {
  const auto record = parts_.job(job);
  if (over_.contains(job) || !record || !record->is_held || record->held_by != kSchedulerName)
    return;
  records_.emplace_back(
      WishRecord{.job = job, .wish = Wish::Release, .by = kSchedulerName, .why = {}});
}

// --- starting

/// No attempt of its own is left, and whoever else is on the devices is there with the engine's
/// knowledge (devices may be shared) or asleep.
bool JobSupervisor::is_vacant(JobNumber job, const PendingStart& start) {
  return !attempts_.contains(job) && is_clear(job, start.slices);
}

bool JobSupervisor::is_clear(JobNumber job, std::span<const Slice> slices) const {
  bool clear = true;
  visit_devices(slices, [&](const auto& device) {
    const auto found = on_device_.find(device);
    if (found == on_device_.end()) return;
    for (const JobNumber other : found->second) {
      const Attempt& attempt = attempts_.at(other);
      // What does not run yet cannot be put to sleep: it begins awake, and is told when it does.
      const bool sleeps =
          attempt.is_suspended && attempt.is_running && attempt.ending == Ending::ByItself;
      const bool stays = attempt.is_granted && !leaves(other, device);
      clear = clear && (other == job || stays || sleeps);
    }
  });
  return clear;
}

/// A sleeper wakes up when whoever was put on its devices meanwhile has really gone.
void JobSupervisor::wake_sleepers() {
  for (auto next = resuming_.begin(); next != resuming_.end();) {
    Attempt& attempt = attempts_.at(*next);
    if (!is_clear(*next, attempt.slices)) {
      ++next;
      continue;
    }
    attempt.is_suspended = false;
    records_.emplace_back(
        WishRecord{.job = *next, .wish = Wish::Resume, .by = kSchedulerName, .why = {}});
    if (!attempt.is_frozen)
      signals_.push_back({.kind = Signal::Kind::Resume, .attempt = attempt.id});
    next = resuming_.erase(next);
  }
}

std::vector<HeldDevices> JobSupervisor::where(JobNumber job, const PendingStart& start) {
  const auto record = parts_.job(job);
  std::vector<HeldDevices> held;
  for (const Slice& slice : start.slices) {
    HeldDevices devices;
    devices.node = parts_.cluster.nodes[slice.node.value].name;
    visit_devices({&slice, 1},
                  [&](const auto& device) { devices.devices.push_back(device.second); });
    std::int32_t cores = (start.cores_milli * slice.gpus + 999) / 1000;
    if (cores == 0 && record && record->spec->cpus > 0)
      cores = std::max(1, record->spec->cpus * slice.gpus / std::max(1, record->spec->gpus));
    devices.cores = cores_.take(devices.node, cores);
    held.push_back(std::move(devices));
  }
  return held;
}

std::vector<Slice> JobSupervisor::slices_of(const std::vector<HeldDevices>& where) const {
  std::vector<Slice> slices;
  for (const HeldDevices& held : where) {
    for (std::uint32_t i = 0; i < parts_.cluster.nodes.size(); ++i) {
      if (parts_.cluster.nodes[i].name != held.node) continue;
      Slice slice{.node = NodeId{i}};
      for (const std::int32_t device : held.devices) {
        if (device < 0 || device >= parts_.cluster.nodes[i].gpus) continue;
        slice.devices |= std::uint64_t{1} << static_cast<unsigned>(device);
      }
      slice.gpus = std::popcount(slice.devices);
      if (slice.gpus > 0) slices.push_back(slice);
    }
  }
  return slices;
}

void JobSupervisor::begin_vacant_starts(std::vector<JobNumber>& begun) {
  for (auto next = pending_.begin(); next != pending_.end();) {
    const JobNumber job = next->first;
    if (over_.contains(job)) {  // its end stands before this
      next = pending_.erase(next);
      continue;
    }
    if (!is_vacant(job, next->second)) {
      ++next;
      continue;
    }
    Attempt attempt;
    attempt.id = {parts_.generation, ++counter_};
    attempt.job = job;
    attempt.slices = next->second.slices;
    attempt.where = where(job, next->second);
    attempt.gpus = next->second.gpus;
    attempt.since = attempt.held_counted = attempt.work_counted = parts_.clock.now();
    attempt.is_granted = true;
    attempt.rate_milli = next->second.rate_milli;
    const auto record = parts_.job(job);
    attempt.is_frozen = record && record->is_frozen;
    records_.emplace_back(IntentRecord{.job = job,
                                       .attempt = attempt.id,
                                       .where = attempt.where,
                                       .gpus = attempt.gpus,
                                       .reason = std::string{to_string(next->second.reason)}});
    visit_devices(attempt.slices, [&](const auto& device) { on_device_[device].insert(job); });
    job_of_[attempt.id] = job;
    attempts_.emplace(job, std::move(attempt));
    begun.push_back(job);
    next = pending_.erase(next);
  }
}

/// What a library throws over a request is that request's matter.
Result<LaunchOrder> JobSupervisor::order_of(const LedgerJob& job, const Attempt& attempt) const {
  try {
    return parts_.order(job, attempt);
  } catch (const std::exception& error) {
    return fail(fmt::format("its start could not be prepared, this is a bug: {}", error.what()));
  }
}

Result<void> JobSupervisor::launch_by(const LaunchOrder& order) const {
  try {
    return parts_.host.launch(order);
  } catch (const std::exception& error) {
    return fail(fmt::format("it could not be started, this is a bug: {}", error.what()));
  }
}

void JobSupervisor::launch(JobNumber job) {
  const auto found = attempts_.find(job);
  if (found == attempts_.end()) return;
  const auto record = parts_.job(job);
  BERTH_CHECK(record.has_value(), "a job that starts is on record");
  auto order = order_of(*record, found->second);
  Result<void> launched = order ? launch_by(*order) : tl::unexpected<Error>(order.error());
  if (launched) return;
  // What it is refused for by its own request will not change; what the machine lacks may.
  const Ending ending = found->second.ending;
  ExitRecord exit;
  exit.was_started = false;
  exit.why = launched.error().text();
  const Verdict verdict =
      order ? judge_unlaunched(ending, launched.error().text(), launch_failures_[job]++)
            : judge(*record->spec, ending, exit, record->failures);
  failed_starts_.push_back({job, verdict, end(job, verdict, nullptr), ending});
}

void JobSupervisor::send(const Signal& signal) {
  switch (signal.kind) {
    case Signal::Kind::Stop:
      parts_.host.stop(signal.attempt, Host::Stop::Warn, signal.grace);
      break;
    case Signal::Kind::Suspend: parts_.host.suspend(signal.attempt); break;
    case Signal::Kind::Resume: parts_.host.resume(signal.attempt); break;
    case Signal::Kind::Cores: parts_.host.set_cores(signal.attempt, signal.cores); break;
    case Signal::Kind::Limit: parts_.host.set_limit(signal.attempt, signal.limit); break;
    case Signal::Kind::Rate: parts_.host.set_rate(signal.attempt, signal.rate); break;
    case Signal::Kind::Leave:
      if (rules_.training != nullptr)
        rules_.training->ask_checkpoint(signal.job, to_seconds(rules_.answer),
                                        AfterCheckpoint::Stop);
      break;
    case Signal::Kind::Resize:
      crash_point("supervisor.asking");
      if (rules_.training != nullptr) rules_.training->ask_resize(signal.job, signal.ask);
      break;
  }
}

void JobSupervisor::note_pass(EngineRecord pass) {
  const std::lock_guard lock{unwritten_->mutex};
  unwritten_->passes.emplace_back(std::move(pass));
  has_passes_ = true;
}

/// Passes first: half of a batch that ends with a pass would be starts that no engine has made.
Result<void> JobSupervisor::write_records() {
  std::vector<RecordBody> batch = unwritten_->take();
  has_passes_ = false;
  batch.insert(batch.end(), std::make_move_iterator(records_.begin()),
               std::make_move_iterator(records_.end()));
  records_.clear();
  BERTH_TRY_VOID(parts_.journal.write(std::move(batch)));
  return {};
}

Result<void> JobSupervisor::flush() {
  std::vector<JobNumber> begun;
  stop_whom_rules_allow();
  warn_who_stayed();
  go_on_with_moves();
  wake_sleepers();
  begin_vacant_starts(begun);
  while (!records_.empty() || !signals_.empty() || !begun.empty()) {
    if (!records_.empty()) BERTH_TRY_VOID(write_records());
    over_.clear();
    crash_point("supervisor.written");
    for (const AttemptId attempt : std::exchange(forgotten_, {})) parts_.host.forget(attempt);
    for (const Signal& signal : std::exchange(signals_, {})) {
      send(signal);
      crash_point("supervisor.signalled");
    }
    for (const JobNumber job : std::exchange(begun, {})) {
      launch(job);
      crash_point("supervisor.launched");
    }
  }
  if (std::exchange(has_passes_, false)) {
    parts_.journal.write_later(
        {.make = [passes = unwritten_](const Ledger&) -> Result<std::vector<RecordBody>> {
           return passes->take();
         },
         .done = {}});
  }
  return {};
}

void JobSupervisor::take_failed_starts(std::vector<AttemptEnd>& failed) {
  failed.insert(failed.end(), std::make_move_iterator(failed_starts_.begin()),
                std::make_move_iterator(failed_starts_.end()));
  failed_starts_.clear();
}

}  // namespace berth
