// The fold: one function applies a record to the state, while the scheduler runs and when it
// recovers. A record is refused before anything has changed, so a refused one leaves no trace. What
// is on disk is replayed with fewer checks of amounts: an older version may have written them, and
// they must open.

#include "store/ledger.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "model/job_spec_json.h"

namespace berth {

namespace {

/// Of each job that are remembered.
constexpr std::ptrdiff_t kMostRivals = 100;

/// Far beyond any cluster's life, and within what SQL calls an integer.
constexpr JobNumber kMaxNumber = JobNumber{1} << 62U;

bool is_amount(double value) { return std::isfinite(value) && value >= 0; }

/// A wish that is under way gives way only to a stronger one: a job that is being cancelled is not
/// requeued, one that goes back by name is not merely preempted.
int strength(Wish wish) {
  switch (wish) {
    case Wish::Cancel: return 3;
    case Wish::Requeue: return 2;
    case Wish::Preempt: return 1;
    default: return 0;
  }
}

bool has_double(std::vector<std::int32_t> indices) {
  std::ranges::sort(indices);
  return std::ranges::adjacent_find(indices) != indices.end();
}

/// Of an intent or a change of size.
template <class Holding>
Result<void> check_devices(const Holding& holding) {
  if (holding.gpus < 0)
    return fail(fmt::format("job {}: holds {} devices", holding.job, holding.gpus));
  const auto& where = holding.where;
  for (std::size_t i = 0; i < where.size(); ++i) {
    const HeldDevices& part = where[i];
    const auto is_same = [&](const HeldDevices& other) { return other.node == part.node; };
    if (std::any_of(where.begin(), where.begin() + static_cast<std::ptrdiff_t>(i), is_same))
      return fail(fmt::format("job {}: node {} twice", holding.job, part.node));
    if (has_double(part.devices))
      return fail(fmt::format("job {}: a device of node {} twice", holding.job, part.node));
  }
  return {};
}

}  // namespace

/// Applies one record: every check stands before the first change.
struct Ledger::Folder {
  Ledger& ledger;
  const Record& record;
  Source source;

  [[nodiscard]] Result<void> check_numbers(JobNumber job, const JobSpec& spec) const {
    // A number that is impossible today was accepted once: the job is set aside later, the journal
    // opens.
    if (source == Source::OnDisk) return {};
    const auto faults = impossible_numbers(spec);
    if (faults.empty()) return {};
    return fail(fmt::format("job {}: {}", job, fmt::join(faults, "; ")));
  }
  // "Over" and "never there" are different answers to a user.
  [[nodiscard]] Result<LedgerJob*> alive(JobNumber number) const {
    const auto found = ledger.jobs_.find(number);
    if (found != ledger.jobs_.end()) return &found->second;
    return fail(number > 0 && number < ledger.next_number_
                    ? fmt::format("job {} is over", number)
                    : fmt::format("there is no job {}", number));
  }
  [[nodiscard]] Result<LedgerJob*> with_attempt(JobNumber number, AttemptId attempt) const {
    BERTH_TRY(LedgerJob * job, alive(number));
    if (job->attempt && job->attempt->id == attempt) return job;
    return fail(fmt::format("job {}: {} is not its live attempt", number, to_text(attempt)));
  }
  static Change told(const LedgerJob& job) {
    return {.job = job.number, .count = 1, .live = job, .past = std::nullopt};
  }

  Result<Change> operator()(const LifeRecord& life) const {
    if (life.generation <= ledger.generation_)
      return fail(fmt::format("life {} after life {}", life.generation, ledger.generation_));
    ledger.generation_ = life.generation;
    return Change{};
  }

  Result<Change> operator()(const SubmitRecord& submit) const {
    BERTH_TRY_VOID(check_submit(submit));
    const auto spec = std::make_shared<const JobSpec>(submit.spec);
    const std::size_t count = spec->array ? spec->array->indices.size() : 1;
    for (std::size_t i = 0; i < count; ++i) {
      LedgerJob job;
      job.number = submit.first + i;
      job.spec = spec;
      if (spec->array) {
        job.array = submit.first;
        job.array_index = spec->array->indices[i];
      }
      job.submitted = record.at;
      job.submitted_wall = record.wall;
      job.is_held = spec->hold;
      if (spec->hold) job.held_by = spec->user;
      ledger.jobs_.emplace_hint(ledger.jobs_.end(), job.number, std::move(job));
    }
    if (!spec->key.empty()) ledger.keys_.emplace(std::pair{spec->user, spec->key}, submit.first);
    ledger.next_number_ = submit.first + count;
    Change change = told(ledger.jobs_.at(submit.first));
    change.count = static_cast<std::int32_t>(count);
    return change;
  }
  [[nodiscard]] Result<void> check_submit(const SubmitRecord& submit) const {
    const JobSpec& spec = submit.spec;
    // Numbers are dense and never used twice: a lost submit would show as a gap.
    if (submit.first != ledger.next_number_ || submit.first >= kMaxNumber)
      return fail(fmt::format("job {} is not the next one, {}", submit.first, ledger.next_number_));
    if (spec.array && (spec.array->indices.empty() || spec.array->indices.size() > kMaxArraySize))
      return fail(
          fmt::format("job {}: an array of {} jobs", submit.first, spec.array->indices.size()));
    if (!std::isfinite(spec.weight))
      return fail(fmt::format("job {}: its weight is not a number", submit.first));
    BERTH_TRY_VOID(check_numbers(submit.first, spec));
    if (const auto same = ledger.by_key(spec.user, spec.key))
      return fail(fmt::format("key '{}' of {} is job {} already", spec.key, spec.user, *same));
    return {};
  }

  Result<Change> operator()(const IntentRecord& intent) const {
    BERTH_TRY(LedgerJob * job, alive(intent.job));
    if (job->attempt)
      return fail(
          fmt::format("job {}: attempt {} is still alive", intent.job, to_text(job->attempt->id)));
    // Attempts only grow. A shim of an earlier life can therefore never be taken for one of this
    // life.
    if (intent.attempt.generation != ledger.generation_ || intent.attempt <= ledger.last_attempt_)
      return fail(fmt::format("job {}: attempt {} cannot follow {} in life {}", intent.job,
                              to_text(intent.attempt), to_text(ledger.last_attempt_),
                              ledger.generation_));
    BERTH_TRY_VOID(check_devices(intent));
    job->attempt = LiveAttempt{.id = intent.attempt,
                               .where = intent.where,
                               .gpus = intent.gpus,
                               .since = record.at,
                               .wall = record.wall};
    ++job->attempts;
    if (!job->first_start) {
      job->first_start = record.at;
      job->first_start_wall = record.wall;
    }
    ledger.last_attempt_ = intent.attempt;
    return told(*job);
  }

  Result<Change> operator()(const StartedRecord& started) const {
    BERTH_TRY(const LedgerJob* job, with_attempt(started.job, started.attempt));
    return told(*job);
  }

  Result<Change> operator()(const ResizeRecord& resize) const {
    BERTH_TRY(LedgerJob * job, with_attempt(resize.job, resize.attempt));
    BERTH_TRY_VOID(check_devices(resize));
    if (resize.where.empty() || !std::isfinite(resize.extra_gpu_seconds))
      return fail(fmt::format("job {}: the new size is impossible", resize.job));
    job->attempt->where = resize.where;
    job->attempt->gpus = resize.gpus;
    job->attempt->extra_gpu_seconds = resize.extra_gpu_seconds;
    return told(*job);
  }

  Result<Change> operator()(const WishRecord& wish) const {
    BERTH_TRY(LedgerJob * job, alive(wish.job));
    // A frozen job may have lost its devices meanwhile: then there is no attempt to resume, only
    // the mark to remove.
    const bool is_thaw = wish.wish == Wish::Resume && job->is_frozen && is_person(wish);
    const bool needs_attempt = wish.wish != Wish::Hold && wish.wish != Wish::Release &&
                               wish.wish != Wish::Cancel && !is_thaw;
    if (needs_attempt && !job->attempt)
      return fail(
          fmt::format("job {} does not run: nothing to {}", wish.job, to_string(wish.wish)));
    switch (wish.wish) {
      case Wish::Hold: hold(*job, wish); break;
      case Wish::Release: release(*job); break;
      case Wish::Suspend:
        is_person(wish) ? freeze(*job, wish) : void(job->attempt->is_suspended = true);
        mark_suspension(*job);
        break;
      case Wish::Resume:
        is_person(wish) ? thaw(*job) : void(job->attempt->is_suspended = false);
        mark_suspension(*job);
        break;
      case Wish::Cancel:
      case Wish::Preempt:
      case Wish::Requeue:
        // Of equal wishes the first stays.
        if (!job->stopping || strength(wish.wish) > strength(*job->stopping))
          job->stopping = wish.wish;
        make_way(*job, wish.for_jobs);
        break;
    }
    return told(*job);
  }
  /// It may be suspended twice, by a person and because its slice of time is over.
  void mark_suspension(LedgerJob& job) const {
    if (!job.attempt) return;
    LiveAttempt& attempt = *job.attempt;
    const bool is_suspended = job.is_frozen || attempt.is_suspended;
    if (is_suspended == (attempt.suspended_wall != 0)) return;
    if (!is_suspended)
      attempt.suspended_seconds +=
          static_cast<double>(std::max<std::int64_t>(0, record.wall - attempt.suspended_wall)) *
          1e-6;
    attempt.suspended_wall = is_suspended ? std::max<std::int64_t>(1, record.wall) : 0;
  }
  static void make_way(LedgerJob& job, const std::vector<JobNumber>& rivals) {
    for (const JobNumber rival : rivals) {
      if (std::ranges::find(job.made_way, rival) == job.made_way.end())
        job.made_way.push_back(rival);
    }
    if (std::ssize(job.made_way) > kMostRivals)
      job.made_way.erase(job.made_way.begin(), job.made_way.end() - kMostRivals);
  }
  // A later hold replaces who and why: the last one is who must be asked.
  static void hold(LedgerJob& job, const WishRecord& wish) {
    job.is_held = true;
    job.held_by = wish.by;
    job.held_why = wish.why;
  }
  static void release(LedgerJob& job) {
    job.is_held = false;
    job.held_by.clear();
    job.held_why.clear();
  }
  static bool is_person(const WishRecord& wish) { return wish.by != kSchedulerName; }
  static void freeze(LedgerJob& job, const WishRecord& wish) {
    job.is_frozen = true;
    job.frozen_by = wish.by;
    job.frozen_why = wish.why;
  }
  static void thaw(LedgerJob& job) {
    job.is_frozen = false;
    job.frozen_by.clear();
    job.frozen_why.clear();
  }

  Result<Change> operator()(const EndRecord& end) const {
    BERTH_TRY(LedgerJob * job, alive(end.job));
    BERTH_TRY_VOID(check_end(*job, end));
    std::vector<HeldDevices> where;
    const std::int64_t last_start = job->attempt ? job->attempt->wall : 0;
    if (job->attempt) where = close_attempt(*job, end);
    if (!end.is_final) {
      // Its user may have cancelled it while it was on its way back into the queue: that stands.
      if (job->stopping != Wish::Cancel) job->stopping.reset();
      return told(*job);
    }
    Change change{.job = end.job, .count = 1, .live = std::nullopt, .past = PastJob{}};
    PastJob& past = *change.past;
    past.job = std::move(*job);
    // From here on `job` dangles; everything below uses `past`.
    ledger.jobs_.erase(end.job);
    forget_key(past.job);
    past.outcome = end.outcome;
    past.exit_code = end.exit_code;
    past.signal = end.signal;
    past.ended = record.at;
    past.ended_wall = record.wall;
    past.why = end.why;
    past.where = std::move(where);
    past.last_start_wall = last_start;
    if (last_start != 0) past.last_run_seconds = end.run_seconds;
    past.suspended_seconds = end.suspended_seconds;
    return change;
  }
  static Result<void> check_end(const LedgerJob& job, const EndRecord& end) {
    if (job.attempt ? job.attempt->id != end.attempt : !end.attempt.is_none())
      return fail(fmt::format("job {}: {} is not its live attempt", end.job, to_text(end.attempt)));
    const bool has_run = job.attempt.has_value();
    if (!has_run && !end.is_final)
      return fail(fmt::format("job {}: an end without an attempt must end the job", end.job));
    if (end.outcome == Outcome::Completed && (!has_run || !end.is_final))
      return fail(fmt::format("job {}: completed without an attempt, or to run again", end.job));
    if (end.outcome == Outcome::Rejected && has_run)
      return fail(fmt::format("job {}: rejected while it runs", end.job));
    if (!is_amount(end.gpu_seconds) || !is_amount(end.run_seconds) || !is_amount(end.joules) ||
        !is_amount(end.suspended_seconds))
      return fail(fmt::format("job {}: its time is no amount", end.job));
    if (!has_run && (end.gpu_seconds != 0 || end.run_seconds != 0))
      return fail(fmt::format("job {}: time charged without an attempt", end.job));
    return {};
  }
  // Charges what the shim measured; the devices go into the record of the past.
  static std::vector<HeldDevices> close_attempt(LedgerJob& job, const EndRecord& end) {
    job.gpu_seconds += end.gpu_seconds;
    job.run_seconds += end.run_seconds;
    job.joules += end.joules;
    if (end.outcome == Outcome::Failed || end.outcome == Outcome::TimedOut ||
        end.outcome == Outcome::OutOfMemory)
      ++job.failures;
    if (end.outcome == Outcome::Preempted) ++job.preemptions;
    // It never ran: its first start is still to come.
    if (end.outcome == Outcome::NotStarted && job.first_start == job.attempt->since) {
      job.first_start.reset();
      job.first_start_wall = 0;
    }
    auto where = std::move(job.attempt->where);
    job.attempt.reset();
    return where;
  }
  void forget_key(const LedgerJob& job) const {
    if (job.spec->key.empty()) return;
    const auto found = ledger.keys_.find({job.spec->user, job.spec->key});
    // An array has one key for all its jobs; the key goes with the first of them.
    if (found != ledger.keys_.end() && found->second == job.number) ledger.keys_.erase(found);
  }

  Result<Change> operator()(const ChangeRecord& change) const {
    BERTH_TRY(LedgerJob * job, alive(change.job));
    auto spec = changed_job_spec(*job->spec, change.changes);
    if (!spec) return fail(fmt::format("job {}: {}", change.job, spec.error().text()));
    BERTH_TRY_VOID(check_numbers(change.job, *spec));
    job->spec = std::make_shared<const JobSpec>(*std::move(spec));
    return told(*job);
  }

  Result<Change> operator()(const SettingRecord& setting) const {
    if (setting.key.empty()) return fail("a setting without a key");
    if (setting.value.empty())
      ledger.settings_.erase(setting.key);
    else
      ledger.settings_[setting.key] = setting.value;
    return Change{};
  }

  // Passes of the engine are kept beside the journal; they change no job.
  Result<Change> operator()(const EngineRecord&) const { return Change{}; }
};

Result<Ledger::Change> Ledger::apply(const Record& record) { return fold(record, Source::Asked); }

Result<Ledger::Change> Ledger::replay(const Record& record) { return fold(record, Source::OnDisk); }

Result<Ledger::Change> Ledger::fold(const Record& record, Source source) {
  if (generation_ == 0 && !std::holds_alternative<LifeRecord>(record.body))
    return fail(fmt::format("a record '{}' before the first life", kind_of(record.body)));
  auto change = std::visit(Folder{*this, record, source}, record.body);
  // A pass of the engine is no part of the journal, and neither is when it was.
  const bool counts = !std::holds_alternative<EngineRecord>(record.body);
  if (change && counts) now_ = std::max(now_, record.at);
  return change;
}

const LedgerJob* Ledger::find(JobNumber job) const noexcept {
  const auto found = jobs_.find(job);
  return found == jobs_.end() ? nullptr : &found->second;
}

std::optional<JobNumber> Ledger::by_key(std::string_view user, std::string_view key) const {
  if (key.empty()) return std::nullopt;
  const auto found = keys_.find({std::string(user), std::string(key)});
  return found == keys_.end() ? std::nullopt : std::optional(found->second);
}

void Ledger::restore(std::map<JobNumber, LedgerJob> jobs,
                     std::map<std::string, std::string> settings, JobNumber next_number,
                     std::uint64_t generation, Time now, AttemptId last_attempt) {
  jobs_ = std::move(jobs);
  settings_ = std::move(settings);
  next_number_ = next_number;
  generation_ = generation;
  now_ = now;
  last_attempt_ = last_attempt;
  keys_.clear();
  for (const auto& [number, job] : jobs_) {
    // As in a submit: only the first job of an array carries the key.
    const bool is_first = job.array == 0 || job.array == number;
    if (is_first && !job.spec->key.empty())
      keys_.emplace(std::pair{job.spec->user, job.spec->key}, number);
  }
}

}  // namespace berth
