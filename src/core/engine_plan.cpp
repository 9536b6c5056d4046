#include "core/engine_plan.h"

#include <algorithm>
#include <bit>
#include <tuple>

#include "base/check.h"
#include "base/device_mask.h"

namespace berth {

void EnginePlan::begin() {
  steps_.clear();
  undos_.clear();
  actions_.clear();
}

bool EnginePlan::try_start_without_device(JobId job, NodeId node) {
  check_startable(job);
  if (!state_->has_room_without_device(node, shape(job))) return false;
  const Slice slice{.node = node};
  const PoolId pool = state_->cluster().nodes[node.value].pool;
  put(job, arena_->store(pool, {&slice, 1}), jobs_->terms[job], Reason::Order);
  return true;
}

/// Somebody was on one of its devices before it.
bool EnginePlan::joins_others(JobId job) const noexcept {
  if (!state_->tracks_devices()) return false;
  return std::ranges::any_of(slices(job), [&](const Slice& slice) {
    for (const std::int32_t device : DeviceMask{slice.devices}) {
      if (state_->jobs_on(slice.node, device).front() != job) return true;
    }
    return false;
  });
}

Action EnginePlan::device_action(const Touched& touched) const {
  const JobId job = touched.job;
  const Allocation& current = jobs_->allocation[job];
  Action action;
  action.job = job;
  action.reason = touched.reason;
  action.pool = current.holds() ? current.pool : touched.original.pool;
  action.slices = arena_->slices(current.holds() ? current : touched.original);
  action.terms = jobs_->terms[job];
  action.pause = touched.pause;
  action.gpus = current.holds() ? gpus_of(job) : touched.original.holds() ? jobs_->granted[job] : 0;
  if (!current.holds()) {
    action.kind = touched.ending == Ending::Killed      ? ActionKind::Kill
                  : touched.ending == Ending::Suspended ? ActionKind::Suspend
                                                        : ActionKind::Preempt;
  } else if (touched.original.holds()) {
    action.kind = action.gpus == jobs_->granted[job] ? ActionKind::Migrate : ActionKind::Resize;
    action.left = arena_->slices(touched.original);
  } else if (joins_others(job)) {
    action.kind = ActionKind::Share;
  } else {
    action.kind = jobs_->first_start[job] == kNever ? ActionKind::Start : ActionKind::Resume;
  }
  return action;
}

void EnginePlan::add_term_actions(const Touched& touched) {
  const Terms& before = touched.original_terms;
  const Terms& now = jobs_->terms[touched.job];
  const auto add = [&](ActionKind kind) {
    actions_.push_back({.kind = kind,
                        .reason = touched.reason,
                        .job = touched.job,
                        .pool = jobs_->allocation[touched.job].pool,
                        .gpus = gpus_of(touched.job),
                        .slices = slices(touched.job),
                        .left = {},
                        .terms = now,
                        .pause = touched.pause});
  };
  if (now.sub_steps != before.sub_steps) add(ActionKind::SetSubBatch);
  if (now.cores_milli != before.cores_milli) add(ActionKind::SetCores);
  if (now.throttle_milli != before.throttle_milli || now.mode != before.mode ||
      now.memory_limit_mib != before.memory_limit_mib)
    add(ActionKind::SetShare);
  if (now.host_memory_mib != before.host_memory_mib) add(ActionKind::SetMemory);
  if (now.batch != before.batch) add(ActionKind::SetBatch);
}

void EnginePlan::add_power_actions() {
  std::ranges::sort(powered_, {}, [](const Powered& p) { return p.slice.node; });
  for (const Powered& powered : powered_) {
    const PowerState now = state_->power(powered.slice.node);
    if (now == powered.original) continue;
    actions_.push_back({.kind = now == PowerState::Off ? ActionKind::PowerOff : ActionKind::PowerOn,
                        .reason = powered.reason,
                        .job = kNoJob,
                        .pool = state_->cluster().nodes[powered.slice.node.value].pool,
                        .gpus = powered.slice.gpus,
                        .slices = {&powered.slice, 1}});
  }
}

std::span<const Action> EnginePlan::seal() {
  actions_.clear();
  for (const Touched& touched : touched_) {
    const Allocation& current = jobs_->allocation[touched.job];
    const bool is_killed = !current.holds() && touched.ending == Ending::Killed;
    if (is_killed || !same_devices(current, touched.original)) {
      actions_.push_back(device_action(touched));
    } else if (current.holds()) {
      add_term_actions(touched);
    }
  }
  // Stops before starts, so that an executor never sees a device held twice; then by JobId.
  const auto rank = [](ActionKind kind) {
    if (sets_terms(kind)) return 3;
    if (begins_stretch(kind)) return 2;
    return changes_devices(kind) ? 1 : 0;
  };
  std::ranges::sort(actions_, {}, [&](const Action& action) {
    return std::tuple(rank(action.kind), action.job, action.kind);
  });
  add_power_actions();
  return actions_;
}

void EnginePlan::nodes_changed(std::vector<NodeId>& nodes) const {
  for (const Touched& touched : touched_) {
    const Allocation& current = jobs_->allocation[touched.job];
    if (same_devices(current, touched.original)) continue;
    for (const Slice& slice : arena_->slices(touched.original)) nodes.push_back(slice.node);
    for (const Slice& slice : arena_->slices(current)) nodes.push_back(slice.node);
  }
}

std::vector<JobId> EnginePlan::touched_in_order() const {
  std::vector<JobId> jobs;
  for (const Step& step : steps_) {
    if (step.job != kNoJob && !step.pause_before) jobs.push_back(step.job);
  }
  return jobs;
}

void EnginePlan::settle() {
  // Devices granted and taken back inside this plan are in nobody's hands any more.
  for (std::size_t i = 0; i < steps_.size(); ++i) {
    const Step& step = steps_[i];
    if (step.job == kNoJob) continue;
    const Touched& touched = touched_[touched_at_[step.job] - 1];
    const bool kept = same_devices(step.before, touched.original) ||
                      same_devices(step.before, jobs_->allocation[step.job]);
    if (step.before.holds() && !kept) garbage_.push_back(step.before);
  }
  for (const Touched& touched : touched_) {
    touched_at_[touched.job] = 0;
    if (holds(touched.job)) unpin(touched.job);
    if (touched.original.holds() &&
        !same_devices(touched.original, jobs_->allocation[touched.job])) {
      arena_->release(touched.original);
    }
  }
  // A change of terms leaves the same devices in two steps: each block is released once.
  std::ranges::sort(garbage_, {}, &Allocation::offset);
  const auto same_block = [](const Allocation& a, const Allocation& b) {
    return a.offset == b.offset && a.slices == b.slices && a.slices > 0;
  };
  garbage_.erase(std::unique(garbage_.begin(), garbage_.end(), same_block), garbage_.end());
  for (const Allocation& allocation : garbage_) arena_->release(allocation);
  touched_.clear();
  powered_.clear();
  steps_.clear();
  undos_.clear();
  garbage_.clear();
}

}  // namespace berth
