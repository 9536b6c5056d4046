#include "core/engine_log.h"

#include <array>
#include <type_traits>
#include <utility>

#include <fmt/format.h>

namespace berth {

namespace {

// One list of fields for writing and for reading; `value` is filled by a reader.

template <class T>
void pass_field(ByteWriter& out, const T& value) {
  if constexpr (std::is_same_v<T, bool>)
    out.flag(value);
  else if constexpr (std::is_floating_point_v<T>)
    out.real(static_cast<double>(value));
  else if constexpr (std::is_enum_v<T>)
    out.natural(static_cast<std::uint64_t>(value));
  else if constexpr (std::is_unsigned_v<T>)
    out.natural(value);
  else if constexpr (std::is_integral_v<T>)
    out.integer(value);
  else if constexpr (std::is_same_v<T, Time>)
    out.integer(value.time_since_epoch().count());
  else if constexpr (std::is_same_v<T, Duration>)
    out.integer(value.count());
  else
    out.natural(value.value);  // an id
}

template <class T>
void pass_field(ByteReader& in, T& value) {
  if constexpr (std::is_same_v<T, bool>)
    value = in.flag();
  else if constexpr (std::is_floating_point_v<T>)
    value = static_cast<T>(in.real());
  else if constexpr (std::is_enum_v<T>)
    value = static_cast<T>(in.natural());
  else if constexpr (std::is_unsigned_v<T>)
    value = static_cast<T>(in.natural());
  else if constexpr (std::is_integral_v<T>)
    value = static_cast<T>(in.integer());
  else if constexpr (std::is_same_v<T, Time>)
    value = Time{Duration{in.integer()}};
  else if constexpr (std::is_same_v<T, Duration>)
    value = Duration{in.integer()};
  else
    value.value = static_cast<decltype(value.value)>(in.natural());
}

template <class T>
void pass_field(ByteWriter& out, const std::optional<T>& value) {
  out.flag(value.has_value());
  if (value) pass_field(out, *value);
}
template <class T>
void pass_field(ByteReader& in, std::optional<T>& value) {
  value.reset();
  if (in.flag()) pass_field(in, value.emplace());
}

template <class Bytes, class... Fields>
void pass_fields(Bytes& bytes, Fields&... fields) {
  (pass_field(bytes, fields), ...);
}

template <class Bytes, class Job>
void pass_job(Bytes& bytes, Job& job) {
  pass_fields(bytes, job.id, job.submit, job.gpus, job.gpus_min, job.gpus_max, job.gpu_milli,
              job.cpus_milli, job.memory_mib, job.batch_size, job.priority, job.weight, job.kind,
              job.iterations, job.user, job.group, job.queue, job.name, job.model, job.study,
              job.gpu_type, job.duration, job.estimate, job.status, job.failure,
              job.failed_attempts, job.deadline, job.soft_deadline, job.cancel_at, job.preemptible);
}

template <class Bytes, class AnyEvent>
void pass_event(Bytes& bytes, AnyEvent& event) {
  pass_fields(bytes, event.kind, event.outcome, event.job, event.node, event.phase, event.failure,
              event.asks_policy);
}

/// One byte: whether work and a beginning follow, and the basis. Logs of a version without a basis
/// have 0 there: to whom nothing was said of it, it is a belief.
std::uint64_t flags_of(const RateChange& change) {
  std::uint64_t basis = 0;
  switch (change.basis) {
    case RateBasis::Believed: basis = 0; break;
    case RateBasis::Exact: basis = 1; break;
    case RateBasis::Awaited: basis = 2; break;
    case RateBasis::Measured: basis = 3; break;
  }
  return (change.begun ? 8U : 0U) | basis << 1U | (change.work ? 1U : 0U);
}

RateBasis basis_in(std::uint64_t flags) {
  constexpr std::array kBases{RateBasis::Believed, RateBasis::Exact, RateBasis::Awaited,
                              RateBasis::Measured};
  return kBases[flags >> 1U & 3U];
}

}  // namespace

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
  const bool calls = answer([&] { return parts_.executor.calls_for_pass(); },
                            [](ByteWriter& out, bool said) { out.flag(said); },
                            [](ByteReader& in) { return in.flag(); });
  is_kept_ = is_kept_ || calls;
  return calls;
}

StartReceipt EngineLog::start(Time now, const Action& action, const JobTable& jobs) {
  const auto pass = [](auto& bytes, auto& receipt, auto& rate) {
    pass_fields(bytes, receipt.held_from, receipt.work_from, rate, receipt.phase);
  };
  return answer([&] { return parts_.executor.start(now, action, jobs); },
                [&](ByteWriter& out, const StartReceipt& receipt) {
                  const std::uint64_t rate = receipt.rate.raw();
                  pass(out, receipt, rate);
                },
                [&](ByteReader& in) {
                  StartReceipt receipt;
                  std::uint64_t rate = 0;
                  pass(in, receipt, rate);
                  receipt.rate = Rate::from_raw(rate);
                  return receipt;
                });
}

Time EngineLog::stop(Time now, const Action& action, const JobTable& jobs) {
  return answer([&] { return parts_.executor.stop(now, action, jobs); },
                [](ByteWriter& out, const Time& until) { pass_field(out, until); },
                [](ByteReader& in) {
                  Time until;
                  pass_field(in, until);
                  return until;
                });
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
  Entitlements told = answer([&] { return parts_.executor.entitlements(); },
                             [](ByteWriter& out, const Entitlements& said) {
                               out.natural(said.shares.size());
                               for (const auto& [who, shares] : said.shares) {
                                 out.text(who);
                                 out.real(shares);
                               }
                               out.natural(said.uses.size());
                               for (const auto& [user, group, gpu_seconds] : said.uses) {
                                 out.text(user);
                                 out.text(group);
                                 out.real(gpu_seconds);
                               }
                             },
                             [](ByteReader& in) {
                               Entitlements said;
                               said.shares.resize(static_cast<std::size_t>(in.natural()));
                               for (auto& [who, shares] : said.shares) {
                                 who = in.text();
                                 shares = in.real();
                               }
                               said.uses.resize(static_cast<std::size_t>(in.natural()));
                               for (auto& [user, group, gpu_seconds] : said.uses) {
                                 user = in.text();
                                 group = in.text();
                                 gpu_seconds = in.real();
                               }
                               return said;
                             });
  shares_ = told.shares;
  return told;
}

void EngineLog::power(Time now, const Action& action) {
  if (!is_replaying()) parts_.executor.power(now, action);
}

JobPast EngineLog::past(JobId job) const {
  const auto pass = [](auto& bytes, auto& past) {
    pass_fields(bytes, past.first_start, past.held, past.service, past.preemptions, past.failures,
                past.profile);
  };
  return answer([&] { return parts_.executor.past(job); },
                [&](ByteWriter& out, const JobPast& past) {
                  pass(out, past);
                  out.natural(past.slices.size());
                  for (const Slice& slice : past.slices)
                    pass_fields(out, slice.node, slice.gpus, slice.devices);
                },
                [&](ByteReader& in) {
                  JobPast past;
                  pass(in, past);
                  slices_.resize(static_cast<std::size_t>(in.natural()));
                  for (Slice& slice : slices_)
                    pass_fields(in, slice.node, slice.gpus, slice.devices);
                  past.slices = slices_;
                  return past;
                });
}

std::optional<TrainingReport> EngineLog::report(Time now, JobId job, const JobTable& jobs) const {
  const auto pass = [](auto& bytes, auto& report) {
    pass_fields(bytes, report.epochs, report.loss, report.noise_scale);
  };
  return answer([&] { return parts_.executor.report(now, job, jobs); },
                [&](ByteWriter& out, const std::optional<TrainingReport>& report) {
                  out.flag(report.has_value());
                  if (report) pass(out, *report);
                },
                [&](ByteReader& in) {
                  std::optional<TrainingReport> report;
                  if (in.flag()) pass(in, report.emplace());
                  return report;
                });
}

void EngineLog::losses(Time now, JobId job, const JobTable& jobs, std::int64_t first,
                       std::vector<double>& losses) const {
  const auto said = answer(
      [&] {
        std::vector<double> more;
        parts_.executor.losses(now, job, jobs, first, more);
        return more;
      },
      [](ByteWriter& out, const std::vector<double>& more) {
        out.natural(more.size());
        for (const double loss : more) out.real(loss);
      },
      [](ByteReader& in) {
        std::vector<double> more(static_cast<std::size_t>(in.natural()));
        for (double& loss : more) loss = in.real();
        return more;
      });
  losses.insert(losses.end(), said.begin(), said.end());
}

/// What `ask` appends to `changes`, or what was appended then.
template <class Ask>
void EngineLog::hear_rates(std::vector<RateChange>& changes, Ask ask) {
  const std::vector<RateChange> said = answer(
      [&] {
        std::vector<RateChange> more;
        ask(more);
        return more;
      },
      [&](ByteWriter& out, const std::vector<RateChange>& more) {
        out.natural(more.size());
        for (const RateChange& change : more) {
          pass_field(out, change.job);
          out.natural(flags_of(change));
          if (change.work) pass_field(out, *change.work);
          if (change.begun) pass_field(out, *change.begun);
          out.natural(change.rate.raw());
        }
      },
      [](ByteReader& in) {
        std::vector<RateChange> more(static_cast<std::size_t>(in.natural()));
        for (RateChange& change : more) {
          pass_field(in, change.job);
          const std::uint64_t flags = in.natural();
          if ((flags & 1U) != 0) pass_field(in, change.work.emplace());
          if ((flags & 8U) != 0) pass_field(in, change.begun.emplace());
          change.basis = basis_in(flags);
          change.rate = Rate::from_raw(in.natural());
        }
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
