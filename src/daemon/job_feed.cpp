#include "daemon/job_feed.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/check.h"
#include "model/job_spec_json.h"

namespace berth {

namespace {

/// Each device it runs on is still described. One that runs on others as well goes on, and nobody
/// plans with it: it would seem to hold less than it has.
bool has_all_devices(const Attempt& attempt) {
  std::size_t held = 0;
  for (const HeldDevices& devices : attempt.where) held += devices.devices.size();
  std::size_t known = 0;
  for (const Slice& slice : attempt.slices) known += static_cast<std::size_t>(slice.gpus);
  return known == held && !attempt.slices.empty();
}

}  // namespace

JobState state_of(Outcome outcome) {
  switch (outcome) {
    case Outcome::Completed: return JobState::Completed;
    case Outcome::Cancelled: return JobState::Cancelled;
    case Outcome::Rejected: return JobState::Rejected;
    default: return JobState::Failed;
  }
}

JobFeed::JobFeed(Parts parts)
    : parts_(std::move(parts)),
      slots_({.slots = parts_.slots, .clock = parts_.clock, .beliefs = parts_.beliefs}) {}

// --- the life of an engine

void JobFeed::begin(const std::vector<LedgerJob>& jobs, const std::set<NodeId>& out_of_service) {
  out_of_service_ = out_of_service;
  for (const NodeId node : out_of_service) {
    events_.push_back({.kind = EventKind::NodeDown, .job = {}, .node = node});
  }
  events_.push_back({.kind = EventKind::Shares, .job = {}, .node = {}});
  if (parts_.power != nullptr) parts_.power->begin_engine(parts_.manages_power, events_);
  now_ = parts_.clock.now();
  const std::int64_t wall = parts_.clock.wall();
  for (const LedgerJob& job : jobs)
    parts_.gates.add(job, now_, wall, DependencyGate::Origin::Recovered);
  for (const LedgerJob& job : jobs) {  // cancelled, and nobody had the time to end it
    if (job.attempt || job.stopping != Wish::Cancel) continue;
    end_without_attempt(job.number, Outcome::Cancelled, "cancelled");
  }
  adopt_or_leave(out_of_service_);
}

/// Whoever runs and has no slot: brought in one by one, or left to itself where the engine plans
/// nothing.
void JobFeed::adopt_or_leave(const std::set<NodeId>& out_of_service) {
  std::vector<JobNumber> alone;
  for (const auto& [number, attempt] : parts_.supervisor.attempts()) {
    if (attempt.ending != Ending::ByItself || slots_.slot_of(number)) continue;
    const auto record = parts_.job(number);
    const bool is_aside = record && record->is_held && record->held_by == kSchedulerName;
    const bool elsewhere =
        is_aside || !has_all_devices(attempt) ||
        std::ranges::any_of(attempt.slices, [&](const Slice& slice) {
          return out_of_service.contains(slice.node) ||
                 (parts_.power != nullptr && !parts_.power->is_usable(slice.node));
        });
    (elsewhere ? alone : adopting_).push_back(number);
  }
  for (const JobNumber job : alone) parts_.supervisor.leave_alone(job);
  std::ranges::sort(adopting_, std::ranges::greater{}, [&](JobNumber job) {
    return std::tuple(parts_.supervisor.alive(job)->since, job);
  });
  // Slots in order of number: between equals the earlier submit comes first.
  std::vector<JobNumber> in_order = adopting_;
  std::ranges::sort(in_order);
  for (const JobNumber job : in_order) bring_in(job);
  // Their arrivals come one at a time, see advance().
  std::erase_if(events_, [](const Event& event) { return event.kind == EventKind::Arrival; });
  newcomers_.clear();
}

// A new life of the scheduler, with an engine that has been told again what the last one was told:
// it knows its jobs and where they are. What happened while nobody listened becomes news for it,
// and the supervisor is told what the engine still wants.
void JobFeed::resume_jobs(const Resumed& from) {
  BERTH_CHECK(engine_ != nullptr, "there is an engine to go on with");
  now_ = std::max(engine_->now(), parts_.clock.now());
  slots_.recall(engine_->jobs());
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
}

/// Wishes that were written down and not heard, ends that were found, jobs that are over.
void JobFeed::catch_up(const std::vector<LedgerJob>& jobs) {
  const std::int64_t wall = parts_.clock.wall();
  for (const LedgerJob& job : jobs)
    parts_.gates.add(job, now_, wall, DependencyGate::Origin::Recovered);
  for (const auto& [job, slot] : slots_.all()) parts_.gates.let_in(job);
  for (const AttemptEnd& end : parts_.supervisor.take_found_ends()) tell_end(end);
  for (const auto& [job, slot] : std::map(slots_.all().begin(), slots_.all().end())) {
    if (parts_.job(job)) continue;
    const auto outcome = parts_.gates.outcome_of(job);
    emit(EventKind::Finished, slot, state_of(outcome.value_or(Outcome::Failed)));
    slots_.release(job);
  }
  for (const LedgerJob& job : jobs) {
    if (job.stopping == Wish::Cancel) {
      if (const auto slot = slots_.slot_of(job.number)) emit(EventKind::Cancel, *slot);
      slots_.release(job.number);
      if (!job.attempt) end_without_attempt(job.number, Outcome::Cancelled, "cancelled");
      continue;
    }
    const auto slot = slots_.slot_of(job.number);
    if (!slot) continue;
    const bool runs =
        parts_.supervisor.alive(job.number) != nullptr || engine_->jobs().is_running(*slot);
    if (job.is_held) parts_.gates.hold(job.number, runs);
    if (job.is_frozen) parts_.gates.freeze(job.number, runs);
    if (slots_.is_changed(*slot, job, now_)) parts_.gates.change(job, now_, wall);
  }
}

void JobFeed::resume_devices(const Resumed& from) {
  const auto nodes = static_cast<std::uint32_t>(parts_.cluster.nodes.size());
  for (const auto& [job, slot] : slots_.all()) {
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
  for (const auto& [job, slot] : slots_.all()) {
    if (!has_event(slot)) let_leave(job, slot, from.reasons_of(slot).taken);
  }
  for (const auto& [job, slot] : slots_.all()) {
    if (!has_event(slot)) find_devices(job, slot, from.reasons_of(slot).given);
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

/// The supervisor and the training code begin with nothing; the engine knows how the job runs.
void JobFeed::tell_terms(JobNumber job, JobId slot) {
  const Terms& terms = engine_->jobs().terms[slot];
  parts_.supervisor.set_rate(job, terms.throttle_milli);
  if (terms.cores_milli > 0)
    parts_.supervisor.set_cores(job,
                                (terms.cores_milli * engine_->jobs().granted[slot] + 999) / 1000);
  if (parts_.training != nullptr) parts_.training->tell(job, terms);
}

bool JobFeed::has_event(JobId slot) const {
  return std::ranges::any_of(
      events_, [&](const Event& event) { return is_of_a_job(event.kind) && event.job == slot; });
}

/// It was preempted or moved, and is not stopped yet.
void JobFeed::let_leave(JobNumber job, JobId slot, Reason reason) {
  const Attempt* attempt = parts_.supervisor.alive(job);
  if (attempt == nullptr || attempt->ending != Ending::ByItself || attempt->is_granted) return;
  const bool moves = engine_->jobs().is_running(slot);
  if (moves && parts_.supervisor.can_change_in_place(job, engine_->slices(slot))) return;
  if (attempt->is_suspended && !moves) return;
  static_cast<void>(parts_.supervisor.preempt(job, std::string{to_string(reason)},
                                              engine_->jobs().work_from[slot]));
}

/// It was given devices, and has not started on them yet.
void JobFeed::find_devices(JobNumber job, JobId slot, Reason reason) {
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

// --- a pass

bool JobFeed::has_news() const {
  // A job that was refused in the last pass may have kept others of its array out.
  return !events_.empty() || !adopting_.empty() || !line_.empty() || parts_.gates.has_news();
}

// The world comes before newcomers: whoever is gone makes room in the same pass.
void JobFeed::collect(std::vector<Event>& due) {
  if (parts_.power != nullptr) parts_.power->collect(now_, events_);
  if (parts_.training != nullptr) {
    for (const auto& [job, phase] : parts_.training->take_phases()) {
      if (const auto slot = slots_.slot_of(job))
        events_.push_back({.kind = EventKind::NextPhase, .job = *slot, .node = {}, .phase = phase});
    }
  }
  if (!adopting_.empty() && over_ == Over::No) {
    const JobNumber job = adopting_.back();
    adopting_.pop_back();
    if (const auto slot = slots_.slot_of(job)) {
      emit(EventKind::Arrival, *slot);
      newcomers_.push_back(job);
    }
  } else {
    ask_gates();
  }
  ask_policy();
  std::ranges::stable_sort(events_, {}, [](const Event& event) {
    return std::tuple(event.kind, event.job, event.node);
  });
  due.insert(due.end(), events_.begin(), events_.end());
  events_.clear();
}

void JobFeed::emit(EventKind kind, JobId slot, JobState outcome) {
  const bool leaves = kind == EventKind::Finished || kind == EventKind::Withdrawn;
  if (leaves && parts_.rates) parts_.rates->leave(slot);
  events_.push_back({.kind = kind, .outcome = outcome, .job = slot, .node = {}});
}

// --- what comes from outside

void JobFeed::handle(const HostEvent& event) {
  if (event.kind == HostEventKind::Over) return handle_over(event);
  if (event.kind == HostEventKind::Started) parts_.gates.started(event.job, now_);
  if (const auto end = parts_.supervisor.handle(event)) handle_end(*end);
}

/// One that has an attempt ends with it: the host tells that too.
void JobFeed::handle_over(const HostEvent& event) {
  if (!parts_.job(event.job) || parts_.supervisor.alive(event.job) != nullptr) return;
  if (const auto slot = slots_.slot_of(event.job)) emit(EventKind::Cancel, *slot);
  slots_.release(event.job);
  end_without_attempt(event.job, event.outcome, event.exit.why);
}

void JobFeed::handle(const Committed& committed) {
  const std::int64_t wall = parts_.clock.wall();
  if (std::holds_alternative<SubmitRecord>(committed.record.body)) {
    for (std::int32_t i = 0; i < committed.change.count; ++i) {
      const auto job = parts_.job(committed.change.job + static_cast<JobNumber>(i));
      // A new engine has read the board, and may hear of the same job again.
      if (job && !parts_.gates.knows(job->number) && !parts_.supervisor.is_ending(job->number))
        parts_.gates.add(*job, now_, wall);
    }
  } else if (const auto* wish = std::get_if<WishRecord>(&committed.record.body)) {
    handle_wish(*wish);
  } else if (const auto* change = std::get_if<ChangeRecord>(&committed.record.body)) {
    if (const auto job = parts_.job(change->job)) {
      parts_.gates.change(*job, now_, wall);
      parts_.supervisor.set_limit(job->number, job->spec->time_limit);
    }
  } else if (const auto* setting = std::get_if<SettingRecord>(&committed.record.body)) {
    const SettingEffect effect = parts_.setting(*setting);
    if (effect.renew) renew();
    if (effect.shares) events_.push_back({.kind = EventKind::Shares, .job = {}, .node = {}});
    if (effect.node) set_node(effect.node->first, effect.node->second);
  }
}

void JobFeed::handle_wish(const WishRecord& wish) {
  const bool runs = parts_.supervisor.alive(wish.job) != nullptr;
  switch (wish.wish) {
    case Wish::Hold:
      parts_.gates.hold(wish.job, runs || parts_.supervisor.waits_to_start(wish.job));
      break;
    case Wish::Release: parts_.gates.release(wish.job); break;
    case Wish::Cancel: {
      if (!parts_.job(wish.job)) break;  // it was over before we heard
      const std::string why = by_whom("cancelled", wish.by, wish.why);
      parts_.supervisor.stop(wish.job, Ending::Cancel, why);
      if (const auto slot = slots_.slot_of(wish.job)) emit(EventKind::Cancel, *slot);
      slots_.release(wish.job);
      if (!runs) end_without_attempt(wish.job, Outcome::Cancelled, why);
      break;
    }
    case Wish::Requeue: parts_.supervisor.stop_attempt(wish.job, Ending::Requeue, wish.why); break;
    case Wish::Suspend:
      parts_.gates.freeze(wish.job, runs || parts_.supervisor.waits_to_start(wish.job));
      parts_.supervisor.freeze(wish.job);
      break;
    case Wish::Resume:
      parts_.gates.thaw(wish.job);
      parts_.supervisor.thaw(wish.job);
      break;
    case Wish::Preempt: break;  // ours
  }
}

/// The engine knows of it by its slot, unless it has forgotten the job: cancelled, or on a node
/// that was taken out of service.
void JobFeed::handle_end(const AttemptEnd& end) {
  if (end.asks_policy) return failures_.push_back(end);
  parts_.gates.add_use(end.job, end.gpu_seconds, now_);
  parts_.beliefs.left(end.job, end.ending == Ending::Preempt, parts_.job(end.job), now_,
                      parts_.clock.wall() / 1'000'000);
  tell_end(end);
}

void JobFeed::tell_end(const AttemptEnd& end) {
  const auto slot = slots_.slot_of(end.job);
  if (end.verdict.is_final) {
    if (slot) emit(EventKind::Finished, *slot, state_of(end.verdict.outcome));
    slots_.release(end.job);
    parts_.gates.ended(end.job, end.verdict.outcome, true);
    return;
  }
  const bool pauses = end.verdict.pause > Duration::zero() || parts_.gates.is_kept(end.job);
  if (!slot || pauses) {
    if (slot) give_up_slot(end.job);
    parts_.gates.ended(end.job, end.verdict.outcome, false, now_ + end.verdict.pause);
    return;
  }
  // After a preemption, however it went, the engine has it waiting or started anew already; after
  // another end too, if it preempted it before that.
  if (end.ending != Ending::Preempt && !parts_.supervisor.waits_to_start(end.job))
    emit(EventKind::Lost, *slot);
}

/// After all wishes of this pass: a policy decides at once, so whatever keeps a job from another try
/// has to be said with the question. Where the engine does not take it for running (it has
/// forgotten it, or is only being told of it), its user has asked already.
void JobFeed::ask_policy() {
  for (const AttemptEnd& end : std::exchange(failures_, {})) {
    const auto slot = slots_.slot_of(end.job);
    if (!slot || engine_ == nullptr || !engine_->jobs().is_running(*slot)) {
      if (const auto judged = parts_.supervisor.answer(end.job, std::nullopt)) handle_end(*judged);
      continue;
    }
    emit(EventKind::Finished, *slot, JobState::Failed);
    events_.back().failure = *end.asks_policy;
    events_.back().asks_policy = true;
    if (parts_.gates.is_kept(end.job)) emit(EventKind::Withdrawn, *slot);
  }
}

void JobFeed::answer_retry(JobId slot, std::optional<bool> again) {
  const auto end = parts_.supervisor.answer(slots_.number_of(slot), again);
  if (!end) return;
  if (!again) return handle_end(*end);
  parts_.gates.add_use(end->job, end->gpu_seconds, now_);
  const bool is_over = end->verdict.is_final;
  if (!is_over && !parts_.gates.is_kept(end->job)) return;
  slots_.release(end->job);  // of one that is kept the engine hears with the question
  parts_.gates.ended(end->job, end->verdict.outcome, is_over, now_);
}

void JobFeed::kill(JobNumber job, Reason reason) {
  if (!slots_.contains(job)) return;
  parts_.supervisor.stop(job, Ending::Kill, std::string{to_string(reason)});
  if (parts_.supervisor.alive(job) == nullptr)
    end_without_attempt(job, Outcome::Cancelled, by_policy(to_string(reason)));
  slots_.release(job);
}

/// A policy that refuses a job for good has decided so. A cluster that could never hold it may have
/// lost a device since the job was taken: that is nobody's decision, and the job waits for it to
/// come back.
void JobFeed::handle_rejected(const RejectedJob& rejected) {
  const JobNumber job = slots_.number_of(rejected.job);
  const bool runs = parts_.supervisor.alive(job) != nullptr;
  // What runs already is not stopped, and planned around.
  if (runs) parts_.supervisor.leave_alone(job);
  slots_.release(job);
  if (!rejected.by_policy)
    parts_.gates.refuse(
        job, rejected.reason + "; it fitted when it was taken and waits until it does again", runs);
  else if (!runs)
    end_without_attempt(job, Outcome::Rejected, rejected.reason);
}

void JobFeed::end_without_attempt(JobNumber job, Outcome outcome, std::string why) {
  if (parts_.supervisor.end_without_attempt(job, outcome, std::move(why)))
    parts_.gates.ended(job, outcome, true);
}

/// It may have been changed just before it was started: then it runs, and is stopped.
void JobFeed::end_unsatisfiable(JobNumber job, const std::string& why) {
  if (parts_.supervisor.alive(job) == nullptr)
    return end_without_attempt(job, Outcome::Cancelled, why);
  parts_.supervisor.stop(job, Ending::Kill, why);
  if (const auto slot = slots_.slot_of(job)) emit(EventKind::Cancel, *slot);
  slots_.release(job);
}

void JobFeed::give_up_slot(JobNumber job) {
  const auto slot = slots_.slot_of(job);
  if (!slot) return;
  emit(EventKind::Withdrawn, *slot);
  parts_.supervisor.forget_start(job);  // the engine will not know of it
  slots_.release(job);
}

void JobFeed::set_node(NodeId node, NodeService service) {
  if (service == NodeService::Up) {
    if (parts_.power != nullptr) parts_.power->resume(node, events_);
    if (out_of_service_.erase(node) == 0) return;
    events_.push_back({.kind = EventKind::NodeUp, .job = {}, .node = node});
    return;
  }
  const bool is_news = out_of_service_.insert(node).second;
  if (!is_news && service == NodeService::Drained) return;
  for (const auto& [job, attempt] : parts_.supervisor.attempts()) {
    const bool here =
        std::ranges::any_of(attempt.slices, [&](const Slice& slice) { return slice.node == node; });
    if (!here) continue;
    if (service == NodeService::Drained) {
      parts_.supervisor.leave_alone(job);
      give_up_slot(job);
    } else {
      parts_.supervisor.stop_attempt(job, Ending::Preempt, "its node was taken down");
    }
  }
  if (!is_news) return;  // a policy loses a node once
  // Events of a pass are sorted, so that up and down again would end as up: the engine has not
  // heard of the first and need not.
  const auto is_up = [&](const Event& event) {
    return event.kind == EventKind::NodeUp && event.node == node;
  };
  if (std::erase_if(events_, is_up) == 0)
    events_.push_back({.kind = EventKind::NodeDown, .job = {}, .node = node});
}

// --- who may compete

void JobFeed::ask_gates() {
  parts_.gates.shut_spent([&](JobNumber job) {
    return parts_.supervisor.alive(job) != nullptr || parts_.supervisor.waits_to_start(job);
  });
  std::vector<JobNumber> jobs;
  parts_.gates.take_withdrawn(jobs);
  for (const JobNumber job : jobs) {
    parts_.supervisor.stop(job, Ending::Preempt, "held");
    give_up_slot(job);
  }
  std::vector<UnsatisfiableJob> unsatisfiable;
  parts_.gates.take_unsatisfiable(unsatisfiable);
  while (!unsatisfiable.empty()) {  // whoever waits for one of them may be unsatisfiable as well
    for (const auto& [job, why] : std::exchange(unsatisfiable, {})) end_unsatisfiable(job, why);
    parts_.gates.take_unsatisfiable(unsatisfiable);
  }
  if (over_ != Over::No) return;
  jobs.clear();
  parts_.gates.take_ready(now_, jobs);
  if (!parts_.one_at_a_time) {
    for (const JobNumber job : jobs) bring_in(job);
    return;
  }
  line_.insert(line_.end(), jobs.begin(), jobs.end());
  while (!line_.empty() && newcomers_.empty()) {
    const JobNumber job = line_.front();
    line_.pop_front();
    if (parts_.gates.is_in(job) && !slots_.slot_of(job)) bring_in(job);
  }
}

void JobFeed::bring_in(JobNumber number) {
  const auto job = parts_.job(number);
  if (!job || parts_.supervisor.is_ending(number)) return;
  // An older version may have written down a change that no engine could bear.
  if (const auto faults = impossible_numbers(*job->spec); !faults.empty())
    return set_aside(number, fmt::format("{}", fmt::join(faults, "; ")));
  if (!slots_.spare()) {  // the next engine has more
    over_ = Over::Renew;
    return;
  }
  emit(EventKind::Arrival, slots_.take(*job, now_));
  newcomers_.push_back(number);
}

void JobFeed::set_aside(JobNumber job, std::string why) {
  const auto record = parts_.job(job);
  if (!record || (record->is_held && record->held_by == kSchedulerName)) return;
  parts_.supervisor.set_aside(job, std::move(why));
  parts_.gates.hold(job, parts_.supervisor.alive(job) != nullptr);
  give_up_slot(job);
}

}  // namespace berth
