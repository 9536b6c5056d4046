#include "core/engine.h"

#include <algorithm>
#include <optional>
#include <tuple>

#include <fmt/format.h>

#include "base/check.h"
#include "core/feasibility.h"

namespace berth {

namespace {
/// A policy that wakes up so often in a row, with nothing running and nothing to come, and decides
/// nothing, never will.
constexpr std::uint64_t kHopelessPasses = 10'000;

bool is_leaving(EventKind kind) {
  return kind == EventKind::Finished || kind == EventKind::Withdrawn || kind == EventKind::Cancel;
}
}  // namespace

Engine::Engine(const EngineParts& parts)
    : trace_(parts.trace),
      policy_(parts.policy),
      estimator_(parts.estimator),
      placement_(parts.placement),
      executor_(parts.executor),
      believed_(parts.believed),
      observer_(parts.observer),
      tuner_(parts.tuner),
      power_(parts.power),
      checkpoint_interval_(parts.checkpoint_interval),
      checkpoints_(parts.checkpoints),
      open_(parts.open),
      cores_beside_(parts.cores_beside && parts.placement.mode() == ClusterState::Mode::Devices),
      jobs_(parts.trace.jobs.size()),
      state_(parts.cluster, parts.placement.mode()),
      accounts_(jobs_, parts.open ? JobAccounts::Rates::Measured : JobAccounts::Rates::Exact),
      dispatcher_(executor_, jobs_, accounts_, parts.observer),
      estimates_(includes(parts.policy.traits().needs, Need::RunTime) ? parts.trace.jobs.size()
                                                                      : 0),
      policy_rng_(Rng{parts.seed}.fork("policy")),
      placement_rng_(Rng{parts.seed}.fork("placement")),
      view_(trace_, jobs_, state_, shapes_, kinds_, estimates_, parts.believed, parts.executor,
            parts.policy.traits().needs, parts.open),
      plan_(state_, jobs_, shapes_, arena_, placement_, parts.believed, placement_rng_) {
  watch_what_is_needed(state_);
  plan_.set_tuner(tuner_);
  plan_.set_capabilities(executor_.capabilities());
  if (open_) plan_.keep_to_agreed_sizes(trace_);
  make_intake();
  if (placement_.wants_changes())
    state_.track_changes();  // after the intake, whose trials of shapes are no part of the run
}

void Engine::watch_what_is_needed(ClusterState& state) const {
  if (state.mode() != ClusterState::Mode::Devices) return;
  // Of those who place fractions the one by topology asks who is on a device for these alone.
  const auto is_fraction = [](const TraceJob& job) { return job.gpu_milli < 1000; };
  const bool fractions =
      placement_.places_fractions() &&
      (!placement_.wants_topology() || open_ || std::ranges::any_of(trace_.jobs, is_fraction));
  if (policy_.traits().shares_devices || fractions || tuner_ != nullptr) state.track_devices();
  if (policy_.traits().wants_topology || placement_.wants_topology()) state.track_topology();
  const bool minds_neighbours = placement_.minds_neighbours() ||
                                (policy_.traits().minds_neighbours && believed_.effects().server);
  if (minds_neighbours) state.track_buses();
}

void Engine::make_intake() {
  const SideLimits limits{.cores = tuner_ == nullptr && !policy_.traits().sets_cores,
                          .memory = !policy_.traits().sets_memory,
                          .cores_beside = cores_beside_};
  if (open_) {
    // Jobs come while others run: whether one could ever fit is asked of a cluster without jobs.
    pristine_ = std::make_unique<ClusterState>(state_.cluster(), state_.mode());
    watch_what_is_needed(*pristine_);
    intake_.emplace(trace_, *pristine_, placement_, limits, believed_);
    return;
  }
  intake_.emplace(trace_, state_, placement_, limits, believed_);
  for (std::uint32_t i = 0; i < trace_.jobs.size(); ++i)
    intake_->take(JobId{i}, jobs_, shapes_, kinds_);
}

Result<void> Engine::run() {
  estimator_.begin(trace_);
  policy_.begin(view_);
  if (tuner_ != nullptr) tuner_->begin(view_, believed_);
  if (power_ != nullptr) power_->begin(view_);
  Time wakeup = kNever;
  std::uint64_t idle_passes = 0;
  while (const auto now = executor_.advance(wakeup)) {
    view_.now = *now;
    due_.clear();
    executor_.collect(*now, due_);
    for (const Event& event : due_) {
      if (is_of_a_job(event.kind)) handling_ = event.job;
      apply(event);
    }
    handling_.reset();
    if (open_) {
      rate_changes_.clear();
      executor_.news(view_.now, jobs_, rate_changes_);
      absorb_rates();
    }
    // Somebody only looked: a policy that decided now would decide because of that, and the same
    // jobs would run otherwise because a person asked about them.
    const bool is_due = !due_.empty() || *now >= wakeup || passes_ == 0;
    if (!is_due && !executor_.calls_for_pass()) {
      if (observer_ != nullptr) observer_->instant_done(*now);
      continue;
    }
    events_ += due_.empty() ? 1 : due_.size();  // a wake-up is an event too

    // One plan for all who decide: the tuner shares out what the policy started, and the power
    // manager switches off what both left idle.
    plan_.begin();
    if (tuner_ != nullptr) tuner_->begin_instant(*now);
    decide();
    if (tuner_ != nullptr) tune();
    if (power_ != nullptr) power_->manage(view_, plan_);
    const auto actions = plan_.seal();
    for (const Action& action : actions) take(action);
    const bool idle = due_.empty() && actions.empty() && accounts_.running().empty();
    plan_.settle();
    depart_killed(
        actions);  // after settle(): what they held has come back when the policy hears it
    rate_changes_.clear();
    executor_.rates(view_.now, jobs_, rate_changes_);
    absorb_rates();
    if (observer_ != nullptr) observer_->instant_done(*now);

    wakeup = policy_.next_wakeup(view_).value_or(kNever);
    if (tuner_ != nullptr) wakeup = std::min(wakeup, tuner_->next_wakeup(view_).value_or(kNever));
    if (power_ != nullptr) wakeup = std::min(wakeup, power_->next_wakeup(view_).value_or(kNever));
    BERTH_CHECK(wakeup > *now, "a policy wakes up later than now");
    // A policy that only wakes up and never decides would keep a simulation alive for ever.
    idle_passes = idle ? idle_passes + 1 : 0;
    if (idle_passes >= kHopelessPasses && !executor_.expects_events()) break;
    if ((++passes_ & 0xffffU) == 0 && progress_) progress_({*now, events_, arrived_, over_});
  }
  const std::size_t left = arrived_ - over_;
  if (left > 0 && !open_) {
    return fail(
        fmt::format("{} of {} jobs can never start under policy '{}' although they fit the cluster "
                    "(a quota or a node that stays down holds them back)",
                    left, trace_.jobs.size(), policy_.name()));
  }
  return {};
}

bool Engine::has_place(const Shape& shape) const {
  Rng rng{1};
  std::vector<Slice> slices;
  return std::ranges::any_of(shape.pools, [&](PoolId pool) {
    if (!state_.may_hold(pool, shape)) return false;
    if (state_.mode() == ClusterState::Mode::Count) return state_.has_side_room(pool, shape);
    slices.clear();
    return placement_.place(state_, shape, pool, rng, slices);
  });
}

void Engine::decide() {
  policy_.decide(view_, plan_, policy_rng_);
  lane_.decide(view_, plan_);
}

void Engine::tell_departure(JobId job) {
  if (is_beside(job)) return lane_.remove(view_, job);
  policy_.on_departure(view_, job);
  if (power_ != nullptr) power_->on_departure(view_, job);
}

void Engine::tell_requeue(JobId job) {
  if (is_beside(job)) return lane_.add(view_, job);
  policy_.on_requeue(view_, job);
}

void Engine::note_change(JobId job) {
  if (tuner_ == nullptr) return;
  for (const Slice& slice : arena_.slices(jobs_.allocation[job]))
    changed_nodes_.push_back(slice.node);
}

void Engine::tune() {
  plan_.nodes_changed(changed_nodes_);
  std::ranges::sort(changed_nodes_);
  changed_nodes_.erase(std::unique(changed_nodes_.begin(), changed_nodes_.end()),
                       changed_nodes_.end());
  tuner_->tune(view_, changed_nodes_, plan_);
  changed_nodes_.clear();
}

void Engine::absorb_rates() {
  for (const RateChange& change : rate_changes_) {
    accounts_.change_rate(view_.now, change);
    if (open_ && !is_beside(change.job)) policy_.on_rate(view_, change.job);
  }
}

void Engine::apply(const Event& event) {
  if (open_ && is_leaving(event.kind)) {
    // After a restart the jobs that still run arrive one by one. One may end before it has arrived;
    // a policy must not hear of a departure without an arrival.
    JobState& state = jobs_.state[event.job];
    if (event.asks_policy && !jobs_.is_running(event.job)) {
      executor_.set_retry(event.job, std::nullopt);  // the executor says what became of it
      return;
    }
    if (is_over(state)) return;
    if (state == JobState::Unknown) {
      state = JobState::Cancelled;
      return;
    }
  }
  switch (event.kind) {
    case EventKind::Finished:
      if (!try_again(event)) end(event.job, event.outcome);
      break;
    case EventKind::Lost:
      if (!jobs_.is_running(event.job)) break;
      lose_attempt(event.job, Reason::Retry);
      tell_requeue(event.job);
      break;
    case EventKind::Withdrawn:
      if (!is_over(jobs_.state[event.job])) withdraw(event.job);
      break;
    case EventKind::NodeDown: lose_node(event.node); break;
    case EventKind::NodeUp:
      state_.set_up(event.node);
      policy_.on_capacity_change(view_, event.node);
      break;
    case EventKind::SwitchedOff:
    case EventKind::Boots:
      state_.set_power(event.node,
                       event.kind == EventKind::Boots ? PowerState::Booting : PowerState::Off);
      policy_.on_capacity_change(view_, event.node);
      break;
    case EventKind::Booted:
      state_.set_power(event.node, PowerState::On);
      policy_.on_capacity_change(view_, event.node);
      break;
    case EventKind::Shares: policy_.on_entitlements(view_, executor_.entitlements()); break;
    case EventKind::Arrival:
      if (!is_over(jobs_.state[event.job])) arrive(event.job);  // it has left before its turn
      break;
    case EventKind::Cancel:
      if (!is_over(jobs_.state[event.job])) end(event.job, JobState::Cancelled);
      break;
    case EventKind::NextPhase:
      if (!jobs_.is_running(event.job)) break;
      jobs_.phase[event.job] = event.phase;
      note_change(event.job);
      break;
  }
}

void Engine::arrive(JobId job) {
  ++arrived_;
  if (open_) intake_->take(job, jobs_, shapes_, kinds_);
  jobs_.state[job] = JobState::Waiting;
  if (open_) restore(job, executor_.past(job));
  if (!shapes_.never_reason(jobs_.shape[job]).empty()) {
    reject(job, {Reason::NeverFits, intake_->why_never(job, jobs_, shapes_)}, RejectedBy::Cluster);
    return;
  }
  if (!estimates_.empty()) estimates_[job] = estimator_.estimate(trace_.jobs[job.value]);
  if (is_beside(job)) return lane_.add(view_, job);
  if (auto refusal = policy_.admit(view_, job)) {
    reject(job, *std::move(refusal), RejectedBy::Policy);
    return;
  }
  policy_.on_arrival(view_, job);
  if (power_ != nullptr) power_->on_arrival(view_, job);
}

/// What happened to the job before this engine knew it.
void Engine::restore(JobId job, const JobPast& past) {
  accounts_.restore(job, past);
  if (past.profile) {
    // What is believed of a job goes by its kind: with the profile of the intake it would be
    // believed to run as somebody nobody knows.
    Kind kind = kinds_[jobs_.kind[job]];
    kind.profile = *past.profile;
    jobs_.kind[job] = kinds_.intern(kind);
  }
  if (!past.slices.empty()) plan_.pin(job, past.slices);
}

void Engine::reject(JobId job, Refusal refusal, RejectedBy who) {
  dispatcher_.write(view_.now, {.kind = ActionKind::Reject,
                                .reason = refusal.reason,
                                .job = job,
                                .pool = {},
                                .gpus = view_.gpus(job),
                                .slices = {}});
  rejected_.push_back({job, std::move(refusal.text), who == RejectedBy::Policy});
  jobs_.state[job] = JobState::Rejected;
  jobs_.finished[job] = view_.now;
  ++over_;
}

/// The job is over; whatever it held comes back before the policy hears of it.
void Engine::end(JobId job, JobState outcome) {
  if (jobs_.is_running(job)) {
    Time held_until = view_.now;
    note_change(job);
    if (outcome == JobState::Cancelled) {
      held_until = executor_.stop(view_.now,
                                  {.kind = ActionKind::Kill,
                                   .reason = {},
                                   .job = job,
                                   .pool = {},
                                   .gpus = jobs_.granted[job],
                                   .slices = arena_.slices(jobs_.allocation[job])},
                                  jobs_);
    }
    accounts_.end_stretch(view_.now, job, held_until);
    release(job);
    accounts_.set_stopped(job, outcome);
  }
  if (outcome == JobState::Failed) jobs_.wasted[job] = jobs_.service[job];
  jobs_.state[job] = outcome;
  jobs_.finished[job] = view_.now;
  ++over_;
  plan_.unpin(job);
  if (observer_ != nullptr) observer_->finished(view_.now, job, outcome);
  // A live job that is cancelled says only that it would have taken longer. A cancelled job of a
  // trace has its whole length there, so that estimates may learn from it.
  if (!open_ || outcome != JobState::Cancelled)
    estimator_.learn(trace_.jobs[job.value], jobs_.work[job]);
  tell_departure(job);
}

/// A job that the plan has ended is as gone as one that ended by itself. How long it was allowed to
/// run says nothing of how long it would have run: no estimate learns from it.
void Engine::depart_killed(std::span<const Action> actions) {
  for (const Action& action : actions) {
    if (action.kind != ActionKind::Kill) continue;
    plan_.unpin(action.job);
    tell_departure(action.job);
  }
}

/// Neither its end nor its length is worth remembering.
void Engine::withdraw(JobId job) {
  if (jobs_.is_running(job)) {
    note_change(job);
    accounts_.end_stretch(view_.now, job, view_.now);
    release(job);
    accounts_.set_stopped(job, JobState::Cancelled);
  }
  jobs_.state[job] = JobState::Cancelled;
  jobs_.finished[job] = view_.now;
  ++over_;
  plan_.unpin(job);
  tell_departure(job);
}

/// Without nodes (Count mode) the latest starters of the pool lose theirs, until the node's devices
/// are free.
void Engine::find_victims(NodeId node) {
  victims_.clear();
  const Node& lost = state_.cluster().nodes[node.value];
  if (state_.mode() == ClusterState::Mode::Devices) {
    const auto here = [&](const Slice& slice) { return slice.node == node; };
    for (const JobId job : accounts_.running()) {
      if (std::ranges::any_of(arena_.slices(jobs_.allocation[job]), here)) victims_.push_back(job);
    }
    std::ranges::sort(victims_);
    return;
  }
  for (const JobId job : accounts_.running()) {
    if (jobs_.allocation[job].pool == lost.pool) victims_.push_back(job);
  }
  std::ranges::sort(victims_, std::ranges::greater{},
                    [&](JobId job) { return std::tuple(jobs_.last_start[job], job); });
  std::int64_t free = state_.free_gpus(lost.pool);
  std::size_t needed = 0;
  for (; free < lost.gpus; ++needed) free += jobs_.granted[victims_[needed]];
  victims_.resize(needed);
}

void Engine::lose_node(NodeId node) {
  find_victims(node);
  // A node leaves service empty: first its jobs, then the node, then the policy hears of both.
  for (const JobId job : victims_) lose_attempt(job, Reason::NodeLost);
  state_.set_down(node);
  policy_.on_capacity_change(view_, node);
  for (const JobId job : victims_) tell_requeue(job);
}

void Engine::lose_attempt(JobId job, Reason reason) {
  const Action action{.kind = ActionKind::Preempt,
                      .reason = reason,
                      .job = job,
                      .pool = jobs_.allocation[job].pool,
                      .gpus = jobs_.granted[job],
                      .slices = arena_.slices(jobs_.allocation[job])};
  dispatcher_.write(view_.now, action);
  note_change(job);
  static_cast<void>(executor_.stop(view_.now, action, jobs_));
  accounts_.end_stretch(view_.now, job, view_.now);
  const Duration interval =
      checkpoints_ ? checkpoint_interval(*checkpoints_, jobs_.granted[job]) : checkpoint_interval_;
  if (interval > Duration::zero())
    jobs_.work[job] = jobs_.work[job] / interval * interval;  // back to the last whole checkpoint
  ++jobs_.failures[job];
  release(job);
  accounts_.set_stopped(job, JobState::Waiting);
}

/// A failed attempt that the policy wants repeated. The executor has ended it already; what it did
/// is lost.
bool Engine::try_again(const Event& event) {
  const JobId job = event.job;
  if (is_beside(job)) return false;
  if (event.outcome != JobState::Failed || (open_ && !event.asks_policy)) return false;
  const auto slices = arena_.slices(jobs_.allocation[job]);
  const bool again = policy_.retries(view_, job, event.failure, slices);
  if (event.asks_policy) executor_.set_retry(job, again);
  if (!again) return false;
  dispatcher_.write(view_.now, {.kind = ActionKind::Preempt,
                                .reason = Reason::Retry,
                                .job = job,
                                .pool = jobs_.allocation[job].pool,
                                .gpus = jobs_.granted[job],
                                .slices = slices});
  note_change(job);
  accounts_.end_stretch(view_.now, job, view_.now);
  jobs_.work[job] = Duration::zero();
  jobs_.wasted[job] = jobs_.service[job];
  ++jobs_.retries[job];
  release(job);
  accounts_.set_stopped(job, JobState::Waiting);
  tell_requeue(job);
  return true;
}

void Engine::release(JobId job) {
  Allocation& allocation = jobs_.allocation[job];
  const Shape& shape = view_.shape(job);
  if (state_.mode() == ClusterState::Mode::Count) {
    state_.give_count(allocation.pool, shape);
  } else {
    state_.give(arena_.slices(allocation), shape, job, plan_.use_of(job));
  }
  arena_.release(allocation);
  allocation = Allocation{};
}

void Engine::take(const Action& action) {
  dispatcher_.take(view_.now, action);
  if (action.kind == ActionKind::Kill) ++over_;
  if (action.kind == ActionKind::PowerOff)
    policy_.on_capacity_change(view_, action.slices.front().node);
  // The tuner, which was asked before it started, took it for a training one.
  const bool starts = begins_stretch(action.kind) || changes_devices(action.kind);
  if (starts && jobs_.phase[action.job] != Phase::Training) note_change(action.job);
}

}  // namespace berth
