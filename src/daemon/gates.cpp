#include "daemon/gates.h"

#include <algorithm>
#include <utility>

namespace berth {

void Gates::add(const LedgerJob& job, Time now, std::int64_t wall, DependencyGate::Origin origin) {
  Row& row = rows_[job.number];
  row.spec = job.spec;
  row.array = job.array;
  holds_.set(job);
  times_.add(job.number, *job.spec, now, wall);
  dependencies_.add(job, origin);
  recheck_.insert(job.number);
  if (job.attempt) enter(job.number, row);  // it runs: it has passed all gates before
}

void Gates::let_in(JobNumber job) {
  const auto found = rows_.find(job);
  if (found == rows_.end() || found->second.is_in) return;
  recheck_.erase(job);
  looked_at_.push_back(job);
  enter(job, found->second);
}

void Gates::change(const LedgerJob& job, Time now, std::int64_t wall) {
  const auto found = rows_.find(job.number);
  if (found == rows_.end()) return;
  Row& row = found->second;
  // It is counted out as what it was and in as what it is: limits go by its request.
  const bool was_in = row.is_in;
  if (was_in) leave(job.number, row);
  row.spec = job.spec;
  holds_.set(job);
  times_.change(job.number, *job.spec, now, wall);
  dependencies_.change(job);
  if (job.attempt) {
    enter(job.number, row);
    return;
  }
  if (was_in) withdrawn_.push_back(job.number);  // and comes back as what it is now
  recheck_.insert(job.number);
}

void Gates::started(JobNumber job, Time now) { dependencies_.started(job, now, recheck_); }

void Gates::ended(JobNumber job, Outcome outcome, bool is_final, Time not_before) {
  const auto found = rows_.find(job);
  if (found == rows_.end()) return;
  Row& row = found->second;
  if (row.is_in) leave(job, row);
  if (!is_final) {
    times_.pause(job, not_before);
    recheck_.insert(job);
    return;
  }
  holds_.forget(job);
  times_.forget(job);
  arrays_.forget(job, row.member());
  quotas_.forget(job, *row.spec);
  recheck_.erase(job);
  rows_.erase(found);
  // Last: what it adds to recheck_ are others.
  dependencies_.ended(job, outcome, recheck_);
}

void Gates::withdraw_unless(bool runs, JobNumber job, Row& row) {
  if (!row.is_in || runs) return;
  leave(job, row);
  withdrawn_.push_back(job);
}

void Gates::hold(JobNumber job, bool runs) {
  const auto found = rows_.find(job);
  if (found == rows_.end()) return;
  holds_.hold(job);
  withdraw_unless(runs, job, found->second);
}

void Gates::freeze(JobNumber job, bool runs) {
  const auto found = rows_.find(job);
  if (found == rows_.end()) return;
  holds_.freeze(job);
  withdraw_unless(runs, job, found->second);
}

void Gates::release(JobNumber job) {
  if (!knows(job)) return;
  holds_.release(job);
  recheck_.insert(job);
}

void Gates::thaw(JobNumber job) {
  if (!knows(job)) return;
  holds_.thaw(job);
  recheck_.insert(job);
}

void Gates::refuse(JobNumber job, std::string why, bool runs) {
  const auto found = rows_.find(job);
  if (found == rows_.end()) return;
  holds_.refuse(job, std::move(why));
  // The engine has refused it itself: it is not to be withdrawn there.
  if (found->second.is_in && !runs) leave(job, found->second);
  recheck_.insert(job);
}

void Gates::add_use(JobNumber job, double gpu_seconds, Time now) {
  const auto found = rows_.find(job);
  if (found != rows_.end()) quotas_.add_use(*found->second.spec, gpu_seconds, now);
}

void Gates::shut_spent(const std::function<bool(JobNumber)>& holds) {
  if (!quotas_.has_spent()) return;
  for (auto& [job, row] : rows_) {
    if (!row.is_in || !quotas_.is_spent(*row.spec) || holds(job)) continue;
    withdraw_unless(false, job, row);
    recheck_.insert(job);
  }
  quotas_.clear_spent();
}

bool Gates::may_enter(JobNumber job, const Row& row, Time now) const {
  return holds_.is_open(job) && times_.is_open(job, now) && dependencies_.is_open(job) &&
         arrays_.is_open(row.member()) && quotas_.is_open(*row.spec);
}

void Gates::enter(JobNumber job, Row& row) {
  row.is_in = true;
  quotas_.enter(job, *row.spec);
  arrays_.enter(job, row.member());
}

void Gates::leave(JobNumber job, Row& row) {
  row.is_in = false;
  recheck_.erase(job);  // before the array adds to it
  quotas_.leave(*row.spec);
  arrays_.leave(row.member(), recheck_);
}

void Gates::take_ready(Time now, std::vector<JobNumber>& ready) {
  quotas_.settle(now);
  times_.take_due(now, recheck_);
  dependencies_.take_due(now, recheck_);
  // Entering adds nobody to recheck_, so that one look at each is enough.
  for (const JobNumber job : std::exchange(recheck_, {})) try_to_enter(job, now, ready);
  quotas_.offer_room([&](JobNumber job) { try_to_enter(job, now, ready); });
  std::ranges::sort(ready);
}

void Gates::try_to_enter(JobNumber job, Time now, std::vector<JobNumber>& ready) {
  const auto found = rows_.find(job);
  if (found == rows_.end() || found->second.is_in) return;
  Row& row = found->second;
  looked_at_.push_back(job);
  if (may_enter(job, row, now)) {
    enter(job, row);
    ready.push_back(job);
    return;
  }
  // Gates that open by what others do have to know who waits for them.
  if (!arrays_.is_open(row.member())) arrays_.wait(job, row.member());
  if (!quotas_.is_open(*row.spec)) quotas_.wait(job, *row.spec);
}

void Gates::take_withdrawn(std::vector<JobNumber>& withdrawn) {
  withdrawn.insert(withdrawn.end(), withdrawn_.begin(), withdrawn_.end());
  withdrawn_.clear();
}

void Gates::take_looked_at(std::vector<JobNumber>& jobs) {
  jobs.insert(jobs.end(), looked_at_.begin(), looked_at_.end());
  looked_at_.clear();
}

std::optional<Time> Gates::next_opening() const {
  std::optional<Time> first;
  for (const auto& next : {times_.next(), dependencies_.next(), quotas_.next()}) {
    if (next) first = std::min(*next, first.value_or(*next));
  }
  return first;
}

bool Gates::is_in(JobNumber job) const {
  const auto found = rows_.find(job);
  return found != rows_.end() && found->second.is_in;
}

std::optional<FullLimit> Gates::full_limit(JobNumber job) const {
  const auto found = rows_.find(job);
  return found == rows_.end() ? std::nullopt : quotas_.full_limit(*found->second.spec);
}

std::vector<ShutGate> Gates::shut_by_limits(const JobSpec& spec) const {
  std::vector<ShutGate> shut;
  quotas_.explain(spec, shut);
  return shut;
}

std::vector<ShutGate> Gates::shut(JobNumber job, Time now) const {
  std::vector<ShutGate> shut;
  const auto found = rows_.find(job);
  if (found == rows_.end() || found->second.is_in) return shut;
  const Row& row = found->second;
  holds_.explain(job, shut);
  times_.explain(job, now, shut);
  dependencies_.explain(job, shut);
  arrays_.explain(row.member(), shut);
  quotas_.explain(*row.spec, shut);
  return shut;
}

}  // namespace berth
