#include "daemon/status_board.h"

#include <algorithm>
#include <charconv>
#include <tuple>

#include <fmt/format.h>

#include "base/check.h"
#include "daemon/energy_meter.h"
#include "daemon/service_events.h"
#include "daemon/verdict.h"

namespace berth {

namespace {

void set_member(std::set<JobNumber>& jobs, JobNumber job, bool is_member) {
  if (is_member) {
    jobs.insert(job);
  } else {
    jobs.erase(job);
  }
}

/// How many events a client that was away can catch up with.
constexpr std::size_t kKeptEvents = 4096;

LiveState final_state(Outcome outcome) {
  switch (outcome) {
    case Outcome::Completed: return LiveState::Completed;
    case Outcome::Cancelled: return LiveState::Cancelled;
    case Outcome::TimedOut: return LiveState::TimedOut;
    case Outcome::Preempted: return LiveState::Preempted;
    case Outcome::NodeFailed: return LiveState::NodeFailed;
    case Outcome::Rejected: return LiveState::Rejected;
    case Outcome::OutOfMemory: return LiveState::OutOfMemory;
    case Outcome::Failed:
    case Outcome::Requeued:
    case Outcome::NotStarted: break;
  }
  return LiveState::Failed;
}

template <class T>
bool matches(const std::optional<T>& wanted, const T& value) {
  return !wanted || *wanted == value;
}

bool matches(const JobFilter& filter, const LedgerJob& job) {
  return matches(filter.user, job.spec->user) && matches(filter.group, job.spec->group) &&
         matches(filter.queue, job.spec->queue) && matches(filter.name, job.spec->name) &&
         matches(filter.study, job.spec->study);
}

}  // namespace

StatusBoard::StatusBoard(Ledger ledger) : ledger_(std::move(ledger)) {
  for (const auto& [number, job] : ledger_.jobs()) {
    by_user_[job.spec->user].insert(number);
    if (job.attempt) live_attempts_.insert(number);
    if (job.is_held) held_.insert(number);
  }
}

void StatusBoard::publish(std::span<const Committed> records, std::int64_t wall) {
  std::vector<ServiceEvent> events;
  {
    const std::unique_lock lock{mutex_};
    for (const Committed& committed : records) {
      const auto change = ledger_.apply(committed.record);
      BERTH_CHECK(change.has_value(), "what the journal writer applied, the board can apply");
      for (std::int32_t i = 0; i < change->count; ++i) {
        const JobNumber number = change->job + static_cast<JobNumber>(i);
        if (number == 0) continue;
        const LedgerJob* job = ledger_.find(number);
        if (change->past) ++ended_[change->past->outcome];
        if (job == nullptr) {
          if (change->past) by_user_[change->past->job.spec->user].erase(number);
          live_attempts_.erase(number);
          held_.erase(number);
        } else {
          by_user_[job->spec->user].insert(number);
          set_member(live_attempts_, number, job->attempt.has_value());
          set_member(held_, number, job->is_held);
          if (!job->attempt && notes_.contains(number)) {
            notes_[number].pid = 0;
            notes_[number].is_running = false;
            notes_[number].cores.reset();
          }
        }
        const auto view = job != nullptr ? view_of(*job, wall)
                          : change->past ? past_view(*change->past)
                                         : JobView{};
        if (view.number != 0) events.push_back(job_event(view, committed.record));
        if (job == nullptr) notes_.erase(number);
      }
      if (const auto* setting = std::get_if<SettingRecord>(&committed.record.body)) {
        ++settings_version_;
        if (setting->key != kEnergySetting) events.push_back(setting_event(*setting));
      }
    }
  }
  for (ServiceEvent& event : events) tell(std::move(event));
}

void StatusBoard::note(JobNumber job, const std::function<void(JobNote&)>& edit) {
  const std::unique_lock lock{mutex_};
  if (ledger_.find(job) != nullptr) edit(notes_[job]);
}

std::optional<LedgerJob> StatusBoard::find(JobNumber job) const {
  const std::shared_lock lock{mutex_};
  const LedgerJob* found = ledger_.find(job);
  if (found == nullptr) return std::nullopt;
  return *found;
}

std::vector<LedgerJob> StatusBoard::all() const {
  const std::shared_lock lock{mutex_};
  std::vector<LedgerJob> jobs;
  jobs.reserve(ledger_.jobs().size());
  for (const auto& [number, job] : ledger_.jobs()) jobs.push_back(job);
  return jobs;
}

LiveState StatusBoard::state_of(const LedgerJob& job) const {
  const auto note = notes_.find(job.number);
  if (job.attempt) {
    if (job.stopping) return LiveState::Stopping;
    if (job.attempt->is_suspended || job.is_frozen) return LiveState::Suspended;
    const bool running = note != notes_.end() && note->second.is_running;
    return running ? LiveState::Running : LiveState::Starting;
  }
  if (job.stopping == Wish::Cancel) return LiveState::Stopping;
  if (job.is_held) return LiveState::Held;
  if (job.is_frozen) return LiveState::Suspended;
  const bool blocked = note != notes_.end() && note->second.is_blocked;
  return blocked ? LiveState::Blocked : LiveState::Pending;
}

WaitCode StatusBoard::code_of(const LedgerJob& job, LiveState state) const {
  switch (state) {
    case LiveState::Pending:
      return job.spec->gpus > free_gpus_ || job.spec->gpus == 0 ? WaitCode::Resources
                                                                : WaitCode::Priority;
    case LiveState::Held:
      return job.held_by == job.spec->user ? WaitCode::HeldByUser : WaitCode::HeldByAdmin;
    case LiveState::Blocked: return notes_.at(job.number).code;
    default: return WaitCode::None;
  }
}

namespace {

/// So many microseconds later.
PaceView pace_view(const ProgressEstimate& progress, std::int64_t later) {
  PaceView view{.rate = progress.rate};
  view.source = progress.source == RateSource::Reports  ? "reports"
                : progress.source == RateSource::Belief ? "belief"
                                                        : "request";
  if (progress.whole_seconds <= 0) return view;
  const double since = static_cast<double>(std::max<std::int64_t>(0, later)) * 1e-6;
  const double done = progress.work_seconds + progress.rate * since;
  view.progress = std::clamp(done / progress.whole_seconds, 0.0, 1.0);
  if (progress.rate > 0 && done < progress.whole_seconds)
    view.seconds_left = (progress.whole_seconds - done) / progress.rate;
  return view;
}

}  // namespace

namespace {

/// Ours, or those of its #SBATCH lines, which it starts itself.
std::int32_t tasks_of(const JobSpec& spec) {
  const auto asked = spec.env.find("SLURM_NTASKS");
  if (spec.tasks > 1 || spec.ranks || asked == spec.env.end()) return spec.tasks;
  std::int32_t tasks = 0;
  std::from_chars(asked->second.data(), asked->second.data() + asked->second.size(), tasks);
  return std::max(1, tasks);
}

/// What is on record of a job, whether it is over or not.
JobView recorded_view(const LedgerJob& job) {
  JobView view;
  view.number = job.number;
  view.array = job.array;
  view.array_index = job.array_index;
  if (job.spec && job.spec->array) view.array_at_once = job.spec->array->at_once;
  view.spec = job.spec;
  view.submitted = job.submitted_wall;
  view.started = job.first_start_wall;
  view.run_seconds = job.run_seconds;
  view.gpu_seconds = job.gpu_seconds;
  view.energy_kwh = job.joules / kJoulesPerKwh;
  view.attempts = job.attempts;
  view.preemptions = job.preemptions;
  view.failures = job.failures;
  if (job.spec) view.tasks = tasks_of(*job.spec);
  return view;
}

}  // namespace

JobView StatusBoard::view_of(const LedgerJob& job, std::int64_t wall, Rows rows) const {
  JobView view = recorded_view(job);
  view.state = state_of(job);
  const auto note = notes_.find(job.number);
  if (note != notes_.end()) {
    view.pid = note->second.pid;
    view.training = note->second.training;
    if (view.training) {
      view.training->last_heard_seconds_ago =
          static_cast<double>(std::max<std::int64_t>(0, wall - note->second.training_heard)) * 1e-6;
    }
    if (job.attempt && note->second.progress && view.state == LiveState::Running)
      view.pace = pace_view(*note->second.progress, wall - note->second.progress_wall);
    if (!job.attempt) view.reason = note->second.waits_because;
  }
  view.code = code_of(job, view.state);
  if (view.state == LiveState::Pending && view.reason.empty()) view.reason = to_string(view.code);
  if (view.state == LiveState::Suspended)
    view.reason = job.is_frozen ? by_whom("suspended", job.frozen_by, job.frozen_why)
                                : "its slice of time is over";
  if (job.is_held && !job.attempt) view.reason = by_whom("held", job.held_by, job.held_why);
  if (job.attempt) {
    view.last_started = job.attempt->wall;
    view.where = job.attempt->where;
    if (note != notes_.end() && note->second.cores && view.where.size() == 1)
      view.where.front().cores = *note->second.cores;
    view.granted = job.attempt->gpus;
    const auto since = [&](std::int64_t then) {
      return static_cast<double>(std::max<std::int64_t>(0, wall - then)) * 1e-6;
    };
    const double seconds = since(job.attempt->wall);
    view.suspended = job.attempt->suspended_wall;
    view.suspended_seconds = job.attempt->suspended_seconds;
    if (view.suspended != 0) view.suspended_seconds += since(view.suspended);
    view.last_run_seconds = std::max(0.0, seconds - view.suspended_seconds);
    view.run_seconds += view.last_run_seconds;
    view.gpu_seconds += std::max(0.0, seconds * job.attempt->gpus + job.attempt->extra_gpu_seconds);
  }
  if (paths_ && rows == Rows::Whole) std::tie(view.output, view.error) = paths_(job);
  return view;
}

JobView StatusBoard::past_view(const PastJob& past, Rows rows) const {
  LedgerJob job = past.job;
  job.attempt.reset();
  JobView view = recorded_view(job);
  view.state = final_state(past.outcome);
  view.reason = past.why;
  view.last_started = past.last_start_wall != 0 ? past.last_start_wall : job.first_start_wall;
  view.ended = past.ended_wall;
  // Of a job of an older version that ran once all is one.
  view.last_run_seconds = past.last_run_seconds.value_or(job.attempts > 1 ? 0 : job.run_seconds);
  view.suspended_seconds = past.suspended_seconds;
  view.where = past.where;
  view.exit_code = past.exit_code;
  view.signal = past.signal;
  job.attempt.emplace().where = past.where;  // a path may hold the name of its node
  if (paths_ && rows == Rows::Whole) std::tie(view.output, view.error) = paths_(job);
  return view;
}

std::optional<JobView> StatusBoard::view(JobNumber job, std::int64_t wall) const {
  const std::shared_lock lock{mutex_};
  const LedgerJob* found = ledger_.find(job);
  if (found == nullptr) return std::nullopt;
  return view_of(*found, wall);
}

JobPage StatusBoard::page(const JobFilter& filter, std::int64_t wall) const {
  const std::shared_lock lock{mutex_};
  JobPage page;
  const auto wanted_state = [&](const LedgerJob& job) {
    return filter.states.empty() ||
           std::ranges::find(filter.states, state_of(job)) != filter.states.end();
  };
  // Then the size of a list is the total, and only the page itself is walked: a poll of the whole
  // queue must not cost more the longer the queue is.
  const bool takes_all = filter.numbers.empty() && filter.states.empty() && !filter.group &&
                         !filter.queue && !filter.name && !filter.study;
  // Jobs of one array that wait alike, as rows of the page: nobody looks at ten thousand of them.
  std::map<std::tuple<JobNumber, LiveState, WaitCode>, std::size_t> row_of;
  JobNumber last = 0;  // that has its place on the page
  if (filter.rows == Rows::Brief) page.jobs.reserve(std::min(filter.limit, ledger_.jobs().size()));
  const auto fold = [&](const LedgerJob& job) {
    if (filter.rows != Rows::Folded || job.array == 0 || job.attempts > 0) return false;
    const LiveState state = state_of(job);
    if (state > LiveState::Pending) return false;
    const auto [row, is_new] =
        row_of.try_emplace({job.array, state, code_of(job, state)}, page.jobs.size());
    if (is_new) return false;
    std::vector<std::int32_t>& folded = page.jobs[row->second].folded;
    if (folded.empty()) folded.push_back(page.jobs[row->second].array_index);
    folded.push_back(job.array_index);
    return true;
  };
  const auto consider = [&](const LedgerJob& job) {
    if (!matches(filter, job) || !wanted_state(job)) return;
    if (!takes_all) ++page.total;
    if ((filter.after && job.number <= *filter.after) || page.next) return;
    if (!fold(job)) {
      if (page.jobs.size() == filter.limit) {
        page.next = last;
        return;
      }
      page.jobs.push_back(view_of(job, wall, filter.rows));
    }
    last = job.number;
  };
  const auto walk = [&](const auto& list, const auto& job_of) {
    auto at = list.begin();
    if (takes_all) {
      page.total = list.size();
      if (filter.after) at = list.upper_bound(*filter.after);
    }
    for (; at != list.end() && !(takes_all && page.next); ++at) consider(job_of(*at));
  };
  if (!filter.numbers.empty()) {
    std::vector<JobNumber> numbers = filter.numbers;
    std::ranges::sort(numbers);
    numbers.erase(std::unique(numbers.begin(), numbers.end()), numbers.end());
    for (const JobNumber number : numbers) {
      if (const LedgerJob* job = ledger_.find(number)) consider(*job);
    }
  } else if (filter.user) {
    const auto mine = by_user_.find(*filter.user);
    if (mine == by_user_.end()) return page;
    walk(mine->second, [&](JobNumber number) -> const LedgerJob& { return *ledger_.find(number); });
  } else {
    walk(ledger_.jobs(), [](const auto& entry) -> const LedgerJob& { return entry.second; });
  }
  return page;
}

std::vector<JobNumber> StatusBoard::missing(std::span<const JobNumber> numbers) const {
  const std::shared_lock lock{mutex_};
  std::vector<JobNumber> none;
  for (const JobNumber number : numbers)
    if (ledger_.find(number) == nullptr) none.push_back(number);
  return none;
}

JobNumber StatusBoard::next_number() const {
  const std::shared_lock lock{mutex_};
  return ledger_.next_number();
}

std::optional<JobNumber> StatusBoard::by_key(const std::string& user,
                                             const std::string& key) const {
  const std::shared_lock lock{mutex_};
  return ledger_.by_key(user, key);
}

std::map<std::string, std::string> StatusBoard::settings() const {
  const std::shared_lock lock{mutex_};
  return ledger_.settings();
}

std::optional<std::string> StatusBoard::setting(const std::string& key) const {
  const std::shared_lock lock{mutex_};
  const auto found = ledger_.settings().find(key);
  if (found == ledger_.settings().end()) return std::nullopt;
  return found->second;
}

void StatusBoard::for_each(const std::function<void(const LedgerJob&)>& visit) const {
  const std::shared_lock lock{mutex_};
  for (const auto& [number, job] : ledger_.jobs()) visit(job);
}

namespace {

/// Its share of the cores it asked for, where the machine has none left to bind it to.
std::int32_t cores_asked(const JobSpec& spec, const HeldDevices& here) {
  const auto devices = static_cast<std::int32_t>(here.devices.size());
  if (spec.cpus <= 0) return 0;
  return spec.gpus == 0 ? spec.cpus : std::max(1, spec.cpus * devices / spec.gpus);
}

}  // namespace

std::vector<StatusBoard::Holding> StatusBoard::holdings() const {
  const std::shared_lock lock{mutex_};
  std::vector<Holding> held;
  for (const JobNumber number : live_attempts_) {
    const LedgerJob& job = *ledger_.find(number);
    const auto note = notes_.find(number);
    for (const HeldDevices& where : job.attempt->where) {
      Holding holding{.job = number, .where = where};
      // Bound anew since its start.
      if (note != notes_.end() && note->second.cores && job.attempt->where.size() == 1)
        holding.where.cores = *note->second.cores;
      holding.cores = holding.where.cores.empty()
                          ? cores_asked(*job.spec, where)
                          : static_cast<std::int32_t>(holding.where.cores.size());
      held.push_back(std::move(holding));
    }
  }
  return held;
}

std::vector<StatusBoard::RunningJob> StatusBoard::running() const {
  const std::shared_lock lock{mutex_};
  std::vector<RunningJob> running;
  for (const JobNumber number : live_attempts_) {
    const auto note = notes_.find(number);
    running.push_back({.job = number,
                       .pid = note == notes_.end() ? 0 : note->second.pid,
                       .where = ledger_.find(number)->attempt->where});
  }
  return running;
}

StatusBoard::Counts StatusBoard::counts() const {
  const std::shared_lock lock{mutex_};
  return {.pending = ledger_.jobs().size() - live_attempts_.size(),
          .running = live_attempts_.size(),
          .held = held_.size()};
}

std::size_t StatusBoard::set_aside() const {
  const std::shared_lock lock{mutex_};
  return static_cast<std::size_t>(std::ranges::count_if(
      held_, [&](JobNumber job) { return ledger_.find(job)->held_by == kSchedulerName; }));
}

std::map<Outcome, std::uint64_t> StatusBoard::ended() const {
  const std::shared_lock lock{mutex_};
  return ended_;
}

std::size_t StatusBoard::jobs_of(const std::string& user) const {
  const std::shared_lock lock{mutex_};
  const auto found = by_user_.find(user);
  return found == by_user_.end() ? 0 : found->second.size();
}

// --- events

class StatusBoard::Listening final : public Service::Subscription {
 public:
  Listening(std::shared_ptr<Listeners> listeners, std::uint64_t id)
      : listeners_(std::move(listeners)), id_(id) {}
  ~Listening() override {
    const std::lock_guard lock{listeners_->mutex};
    listeners_->all.erase(id_);
  }
  Listening(const Listening&) = delete;
  Listening& operator=(const Listening&) = delete;

 private:
  std::shared_ptr<Listeners> listeners_;
  std::uint64_t id_;
};

void StatusBoard::tell(ServiceEvent event) {
  const std::lock_guard lock{listeners_->mutex};
  event.sequence = ++listeners_->sequence;
  for (const auto& [id, listener] : listeners_->all) listener(event);
  listeners_->kept.push_back(std::move(event));
  if (listeners_->kept.size() > kKeptEvents) listeners_->kept.pop_front();
}

std::unique_ptr<Service::Subscription> StatusBoard::subscribe(
    std::uint64_t after, std::function<void(const ServiceEvent&)> listener) {
  const std::lock_guard lock{listeners_->mutex};
  for (const ServiceEvent& event : listeners_->kept) {
    if (event.sequence > after) listener(event);
  }
  const std::uint64_t id = listeners_->next++;
  listeners_->all.emplace(id, std::move(listener));
  return std::make_unique<Listening>(listeners_, id);
}

std::uint64_t StatusBoard::latest() const {
  const std::lock_guard lock{listeners_->mutex};
  return listeners_->sequence;
}

}  // namespace berth
