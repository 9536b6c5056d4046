// A new life of the scheduler, with an engine that has been told again what the last one was told:
// it knows its jobs and where they are. What happened while nobody listened becomes news for it,
// and the supervisor is told what the engine still wants.
#include <algorithm>
#include <charconv>
#include <utility>

#include "base/check.h"
#include "daemon/live_executor.h"

namespace berth {

/// Slots are filled in order; a job that came again is in its last one.
void LiveExecutor::find_slots() {
  const JobTable& table = engine_->jobs();
  for (std::uint32_t i = 0; i < numbers_.size(); ++i) {
    const TraceJob& slot = parts_.slots.jobs[i];
    if (slot.id == NameId{}) continue;
    next_slot_ = i + 1;
    const std::string_view text = parts_.slots.names.text(slot.id);
    std::from_chars(text.data(), text.data() + text.size(), numbers_[i]);
    const JobState state = table.state[JobId{i}];
    if (state != JobState::Unknown && !is_over(state)) slots_[numbers_[i]] = JobId{i};
  }
}

/// Its user has changed what the engine goes by, and the engine has not heard of it.
bool LiveExecutor::is_changed(JobId slot, const LedgerJob& job) {
  constexpr Duration kJitter = std::chrono::seconds{1};  // of one clock against the other
  TraceJob now;
  fill(now, job);
  TraceJob then = parts_.slots.jobs[slot.value];
  const bool same_deadline =
      now.deadline.has_value() == then.deadline.has_value() &&
      (!now.deadline || std::chrono::abs(*now.deadline - *then.deadline) < kJitter);
  then.deadline = now.deadline;
  if (job.spec->iterations > 0 && job.spec->estimate == 0) {  // meanwhile more may be known of it
    then.estimate = now.estimate;
    then.duration = now.duration;
  }
  return !same_deadline || now != then;
}

void LiveExecutor::resume(const Resumed& from) {
  BERTH_CHECK(engine_ != nullptr, "there is an engine to go on with");
  last_ = std::max(engine_->now(), parts_.clock.now());
  rejected_seen_ = engine_->rejected().size();
  find_slots();
  const auto nodes = static_cast<std::uint32_t>(parts_.cluster.nodes.size());
  for (std::uint32_t i = 0; i < nodes; ++i) {
    if (engine_->cluster().has_failed(NodeId{i})) out_of_service_.insert(NodeId{i});
  }
  if (parts_.power != nullptr)
    parts_.power->resume_engine(
        [&](NodeId node) { return engine_->cluster().power(node); },
        [&](NodeId node) { return from.service_of(node) == NodeService::Up; }, events_);
  if (from.has_new_shares) events_.push_back({.kind = EventKind::Shares, .job = {}, .node = {}});
  catch_up(from.jobs);
  std::erase_if(leaves_since_, [&](const auto& row) {
    const Attempt* attempt = parts_.supervisor.alive(row.first);
    return attempt == nullptr || attempt->since > row.second || attempt->is_granted;
  });
  std::vector<JobId> running;
  for (const auto& [job, slot] : slots_) {
    if (!engine_->jobs().is_running(slot)) continue;
    if (rates_) running.push_back(slot);
    if (engine_->jobs().held_from[slot] > last_) late_.insert(slot);
  }
  std::ranges::sort(running);
  for (const JobId slot : running)
    rates_->resume(slot, engine_->jobs().allocation[slot].pool, engine_->slices(slot),
                   engine_->jobs());
  for (const auto& [job, slot] : slots_) {
    const Attempt* attempt = parts_.supervisor.alive(job);
    const bool stays = engine_->jobs().is_running(slot) && attempt != nullptr &&
                       attempt->ending == Ending::ByItself &&
                       std::ranges::equal(attempt->slices, engine_->slices(slot));
    if (!stays) continue;
    parts_.supervisor.keep(job, engine_->jobs().held_from[slot], engine_->jobs().work_from[slot]);
    tell_terms(job, slot);
  }
  // Whoever leaves is known before anybody starts: who is neither kept nor leaving is in the way.
  // One that has news hears first that its attempt has ended.
  for (const auto& [job, slot] : slots_) {
    if (!has_news(slot)) let_leave(job, slot, from.reasons_of(slot).taken);
  }
  for (const auto& [job, slot] : slots_) {
    if (!has_news(slot)) find_devices(job, slot, from.reasons_of(slot).given);
  }
  std::set<NodeId> out_of_service;
  for (std::uint32_t i = 0; i < nodes; ++i) {
    const NodeService service = from.service_of(NodeId{i});
    const bool is_out = service != NodeService::Up;
    // What the engine knows already has been done, and jobs of this node start elsewhere by now.
    if (is_out != out_of_service_.contains(NodeId{i})) set_node(NodeId{i}, service);
    if (is_out) out_of_service.insert(NodeId{i});
  }
  adopt_or_leave(out_of_service);
}

/// Wishes that were written down and not heard, ends that were found, jobs that are over.
void LiveExecutor::catch_up(const std::vector<LedgerJob>& jobs) {
  const std::int64_t wall = parts_.clock.wall();
  for (const LedgerJob& job : jobs) parts_.gates.add(job, last_, wall);
  for (const auto& [job, slot] : slots_) parts_.gates.let_in(job);
  for (const AttemptEnd& end : parts_.supervisor.take_found_ends()) tell_end(end);
  for (const auto& [job, slot] : std::map(slots_.begin(), slots_.end())) {
    if (parts_.job(job)) continue;
    const auto outcome = parts_.gates.outcome_of(job);
    emit(EventKind::Finished, slot, state_of(outcome.value_or(Outcome::Failed)));
    slots_.erase(job);
  }
  for (const LedgerJob& job : jobs) {
    if (job.stopping == Wish::Cancel) {
      if (const auto slot = slot_of(job.number)) emit(EventKind::Cancel, *slot);
      slots_.erase(job.number);
      if (!job.attempt) end_without_attempt(job.number, Outcome::Cancelled, "cancelled");
      continue;
    }
    const auto slot = slot_of(job.number);
    if (!slot) continue;
    const bool runs =
        parts_.supervisor.alive(job.number) != nullptr || engine_->jobs().is_running(*slot);
    if (job.is_held) parts_.gates.hold(job.number, runs);
    if (job.is_frozen) parts_.gates.freeze(job.number, runs);
    if (is_changed(*slot, job)) parts_.gates.change(job, last_, wall);
  }
}

/// The supervisor and the training code begin with nothing; the engine knows how the job runs.
void LiveExecutor::tell_terms(JobNumber job, JobId slot) {
  const Terms& terms = engine_->jobs().terms[slot];
  parts_.supervisor.set_rate(job, terms.throttle_milli);
  if (terms.cores_milli > 0)
    parts_.supervisor.set_cores(job,
                                (terms.cores_milli * engine_->jobs().granted[slot] + 999) / 1000);
  if (parts_.training != nullptr) parts_.training->tell(job, terms);
}

bool LiveExecutor::has_news(JobId slot) const {
  return std::ranges::any_of(
      events_, [&](const Event& event) { return is_of_a_job(event.kind) && event.job == slot; });
}

/// It was preempted or moved, and is not stopped yet.
void LiveExecutor::let_leave(JobNumber job, JobId slot, Reason reason) {
  const Attempt* attempt = parts_.supervisor.alive(job);
  if (attempt == nullptr || attempt->ending != Ending::ByItself || attempt->is_granted) return;
  const bool moves = engine_->jobs().is_running(slot);
  if (moves && parts_.supervisor.can_change_in_place(job, engine_->slices(slot))) return;
  if (attempt->is_suspended && !moves) return;
  static_cast<void>(parts_.supervisor.preempt(job, std::string{to_string(reason)},
                                              engine_->jobs().work_from[slot]));
}

/// It was given devices, and has not started on them yet.
void LiveExecutor::find_devices(JobNumber job, JobId slot, Reason reason) {
  const JobTable& table = engine_->jobs();
  if (!table.is_running(slot)) return;
  const Attempt* attempt = parts_.supervisor.alive(job);
  if (attempt != nullptr && attempt->is_granted) return;
  const bool is_ending = attempt != nullptr && attempt->ending != Ending::ByItself &&
                         attempt->ending != Ending::Preempt;
  if (is_ending) return;  // the engine hears of its end
  static_cast<void>(parts_.supervisor.start(job, engine_->slices(slot), table.granted[slot], reason,
                                            table.terms[slot].cores_milli));
}

}  // namespace berth
