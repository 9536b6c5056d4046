#include "core/engine_log.h"

#include <utility>

#include <fmt/format.h>

#include "core/engine_log_fields.h"

namespace berth {

using engine_log::get;
using engine_log::pass_event;
using engine_log::pass_field;
using engine_log::pass_job;
using engine_log::put;

/// The answer of the executor, written down; while replaying, what was written down then.
template <class Ask>
auto EngineLog::hear(Ask ask) const {
  using Said = decltype(ask());
  return answer(
      ask, [](ByteWriter& out, const Said& said) { put(out, said); },
      [](ByteReader& in) { return get<Said>(in); });
}

void EngineLog::replay(std::vector<std::string> passes, std::function<void()> caught_up) {
  past_ = std::move(passes);
  at_ = 0;
  caught_up_ = std::move(caught_up);
  if (!past_.empty()) open_pass();
}

void EngineLog::open_pass() { reader_.emplace(past_[at_]); }

std::optional<Time> EngineLog::advance(Time wakeup) {
  decided_ = {};
  if (is_replaying()) {
    Time now;
    pass_field(*reader_, now);
    return now;
  }
  between_ = writer_.size();
  wakeup_ = wakeup;
  const auto now = parts_.executor.advance(wakeup);
  if (now) pass_field(writer_, *now);
  return now;
}

/// Names have numbers in order of first use, and some policies order users by them.
void EngineLog::put_names() {
  const Names& names = parts_.slots.names;
  writer_.natural(names.size() - names_);
  for (; names_ < names.size(); ++names_)
    writer_.text(names.text(NameId{static_cast<std::uint32_t>(names_)}));
}

void EngineLog::get_names() {
  for (std::uint64_t left = reader_->natural(); left > 0; --left, ++names_) {
    const std::string_view text = reader_->text();
    if (parts_.slots.names.intern(text).value != names_)
      throw Diverged(fmt::format("the name '{}' has another number", text));
  }
}

void EngineLog::put_notes() {
  notes_.clear();
  parts_.executor.take_notes(notes_);
  is_kept_ = is_kept_ || !notes_.empty();
  writer_.natural(notes_.size());
  for (const std::string& note : notes_) writer_.text(note);
}

void EngineLog::get_notes() {
  for (std::uint64_t left = reader_->natural(); left > 0; --left)
    parts_.executor.repeat(reader_->text());
}

void EngineLog::collect(Time now, std::vector<Event>& due) {
  const auto first = static_cast<std::ptrdiff_t>(due.size());
  if (is_replaying()) {
    get_names();
    get_notes();
    for (std::uint64_t left = reader_->natural(); left > 0; --left) {
      Event event;
      pass_event(*reader_, event);
      if (event.kind == EventKind::Arrival) {
        if (event.job.value >= parts_.slots.jobs.size())
          throw Diverged("more jobs than there are slots");
        pass_job(*reader_, parts_.slots.jobs[event.job.value]);
      }
      due.push_back(event);
    }
    return;
  }
  parts_.executor.collect(now, due);
  is_kept_ =
      std::ssize(due) > first || now >= wakeup_ || is_first_ || names_ < parts_.slots.names.size();
  put_names();
  put_notes();
  writer_.natural(static_cast<std::uint64_t>(std::ssize(due) - first));
  for (auto event = due.begin() + first; event != due.end(); ++event) {
    pass_event(writer_, *event);
    if (event->kind == EventKind::Arrival) pass_job(writer_, parts_.slots.jobs[event->job.value]);
  }
}

/// Asked where nothing else makes the pass due.
bool EngineLog::calls_for_pass() const {
  const bool calls = hear([&] { return parts_.executor.calls_for_pass(); });
  is_kept_ = is_kept_ || calls;
  return calls;
}

StartReceipt EngineLog::start(Time now, const Action& action, const JobTable& jobs) {
  return hear([&] { return parts_.executor.start(now, action, jobs); });
}

Time EngineLog::stop(Time now, const Action& action, const JobTable& jobs) {
  return hear([&] { return parts_.executor.stop(now, action, jobs); });
}

void EngineLog::discard(Time now, const Action& action, const JobTable& jobs) {
  if (!is_replaying()) parts_.executor.discard(now, action, jobs);
}

void EngineLog::set_retry(JobId job, std::optional<bool> again) {
  if (!is_replaying()) parts_.executor.set_retry(job, again);
}

void EngineLog::adjust(Time now, const Action& action, const JobTable& jobs) {
  if (!is_replaying()) parts_.executor.adjust(now, action, jobs);
}

Entitlements EngineLog::entitlements() {
  Entitlements told = hear([&] { return parts_.executor.entitlements(); });
  shares_ = told.shares;
  return told;
}

void EngineLog::power(Time now, const Action& action) {
  if (!is_replaying()) parts_.executor.power(now, action);
}

JobPast EngineLog::past(JobId job) const {
  return answer([&] { return parts_.executor.past(job); },
                [](ByteWriter& out, const JobPast& past) { put(out, past); },
                [&](ByteReader& in) {
                  JobPast past;
                  get(in, past, slices_);
                  return past;
                });
}

std::optional<TrainingReport> EngineLog::report(Time now, JobId job, const JobTable& jobs) const {
  return hear([&] { return parts_.executor.report(now, job, jobs); });
}

void EngineLog::losses(Time now, JobId job, const JobTable& jobs, std::int64_t first,
                       std::vector<double>& losses) const {
  const auto said = hear([&] {
    std::vector<double> more;
    parts_.executor.losses(now, job, jobs, first, more);
    return more;
  });
  losses.insert(losses.end(), said.begin(), said.end());
}

/// What `ask` appends to `changes`, or what was appended then.
template <class Ask>
void EngineLog::hear_rates(std::vector<RateChange>& changes, Ask ask) {
  const std::vector<RateChange> said = hear([&] {
    std::vector<RateChange> more;
    ask(more);
    return more;
  });
  is_kept_ = is_kept_ || !said.empty();
  changes.insert(changes.end(), said.begin(), said.end());
}

void EngineLog::news(Time now, const JobTable& jobs, std::vector<RateChange>& changes) {
  hear_rates(changes, [&](auto& more) { parts_.executor.news(now, jobs, more); });
}

void EngineLog::rates(Time now, const JobTable& jobs, std::vector<RateChange>& changes) {
  hear_rates(changes, [&](auto& more) { parts_.executor.rates(now, jobs, more); });
}

void EngineLog::append(Time now, const Action& action) {
  decided_.add(static_cast<std::uint64_t>(action.kind));
  decided_.add(static_cast<std::uint64_t>(action.job.value));
  decided_.add(static_cast<std::int64_t>(action.gpus));
  for (const Slice& slice : action.slices) {
    decided_.add(static_cast<std::uint64_t>(slice.node.value));
    decided_.add(slice.devices);
  }
  if (!is_replaying()) return parts_.observer.append(now, action);
  Reasons& reasons = reasons_[action.job];
  const bool moves = changes_devices(action.kind);
  if (moves || begins_stretch(action.kind)) reasons.given = action.reason;
  if (moves || ends_stretch(action.kind)) reasons.taken = action.reason;
}

EngineLog::Reasons EngineLog::last_reasons(JobId job) const {
  const auto found = reasons_.find(job);
  return found == reasons_.end() ? Reasons{} : found->second;
}

void EngineLog::finished(Time now, JobId job, JobState outcome) {
  if (!is_replaying()) parts_.observer.finished(now, job, outcome);
}

void EngineLog::check_end() {
  get_notes();
  if (reader_->natural() != decided_.value())
    throw Diverged(fmt::format("pass {} of {} decides otherwise", at_ + 1, past_.size()));
  if (!reader_->is_at_end())
    throw Diverged(fmt::format("pass {} of {} asks less", at_ + 1, past_.size()));
}

void EngineLog::instant_done(Time now) {
  if (!is_replaying()) {
    put_notes();
    if (is_kept_) {
      is_first_ = false;
      writer_.natural(decided_.value());
      parts_.keep(writer_.take());
    } else {
      writer_.cut(between_);
    }
    parts_.observer.instant_done(now);
    return;
  }
  check_end();
  is_first_ = false;
  if (++at_ < past_.size()) return open_pass();
  // Here, and not at the next advance(): what the policy asks when it says when to wake it is asked
  // of the world as it is.
  past_.clear();
  reader_.reset();
  std::exchange(caught_up_, {})();
  reasons_.clear();
}

}  // namespace berth
