#include "daemon/job_supervisor.h"

#include <algorithm>
#include <iterator>

#include <fmt/format.h>

#include "base/check.h"
#include "base/crash_point.h"
#include "daemon/attempt_recovery.h"

namespace berth {

namespace {

constexpr std::int32_t kFullRate = 1000;
/// From a kill until nothing of an attempt is left, on a machine that works.
constexpr Duration kUntilKilled = std::chrono::seconds{10};

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

/// For people: who has ended it and why, where that is known.
void name_reason(Verdict& verdict, const Attempt& attempt) {
  if (verdict.outcome == Outcome::Cancelled && !attempt.ending_why.empty())
    verdict.why = attempt.ending_why;
}

std::int64_t grace_of(const std::optional<LedgerJob>& record) {
  return record ? record->spec->grace_seconds : 0;
}

}  // namespace

JobSupervisor::JobSupervisor(Parts parts)
    : parts_(std::move(parts)),
      attempts_(parts_.cluster, parts_.machine_cores),
      departures_({attempts_, starts_, parts_.job, rules_}),
      moves_({attempts_, batch_, parts_.cluster, parts_.clock, parts_.job, rules_,
              parts_.generation, parts_.show_cores}),
      ends_({parts_.clock, rules_, parts_.joules, parts_.seen_to_run, parts_.last_known}),
      launcher_(parts_.host, parts_.order) {}

// --- lives of engines

void JobSupervisor::begin_engine(Rules rules) {
  rules_ = std::move(rules);
  end_engine();
}

void JobSupervisor::end_engine() {
  while (const auto job = ends_.first_asked()) static_cast<void>(answer(*job, std::nullopt));
  starts_.clear();
  departures_.clear();
  moves_.end_engine();
  for (auto& [job, attempt] : attempts_.all()) {
    attempt.is_granted = attempt.is_left_alone = false;
    attempt.held_counted = attempt.work_counted = attempt.since;
  }
}

void JobSupervisor::keep(JobNumber job, Time held_from, Time work_from) {
  Attempt& own = attempts_.at(job);
  own.is_granted = true;
  own.held_counted = held_from;
  own.work_counted = work_from;
  if (own.is_suspended) starts_.wake(job);
}

// --- what the engine wants

bool JobSupervisor::start(JobNumber job, std::span<const Slice> slices, std::int32_t gpus,
                          Reason reason, std::int32_t cores_milli) {
  PendingStart start{.slices = {slices.begin(), slices.end()},
                     .gpus = gpus,
                     .reason = reason,
                     .cores_milli = cores_milli};
  Attempt* own = attempts_.find(job);
  if (own != nullptr && own->ending == Ending::ByItself) {
    const bool has_all = std::ranges::equal(own->slices, slices);
    const bool is_requested_otherwise = !own->requested.empty() && own->requested != own->slices;
    const bool is_asked = moves_.contains(job);
    if ((!has_all || is_requested_otherwise || is_asked) && can_change_in_place(job, slices)) {
      moves_.begin(job, std::move(start));
      own->is_granted = true;
      own->held_counted = own->work_counted = parts_.clock.now();
      departures_.erase(job);
      push_aside(job, slices);
      return true;
    }
    if (has_all) {
      own->is_granted = true;
      moves_.erase(job);
      departures_.erase(job);
      push_aside(job, slices);
      if (own->is_suspended) starts_.wake(job);
      return true;
    }
    preempt(job, "goes on elsewhere");
  }
  starts_.put(job, std::move(start));
  push_aside(job, slices);
  return false;
}

/// Whoever is on these devices without the engine's knowledge has to go: it was there before a
/// restart, and its policy has other plans for the place now.
void JobSupervisor::push_aside(JobNumber by, std::span<const Slice> slices) {
  for (const JobNumber other : attempts_.on_devices(slices)) {
    const Attempt& attempt = attempts_.at(other);
    const bool in_the_way =
        other != by && !attempt.is_granted && !attempt.is_left_alone && !attempt.is_suspended;
    if (in_the_way && attempt.ending == Ending::ByItself && !departures_.contains(other))
      preempt(other, "its devices are needed");
  }
}

Time JobSupervisor::preempt(JobNumber job, std::string why, std::optional<Time> since) {
  const Time now = since.value_or(parts_.clock.now());
  starts_.erase(job);
  Attempt* attempt = attempts_.find(job);
  if (attempt == nullptr) return now;
  attempt->is_granted = false;
  starts_.let_sleep(job);
  moves_.erase(job);
  if (attempt->ending != Ending::ByItself) return now;
  if (attempt->is_suspended) {  // it does not run, and saves nothing by staying
    want_stop(*attempt, Ending::Preempt, std::move(why));
    return now;
  }
  departures_.add(job, std::move(why));
  const Time until = std::max(now, attempt->since + rules_.min_run);
  attempt->held_counted = std::max(until, attempt->held_counted);
  attempt->work_counted = now;
  return until;
}

/// Of a move that its code cannot make in place: warning, checkpoint, stop and start.
void JobSupervisor::restart_elsewhere(InPlaceMoves::Failed move) {
  Attempt& attempt = attempts_.at(move.job);
  attempt.is_set = true;
  // Of a policy that is gone, and the new one has not taken it up yet: it stays as it is.
  if (!attempt.is_granted) return moves_.erase(move.job);
  preempt(move.job, std::move(move.why));
  push_aside(move.job, move.to.slices);
  starts_.put(move.job, std::move(move.to));
}

void JobSupervisor::want_stop(Attempt& attempt, Ending ending, std::string why,
                              const std::set<JobNumber>& rivals) {
  attempt.is_granted = false;
  starts_.let_sleep(attempt.job);
  departures_.erase(attempt.job);
  moves_.erase(attempt.job);
  // A weaker wish does not take a stronger one back: a cancel stands whatever a policy wants.
  const bool is_final = attempt.ending == Ending::Cancel || attempt.ending == Ending::Kill;
  const bool is_stronger = attempt.ending == Ending::ByItself ||
                           (ending == Ending::Cancel && attempt.ending != Ending::Cancel) ||
                           (ending == Ending::Kill && !is_final);
  if (!is_stronger) return;
  attempt.ending = ending;
  if (ending == Ending::Kill) attempt.ending_why = by_policy(why);
  if (ending == Ending::Cancel) attempt.ending_why = why;
  // A cancel or a requeue by name is on record already: that is how we heard of it.
  const bool by_us = ending == Ending::Preempt || ending == Ending::Kill;
  if (by_us) {
    batch_.record(WishRecord{.job = attempt.job,
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
    departures_.warn_at(attempt.job, parts_.clock.now() + rules_.answer);
    batch_.signal({.kind = Signal::Kind::Leave, .attempt = attempt.id, .job = attempt.job});
    return;
  }
  departures_.stop_warning(attempt.job);
  batch_.signal(stop_signal(attempt, grace_of(parts_.job(attempt.job))));
}

void JobSupervisor::stop(JobNumber job, Ending ending, std::string why) {
  starts_.erase(job);
  if (Attempt* attempt = attempts_.find(job)) want_stop(*attempt, ending, std::move(why));
}

void JobSupervisor::stop_attempt(JobNumber job, Ending ending, std::string why) {
  Attempt* attempt = attempts_.find(job);
  if (attempt == nullptr) return;
  // To the engine a job that moves in place is there already: now it gets there by stop and start.
  std::optional<PendingStart> move;
  if (attempt->is_granted) move = moves_.target(job);
  want_stop(*attempt, ending, std::move(why));
  if (move) starts_.put(job, *std::move(move));
}

void JobSupervisor::leave_alone(JobNumber job) {
  starts_.erase(job);
  departures_.erase(job);
  moves_.erase(job);
  Attempt* attempt = attempts_.find(job);
  if (attempt == nullptr) return;
  attempt->is_granted = false;
  attempt->is_left_alone = true;
  if (attempt->is_suspended)
    want_stop(*attempt, Ending::Preempt, "it sleeps, and nobody plans to wake it");
}

void JobSupervisor::suspend(JobNumber job) {
  starts_.erase(job);
  moves_.erase(job);
  Attempt* attempt = attempts_.find(job);
  if (attempt == nullptr) return;
  attempt->is_granted = false;
  starts_.let_sleep(job);
  if (attempt->is_suspended) return;
  if (attempt->ending != Ending::ByItself) return;
  if (const auto record = parts_.job(job); record && !record->spec->preemptible) {
    static_cast<void>(preempt(job, "its slice is over"));  // goes on to its end
    return;
  }
  attempt->is_suspended = true;
  attempt->held_counted = attempt->work_counted = kNever;
  batch_.record(WishRecord{
      .job = job, .wish = Wish::Suspend, .by = kSchedulerName, .why = "its slice is over"});
  batch_.signal({.kind = Signal::Kind::Suspend, .attempt = attempt->id});
}

void JobSupervisor::set_cores(JobNumber job, std::int32_t cores) {
  Attempt* attempt = attempts_.find(job);
  if (attempt == nullptr || attempt->where.size() != 1) return;
  attempts_.bind(*attempt, cores);  // the journal has those it was started with
  const auto& bound = attempt->where.front().cores;
  if (parts_.show_cores) parts_.show_cores(job, bound);
  batch_.signal({.kind = Signal::Kind::Cores, .attempt = attempt->id, .grace = 0, .cores = bound});
}

void JobSupervisor::set_rate(JobNumber job, std::int32_t milli) {
  if (starts_.set_rate(job, milli)) return;
  Attempt* attempt = attempts_.find(job);
  if (attempt == nullptr || attempt->rate_milli == milli) return;
  attempt->rate_milli = milli;
  batch_.signal({.kind = Signal::Kind::Rate, .attempt = attempt->id, .cores = {}, .rate = milli});
}

std::optional<Time> JobSupervisor::start_waits_for_ends(JobNumber job) const {
  const PendingStart* start = starts_.find(job);
  if (start == nullptr) return std::nullopt;
  std::optional<Time> until;
  auto others = attempts_.on_devices(start->slices);
  others.insert(job);  // its own last attempt
  for (const JobNumber other : others) {
    if (!attempts_.contains(other)) continue;
    const std::chrono::seconds grace{grace_of(parts_.job(other))};
    until = std::max(until.value_or(Time{}), parts_.clock.now() + grace + kUntilKilled);
  }
  return until;
}

// --- what people want

void JobSupervisor::freeze(JobNumber job) {
  Attempt* attempt = attempts_.find(job);
  if (attempt == nullptr) return;
  attempt->is_frozen = true;
  batch_.signal({.kind = Signal::Kind::Suspend, .attempt = attempt->id});
}

void JobSupervisor::thaw(JobNumber job) {
  Attempt* attempt = attempts_.find(job);
  if (attempt == nullptr) return;
  attempt->is_frozen = false;
  if (!attempt->is_suspended) batch_.signal({.kind = Signal::Kind::Resume, .attempt = attempt->id});
}

void JobSupervisor::set_limit(JobNumber job, std::int64_t seconds) {
  if (const Attempt* attempt = attempts_.find(job)) batch_.signal_limit(attempt->id, seconds);
}

bool JobSupervisor::end_without_attempt(JobNumber job, Outcome outcome, std::string why) {
  starts_.erase(job);
  if (!parts_.job(job)) return false;  // it was over before, by another way
  if (!batch_.end_job(job)) return false;
  EndRecord record;
  record.job = job;
  record.outcome = outcome;
  record.why = std::move(why);
  batch_.record(std::move(record));
  return true;
}

void JobSupervisor::set_aside(JobNumber job, std::string why) {
  if (batch_.ends(job) || !parts_.job(job)) return;
  leave_alone(job);
  batch_.record(WishRecord{
      .job = job, .wish = Wish::Hold, .by = kSchedulerName, .why = "set aside: " + std::move(why)});
}

void JobSupervisor::let_go(JobNumber job) {
  const auto record = parts_.job(job);
  if (batch_.ends(job) || !record || !record->is_held || record->held_by != kSchedulerName) return;
  batch_.record(WishRecord{.job = job, .wish = Wish::Release, .by = kSchedulerName, .why = {}});
}

// --- what happens

void JobSupervisor::handle(const ResizeAnswer& answer) {
  if (auto failed = moves_.handle(answer)) restart_elsewhere(*std::move(failed));
}

void JobSupervisor::see_started(Attempt& attempt, std::int64_t pid) {
  attempt.is_running = true;
  attempt.pid = pid;
  ends_.launched(attempt.job);
  started_.push_back(attempt.job);
  batch_.record(StartedRecord{.job = attempt.job, .attempt = attempt.id, .pid = pid});
  // What was told to a program that did not run yet was lost.
  if (attempt.is_suspended || attempt.is_frozen)
    batch_.signal({.kind = Signal::Kind::Suspend, .attempt = attempt.id});
  if (attempt.rate_milli != kFullRate)
    batch_.signal({.kind = Signal::Kind::Rate,
                   .attempt = attempt.id,
                   .cores = {},
                   .rate = attempt.rate_milli});
}

std::optional<AttemptEnd> JobSupervisor::handle(const HostEvent& event) {
  const auto known = attempts_.job_of(event.attempt);
  if (!known) return std::nullopt;  // its end is on record already
  const JobNumber job = *known;
  Attempt& attempt = attempts_.at(job);
  // To the engine one that makes way waits already; that it was not stopped yet is ours to know.
  const Ending ending = departures_.contains(job) ? Ending::Preempt : attempt.ending;
  const auto record = parts_.job(job);
  if (!record || ends_.is_asked(job)) return std::nullopt;
  switch (event.kind) {
    case HostEventKind::Started: see_started(attempt, event.pid); return std::nullopt;
    case HostEventKind::Ended: {
      Verdict verdict = AttemptEnds::of_exit(*record, attempt, event.exit);
      name_reason(verdict, attempt);
      return ask_or_end(job, std::move(verdict), &event.exit, ending);
    }
    case HostEventKind::Over: return std::nullopt;  // of jobs without an attempt
    case HostEventKind::LaunchLost: break;
  }
  const auto finding = parts_.host.look(job, attempt.id);
  if (!finding) return std::nullopt;
  if (finding->found == Found::Alive) {
    // Recovery could not say so much: what was wanted of it meanwhile did not reach it.
    attempt.is_running = true;
    if (attempt.ending != Ending::ByItself)
      batch_.signal(stop_signal(attempt, record->spec->grace_seconds));
    return std::nullopt;
  }
  if (finding->found == Found::Ended && finding->exit)
    return ask_or_end(job, AttemptEnds::of_exit(*record, attempt, *finding->exit), &*finding->exit,
                      ending);
  return ask_or_end(job, ends_.of_lost(*record, attempt, *finding), nullptr, ending);
}

std::optional<AttemptEnd> JobSupervisor::ask_or_end(JobNumber job, Verdict verdict,
                                                    const ExitRecord* exit, Ending ending) {
  const auto record = parts_.job(job);
  if (const auto kind = ends_.asks_policy(record ? &*record : nullptr, verdict, exit, ending)) {
    ends_.ask(job, {verdict, exit == nullptr ? std::nullopt : std::optional{*exit}});
    return AttemptEnd{job, std::move(verdict), 0, ending, *kind};
  }
  const double gpu_seconds = end(job, verdict, exit);
  return AttemptEnd{job, std::move(verdict), gpu_seconds, ending};
}

std::optional<AttemptEnd> JobSupervisor::answer(JobNumber job, std::optional<bool> again) {
  auto asked = ends_.take_answered(job, again);
  if (!asked) return std::nullopt;
  // It was cancelled with its failure: that stands.
  const Attempt& attempt = attempts_.at(job);
  if (auto ended = judge_ended(attempt.ending)) asked->verdict = *std::move(ended);
  name_reason(asked->verdict, attempt);
  const double gpu_seconds = end(job, asked->verdict, asked->exit ? &*asked->exit : nullptr);
  return AttemptEnd{job, std::move(asked->verdict), gpu_seconds, Ending::ByItself};
}

double JobSupervisor::end(JobNumber job, const Verdict& verdict, const ExitRecord* exit,
                          std::optional<Time> until) {
  const Attempt& attempt = attempts_.at(job);
  EndRecord record = ends_.record(attempt, verdict, exit, until);
  const double gpu_seconds = record.gpu_seconds;
  batch_.record(std::move(record));
  batch_.forget(attempt.id);
  if (verdict.is_final) {
    batch_.end_job(job);
    starts_.erase(job);
  }
  ends_.ended(job, verdict);
  starts_.let_sleep(job);
  departures_.forget(job);
  moves_.erase(job);
  attempts_.remove(job);
  return gpu_seconds;
}

// --- starting

/// No attempt of its own is left, and whoever else is on the devices is there with the engine's
/// knowledge (devices may be shared) or asleep.
bool JobSupervisor::is_vacant(JobNumber job, const PendingStart& start) const {
  return !attempts_.contains(job) && is_clear(job, start.slices);
}

bool JobSupervisor::is_clear(JobNumber job, std::span<const Slice> slices) const {
  return attempts_.all_on(slices, [&](JobNumber other, const AttemptTable::Device& device) {
    const Attempt& attempt = attempts_.at(other);
    // What does not run yet cannot be put to sleep: it begins awake, and is told when it does.
    const bool sleeps =
        attempt.is_suspended && attempt.is_running && attempt.ending == Ending::ByItself;
    const bool stays = attempt.is_granted && !moves_.leaves(other, device);
    return (other == job || stays || sleeps);
  });
}

/// A sleeper wakes up when whoever was put on its devices meanwhile has really gone.
void JobSupervisor::wake_sleepers() {
  std::set<JobNumber>& resuming = starts_.resuming();
  for (auto next = resuming.begin(); next != resuming.end();) {
    Attempt& attempt = attempts_.at(*next);
    if (!is_clear(*next, attempt.slices)) {
      ++next;
      continue;
    }
    attempt.is_suspended = false;
    batch_.record(WishRecord{.job = *next, .wish = Wish::Resume, .by = kSchedulerName, .why = {}});
    if (!attempt.is_frozen) batch_.signal({.kind = Signal::Kind::Resume, .attempt = attempt.id});
    next = resuming.erase(next);
  }
}

void JobSupervisor::begin_vacant_starts(std::vector<JobNumber>& begun) {
  auto& pending = starts_.all();
  for (auto next = pending.begin(); next != pending.end();) {
    const auto& [job, start] = *next;
    if (batch_.ends(job)) {  // its end stands before this
      next = pending.erase(next);
      continue;
    }
    if (!is_vacant(job, start)) {
      ++next;
      continue;
    }
    const auto record = parts_.job(job);
    Attempt attempt;
    attempt.id = {parts_.generation, ++counter_};
    attempt.job = job;
    attempt.slices = start.slices;
    attempt.where =
        attempts_.take(start.slices, start.cores_milli, record ? record->spec.get() : nullptr);
    attempt.gpus = start.gpus;
    attempt.since = attempt.held_counted = attempt.work_counted = parts_.clock.now();
    attempt.is_granted = true;
    attempt.rate_milli = start.rate_milli;
    attempt.is_frozen = record && record->is_frozen;
    batch_.record(IntentRecord{.job = job,
                               .attempt = attempt.id,
                               .where = attempt.where,
                               .gpus = attempt.gpus,
                               .reason = std::string{to_string(start.reason)}});
    begun.push_back(job);
    attempts_.add(std::move(attempt));
    next = pending.erase(next);
  }
}

void JobSupervisor::launch(JobNumber job) {
  const Attempt* attempt = attempts_.find(job);
  if (attempt == nullptr) return;
  const auto record = parts_.job(job);
  BERTH_CHECK(record.has_value(), "a job that starts is on record");
  const auto failure = launcher_.launch(*record, *attempt);
  if (!failure) return;
  const Ending ending = attempt->ending;
  ExitRecord exit;
  exit.was_started = false;
  exit.why = failure->why;
  const Verdict verdict = failure->is_of_request ? AttemptEnds::of_exit(*record, *attempt, exit)
                                                 : ends_.of_failed_launch(*attempt, failure->why);
  failed_starts_.push_back({job, verdict, end(job, verdict, nullptr), ending});
}

void JobSupervisor::take_failed_starts(std::vector<AttemptEnd>& failed) {
  failed.insert(failed.end(), std::make_move_iterator(failed_starts_.begin()),
                std::make_move_iterator(failed_starts_.end()));
  failed_starts_.clear();
}

// --- writing and acting

void JobSupervisor::stop_whom_rules_allow() {
  const Time now = parts_.clock.now();
  for (const auto& [job, why] : std::map{departures_.all()}) {  // stopping changes it
    Attempt& attempt = attempts_.at(job);
    if (departures_.due(attempt) > now) continue;
    want_stop(attempt, Ending::Preempt, why, starts_.rivals_of(attempt, attempts_));
  }
}

void JobSupervisor::warn_who_stayed() {
  for (const JobNumber job : departures_.take_overdue(parts_.clock.now())) {
    if (parts_.log != nullptr)
      BERTH_LOG(*parts_.log, Warn, "training",
                "code that was asked to save and leave is still there: it is warned by signal",
                {"job", job}, {"after", to_seconds(rules_.answer)});
    batch_.signal(stop_signal(attempts_.at(job), grace_of(parts_.job(job))));
  }
}

// Whoever leaves is stopped before anybody is looked for on devices, and sleepers go before new
// attempts: they held their devices first. A launch that fails at once makes records again, hence
// the loop.
Result<void> JobSupervisor::flush() {
  std::vector<JobNumber> begun;
  stop_whom_rules_allow();
  warn_who_stayed();
  for (InPlaceMoves::Failed& failed : moves_.advance(
           [this](JobNumber job, std::span<const Slice> slices) { return is_clear(job, slices); }))
    restart_elsewhere(std::move(failed));
  wake_sleepers();
  begin_vacant_starts(begun);
  while (!batch_.is_empty() || !begun.empty()) {
    if (batch_.has_records()) BERTH_TRY_VOID(batch_.write(parts_.journal));
    batch_.clear_ended();
    crash_point("supervisor.written");
    for (const AttemptId attempt : batch_.take_forgotten()) parts_.host.forget(attempt);
    for (const Signal& signal : batch_.take_signals()) {
      send(signal, parts_.host, rules_);
      crash_point("supervisor.signalled");
    }
    for (const JobNumber job : std::exchange(begun, {})) {
      launch(job);
      crash_point("supervisor.launched");
    }
  }
  batch_.write_passes_later(parts_.journal);
  return {};
}

// --- after a restart

Result<void> JobSupervisor::recover(const Ledger& ledger) {
  AttemptRecovery recovery{
      {.attempts = attempts_,
       .batch = batch_,
       .ends = ends_,
       .host = parts_.host,
       .clock = parts_.clock,
       .show_cores = parts_.show_cores,
       .end = [this](JobNumber job, const Verdict& verdict, const ExitRecord* exit,
                     std::optional<Time> until) { return end(job, verdict, exit, until); }}};
  auto [ends, running] = recovery.run(ledger);
  std::ranges::move(ends, std::back_inserter(found_ends_));
  std::ranges::move(running, std::back_inserter(started_));
  return flush();
}

}  // namespace berth
