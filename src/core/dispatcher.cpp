#include "core/dispatcher.h"

namespace berth {

void Dispatcher::take(Time now, const Action& action) {
  write(now, action);
  carry_out(now, action);
}

/// What is added, and in which order, is what golden digests compare. Terms are left out while they
/// are a job's own, so that runs that do not set any keep the digests they had before there were
/// terms.
void Dispatcher::write(Time now, const Action& action) {
  digest_.add(now.time_since_epoch().count());
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
  if (observer_ != nullptr) observer_->append(now, action);
}

void Dispatcher::stop(Time now, const Action& action) {
  accounts_->end_stretch(now, action.job, executor_->stop(now, action, *jobs_));
}

void Dispatcher::start(Time now, const Action& action) {
  const StartReceipt receipt = executor_->start(now, action, *jobs_);
  accounts_->begin_stretch(now, action.job, action.gpus, receipt);
}

void Dispatcher::carry_out(Time now, const Action& action) {
  const JobId job = action.job;
  switch (action.kind) {
    case ActionKind::Preempt:
      stop(now, action);
      accounts_->set_stopped(job, JobState::Waiting);
      ++jobs_->preemptions[job];
      break;
    case ActionKind::Suspend:
      stop(now, action);
      accounts_->set_stopped(job, JobState::Waiting);
      ++jobs_->suspensions[job];
      break;
    case ActionKind::Kill:
      if (jobs_->is_running(job)) {
        stop(now, action);
        accounts_->set_stopped(job, JobState::Cancelled);
      } else {
        executor_->discard(now, action, *jobs_);
      }
      jobs_->state[job] = JobState::Cancelled;
      jobs_->finished[job] = now;
      break;
    case ActionKind::Migrate:
    case ActionKind::Resize:
      stop(now, action);
      if (action.kind == ActionKind::Migrate) ++jobs_->migrations[job];
      start(now, action);
      break;
    case ActionKind::Start:
    case ActionKind::Resume:
    case ActionKind::Share: start(now, action); break;
    case ActionKind::SetSubBatch:
    case ActionKind::SetCores:
    case ActionKind::SetShare:
    case ActionKind::SetMemory:
    case ActionKind::SetBatch: executor_->adjust(now, action, *jobs_); break;
    case ActionKind::PowerOn:
    case ActionKind::PowerOff: executor_->power(now, action); break;
    case ActionKind::Reject: break;
  }
}

}  // namespace berth
