#include "core/engine.h"

#include <algorithm>
#include <tuple>

#include <fmt/format.h>

#include "base/check.h"
#include "core/feasibility.h"

namespace berth {

Engine::Engine(const EngineParts& parts)
    : trace_(parts.trace),
      policy_(parts.policy),
      estimator_(parts.estimator),
      placement_(parts.placement),
      executor_(parts.executor),
      journal_(parts.journal),
      checkpoint_interval_(parts.checkpoint_interval),
      jobs_(parts.trace.jobs.size()),
      state_(parts.cluster, parts.placement.mode()),
      running_at_(parts.trace.jobs.size()),
      estimates_(includes(parts.policy.needs(), Need::RunTime) ? parts.trace.jobs.size() : 0),
      policy_rng_(Rng{parts.seed}.fork("policy")),
      placement_rng_(Rng{parts.seed}.fork("placement")),
      view_(trace_, jobs_, state_, shapes_, estimates_, parts.policy.needs()),
      plan_(state_, jobs_, shapes_, arena_, placement_, placement_rng_) {
  make_shapes();
}

void Engine::make_shapes() {
  ShapeMaker maker{trace_, state_, placement_};
  for (std::uint32_t i = 0; i < trace_.jobs.size(); ++i) {
    const JobId job{i};
    jobs_.shape[job] = maker.shape_of(trace_.jobs[i], shapes_);
    jobs_.submitted[job] = trace_.jobs[i].submit;
  }
}

Result<void> Engine::run() {
  policy_.begin(view_);
  Time wakeup = kNever;
  while (const auto now = executor_.advance(wakeup)) {
    view_.now = *now;
    due_.clear();
    executor_.collect(*now, due_);
    for (const Event& event : due_) apply(event);
    events_ += due_.empty() ? 1 : due_.size();  // a wake-up is an event too

    plan_.begin();
    policy_.decide(view_, plan_, policy_rng_);
    for (const Action& action : plan_.seal()) {
      write(action);  // the intention is on record before the act
      carry_out(action);
    }
    plan_.settle();
    if (journal_ != nullptr) journal_->instant_done(*now);

    wakeup = policy_.next_wakeup(view_).value_or(kNever);
    BERTH_CHECK(wakeup > *now, "a policy wakes up later than now");
    if ((++passes_ & 0xffffU) == 0 && progress_) progress_({*now, events_, arrived_, over_});
  }
  const std::size_t left = arrived_ - over_;
  if (left > 0) {
    return fail(
        fmt::format("{} of {} jobs can never start under policy '{}' although they fit the cluster "
                    "(a quota or a node that stays down holds them back)",
                    left, trace_.jobs.size(), policy_.name()));
  }
  return {};
}

void Engine::apply(const Event& event) {
  switch (event.kind) {
    case EventKind::Finished: end(event.job, event.outcome); break;
    case EventKind::NodeDown: lose_node(event.node); break;
    case EventKind::NodeUp:
      state_.set_up(event.node);
      policy_.on_capacity_change(view_, event.node);
      break;
    case EventKind::Arrival: arrive(event.job); break;
    case EventKind::Cancel:
      if (!is_over(jobs_.state[event.job])) end(event.job, JobState::Cancelled);
      break;
  }
}

void Engine::arrive(JobId job) {
  ++arrived_;
  jobs_.state[job] = JobState::Waiting;
  if (const std::string& never = shapes_.never_reason(jobs_.shape[job]); !never.empty()) {
    reject(job, {Reason::NeverFits, never});
    return;
  }
  if (!estimates_.empty()) estimates_[job] = estimator_.estimate(trace_.jobs[job.value]);
  if (auto refusal = policy_.admit(view_, job)) {
    reject(job, *std::move(refusal));
    return;
  }
  policy_.on_arrival(view_, job);
}

void Engine::reject(JobId job, Refusal refusal) {
  write({.kind = ActionKind::Reject,
         .reason = refusal.reason,
         .job = job,
         .pool = {},
         .gpus = view_.gpus(job),
         .slices = {}});
  rejected_.push_back({job, std::move(refusal.text)});
  jobs_.state[job] = JobState::Rejected;
  jobs_.finished[job] = view_.now;
  ++over_;
}

/// The job is over; whatever it held comes back before the policy hears of it.
void Engine::end(JobId job, JobState outcome) {
  if (jobs_.is_running(job)) {
    Time held_until = view_.now;
    if (outcome == JobState::Cancelled) {
      held_until = executor_.stop(view_.now,
                                  {.kind = ActionKind::Kill,
                                   .reason = {},
                                   .job = job,
                                   .pool = {},
                                   .gpus = view_.gpus(job),
                                   .slices = {}},
                                  jobs_);
    }
    end_stretch(job, held_until);
    release(job);
    set_stopped(job, outcome);
  }
  jobs_.state[job] = outcome;
  jobs_.finished[job] = view_.now;
  ++over_;
  if (journal_ != nullptr) journal_->finished(view_.now, job, outcome);
  estimator_.learn(trace_.jobs[job.value], jobs_.work[job]);
  policy_.on_departure(view_, job);
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
  for (; free < lost.gpus; ++needed) free += view_.gpus(victims_[needed]);
  victims_.resize(needed);
}

void Engine::lose_node(NodeId node) {
  find_victims(node);
  for (const JobId job : victims_) lose_attempt(job);
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

void Engine::lose_attempt(JobId job) {
  const Action action{.kind = ActionKind::Preempt,
                      .reason = Reason::NodeLost,
                      .job = job,
                      .pool = jobs_.allocation[job].pool,
                      .gpus = view_.gpus(job),
                      .slices = arena_.slices(jobs_.allocation[job])};
  write(action);
  static_cast<void>(executor_.stop(view_.now, action, jobs_));
  end_stretch(job, view_.now);
  if (checkpoint_interval_ > Duration::zero()) {  // back to the last whole checkpoint
    jobs_.work[job] = jobs_.work[job] / checkpoint_interval_ * checkpoint_interval_;
  }
  ++jobs_.failures[job];
  release(job);
  set_stopped(job, JobState::Waiting);
}

void Engine::release(JobId job) {
  Allocation& allocation = jobs_.allocation[job];
  const Shape& shape = view_.shape(job);
  if (state_.mode() == ClusterState::Mode::Count) {
    state_.give_count(allocation.pool, shape);
  } else {
    state_.give(arena_.slices(allocation), shape);
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
      end_stretch(job, executor_.stop(view_.now, action, jobs_));
      set_stopped(job, JobState::Cancelled);
      jobs_.finished[job] = view_.now;
      ++over_;
      break;
    case ActionKind::Migrate:
      end_stretch(job, executor_.stop(view_.now, action, jobs_));
      ++jobs_.migrations[job];
      begin_stretch(action);
      break;
    case ActionKind::Start:
    case ActionKind::Resume: begin_stretch(action); break;
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
  if (journal_ != nullptr) journal_->append(view_.now, action);
}

}  // namespace berth
