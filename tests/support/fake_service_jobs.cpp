#include <algorithm>
#include <functional>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "daemon/past_cursor.h"
#include "model/job_spec_json.h"
#include "support/fake_service.h"
#include "support/fake_service_parts.h"
#include "wire/tree.h"
#include "wire/why.h"

namespace berth::testing {

namespace {

bool may_touch(const Caller& caller, const JobView& job) {
  return caller.role >= Role::Operator || caller.user == job.spec->user;
}

bool fits(const JobFilter& filter, const JobView& job) {
  const auto is = [](const std::optional<std::string>& wanted, const std::string& text) {
    return !wanted || *wanted == text;
  };
  const bool is_named = filter.numbers.empty() ||
                        std::ranges::find(filter.numbers, job.number) != filter.numbers.end();
  const bool has_state = filter.states.empty()
                             ? !is_over(job.state) || !filter.numbers.empty()
                             : std::ranges::find(filter.states, job.state) != filter.states.end();
  const bool is_recent =
      !filter.ended_since || !is_over(job.state) || job.ended >= *filter.ended_since;
  return is_named && has_state && is_recent && is(filter.user, job.spec->user) &&
         is(filter.group, job.spec->group) && is(filter.queue, job.spec->queue) &&
         is(filter.name, job.spec->name);
}

std::optional<Outcome> outcome_of(LiveState state) { return outcome_from(to_string(state)); }

}  // namespace

Answer<Submitted> FakeService::accept(const Caller& caller, JobSpec spec) {
  if (fault_) return tl::unexpected<Fault>(*fault_);
  if (!spec.user.empty() && spec.user != caller.user && caller.role < Role::Operator)
    return fault(FaultKind::Forbidden, "user: only operators submit for others");
  if (spec.user.empty()) spec.user = caller.user;
  if (spec.gpus > cluster_.gpus) {
    return fault(FaultKind::Impossible,
                 fmt::format("gpus: {} asked, the cluster has {}", spec.gpus, cluster_.gpus));
  }
  const std::pair key(spec.user, spec.key);
  if (!spec.key.empty()) {
    if (const auto known = keys_.find(key); known != keys_.end())
      return Submitted{known->second, 1, true, {}};
  }
  const JobNumber first = jobs_.empty() ? 1 : jobs_.rbegin()->first + 1;
  if (!spec.key.empty()) keys_[key] = first;
  const auto shared = std::make_shared<const JobSpec>(std::move(spec));
  const std::size_t count = shared->array ? shared->array->indices.size() : 1;
  for (std::size_t i = 0; i < count; ++i) {
    JobView job;
    job.number = first + i;
    job.array = shared->array ? first : 0;
    job.array_index = shared->array ? shared->array->indices[i] : 0;
    job.spec = shared;
    job.state = shared->hold ? LiveState::Held : LiveState::Pending;
    job.reason = shared->hold ? "held by its user" : "waits for its turn";
    job.submitted = now_wall();
    jobs_.emplace(job.number, job);
    if (!listeners_.empty() || kept_ > 0) tell_state(job);
  }
  return Submitted{first, count, false, {}};
}

Answer<Submitted> FakeService::submit(const Caller& caller, JobSpec spec) {
  const std::lock_guard lock(mutex_);
  note("submit", caller);
  return accept(caller, std::move(spec));
}

void FakeService::submit_async(const Caller& caller, JobSpec spec,
                               std::function<void(Answer<Submitted>)> done) {
  {
    const std::lock_guard lock(mutex_);
    note("submit", caller);
    waiting_.push_back({caller, std::move(spec), std::move(done)});
  }
  submitted_.notify_one();
}

void FakeService::commit_loop() {
  std::unique_lock lock(mutex_);
  while (true) {
    submitted_.wait(lock, [this] { return is_ending_ || (!waiting_.empty() && !is_held_); });
    if (is_ending_) return;
    auto batch = std::exchange(waiting_, {});
    std::vector<Answer<Submitted>> answers;
    for (Waiting& one : batch) answers.push_back(accept(one.caller, std::move(one.spec)));
    ++commits_;
    lock.unlock();
    for (std::size_t i = 0; i < batch.size(); ++i) batch[i].done(std::move(answers[i]));
    lock.lock();
  }
}

Answer<JobPage> FakeService::jobs(const Caller& caller, const JobFilter& filter) {
  const std::lock_guard lock(mutex_);
  note("jobs", caller);
  if (fault_) return tl::unexpected<Fault>(*fault_);
  JobPage page;
  for (const auto& [number, job] : jobs_) {
    if (!fits(filter, job)) continue;
    ++page.total;
    if (filter.after && number <= *filter.after) continue;
    if (page.jobs.size() < filter.limit)
      page.jobs.push_back(job);
    else if (!page.next)
      page.next = page.jobs.back().number;
  }
  return page;
}

Answer<JobView> FakeService::job(const Caller& caller, JobNumber number) {
  const std::lock_guard lock(mutex_);
  note("job", caller);
  if (fault_) return tl::unexpected<Fault>(*fault_);
  const auto found = jobs_.find(number);
  if (found == jobs_.end())
    return fault(FaultKind::NotFound, fmt::format("there is no job {}", number));
  return found->second;
}

Answer<std::vector<AttemptView>> FakeService::attempts(const Caller& caller, JobNumber number) {
  auto view = job(caller, number);
  if (!view) return tl::unexpected<Fault>(view.error());
  std::vector<AttemptView> rows;
  if (view->attempts > 0) {
    AttemptView row;
    row.id = fmt::format("1.{}", number);
    row.where = view->where;
    row.begun = view->last_started;
    row.ended = view->ended;
    if (is_over(view->state)) row.outcome = to_string(view->state);
    row.exit_code = view->exit_code;
    rows.push_back(row);
  }
  return rows;
}

Answer<JobStepsList> FakeService::steps(const Caller& caller, const std::vector<JobNumber>& jobs) {
  JobStepsList list;
  for (const JobNumber number : jobs) {
    const auto view = job(caller, number);
    if (!view) continue;
    StepView batch;
    batch.id = batch.name = kBatchStep;
    list.jobs.push_back({number, "", {batch}});
  }
  return list;
}

Answer<PastPage> FakeService::history(const Caller& caller, const PastQuery& query) {
  const std::lock_guard lock(mutex_);
  note("history", caller);
  if (fault_) return tl::unexpected<Fault>(*fault_);
  const auto is = [](const std::optional<std::string>& wanted, const std::string& text) {
    return !wanted || *wanted == text;
  };
  const auto when = [](const JobView& job) { return std::pair(job.ended, job.number); };
  std::vector<const JobView*> past;
  for (const auto& [number, job] : jobs_) {
    if (!is_over(job.state)) continue;
    const bool has_outcome =
        query.outcomes.empty() ||
        std::ranges::find(query.outcomes, outcome_of(job.state)) != query.outcomes.end();
    if (has_outcome && is(query.user, job.spec->user) && is(query.group, job.spec->group) &&
        is(query.queue, job.spec->queue) && is(query.name, job.spec->name) &&
        (!query.since_wall || job.ended >= *query.since_wall) &&
        (!query.until_wall || job.ended < *query.until_wall) &&
        (!query.before || when(job) < *query.before))
      past.push_back(&job);
  }
  std::ranges::sort(past, std::greater{}, [&](const JobView* job) { return when(*job); });
  PastPage page;
  for (const JobView* job : past) {
    if (page.jobs.size() == query.limit) {
      page.next = past_cursor_text(when(page.jobs.back()));
      break;
    }
    page.jobs.push_back(*job);
  }
  return page;
}

VerbResult FakeService::do_to(JobView& job, const Caller& caller, Verb verb,
                              const std::string& why) {
  if (!may_touch(caller, job)) return {job.number, false, "it is not your job"};
  if (is_over(job.state)) return {job.number, false, "the job is over"};
  const auto become = [&](LiveState state) {
    job.state = state;
    job.reason = why;
    if (is_over(state)) job.ended = now_wall();
    tell_state(job);
    return VerbResult{job.number, true, std::string(to_string(state))};
  };
  switch (verb) {
    case Verb::Cancel: return become(LiveState::Cancelled);
    case Verb::Hold:
      if (job.state != LiveState::Pending) return {job.number, false, "only a waiting job is held"};
      return become(LiveState::Held);
    case Verb::Release:
      if (job.state != LiveState::Held) return {job.number, false, "it is not held"};
      return become(LiveState::Pending);
    case Verb::Requeue: return become(LiveState::Pending);
    case Verb::Suspend:
      if (job.state != LiveState::Running) return {job.number, false, "it does not run"};
      return become(LiveState::Suspended);
    case Verb::Resume:
      if (job.state != LiveState::Suspended) return {job.number, false, "it is not suspended"};
      return become(LiveState::Running);
    case Verb::Signal: return {job.number, true, "signalled"};
  }
  return {};
}

Answer<std::vector<VerbResult>> FakeService::act(const Caller& caller, Verb verb,
                                                 const JobFilter& which, const std::string& why,
                                                 SentSignal signal) {
  const std::lock_guard lock(mutex_);
  note(signal.shell_only ? "act on the shell" : "act", caller);
  if (fault_) return tl::unexpected<Fault>(*fault_);
  std::vector<VerbResult> results;
  for (auto& [number, job] : jobs_) {
    if (fits(which, job)) results.push_back(do_to(job, caller, verb, why));
  }
  return results;
}

Answer<JobView> FakeService::change(const Caller& caller, JobNumber number,
                                    const std::string& changes) {
  const std::lock_guard lock(mutex_);
  note("change", caller);
  const auto found = jobs_.find(number);
  if (found == jobs_.end()) return fault(FaultKind::NotFound, "no such job");
  if (!may_touch(caller, found->second)) return fault(FaultKind::Forbidden, "it is not your job");
  if (is_over(found->second.state)) return fault(FaultKind::Conflict, "the job is over");
  auto merged = to_json(*found->second.spec);
  merged.update(nlohmann::json::parse(changes));
  auto spec = job_spec_from_json(merged);
  if (!spec) return tl::unexpected<Fault>(Fault{FaultKind::BadRequest, spec.error().messages});
  found->second.spec = std::make_shared<const JobSpec>(*std::move(spec));
  return found->second;
}

Answer<std::string> FakeService::why(const Caller& caller, JobNumber number) {
  const auto view = job(caller, number);
  if (!view) return tl::unexpected<Fault>(view.error());
  Why why;
  why.job = number;
  why.state = view->state;
  why.summary = view->reason;
  return wire::to_sorted_json(why);
}

}  // namespace berth::testing
