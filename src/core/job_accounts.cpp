#include "core/job_accounts.h"

#include <algorithm>

namespace berth {

void JobAccounts::set_running(JobId job) {
  running_at_[job] = static_cast<std::uint32_t>(running_.size());
  running_.push_back(job);
  jobs_->state[job] = JobState::Running;
}

void JobAccounts::set_stopped(JobId job, JobState state) {
  const std::uint32_t at = running_at_[job];
  running_[at] = running_.back();  // O(1): the last one takes its place
  running_at_[running_[at]] = at;
  running_.pop_back();
  jobs_->state[job] = state;
}

void JobAccounts::restore(JobId job, const JobPast& past) {
  jobs_->first_start[job] = past.first_start;
  jobs_->held[job] = past.held;
  jobs_->work[job] = past.held;  // nobody measured its rate then: it is taken for one
  jobs_->service[job] = past.service;
  jobs_->preemptions[job] = past.preemptions;
  jobs_->failures[job] = past.failures;
  if (past.profile) jobs_->profile[job] = *past.profile;
}

void JobAccounts::begin_stretch(Time now, JobId job, std::int32_t gpus,
                                const StartReceipt& receipt) {
  if (!jobs_->is_running(job)) set_running(job);  // it runs already if it only moved
  jobs_->held_from[job] = receipt.held_from;
  jobs_->work_from[job] = receipt.work_from;
  jobs_->rate[job] = receipt.rate;
  if (rates_ == Rates::Measured) set_basis(now, job, RateBasis::Believed);
  jobs_->phase[job] = receipt.phase;
  jobs_->granted[job] = gpus;
  jobs_->last_start[job] = receipt.held_from;
  if (jobs_->first_start[job] == kNever) jobs_->first_start[job] = receipt.held_from;
}

void JobAccounts::end_stretch(Time now, JobId job, Time held_until) {
  jobs_->work[job] = jobs_->work_done(job, now);
  // A job that is stopped before its devices came free for it has held nothing.
  if (held_until > jobs_->held_from[job]) {
    const Duration idle = std::min(now, jobs_->work_from[job]) - jobs_->held_from[job];
    jobs_->overhead[job] +=
        std::max(Duration::zero(), idle) + (held_until - std::max(now, jobs_->held_from[job]));
    jobs_->held[job] += held_until - jobs_->held_from[job];
    jobs_->service[job] += (held_until - jobs_->held_from[job]) * jobs_->granted[job];
  }
  jobs_->held_from[job] = now;
  jobs_->work_from[job] = now;
}

void JobAccounts::change_rate(Time now, const RateChange& change) {
  const JobId job = change.job;
  if (change.begun) set_begun(job, *change.begun);
  jobs_->work[job] = change.work.value_or(jobs_->work_done(job, now));
  // A job that still restarts keeps the moment from which it makes progress, unless it says itself
  // what it has done.
  jobs_->work_from[job] = change.work ? now : std::max(jobs_->work_from[job], now);
  jobs_->rate[job] = change.rate;
  if (rates_ == Rates::Measured) set_basis(now, job, change.basis);
}

void JobAccounts::set_begun(JobId job, Time begun) {
  const Time said = jobs_->held_from[job];
  jobs_->work_from[job] = begun + (jobs_->work_from[job] - said);
  jobs_->held_from[job] = jobs_->last_start[job] = begun;
  if (jobs_->first_start[job] == said) jobs_->first_start[job] = begun;
}

void JobAccounts::set_basis(Time now, JobId job, RateBasis basis) {
  jobs_->basis[job] = basis;
  if (basis != RateBasis::Measured) jobs_->basis_from[job] = now;
}

}  // namespace berth
