#include "daemon/live_executor.h"

#include <algorithm>
#include <utility>

#include <nlohmann/json.hpp>

#include "base/check.h"
#include "base/check_scope.h"

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

LiveExecutor::LiveExecutor(Parts parts)
    : parts_(std::move(parts)),
      beliefs_({.slots = parts_.slots,
                .believed = parts_.believed,
                .learnt = parts_.learnt,
                .lengths = parts_.lengths,
                .costs = parts_.costs,
                .notes = notes_}),
      feed_({.slots = parts_.slots,
             .cluster = parts_.cluster,
             .supervisor = parts_.supervisor,
             .gates = parts_.gates,
             .clock = parts_.clock,
             .job = parts_.job,
             .setting = parts_.setting,
             .training = parts_.training,
             .power = parts_.power,
             .manages_power = parts_.manages_power,
             .one_at_a_time = parts_.one_at_a_time,
             .beliefs = beliefs_,
             .rates = rates_}) {
  if (parts_.believed == nullptr) return;
  rates_.emplace(
      LiveRates::Parts{.slots = parts_.slots,
                       .believed = *parts_.believed,
                       .training = parts_.training,
                       .number = [this](JobId slot) { return number_of(slot); },
                       .whole = [this](JobId slot) { return whole_of(slot); },
                       .seconds_per_iteration = [this](JobId slot) -> std::optional<double> {
                         const auto job = parts_.job(number_of(slot));
                         return job ? beliefs_.seconds_per_iteration(*job->spec) : std::nullopt;
                       },
                       .shown =
                           [this](JobId slot, const ProgressEstimate& progress) {
                             if (parts_.show_progress)
                               parts_.show_progress(number_of(slot), progress);
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

std::optional<Time> LiveExecutor::advance(Time wakeup) {
  const CheckScope here{kHere};
  if (feed_.over() != Over::No) return std::nullopt;
  if (!std::exchange(is_new_, false) && !feed_.has_news()) {
    const Time opening = parts_.gates.next_opening().value_or(kNever);
    const Time power = parts_.power != nullptr ? parts_.power->next_due() : kNever;
    parts_.messages.wait(std::min({wakeup, opening, power, parts_.supervisor.next_due()}));
  }
  messages_.clear();
  parts_.messages.take(messages_);
  for (const Message& message : messages_) {
    if (std::holds_alternative<StopOrder>(message)) feed_.end(Over::Stop);
  }
  pass_began_ = std::max(feed_.now(), parts_.clock.now());
  feed_.set_now(pass_began_);
  return pass_began_;  // what has come is heard in any case: an end must not wait for a new engine
}

void LiveExecutor::collect(Time now, std::vector<Event>& due) {
  const CheckScope here{kHere};
  feed_.set_now(now);
  feed_.begin_pass();
  calls_for_pass_ = false;
  for (Message& message : messages_) {
    const auto job = job_of(message);
    try {
      handle(message);
    } catch (const std::exception& error) {  // of a library; the others are heard all the same
      if (job) feed_.set_aside(*job, error.what());
    }
  }
  messages_.clear();
  feed_.collect(due);
  if (parts_.training != nullptr && rates_) {
    progressed_.clear();
    parts_.training->take_progressed(progressed_);
    for (const JobNumber job : progressed_) {
      if (const auto slot = slot_of(job)) rates_->update(*slot);
    }
  }
}

void LiveExecutor::handle(Message& message) {
  if (const auto* committed = std::get_if<Committed>(&message)) return feed_.handle(*committed);
  if (const auto* event = std::get_if<HostEvent>(&message)) return feed_.handle(*event);
  if (const auto* answer = std::get_if<ResizeAnswer>(&message))
    return parts_.supervisor.handle(*answer);
  if (const auto* end = std::get_if<ProgramEnd>(&message);
      end != nullptr && parts_.power != nullptr)
    return parts_.power->handle(*end);
  if (auto* question = std::get_if<Question>(&message)) {
    calls_for_pass_ = calls_for_pass_ || question->calls_for_pass;
    questions_.push_back(std::move(*question));
  }
}

void LiveExecutor::resume(const JobFeed::Resumed& from) {
  BERTH_CHECK(engine_ != nullptr, "there is an engine to go on with");
  rejected_seen_ = engine_->rejected().size();
  feed_.resume_jobs(from);
  beliefs_.forget_leaving([&](JobNumber job, Time since) {
    const Attempt* attempt = parts_.supervisor.alive(job);
    return attempt == nullptr || attempt->since > since || attempt->is_granted;
  });
  std::vector<JobId> running;
  for (const auto& [job, slot] : feed_.slots().all()) {
    if (!engine_->jobs().is_running(slot)) continue;
    if (rates_) running.push_back(slot);
    if (engine_->jobs().held_from[slot] > feed_.now()) late_.insert(slot);
  }
  std::ranges::sort(running);
  for (const JobId slot : running)
    rates_->resume(slot, engine_->jobs().allocation[slot].pool, engine_->slices(slot),
                   engine_->jobs());
  feed_.resume_devices(from);
}

// --- what the engine decides

void LiveExecutor::take_notes(std::vector<std::string>& notes) {
  notes.insert(notes.end(), std::make_move_iterator(notes_.begin()),
               std::make_move_iterator(notes_.end()));
  notes_.clear();
}

/// What an engine was told before: what is believed of kinds, or how far belief of a job is off.
void LiveExecutor::repeat(std::string_view text) {
  const auto note = nlohmann::json::parse(text);
  if (beliefs_.repeat(note) || !rates_) return;
  rates_->recall(JobId{note["slot"].get<std::uint32_t>()},
                 {.calibration = note["calibration"].get<double>(),
                  .seconds_per_iteration = note["unit"].get<double>(),
                  .is_measured = note["own"].get<bool>()});
}

void LiveExecutor::learn_from(JobId slot, const JobTable& jobs) {
  const auto measured = rates_->measured(slot);
  if (!measured) return;
  const JobNumber number = number_of(slot);
  const auto job = parts_.job(number);
  const auto progress = parts_.training->progress(number);
  if (!job || !progress) return;
  KindBeliefs::Shown shown{.spec = *job->spec,
                           .granted = jobs.granted[slot],
                           .measured = *measured,
                           .progress = *progress};
  std::optional<LedgerJob> beside;
  if (measured->company.size() == 1) beside = parts_.job(number_of(measured->company.front()));
  if (beside) shown.beside = beside->spec.get();
  if (const Attempt* attempt = parts_.supervisor.alive(number))
    shown.seconds_running = to_seconds(feed_.now() - attempt->since);
  beliefs_.learn(shown, parts_.clock.wall() / 1'000'000);
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
    return {.held_from = from,
            .work_from = from + beliefs_.start_cost(action, jobs, parts_.job(job))};
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
  if (runs) beliefs_.leaves(number, until);
  return until + beliefs_.stop_cost(runs ? parts_.job(number) : std::nullopt);
}

Time LiveExecutor::stop(Time now, const Action& action, const JobTable&) {
  const CheckScope here{kHere};
  const JobNumber job = number_of(action.job);
  late_.erase(action.job);
  if (rates_) rates_->leave(action.job);
  switch (action.kind) {
    case ActionKind::Suspend: parts_.supervisor.suspend(job); break;
    case ActionKind::Kill: feed_.kill(job, action.reason); break;
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
  feed_.kill(number_of(action.job), action.reason);
}

void LiveExecutor::set_retry(JobId slot, std::optional<bool> again) {
  const CheckScope here{kHere};
  feed_.answer_retry(slot, again);
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
               .profile = beliefs_.profile_of(slot),
               .slices = {}};
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

void LiveExecutor::instant_done(Time now) {
  const CheckScope here{kHere};
  if (engine_ != nullptr) {
    for (; rejected_seen_ < engine_->rejected().size(); ++rejected_seen_)
      feed_.handle_rejected(engine_->rejected()[rejected_seen_]);
  }
  if (parts_.before_writing) parts_.before_writing();
  auto written = parts_.supervisor.flush();
  if (written && parts_.power != nullptr) written = parts_.power->flush();
  if (!written) {
    feed_.end(Over::Failed);
    error_ = written.error();
    return;
  }
  std::vector<AttemptEnd> failed;
  parts_.supervisor.take_failed_starts(failed);
  for (const AttemptEnd& end : failed) feed_.handle_end(end);
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
