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
      jobs_(parts.trace.jobs.size()),
      state_(parts.cluster, parts.placement.mode()),
      running_at_(parts.trace.jobs.size()),
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
  if (placement_.wants_changes()) state_.track_changes();  // trying shapes was no part of the run
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
                          .memory = !policy_.traits().sets_memory};
  if (open_) {
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
    // Somebody only asked: a policy that decided now would decide because of that.
    const bool is_due = !due_.empty() || *now >= wakeup || passes_ == 0;
    if (!is_due && !executor_.calls_for_pass()) {
      if (observer_ != nullptr) observer_->instant_done(*now);
      continue;
    }
    events_ += due_.empty() ? 1 : due_.size();  // a wake-up is an event too

    plan_.begin();
    if (tuner_ != nullptr) tuner_->begin_instant(*now);
    policy_.decide(view_, plan_, policy_rng_);
    if (tuner_ != nullptr) tune();
    if (power_ != nullptr) power_->manage(view_, plan_);
    const auto actions = plan_.seal();
    for (const Action& action : actions) {
      write(action);
      carry_out(action);
    }
    const bool idle = due_.empty() && actions.empty() && running_.empty();
    plan_.settle();
    depart_killed(actions);
    rate_changes_.clear();
    executor_.rates(view_.now, jobs_, rate_changes_);
    absorb_rates();
    if (observer_ != nullptr) observer_->instant_done(*now);

    wakeup = policy_.next_wakeup(view_).value_or(kNever);
    if (tuner_ != nullptr) wakeup = std::min(wakeup, tuner_->next_wakeup(view_).value_or(kNever));
    if (power_ != nullptr) wakeup = std::min(wakeup, power_->next_wakeup(view_).value_or(kNever));
    BERTH_CHECK(wakeup > *now, "a policy wakes up later than now");
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

void Engine::set_begun(JobId job, Time begun) {
  const Time said = jobs_.held_from[job];
  jobs_.work_from[job] = begun + (jobs_.work_from[job] - said);
  jobs_.held_from[job] = jobs_.last_start[job] = begun;
  if (jobs_.first_start[job] == said) jobs_.first_start[job] = begun;
}

void Engine::set_basis(JobId job, RateBasis basis) {
  jobs_.basis[job] = basis;
  if (basis != RateBasis::Measured) jobs_.basis_from[job] = view_.now;
}

/// What was done so far was done at the old rate.
void Engine::absorb_rates() {
  for (const auto& [job, rate, work, basis, begun] : rate_changes_) {
    if (begun) set_begun(job, *begun);
    jobs_.work[job] = work.value_or(jobs_.work_done(job, view_.now));
    jobs_.work_from[job] = work ? view_.now : std::max(jobs_.work_from[job], view_.now);
    jobs_.rate[job] = rate;
    if (open_) set_basis(job, basis);
    if (open_) policy_.on_rate(view_, job);
  }
}

void Engine::apply(const Event& event) {
  if (open_ && is_leaving(event.kind)) {
    // What ran before a restart is brought in job by job: one may leave before its turn has come,
    // and a policy hears of nobody's departure whom it has not seen arrive.
    JobState& state = jobs_.state[event.job];
    if (event.asks_policy && !jobs_.is_running(event.job)) {
      executor_.set_retry(event.job, std::nullopt);  // and says what became of it
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
      policy_.on_requeue(view_, event.job);
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
  if (auto refusal = policy_.admit(view_, job)) {
    reject(job, *std::move(refusal), RejectedBy::Policy);
    return;
  }
  policy_.on_arrival(view_, job);
  if (power_ != nullptr) power_->on_arrival(view_, job);
}

/// What happened to the job before this engine knew it.
void Engine::restore(JobId job, const JobPast& past) {
  jobs_.first_start[job] = past.first_start;
  jobs_.held[job] = past.held;
  jobs_.work[job] = past.held;
  jobs_.service[job] = past.service;
  jobs_.preemptions[job] = past.preemptions;
  jobs_.failures[job] = past.failures;
  if (past.profile) {
    jobs_.profile[job] = *past.profile;
    // What is believed of a job goes by its kind: with the profile of the intake it would be
    // believed to run as somebody nobody knows.
    Kind kind = kinds_[jobs_.kind[job]];
    kind.profile = *past.profile;
    jobs_.kind[job] = kinds_.intern(kind);
  }
  if (!past.slices.empty()) plan_.pin(job, past.slices);
}

void Engine::reject(JobId job, Refusal refusal, RejectedBy who) {
  write({.kind = ActionKind::Reject,
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
    end_stretch(job, held_until);
    release(job);
    set_stopped(job, outcome);
  }
  if (outcome == JobState::Failed) jobs_.wasted[job] = jobs_.service[job];
  jobs_.state[job] = outcome;
  jobs_.finished[job] = view_.now;
  ++over_;
  plan_.unpin(job);
  if (observer_ != nullptr) observer_->finished(view_.now, job, outcome);
  // How long somebody lets a job run before giving it up says how long it takes at least. What a
  // trace says of such a job is its length.
  if (!open_ || outcome != JobState::Cancelled)
    estimator_.learn(trace_.jobs[job.value], jobs_.work[job]);
  policy_.on_departure(view_, job);
  if (power_ != nullptr) power_->on_departure(view_, job);
}

/// A job that the plan has ended is as gone as one that ended by itself. How long it was allowed to
/// run says nothing of how long it would have run: no estimate learns from it.
void Engine::depart_killed(std::span<const Action> actions) {
  for (const Action& action : actions) {
    if (action.kind != ActionKind::Kill) continue;
    plan_.unpin(action.job);
    policy_.on_departure(view_, action.job);
    if (power_ != nullptr) power_->on_departure(view_, action.job);
  }
}

/// Neither its end nor its length is worth remembering.
void Engine::withdraw(JobId job) {
  if (jobs_.is_running(job)) {
    note_change(job);
    end_stretch(job, view_.now);
    release(job);
    set_stopped(job, JobState::Cancelled);
  }
  jobs_.state[job] = JobState::Cancelled;
  jobs_.finished[job] = view_.now;
  ++over_;
  plan_.unpin(job);
  policy_.on_departure(view_, job);
  if (power_ != nullptr) power_->on_departure(view_, job);
}

/// Without nodes (Count mode) the latest starters of the pool lose theirs, until the node's devices
/// are free.
void Engine::find_victims(NodeId node) {
  victims_.clear();
  const Node& lost = state_.cluster().nodes[node.value];
  if (state_.mode() == ClusterState::Mode::Devices) {
    const auto here = [&](const Slice& slice) { return slice.node == node; };
    for (const JobId job : running_) {
      if (std::ranges::any_of(arena_.slices(jobs_.allocation[job]), here)) victims_.push_back(job);
    }
    std::ranges::sort(victims_);
    return;
  }
  for (const JobId job : running_) {
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
  for (const JobId job : victims_) lose_attempt(job, Reason::NodeLost);
  state_.set_down(node);
  policy_.on_capacity_change(view_, node);
  for (const JobId job : victims_) policy_.on_requeue(view_, job);
}

void Engine::set_running(JobId job) {
  running_at_[job] = static_cast<std::uint32_t>(running_.size());
  running_.push_back(job);
  jobs_.state[job] = JobState::Running;
}

void Engine::set_stopped(JobId job, JobState state) {
  const std::uint32_t at = running_at_[job];
  running_[at] = running_.back();
  running_at_[running_[at]] = at;
  running_.pop_back();
  jobs_.state[job] = state;
}

void Engine::lose_attempt(JobId job, Reason reason) {
  const Action action{.kind = ActionKind::Preempt,
                      .reason = reason,
                      .job = job,
                      .pool = jobs_.allocation[job].pool,
                      .gpus = jobs_.granted[job],
                      .slices = arena_.slices(jobs_.allocation[job])};
  write(action);
  note_change(job);
  static_cast<void>(executor_.stop(view_.now, action, jobs_));
  end_stretch(job, view_.now);
  const Duration interval =
      checkpoints_ ? checkpoint_interval(*checkpoints_, jobs_.granted[job]) : checkpoint_interval_;
  if (interval > Duration::zero()) {  // back to the last whole checkpoint
    jobs_.work[job] = jobs_.work[job] / interval * interval;
  }
  ++jobs_.failures[job];
  release(job);
  set_stopped(job, JobState::Waiting);
}

/// A failed attempt that the policy wants repeated. The executor has ended it already; what it did
/// is lost.
bool Engine::try_again(const Event& event) {
  const JobId job = event.job;
  if (event.outcome != JobState::Failed || (open_ && !event.asks_policy)) return false;
  const auto slices = arena_.slices(jobs_.allocation[job]);
  const bool again = policy_.retries(view_, job, event.failure, slices);
  if (event.asks_policy) executor_.set_retry(job, again);
  if (!again) return false;
  write({.kind = ActionKind::Preempt,
         .reason = Reason::Retry,
         .job = job,
         .pool = jobs_.allocation[job].pool,
         .gpus = jobs_.granted[job],
         .slices = slices});
  note_change(job);
  end_stretch(job, view_.now);
  jobs_.work[job] = Duration::zero();
  jobs_.wasted[job] = jobs_.service[job];
  ++jobs_.retries[job];
  release(job);
  set_stopped(job, JobState::Waiting);
  policy_.on_requeue(view_, job);
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

void Engine::carry_out(const Action& action) {
  const JobId job = action.job;
  switch (action.kind) {
    case ActionKind::Preempt:
      end_stretch(job, executor_.stop(view_.now, action, jobs_));
      set_stopped(job, JobState::Waiting);
      ++jobs_.preemptions[job];
      break;
    case ActionKind::Kill:
      if (jobs_.is_running(job)) {
        end_stretch(job, executor_.stop(view_.now, action, jobs_));
        set_stopped(job, JobState::Cancelled);
      } else {
        executor_.discard(view_.now, action, jobs_);
      }
      jobs_.state[job] = JobState::Cancelled;
      jobs_.finished[job] = view_.now;
      ++over_;
      break;
    case ActionKind::Suspend:
      end_stretch(job, executor_.stop(view_.now, action, jobs_));
      set_stopped(job, JobState::Waiting);
      ++jobs_.suspensions[job];
      break;
    case ActionKind::Migrate:
    case ActionKind::Resize:
      end_stretch(job, executor_.stop(view_.now, action, jobs_));
      if (action.kind == ActionKind::Migrate) ++jobs_.migrations[job];
      begin_stretch(action);
      break;
    case ActionKind::Start:
    case ActionKind::Resume:
    case ActionKind::Share: begin_stretch(action); break;
    case ActionKind::SetSubBatch:
    case ActionKind::SetCores:
    case ActionKind::SetShare:
    case ActionKind::SetMemory:
    case ActionKind::SetBatch: executor_.adjust(view_.now, action, jobs_); break;
    case ActionKind::PowerOn:
    case ActionKind::PowerOff:
      executor_.power(view_.now, action);
      if (action.kind == ActionKind::PowerOff)
        policy_.on_capacity_change(view_, action.slices.front().node);
      break;
    case ActionKind::Reject: break;
  }
}

void Engine::begin_stretch(const Action& action) {
  const JobId job = action.job;
  const StartReceipt receipt = executor_.start(view_.now, action, jobs_);
  if (!jobs_.is_running(job)) set_running(job);
  jobs_.held_from[job] = receipt.held_from;
  jobs_.work_from[job] = receipt.work_from;
  jobs_.rate[job] = receipt.rate;
  if (open_) set_basis(job, RateBasis::Believed);
  jobs_.phase[job] = receipt.phase;
  if (receipt.phase != Phase::Training) note_change(job);  // the tuner took it for a training one
  jobs_.granted[job] = action.gpus;
  jobs_.last_start[job] = receipt.held_from;
  if (jobs_.first_start[job] == kNever) jobs_.first_start[job] = receipt.held_from;
}

/// Books the stretch of holding devices that ends now; saving a checkpoint may hold them a little
/// longer.
void Engine::end_stretch(JobId job, Time held_until) {
  const Time now = view_.now;
  jobs_.work[job] = jobs_.work_done(job, now);
  if (held_until > jobs_.held_from[job]) {
    const Duration idle = std::min(now, jobs_.work_from[job]) - jobs_.held_from[job];
    jobs_.overhead[job] +=
        std::max(Duration::zero(), idle) + (held_until - std::max(now, jobs_.held_from[job]));
    jobs_.held[job] += held_until - jobs_.held_from[job];
    jobs_.service[job] += (held_until - jobs_.held_from[job]) * jobs_.granted[job];
  }
  jobs_.held_from[job] = now;
  jobs_.work_from[job] = now;
}

void Engine::write(const Action& action) {
  digest_.add(view_.now.time_since_epoch().count());
  digest_.add(static_cast<std::uint64_t>(action.kind));
  digest_.add(static_cast<std::uint64_t>(action.job.value));
  digest_.add(static_cast<std::uint64_t>(action.pool.value));
  for (const Slice& slice : action.slices) {
    digest_.add(static_cast<std::uint64_t>(slice.node.value));
    digest_.add(slice.devices);
  }
  if (action.terms != Terms{}) {
    digest_.add((std::uint64_t{static_cast<std::uint32_t>(action.terms.sub_steps)} << 32U) |
                static_cast<std::uint32_t>(action.terms.cores_milli));
    digest_.add((std::uint64_t{static_cast<std::uint32_t>(action.terms.throttle_milli)} << 32U) |
                static_cast<std::uint32_t>(action.terms.memory_limit_mib));
    digest_.add((std::uint64_t{static_cast<std::uint32_t>(action.terms.batch)} << 32U) |
                static_cast<std::uint64_t>(action.terms.mode));
    if (action.terms.host_memory_mib != 0)
      digest_.add(static_cast<std::uint64_t>(action.terms.host_memory_mib));
  }
  if (observer_ != nullptr) observer_->append(view_.now, action);
}

}  // namespace berth
