#include "daemon/live_service.h"

#include <algorithm>
#include <chrono>
#include <future>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "daemon/job_pages.h"
#include "daemon/job_steps.h"
#include "daemon/past_cursor.h"
#include "daemon/service_fault.h"
#include "daemon/service_metrics.h"
#include "daemon/waiting_cycle.h"
#include "model/job_spec_json.h"
#include "why/why_json.h"

namespace berth {

namespace {

constexpr std::size_t kMostPerPage = 1000;
constexpr std::size_t kMostResults = 10'000;

bool may_touch(const Caller& caller, const JobSpec& spec) {
  return caller.role != Role::User || caller.user == spec.user;
}

/// What is asked by a word is on record by the same word; a signal is sent and
/// not kept.
Wish wish_of(Verb verb) { return wish_from(to_string(verb)).value(); }

/// Why a wish makes no sense for a job in this state; empty if it does.
std::string cannot(Verb verb, const LedgerJob& job) {
  const bool runs = job.attempt.has_value();
  switch (verb) {
    case Verb::Cancel:
    case Verb::Hold: return {};
    case Verb::Release: return job.is_held ? "" : "is not held";
    case Verb::Requeue: return runs ? "" : "does not run";
    case Verb::Suspend: return job.is_frozen ? "is suspended already" : runs ? "" : "does not run";
    case Verb::Resume:
      if (job.is_frozen) return {};
      return runs && job.attempt->is_suspended ? "sleeps until the policy wakes it"
                                               : "is not suspended";
    case Verb::Signal: return runs ? "" : "does not run";
  }
  return {};
}

/// Whoever holds a job lets it go, or an operator does. One that the scheduler
/// has set aside is its user's to mend: as long as its numbers make no sense
/// nobody can release it.
Result<void> may_release(const Caller& caller, const LedgerJob& job) {
  const bool is_set_aside = job.held_by == kSchedulerName;
  if (const auto faults = impossible_numbers(*job.spec); is_set_aside && !faults.empty())
    return fail(fmt::format("job {} was set aside: {} (change it first)", job.number,
                            fmt::join(faults, "; ")));
  const bool is_own = job.held_by == caller.user || is_set_aside;
  if (caller.role == Role::User && !is_own)
    return fail(fmt::format("job {} was held by {}", job.number, job.held_by));
  return {};
}

/// Of a job that runs only the limit can be changed: by its user to less, by an
/// operator to more.
Answer<void> may_change_running(const Caller& caller, const LedgerJob& job, const JobSpec& asked) {
  if (!job.attempt) return {};
  const std::int64_t limit = job.spec->time_limit;
  JobSpec rest = asked;
  rest.time_limit = limit;
  if (to_json(rest) != to_json(*job.spec))
    return fault(FaultKind::Conflict,
                 fmt::format("job {} runs: nothing but its time_limit can be changed", job.number));
  const bool is_longer = limit > 0 && (asked.time_limit == 0 || asked.time_limit > limit);
  if (is_longer && caller.role == Role::User)
    return fault(FaultKind::Forbidden,
                 fmt::format("job {} runs: more time is for an operator to give", job.number));
  if (asked.time_limit > kMaxLimitOfRunning)
    return fault(FaultKind::Impossible,
                 fmt::format("job {} runs: its limit can become 0 (none) or "
                             "at most {} seconds, got {}",
                             job.number, kMaxLimitOfRunning, asked.time_limit));
  return {};
}

}  // namespace

LiveService::LiveService(Parts parts)
    : parts_(std::move(parts)),
      identity_(parts_.board, parts_.options.identity),
      callers_({.board = parts_.board,
                .identity = identity_,
                .clock = parts_.clock,
                .admins = parts_.options.admins,
                .operators = parts_.options.operators,
                .write_setting =
                    [this](SettingRecord setting) { return write_setting(std::move(setting)); }}),
      cluster_({.board = parts_.board,
                .store = parts_.store,
                .clock = parts_.clock,
                .scheduler = parts_.scheduler,
                .admission = parts_.admission,
                .cluster = parts_.cluster,
                .energy = parts_.energy,
                .generation = parts_.generation,
                .version = parts_.options.version,
                .half_life = parts_.options.fair_share_half_life,
                .reserve_bytes = parts_.options.reserve_bytes,
                .write_setting =
                    [this](SettingRecord setting) { return write_setting(std::move(setting)); }}),
      submitter_({.board = parts_.board,
                  .store = parts_.store,
                  .journal = parts_.journal,
                  .clock = parts_.clock,
                  .scheduler = parts_.scheduler,
                  .admission = parts_.admission,
                  .identity = identity_,
                  .reserve_bytes = parts_.options.reserve_bytes,
                  .ask_engine = parts_.ask_engine,
                  .note_trouble = parts_.note_trouble,
                  .refusal_of = parts_.refusal_of}) {}

Answer<void> LiveService::write_setting(SettingRecord setting) {
  std::vector<RecordBody> bodies;
  bodies.emplace_back(std::move(setting));
  if (const auto written = parts_.journal.write(std::move(bodies)); !written)
    return fault(FaultKind::Unavailable, written.error().text());
  return {};
}

Answer<Submitted> LiveService::submit(const Caller& caller, JobSpec spec) {
  std::promise<Answer<Submitted>> promise;
  auto answer = promise.get_future();
  submit_async(caller, std::move(spec),
               [&](Answer<Submitted> submitted) { promise.set_value(std::move(submitted)); });
  return answer.get();
}

// --- looking

/// What runs and with which secrets in its environment is its owner's business.
/// Jobs of an array stand together in a list and share their request: what may
/// be told of it is worked out once.
JobView LiveService::shown_to(const Caller& caller, JobView view, Told& last) const {
  if (view.spec == nullptr || may_touch(caller, *view.spec)) return view;
  if (last.whole != view.spec) {
    JobSpec shown = *view.spec;
    shown.script.clear();
    shown.command.clear();
    shown.env.clear();
    shown.comment.clear();
    shown.key.clear();
    last = {.whole = view.spec, .shown = std::make_shared<const JobSpec>(std::move(shown))};
  }
  view.spec = last.shown;
  view.output.clear();
  view.error.clear();
  return view;
}

JobView LiveService::shown_to(const Caller& caller, JobView view) const {
  Told nothing;
  return shown_to(caller, std::move(view), nothing);
}

Answer<JobPage> LiveService::jobs(const Caller& caller, const JobFilter& filter) {
  JobFilter bounded = filter;
  bounded.limit = std::clamp<std::size_t>(bounded.limit, 1, kMostPerPage);
  JobPage page;
  std::optional<PastQuery> query;
  while (true) {
    page = parts_.board.page(bounded, parts_.clock.wall());
    query = past_part(bounded);
    if (query && !query->numbers.empty()) {  // of those that live nobody needs to ask the disk
      query->numbers = parts_.board.missing(query->numbers);
      if (query->numbers.empty()) query.reset();
    }
    if (!query || bounded.rows != Rows::Folded) break;
    // A page of both goes on behind a number: a row of many numbers has no
    // place in it.
    bounded.rows = Rows::Brief;
  }
  if (query) {
    const auto past = parts_.store.past_jobs(*query);
    if (!past) return fault(FaultKind::Unavailable, past.error().text());
    const auto total = parts_.store.count_past(*query);
    if (!total) return fault(FaultKind::Unavailable, total.error().text());
    std::vector<JobView> views;
    for (const PastJob& job : *past) views.push_back(parts_.board.past_view(job, bounded.rows));
    add_past(page, std::move(views), *total, bounded.limit);
  }
  Told told;
  if (parts_.energy != nullptr) parts_.energy->count_until(parts_.clock.now());
  for (JobView& view : page.jobs) {
    if (parts_.energy != nullptr)
      view.energy_kwh += parts_.energy->joules_of(view.number) / kJoulesPerKwh;
    view = shown_to(caller, std::move(view), told);
  }
  return page;
}

Answer<JobView> LiveService::job(const Caller& caller, JobNumber job) {
  if (auto view = parts_.board.view(job, parts_.clock.wall())) {
    if (parts_.energy != nullptr) {
      parts_.energy->count_until(parts_.clock.now());
      view->energy_kwh += parts_.energy->joules_of(job) / kJoulesPerKwh;
    }
    return shown_to(caller, *std::move(view));
  }
  const auto past = parts_.store.past(job);
  if (!past) return fault(FaultKind::Unavailable, past.error().text());
  if (!*past) return not_found(job);
  return shown_to(caller, parts_.board.past_view(**past));
}

Answer<std::vector<AttemptView>> LiveService::attempts(const Caller& caller, JobNumber job) {
  if (const auto view = this->job(caller, job); !view) return tl::unexpected<Fault>(view.error());
  auto rows = parts_.store.attempts(job);
  if (!rows) return fault(FaultKind::Unavailable, rows.error().text());
  std::vector<AttemptView> views;
  for (AttemptRow& row : *rows)
    views.push_back({.id = to_text(row.id),
                     .where = std::move(row.where),
                     .begun = row.begun_wall,
                     .ended = row.ended_wall,
                     .outcome = row.outcome ? std::string(to_string(*row.outcome)) : "",
                     .exit_code = row.exit_code,
                     .signal = row.signal,
                     .gpu_seconds = row.gpu_seconds,
                     .why = std::move(row.why)});
  return views;
}

Answer<JobStepsList> LiveService::steps(const Caller& caller, const std::vector<JobNumber>& jobs) {
  JobStepsList list;
  for (const JobNumber number : jobs) {
    const auto view = job(caller, number);
    if (!view && view.error().kind == FaultKind::NotFound) continue;
    if (!view) return tl::unexpected<Fault>(view.error());
    auto attempts = parts_.store.attempts(number);
    if (!attempts) return fault(FaultKind::Unavailable, attempts.error().text());
    const bool runs = !attempts->empty() && !attempts->back().outcome;
    KeptSteps kept = runs && parts_.steps_of ? parts_.steps_of(attempts->back().id) : KeptSteps{};
    const bool may_enter = caller.role != Role::User || view->spec->user == caller.user;
    if (!may_enter) kept.directory.clear();
    list.jobs.push_back(steps_of_job(*view, *attempts, std::move(kept)));
  }
  return list;
}

Answer<PastPage> LiveService::history(const Caller& caller, const PastQuery& query) {
  PastQuery bounded = query;
  bounded.limit = std::clamp<std::size_t>(bounded.limit, 1, kMostPerPage) + 1;
  auto jobs = parts_.store.past_jobs(bounded);
  if (!jobs) return fault(FaultKind::Unavailable, jobs.error().text());
  PastPage page;
  Told told;
  const bool more = jobs->size() == bounded.limit;
  if (more) jobs->pop_back();
  for (const PastJob& past : *jobs)
    page.jobs.push_back(shown_to(caller, parts_.board.past_view(past), told));
  if (more) page.next = past_cursor_text({jobs->back().ended_wall, jobs->back().job.number});
  return page;
}

// --- acting

Answer<std::vector<JobNumber>> LiveService::chosen(const Caller& caller, const JobFilter& which,
                                                   std::vector<VerbResult>& results) {
  std::vector<JobNumber> jobs;
  if (!which.numbers.empty()) {
    if (which.numbers.size() > kMostResults)
      return fault(FaultKind::BadRequest, fmt::format("at most {} jobs at once", kMostResults));
    for (const JobNumber number : which.numbers) {
      if (const auto job = parts_.board.find(number)) {
        if (may_touch(caller, *job->spec)) {
          jobs.push_back(number);
        } else {
          results.push_back({number, false, fmt::format("job {} is not yours", number)});
        }
        continue;
      }
      const auto past = parts_.store.past(number);
      const bool over = past && past->has_value();
      results.push_back(
          {number, false,
           over ? fmt::format("job {} is over ({})", number, to_string((*past)->outcome))
                : fmt::format("there is no job {}", number)});
    }
    return jobs;
  }
  JobFilter all = which;
  if (caller.role == Role::User) {
    if (all.user && *all.user != caller.user)
      return fault(FaultKind::Forbidden,
                   fmt::format("{} may not touch jobs of {}", caller.user, *all.user));
    all.user = caller.user;
  }
  all.limit = kMostResults;
  all.after.reset();
  for (const JobView& view : parts_.board.page(all, parts_.clock.wall()).jobs)
    jobs.push_back(view.number);
  return jobs;
}

Answer<void> LiveService::join(const Caller& caller, JobNumber number, std::int32_t request) {
  const auto shown = job(caller, number);
  if (!shown) return tl::unexpected<Fault>(shown.error());
  if (caller.role != Role::Admin && shown->spec->user != caller.user)
    return fault(FaultKind::Forbidden, fmt::format("job {} is {}'s", number, shown->spec->user));
  const auto live = parts_.board.find(number);
  const bool runs = live && live->attempt && shown->state == LiveState::Running;
  if (!runs || !parts_.join)
    return fault(FaultKind::Conflict, fmt::format("job {} does not run", number));
  parts_.join(live->attempt->id, static_cast<std::uint32_t>(request));
  return {};
}

Answer<std::vector<VerbResult>> LiveService::act(const Caller& caller, Verb verb,
                                                 const JobFilter& which, const std::string& why,
                                                 SentSignal signal) {
  const bool for_operators = verb == Verb::Suspend || verb == Verb::Resume;
  if (for_operators && caller.role == Role::User)
    return fault(FaultKind::Forbidden, "suspending and resuming needs an operator");
  if (verb == Verb::Signal && (signal.number < 1 || signal.number > 64))
    return fault(FaultKind::BadRequest, "a signal is a number from 1 to 64");
  std::vector<VerbResult> results;
  auto jobs = chosen(caller, which, results);
  if (!jobs) return tl::unexpected<Fault>(std::move(jobs).error());
  // One order each, all in one commit: one that cannot be done spoils none of
  // the others.
  std::vector<std::promise<VerbResult>> promises(jobs->size());
  for (std::size_t i = 0; i < jobs->size(); ++i) {
    const JobNumber number = (*jobs)[i];
    std::promise<VerbResult>& promise = promises[i];
    if (verb == Verb::Signal) {
      parts_.ask_engine(
          {.ask =
               [this, number, signal, &promise] {
                 const auto job = parts_.board.find(number);
                 const std::string reason = job ? cannot(Verb::Signal, *job) : "is over";
                 if (reason.empty()) parts_.signal(number, signal);
                 promise.set_value(
                     {number, reason.empty(),
                      fmt::format("job {} {}", number, reason.empty() ? "signalled" : reason)});
               },
           .too_late =
               [number, &promise] {
                 promise.set_value({number, false,
                                    fmt::format("job {} was not signalled: {}", number, kTooLate)});
               }});
      continue;
    }
    parts_.journal.write_later(
        {.make = [number, verb, &caller,
                  &why](const Ledger& ledger) -> Result<std::vector<RecordBody>> {
           const LedgerJob* job = ledger.find(number);
           if (job == nullptr) return fail(fmt::format("job {} is over", number));
           if (const std::string reason = cannot(verb, *job); !reason.empty())
             return fail(fmt::format("job {} {}", number, reason));
           if (verb == Verb::Release) BERTH_TRY_VOID(may_release(caller, *job));
           std::vector<RecordBody> bodies;
           bodies.emplace_back(
               WishRecord{.job = number, .wish = wish_of(verb), .by = caller.user, .why = why});
           return bodies;
         },
         .done =
             [number, verb, &promise](const auto& written) {
               promise.set_value({number, written.has_value(),
                                  written
                                      ? fmt::format("job {} {}", number, done_word(wish_of(verb)))
                                      : written.error().text()});
             }});
  }
  for (std::promise<VerbResult>& promise : promises) results.push_back(promise.get_future().get());
  std::ranges::sort(results, {}, &VerbResult::job);
  return results;
}

Answer<JobView> LiveService::change(const Caller& caller, JobNumber number,
                                    const std::string& asked) {
  const auto job = parts_.board.find(number);
  if (!job) {
    const auto past = this->job(caller, number);
    if (!past) return past;
    return fault(FaultKind::Conflict, fmt::format("job {} is over", number));
  }
  if (!may_touch(caller, *job->spec))
    return fault(FaultKind::Forbidden, fmt::format("job {} is not yours", number));
  // A job's owner stays. Who he is on this machine is looked up here: that may
  // take a while, and nobody else's records wait for it.
  const auto changes = identity_.settle_changes(caller, *job->spec, asked);
  if (!changes) return tl::unexpected<Fault>(changes.error());
  // The rest is decided when its turn has come: until then the job may start,
  // end or be changed.
  std::optional<Fault> refused;
  std::promise<Result<void>> promise;
  parts_.journal.write_later(
      {.make = [&](const Ledger& ledger) -> Result<std::vector<RecordBody>> {
         std::vector<RecordBody> bodies;
         auto record = change_in(ledger, caller, number, *changes);
         if (!record) {
           refused = std::move(record).error();
           return fail("refused");
         }
         if (record->changes != "{}") bodies.emplace_back(*std::move(record));
         return bodies;
       },
       .done =
           [&](const auto& written) {
             promise.set_value(written ? Result<void>{} : tl::unexpected<Error>(written.error()));
           }});
  const auto written = promise.get_future().get();
  if (refused) return tl::unexpected<Fault>(*std::move(refused));
  if (!written) return fault(FaultKind::Unavailable, written.error().text());
  return this->job(caller, number);
}

/// What is written is what was admitted: repaired where a request may leave
/// something open.
Answer<ChangeRecord> LiveService::change_in(const Ledger& ledger, const Caller& caller,
                                            JobNumber number, const std::string& changes) {
  const LedgerJob* job = ledger.find(number);
  if (job == nullptr) return fault(FaultKind::Conflict, fmt::format("job {} is over", number));
  auto spec = changed_job_spec(*job->spec, changes);
  if (!spec)
    return tl::unexpected<Fault>(
        Fault{.kind = FaultKind::BadRequest, .messages = std::move(spec).error().messages});
  if (auto allowed = may_change_running(caller, *job, *spec); !allowed)
    return tl::unexpected<Fault>(std::move(allowed).error());
  std::vector<std::string> notes;
  if (auto admitted = parts_.admission.admit_change(caller, *job->spec, *spec, notes); !admitted)
    return tl::unexpected<Fault>(std::move(admitted).error());
  if (spec->deadline != job->spec->deadline) {
    if (auto in_time = check_deadline(*spec, parts_.clock.wall()); !in_time)
      return tl::unexpected<Fault>(std::move(in_time).error());
  }
  const bool waits_otherwise =
      spec->dependencies != job->spec->dependencies || spec->name != job->spec->name;
  if (waits_otherwise) {
    if (const auto ring = waiting_cycle(ledger, number, *spec))
      return fault(FaultKind::Impossible,
                   fmt::format("job {} would wait for itself: {}", number, *ring));
  }
  return ChangeRecord{
      .job = number, .changes = changes_between(*job->spec, *spec), .by = caller.user};
}

Answer<std::string> LiveService::why(const Caller& caller, JobNumber job) {
  const auto known = this->job(caller, job);
  if (!known) return tl::unexpected<Fault>(known.error());
  auto promise = std::make_shared<std::promise<Answer<std::string>>>();
  auto answer = promise->get_future();
  parts_.ask_engine({.ask =
                         [this, promise, caller, job] {
                           const auto view = this->job(caller, job);  // it may have started since
                           if (!view)
                             return promise->set_value(tl::unexpected<Fault>(view.error()));
                           Why why = parts_.explain(*view, caller.role != Role::User);
                           if (view->spec != nullptr) why.user = view->spec->user;
                           why.is_yours = why.user == caller.user;
                           for (const WhyReason& reason : why.reasons)
                             unexplained_ += reason.kind == "unexplained" ? 1 : 0;
                           promise->set_value(to_json(why));
                         },
                     .too_late =
                         [promise] {
                           promise->set_value(fault(FaultKind::Unavailable, std::string{kTooLate}));
                         }});
  if (answer.wait_for(std::chrono::seconds{20}) != std::future_status::ready)
    return fault(FaultKind::Unavailable, "the scheduler is busy: ask again");
  return answer.get();
}

std::string LiveService::metrics() {
  return service_metrics({.cluster = cluster_.cluster(),
                          .nodes = cluster_.nodes(),
                          .figures = parts_.scheduler.figures(),
                          .ended = parts_.board.ended(),
                          .set_aside = parts_.board.set_aside(),
                          .submits = submitter_.count(),
                          .unexplained = unexplained_.load(),
                          .journal_bytes_left = parts_.store.space_left()}) +
         (parts_.more_metrics ? parts_.more_metrics() : std::string{});
}

}  // namespace berth
