#include "daemon/live_executor.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "base/check.h"
#include "base/check_scope.h"
#include "model/job_spec_json.h"

namespace berth {

namespace {

/// Below this nothing can be begun again: what is broken here ends the process, and the next one
/// recovers from the journal.
const OnBrokenInvariant kHere = OnBrokenInvariant::Abort;

/// Whom a message is about.
std::optional<JobNumber> job_of(const Message& message) {
  if (const auto* event = std::get_if<HostEvent>(&message)) return event->job;
  if (const auto* answer = std::get_if<ResizeAnswer>(&message)) return answer->job;
  const auto* committed = std::get_if<Committed>(&message);
  if (committed == nullptr || committed->change.job == 0) return std::nullopt;
  return committed->change.job;
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

LiveExecutor::LiveExecutor(Parts parts)
    : parts_(std::move(parts)), numbers_(parts_.slots.jobs.size(), 0) {
  if (parts_.believed == nullptr) return;
  rates_.emplace(LiveRates::Parts{
      .slots = parts_.slots,
      .believed = *parts_.believed,
      .training = parts_.training,
      .number = [this](JobId slot) { return number_of(slot); },
      .whole = [this](JobId slot) { return whole_of(slot); },
      .seconds_per_iteration = [this](JobId slot) -> std::optional<double> {
        const auto job = parts_.job(number_of(slot));
        const LearntKind* kind = job ? learnt_of(*job->spec) : nullptr;
        if (kind == nullptr || kind->seconds_per_iteration <= 0 || kind->gpus != job->spec->gpus)
          return std::nullopt;
        return kind->seconds_per_iteration;
      },
      .shown =
          [this](JobId slot, const ProgressEstimate& progress) {
            if (parts_.show_progress) parts_.show_progress(number_of(slot), progress);
          },
      .noted =
          [this](JobId slot, const LiveRates::Known& known) {
            notes_.push_back(nlohmann::json{{"slot", slot.value},
                                            {"calibration", known.calibration},
                                            {"unit", known.seconds_per_iteration},
                                            {"own", known.is_measured}}
                                 .dump());
          }});
}

/// What policies believe, if they asked anybody; otherwise what the request says.
Duration LiveExecutor::whole_of(JobId slot) const {
  const bool is_estimated = engine_ != nullptr && !engine_->estimates().empty();
  const Duration whole =
      is_estimated ? engine_->estimates()[slot] : parts_.slots.jobs[slot.value].duration;
  return std::max(whole, Duration{1});
}

std::optional<JobId> LiveExecutor::slot_of(JobNumber job) const {
  const auto found = slots_.find(job);
  if (found == slots_.end()) return std::nullopt;
  return found->second;
}

void LiveExecutor::begin(const std::vector<LedgerJob>& jobs,
                         const std::set<NodeId>& out_of_service) {
  out_of_service_ = out_of_service;
  for (const NodeId node : out_of_service) {
    events_.push_back({.kind = EventKind::NodeDown, .job = {}, .node = node});
  }
  events_.push_back({.kind = EventKind::Shares, .job = {}, .node = {}});
  if (parts_.power != nullptr) parts_.power->begin_engine(parts_.manages_power, events_);
  last_ = parts_.clock.now();
  const std::int64_t wall = parts_.clock.wall();
  for (const LedgerJob& job : jobs) parts_.gates.add(job, last_, wall);
  for (const LedgerJob& job : jobs) {  // cancelled, and nobody had the time to end it
    if (job.attempt || job.stopping != Wish::Cancel) continue;
    end_without_attempt(job.number, Outcome::Cancelled, "cancelled");
  }
  adopt_or_leave(out_of_service_);
}

/// Whoever runs and has no slot: brought in one by one, or left to itself where the engine plans
/// nothing.
void LiveExecutor::adopt_or_leave(const std::set<NodeId>& out_of_service) {
  std::vector<JobNumber> alone;
  for (const auto& [number, attempt] : parts_.supervisor.attempts()) {
    if (attempt.ending != Ending::ByItself || slot_of(number)) continue;
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

/// Each device it runs on is still described. One that runs on others as well goes on, and nobody
/// plans with it: it would seem to hold less than it has.
bool LiveExecutor::has_all_devices(const Attempt& attempt) const {
  std::size_t held = 0;
  for (const HeldDevices& devices : attempt.where) held += devices.devices.size();
  std::size_t known = 0;
  for (const Slice& slice : attempt.slices) known += static_cast<std::size_t>(slice.gpus);
  return known == held && held > 0;
}

std::optional<Time> LiveExecutor::advance(Time wakeup) {
  const CheckScope here{kHere};
  if (over_ != Over::No) return std::nullopt;
  // A job that was refused in the last pass may have kept others of its array out.
  const bool anything =
      !events_.empty() || !adopting_.empty() || !line_.empty() || parts_.gates.has_news();
  if (!std::exchange(is_new_, false) && !anything) {
    const Time opening = parts_.gates.next_opening().value_or(kNever);
    const Time power = parts_.power != nullptr ? parts_.power->next_due() : kNever;
    parts_.messages.wait(std::min({wakeup, opening, power, parts_.supervisor.next_due()}));
  }
  messages_.clear();
  parts_.messages.take(messages_);
  for (const Message& message : messages_) {
    if (std::holds_alternative<StopOrder>(message)) over_ = Over::Stop;
  }
  last_ = std::max(last_, parts_.clock.now());
  pass_began_ = last_;
  return last_;  // what has come is heard in any case: an end must not wait for a new engine
}

void LiveExecutor::collect(Time now, std::vector<Event>& due) {
  const CheckScope here{kHere};
  last_ = now;
  calls_for_pass_ = false;
  newcomers_.clear();
  for (Message& message : messages_) {
    const auto job = job_of(message);
    try {
      handle(message);
    } catch (const std::exception& error) {  // of a library; the others are heard all the same
      if (job) set_aside(*job, error.what());
    }
  }
  messages_.clear();
  if (parts_.power != nullptr) parts_.power->collect(now, events_);
  if (parts_.training != nullptr) {
    for (const auto& [job, phase] : parts_.training->take_phases()) {
      if (const auto slot = slot_of(job))
        events_.push_back({.kind = EventKind::NextPhase, .job = *slot, .node = {}, .phase = phase});
    }
  }
  if (!adopting_.empty() && over_ == Over::No) {
    const JobNumber job = adopting_.back();
    adopting_.pop_back();
    if (const auto slot = slot_of(job)) {
      emit(EventKind::Arrival, *slot);
      newcomers_.push_back(job);
    }
  } else {
    ask_gates(now);
  }
  if (parts_.training != nullptr && rates_) {
    progressed_.clear();
    parts_.training->take_progressed(progressed_);
    for (const JobNumber job : progressed_) {
      if (const auto slot = slot_of(job)) rates_->update(*slot);
    }
  }
  std::ranges::stable_sort(events_, {}, [](const Event& event) {
    return std::tuple(event.kind, event.job, event.node);
  });
  due.insert(due.end(), events_.begin(), events_.end());
  events_.clear();
}

void LiveExecutor::emit(EventKind kind, JobId slot, JobState outcome) {
  const bool leaves = kind == EventKind::Finished || kind == EventKind::Withdrawn;
  if (leaves && rates_) rates_->leave(slot);
  events_.push_back({.kind = kind, .outcome = outcome, .job = slot, .node = {}});
}

// --- what comes from outside

void LiveExecutor::handle(Message& message) {
  if (const auto* committed = std::get_if<Committed>(&message)) return handle_record(*committed);
  if (auto* question = std::get_if<Question>(&message)) {
    calls_for_pass_ = calls_for_pass_ || question->calls_for_pass;
    questions_.push_back(std::move(*question));
    return;
  }
  if (const auto* answer = std::get_if<ResizeAnswer>(&message))
    return parts_.supervisor.handle(*answer);
  if (const auto* end = std::get_if<ProgramEnd>(&message);
      end != nullptr && parts_.power != nullptr)
    return parts_.power->handle(*end);
  if (const auto* event = std::get_if<HostEvent>(&message)) {
    if (event->kind == HostEventKind::Started) parts_.gates.started(event->job);
    if (const auto end = parts_.supervisor.handle(*event)) handle_end(*end);
  }
}

void LiveExecutor::handle_record(const Committed& committed) {
  const std::int64_t wall = parts_.clock.wall();
  if (std::holds_alternative<SubmitRecord>(committed.record.body)) {
    for (std::int32_t i = 0; i < committed.change.count; ++i) {
      const auto job = parts_.job(committed.change.job + static_cast<JobNumber>(i));
      // A new engine has read the board, and may hear of the same job again.
      if (job && !parts_.gates.knows(job->number) && !parts_.supervisor.is_ending(job->number))
        parts_.gates.add(*job, last_, wall);
    }
  } else if (const auto* wish = std::get_if<WishRecord>(&committed.record.body)) {
    handle_wish(*wish);
  } else if (const auto* change = std::get_if<ChangeRecord>(&committed.record.body)) {
    if (const auto job = parts_.job(change->job)) {
      parts_.gates.change(*job, last_, wall);
      parts_.supervisor.set_limit(job->number, job->spec->time_limit);
    }
  } else if (const auto* setting = std::get_if<SettingRecord>(&committed.record.body)) {
    const SettingEffect effect = parts_.setting(*setting);
    if (effect.renew) renew();
    if (effect.shares) events_.push_back({.kind = EventKind::Shares, .job = {}, .node = {}});
    if (effect.node) set_node(effect.node->first, effect.node->second);
  }
}

void LiveExecutor::handle_wish(const WishRecord& wish) {
  const bool runs = parts_.supervisor.alive(wish.job) != nullptr;
  switch (wish.wish) {
    case Wish::Hold:
      parts_.gates.hold(wish.job, runs || parts_.supervisor.waits_to_start(wish.job));
      break;
    case Wish::Release: parts_.gates.release(wish.job); break;
    case Wish::Cancel:
      if (!parts_.job(wish.job)) break;  // it was over before we heard
      parts_.supervisor.stop(wish.job, Ending::Cancel, wish.why);
      if (const auto slot = slot_of(wish.job)) emit(EventKind::Cancel, *slot);
      slots_.erase(wish.job);
      if (!runs) end_without_attempt(wish.job, Outcome::Cancelled, "cancelled");
      break;
    case Wish::Requeue:
      if (runs) parts_.supervisor.stop(wish.job, Ending::Requeue, wish.why);
      break;
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
void LiveExecutor::handle_end(const AttemptEnd& end) {
  if (end.asks_policy) {
    if (const auto slot = slot_of(end.job)) {
      events_.push_back({.kind = EventKind::Finished,
                         .outcome = JobState::Failed,
                         .job = *slot,
                         .node = {},
                         .failure = *end.asks_policy,
                         .asks_policy = true});
    } else if (const auto judged = parts_.supervisor.answer(end.job, std::nullopt)) {
      handle_end(*judged);
    }
    return;
  }
  parts_.gates.add_use(end.job, end.gpu_seconds, last_);
  if (const auto since = leaves_since_.extract(end.job);
      !since.empty() && parts_.learnt != nullptr) {
    const auto job = parts_.job(end.job);
    const bool left = end.ending == Ending::Preempt && job && last_ >= since.mapped();
    if (left)
      parts_.learnt->learn_stop(*job->spec, to_seconds(last_ - since.mapped()),
                                parts_.clock.wall() / 1'000'000);
  }
  tell_end(end);
}

void LiveExecutor::tell_end(const AttemptEnd& end) {
  const auto slot = slot_of(end.job);
  if (end.verdict.is_final) {
    if (slot) emit(EventKind::Finished, *slot, state_of(end.verdict.outcome));
    slots_.erase(end.job);
    parts_.gates.ended(end.job, end.verdict.outcome, true);
    return;
  }
  const bool pauses = end.verdict.pause > Duration::zero() || parts_.gates.is_kept(end.job);
  if (!slot || pauses) {
    if (slot) give_up_slot(end.job);
    parts_.gates.ended(end.job, end.verdict.outcome, false, last_ + end.verdict.pause);
    return;
  }
  // After a preemption, however it went, the engine has it waiting or started anew already; after
  // another end too, if it preempted it before that.
  if (end.ending != Ending::Preempt && !parts_.supervisor.waits_to_start(end.job))
    emit(EventKind::Lost, *slot);
}

/// The engine has it waiting, or over, by the same answer.
void LiveExecutor::set_retry(JobId slot, std::optional<bool> again) {
  const CheckScope here{kHere};
  const auto end = parts_.supervisor.answer(number_of(slot), again);
  if (!end) return;
  if (!again) return handle_end(*end);
  parts_.gates.add_use(end->job, end->gpu_seconds, last_);
  if (*again && !parts_.gates.is_kept(end->job)) return;
  if (*again)
    give_up_slot(end->job);
  else
    slots_.erase(end->job);
  parts_.gates.ended(end->job, end->verdict.outcome, !*again, last_);
}

void LiveExecutor::end_without_attempt(JobNumber job, Outcome outcome, std::string why) {
  if (parts_.supervisor.end_without_attempt(job, outcome, std::move(why)))
    parts_.gates.ended(job, outcome, true);
}

/// It may have been changed just before it was started: then it runs, and is stopped.
void LiveExecutor::end_unsatisfiable(JobNumber job, const std::string& why) {
  if (parts_.supervisor.alive(job) == nullptr)
    return end_without_attempt(job, Outcome::Cancelled, why);
  parts_.supervisor.stop(job, Ending::Kill, why);
  if (const auto slot = slot_of(job)) emit(EventKind::Cancel, *slot);
  slots_.erase(job);
}

void LiveExecutor::give_up_slot(JobNumber job) {
  const auto slot = slots_.find(job);
  if (slot == slots_.end()) return;
  emit(EventKind::Withdrawn, slot->second);
  parts_.supervisor.forget_start(job);  // the engine will not know of it
  slots_.erase(slot);
}

void LiveExecutor::set_node(NodeId node, NodeService service) {
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
      parts_.supervisor.stop(job, Ending::Preempt, "its node was taken down");
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

void LiveExecutor::ask_gates(Time now) {
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
  parts_.gates.take_ready(now, jobs);
  if (!parts_.one_at_a_time) {
    for (const JobNumber job : jobs) bring_in(job);
    return;
  }
  line_.insert(line_.end(), jobs.begin(), jobs.end());
  while (!line_.empty() && newcomers_.empty()) {
    const JobNumber job = line_.front();
    line_.pop_front();
    if (parts_.gates.is_in(job) && !slot_of(job)) bring_in(job);
  }
}

void LiveExecutor::bring_in(JobNumber number) {
  const auto job = parts_.job(number);
  if (!job || parts_.supervisor.is_ending(number)) return;
  // An older version may have written down a change that no engine could bear.
  if (const auto faults = impossible_numbers(*job->spec); !faults.empty())
    return set_aside(number, fmt::format("{}", fmt::join(faults, "; ")));
  if (next_slot_ == parts_.slots.jobs.size()) {  // the next engine has more
    over_ = Over::Renew;
    return;
  }
  const JobId slot{next_slot_++};
  numbers_[slot.value] = number;
  slots_[number] = slot;
  fill(parts_.slots.jobs[slot.value], *job);
  believe_kind(slot, *job->spec);
  emit(EventKind::Arrival, slot);
  newcomers_.push_back(number);
}

void LiveExecutor::set_aside(JobNumber job, std::string why) {
  const auto record = parts_.job(job);
  if (!record || (record->is_held && record->held_by == kSchedulerName)) return;
  parts_.supervisor.set_aside(job, std::move(why));
  parts_.gates.hold(job, parts_.supervisor.alive(job) != nullptr);
  give_up_slot(job);
}

void LiveExecutor::fill(TraceJob& slot, const LedgerJob& job) {
  const JobSpec& spec = *job.spec;
  const auto time_of = [&](std::int64_t unix_seconds) {
    return last_ + Duration{unix_seconds * 1'000'000 - parts_.clock.wall()};
  };
  static_cast<JobRequest&>(slot) = request_of(spec, job.number, job.submitted, parts_.slots.names);
  slot.estimate = said_duration(spec);
  slot.duration =
      slot.estimate > Duration::zero() ? slot.estimate : Duration{std::chrono::hours{1}};
  // Jobs of its kind have shown how long it is, if it says how many iterations it has.
  const LearntKind* kind = spec.iterations > 0 && spec.estimate == 0 ? learnt_of(spec) : nullptr;
  if (kind != nullptr && kind->seconds_per_iteration > 0 && kind->gpus == spec.gpus) {
    const double seconds = static_cast<double>(spec.iterations) * kind->seconds_per_iteration;
    const double most =
        spec.time_limit > 0 ? static_cast<double>(spec.time_limit) : kMaxInputSeconds;
    slot.duration = slot.estimate = seconds_to_duration(std::clamp(seconds, 1.0, most));
    if (parts_.lengths != nullptr) {
      parts_.lengths->set(slot, slot.duration);
      notes_.push_back(nlohmann::json{{"job", parts_.slots.names.text(slot.id)},
                                      {"micros", slot.duration.count()}}
                           .dump());
    }
  }
  if (spec.deadline) slot.deadline = time_of(*spec.deadline);
  slot.soft_deadline = spec.soft_deadline;
}

std::optional<JobId> LiveExecutor::suppose(const LedgerJob& job) {
  const auto slot = spare_slot();
  if (!slot) return std::nullopt;
  ++next_slot_;
  fill(parts_.slots.jobs[slot->value], job);
  return slot;
}

// --- what the engine decides

/// Believed: what its processes do before they get on. What the configuration says goes before what
/// jobs of the kind have shown.
Duration LiveExecutor::cost_of(const Action& action, const JobTable& jobs) const {
  Duration cost = parts_.costs.resume;
  if (changes_devices(action.kind)) cost = parts_.costs.migrate;
  if (jobs.first_start[action.job] == kNever) cost = parts_.costs.start;
  if (cost > Duration::zero() || parts_.learnt == nullptr) return cost;
  const auto job = parts_.job(number_of(action.job));
  const LearntKind* kind = job ? learnt_of(*job->spec) : nullptr;
  return kind != nullptr ? seconds_to_duration(kind->start_seconds) : cost;
}

const LearntKind* LiveExecutor::learnt_of(const JobSpec& spec) const {
  return parts_.learnt != nullptr ? parts_.learnt->find(kind_of(spec)) : nullptr;
}

/// The newcomer is believed to be what jobs of its kind have shown. Profiles are only ever added:
/// those that others have stay what they are.
void LiveExecutor::believe_kind(JobId slot, const JobSpec& spec) {
  const LearntKind* kind = learnt_of(spec);
  if (kind == nullptr || parts_.believed == nullptr) return;
  const std::string key = kind->key();
  if (!parts_.learnt->says_of_speed(*kind)) return;
  auto known = believed_kinds_.find(key);
  if (known == believed_kinds_.end() || known->second.first != kind->version) {
    std::vector<PairSlowdown> pairs;
    for (const auto& [other, theirs] : believed_kinds_) {
      PairSlowdown pair{.other = theirs.second};
      if (const auto times = kind->beside.find(other); times != kind->beside.end())
        pair.of = times->second;
      const LearntKind* beside = parts_.learnt->find(other);
      if (beside != nullptr && beside->beside.contains(key)) pair.of_other = beside->beside.at(key);
      if (other != key && (pair.of || pair.of_other)) pairs.push_back(pair);
    }
    const ProfileId next{static_cast<std::uint32_t>(parts_.believed->profiles().size())};
    if (const auto times = kind->beside.find(key); times != kind->beside.end())
      pairs.push_back({.other = next, .of = times->second});  // beside others like itself
    nlohmann::json note{{"kind", to_json(*kind)}, {"pairs", nlohmann::json::array()}};
    for (const PairSlowdown& pair : pairs)
      note["pairs"].push_back({pair.other.value, pair.of.value_or(0), pair.of_other.value_or(0)});
    notes_.push_back(note.dump());
    repeat(notes_.back());
    known = believed_kinds_.find(key);
  }
  profile_of_[slot] = known->second.second;
}

void LiveExecutor::take_notes(std::vector<std::string>& notes) {
  notes.insert(notes.end(), std::make_move_iterator(notes_.begin()),
               std::make_move_iterator(notes_.end()));
  notes_.clear();
}

/// What was learnt of a kind, how far belief of a job is off, since when one may leave, or how long
/// one is believed to be, as an engine was told before.
void LiveExecutor::repeat(std::string_view text) {
  const auto note = nlohmann::json::parse(text);
  if (note.contains("kind")) {
    const auto kind = learnt_from_json(note["kind"].get<std::string>());
    if (!kind) return;
    Profile profile = profile_of(*kind, parts_.believed->profiles());
    profile.name = fmt::format("learnt:{}#{}", kind->key(), kind->version);
    const auto said = [](double times) {
      return times > 0 ? std::optional{times} : std::nullopt;  // a slowdown is above zero
    };
    std::vector<PairSlowdown> pairs;
    for (const auto& pair : note["pairs"])
      pairs.push_back({.other = ProfileId{pair[0].get<std::uint32_t>()},
                       .of = said(pair[1].get<double>()),
                       .of_other = said(pair[2].get<double>())});
    const ProfileId id = parts_.believed->add(std::move(profile), pairs);
    believed_kinds_[kind->key()] = {kind->version, id};
  } else if (note.contains("leaves")) {
    leaves_since_[note["leaves"].get<JobNumber>()] =
        Time{Duration{note["since"].get<std::int64_t>()}};
  } else if (note.contains("slot")) {
    if (rates_)
      rates_->recall(JobId{note["slot"].get<std::uint32_t>()},
                     {.calibration = note["calibration"].get<double>(),
                      .seconds_per_iteration = note["unit"].get<double>(),
                      .is_measured = note["own"].get<bool>()});
  } else if (parts_.lengths != nullptr) {
    TraceJob job;
    job.id = parts_.slots.names.intern(note["job"].get<std::string>());
    parts_.lengths->set(job, Duration{note["micros"].get<std::int64_t>()});
  }
}

void LiveExecutor::learn_from(JobId slot, const JobTable& jobs) {
  const auto measured = rates_->measured(slot);
  if (!measured || parts_.learnt == nullptr) return;
  const JobNumber number = number_of(slot);
  const auto job = parts_.job(number);
  const auto progress = parts_.training->progress(number);
  if (!job || !progress) return;
  const std::int64_t wall = parts_.clock.wall() / 1'000'000;
  const JobSpec& spec = *job->spec;
  if (measured->company.empty() && jobs.granted[slot] == spec.gpus) {
    const double reference = measured->seconds_per_iteration * measured->believed;
    parts_.learnt->learn_speed(spec, reference, progress->batch, wall);
  } else if (measured->company.size() == 1 && measured->alone_seconds) {
    if (const auto other = parts_.job(number_of(measured->company.front())))
      parts_.learnt->learn_beside(spec, kind_of(*other->spec),
                                  measured->seconds_per_iteration / *measured->alone_seconds, wall);
  }
  const Attempt* attempt = parts_.supervisor.alive(number);
  if (attempt == nullptr) return;
  const double ran = to_seconds(last_ - attempt->since);
  parts_.learnt->learn_start(
      spec, std::max(0.0, ran - progress->first_seconds_ago - measured->seconds_per_iteration),
      wall);
}

StartReceipt LiveExecutor::start(Time now, const Action& action, const JobTable& jobs) {
  const CheckScope here{kHere};
  const JobNumber job = number_of(action.job);
  const bool stays = parts_.supervisor.start(job, action.slices, action.gpus, action.reason,
                                             action.terms.cores_milli);
  parts_.supervisor.set_rate(job, action.terms.throttle_milli);
  if (parts_.training != nullptr) parts_.training->tell(job, action.terms);
  if (rates_)
    rates_->enter(action.job, action.pool, action.slices,
                  stays ? LiveRates::Attempt::SameOne : LiveRates::Attempt::New);
  if (!stays) {
    // Whoever waits holds nothing: when it does we say as soon as we know (news()).
    if (parts_.supervisor.waits_to_start(job)) late_.insert(action.job);
    const Time from = std::max({now, parts_.supervisor.start_waits_until(job).value_or(now),
                                parts_.supervisor.start_waits_for_ends(job).value_or(now)});
    return {.held_from = from, .work_from = from + cost_of(action, jobs)};
  }
  // It was there before this engine, was about to make way, or slept.
  const Attempt& attempt = *parts_.supervisor.alive(job);
  return {.held_from = attempt.held_counted == kNever ? now : attempt.held_counted,
          .work_from = std::min(now, attempt.work_counted),
          .phase = parts_.training != nullptr ? parts_.training->phase(job) : Phase::Training};
}

/// Until when it is believed to hold its devices: for as long as the rules let it go on, and while
/// it saves.
Time LiveExecutor::leave(Time now, JobNumber number, std::string why) {
  const bool runs = parts_.supervisor.alive(number) != nullptr;
  const Time until = std::max(now, parts_.supervisor.preempt(number, std::move(why)));
  if (runs) {
    leaves_since_[number] = until;
    notes_.push_back(
        nlohmann::json{{"leaves", number}, {"since", until.time_since_epoch().count()}}.dump());
  }
  if (parts_.costs.preempt > Duration::zero()) return until + parts_.costs.preempt;
  const auto job = runs ? parts_.job(number) : std::nullopt;
  const LearntKind* kind = job ? learnt_of(*job->spec) : nullptr;
  return kind != nullptr ? until + seconds_to_duration(kind->stop_seconds) : until;
}

Time LiveExecutor::stop(Time now, const Action& action, const JobTable&) {
  const CheckScope here{kHere};
  const JobNumber job = number_of(action.job);
  late_.erase(action.job);
  if (rates_) rates_->leave(action.job);
  switch (action.kind) {
    case ActionKind::Suspend: parts_.supervisor.suspend(job); break;
    case ActionKind::Kill:
      if (slots_.contains(job)) kill(job, action.reason);  // its user may have stopped it already
      break;
    default:
      if (action.reason == Reason::Retry) break;
      // Its start on the new devices follows at once.
      if (changes_devices(action.kind) && parts_.supervisor.can_change_in_place(job, action.slices))
        break;
      if (action.reason != Reason::NodeLost)
        return leave(now, job, std::string{to_string(action.reason)});
      parts_.supervisor.stop(job, Ending::Preempt, std::string{to_string(action.reason)});
      break;
  }
  return now;
}

/// To the engine it waits; the last process of an attempt that made way may still be there.
void LiveExecutor::discard(Time, const Action& action, const JobTable&) {
  const CheckScope here{kHere};
  const JobNumber job = number_of(action.job);
  if (slots_.contains(job)) kill(job, action.reason);
}

void LiveExecutor::kill(JobNumber job, Reason reason) {
  parts_.supervisor.stop(job, Ending::Kill, std::string{to_string(reason)});
  if (parts_.supervisor.alive(job) == nullptr)
    end_without_attempt(job, Outcome::Cancelled, by_policy(to_string(reason)));
  slots_.erase(job);
}

void LiveExecutor::adjust(Time, const Action& action, const JobTable& jobs) {
  const CheckScope here{kHere};
  const JobNumber job = number_of(action.job);
  if (action.kind == ActionKind::SetCores)
    parts_.supervisor.set_cores(job,
                                (action.terms.cores_milli * jobs.granted[action.job] + 999) / 1000);
  if (action.kind == ActionKind::SetShare)
    parts_.supervisor.set_rate(job, action.terms.throttle_milli);
  if (parts_.training != nullptr) parts_.training->tell(job, action.terms);
  if (rates_) rates_->touch(action.job);
}

void LiveExecutor::rates(Time now, const JobTable& jobs, std::vector<RateChange>& changes) {
  if (rates_) rates_->rates(now, jobs, changes);
}

/// A start that had to wait is service from here on: those who queue by it are told.
void LiveExecutor::handle_begun(Time now, const JobTable& jobs, std::vector<RateChange>& changes) {
  std::erase_if(late_, [&](JobId slot) {
    const JobNumber job = number_of(slot);
    if (parts_.supervisor.waits_to_start(job)) return false;
    const Attempt* attempt = parts_.supervisor.alive(job);
    if (attempt == nullptr || !jobs.is_running(slot)) return true;
    changes.push_back({.job = slot,
                       .rate = jobs.rate[slot],
                       .basis = jobs.basis[slot],
                       .begun = std::min(now, attempt->since)});
    calls_for_pass_ = true;
    return true;
  });
}

/// A policy that does not look at rates need not decide because of one.
void LiveExecutor::news(Time now, const JobTable& jobs, std::vector<RateChange>& changes) {
  handle_begun(now, jobs, changes);
  if (!rates_) return;
  rates_->news(now, jobs, changes);
  for (const JobNumber job : std::exchange(progressed_, {})) {
    if (const auto slot = slot_of(job); slot && jobs.is_running(*slot)) learn_from(*slot, jobs);
  }
  calls_for_pass_ = calls_for_pass_ || (parts_.policy_minds_rates && !changes.empty());
}

void LiveExecutor::power(Time, const Action& action) {
  const CheckScope here{kHere};
  if (parts_.power == nullptr) return;
  const NodeId node = action.slices.front().node;
  action.kind == ActionKind::PowerOn ? parts_.power->switch_on(node)
                                     : parts_.power->switch_off(node);
}

JobPast LiveExecutor::past(JobId slot) const {
  if (number_of(slot) == 0) return {};  // only supposed: in a copy, which must not ask the board
  const auto job = parts_.job(number_of(slot));
  if (!job) return {};
  JobPast past{.first_start = job->first_start.value_or(kNever),
               .held = seconds_to_duration(job->run_seconds),
               .service = seconds_to_duration(job->gpu_seconds),
               .preemptions = static_cast<std::uint32_t>(job->preemptions),
               .failures = static_cast<std::uint32_t>(job->failures),
               .profile = std::nullopt,
               .slices = {}};
  if (const auto learnt = profile_of_.find(slot); learnt != profile_of_.end())
    past.profile = learnt->second;
  const Attempt* attempt = parts_.supervisor.alive(job->number);
  if (attempt != nullptr && attempt->ending == Ending::ByItself) past.slices = attempt->slices;
  return past;
}

std::optional<TrainingReport> LiveExecutor::report(Time, JobId job, const JobTable&) const {
  if (parts_.training == nullptr) return std::nullopt;
  return parts_.training->report(number_of(job));
}

void LiveExecutor::losses(Time, JobId job, const JobTable&, std::int64_t first,
                          std::vector<double>& losses) const {
  if (parts_.training != nullptr) parts_.training->losses(number_of(job), first, losses);
}

/// A policy that refuses a job for good has decided so. A cluster that could never hold it may have
/// lost a device since the job was taken: that is nobody's decision, and the job waits for it to
/// come back.
void LiveExecutor::handle_rejected(const RejectedJob& rejected) {
  const JobNumber job = number_of(rejected.job);
  const bool runs = parts_.supervisor.alive(job) != nullptr;
  // What runs already is not stopped, and planned around.
  if (runs) parts_.supervisor.leave_alone(job);
  slots_.erase(job);
  if (!rejected.by_policy)
    parts_.gates.refuse(
        job, rejected.reason + "; it fitted when it was taken and waits until it does again", runs);
  else if (!runs)
    end_without_attempt(job, Outcome::Rejected, rejected.reason);
}

void LiveExecutor::instant_done(Time now) {
  const CheckScope here{kHere};
  if (engine_ != nullptr) {
    for (; rejected_seen_ < engine_->rejected().size(); ++rejected_seen_)
      handle_rejected(engine_->rejected()[rejected_seen_]);
  }
  if (parts_.before_writing) parts_.before_writing();
  auto written = parts_.supervisor.flush();
  if (written && parts_.power != nullptr) written = parts_.power->flush();
  if (!written) {
    over_ = Over::Failed;
    error_ = written.error();
    return;
  }
  std::vector<AttemptEnd> failed;
  parts_.supervisor.take_failed_starts(failed);
  for (const AttemptEnd& end : failed) handle_end(end);
  pass_seconds_ = to_seconds(parts_.clock.now() - pass_began_);
  parts_.pass_done(now);
  for (const Question& question : std::exchange(questions_, {})) {
    try {
      question.ask();
    } catch (const std::exception&) {
      if (question.too_late) question.too_late();
    }
  }
}

LiveExecutor::~LiveExecutor() {
  for (const Question& question : questions_) {
    if (question.too_late) question.too_late();
  }
}

}  // namespace berth
