// cancel, hold, release, requeue, suspend, resume: one question to the scheduler for many jobs, and
// a line for each that could not be done. change: new values for one job.
#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/split.h"
#include "client/commands.h"
#include "client/job_ids.h"
#include "client/job_keys.h"
#include "client/moment.h"
#include "client/selection.h"
#include "wire/writer.h"

namespace berth::client {

namespace {

using nlohmann::json;

/// By name and filter; nothing at all is misuse, so that nobody cancels everything by accident.
Result<JobAction> query_of(const Call& call, Verb verb) {
  JobAction query;
  query.verb = verb;
  BERTH_TRY(const Selection selection, selection_of(call));
  query.user = selection.user;
  query.group = selection.group;
  query.queue = selection.queue;
  query.name = selection.name;
  query.study = call.value("study");
  for (const LiveState state : selection.states) query.states.emplace_back(to_string(state));
  query.why = call.value("why");
  const bool selects = !selection.user.empty() || !selection.group.empty() ||
                       !selection.queue.empty() || !selection.name.empty() ||
                       !query.study->empty() || !query.states.empty();
  if (call.operands().empty() && !selects)
    return fail(fmt::format(
        "{}: which jobs? As in `berth {} 12`, or --me, --user, --name, --study, --state",
        to_string(verb), to_string(verb)));
  if (verb == Verb::Cancel && call.has("signal")) {
    query.verb = Verb::Signal;
    BERTH_TRY(query.signal, parse_signal(call.value("signal")));
  }
  return query;
}

// People are told what failed; a script goes by the exit code, and --json has it all.
int tell(const Call& call, Verb verb, std::vector<VerbResult> results) {
  const std::size_t all = results.size();
  const auto done = static_cast<std::size_t>(std::ranges::count_if(results, &VerbResult::is_done));
  for (const VerbResult& result : results)
    if (!result.is_done && !call.has("json")) call.console.note(result_text(result));
  if (call.has("json"))
    call.console.put_json(json::parse(wire::to_json(VerbResultList{std::move(results)})).dump(2));
  else if (all == 0)
    call.console.note(fmt::format("{}: no job matches", to_string(verb)));
  else if (call.console.is_terminal())
    call.console.put(
        fmt::format("{}: {} of {} job{}\n", to_string(verb), done, all, all == 1 ? "" : "s"));
  if (all == 0 || done < all) return kFailure;
  return call.console.done();
}

int act(const Call& call, Verb verb) {
  auto query = query_of(call, verb);
  if (!query) return call.console.complain(kMisuse, query.error());
  // Names are checked before the scheduler is asked: misuse and failure have different exit codes.
  for (const std::string& name : call.operands())
    if (const auto names = parse_job_names(name); !names)
      return call.console.complain(kMisuse, names.error());
  auto scheduler = call.scheduler();
  if (!scheduler) return call.console.complain(kMisuse, scheduler.error());
  auto ids = resolve_jobs(*scheduler, call.operands(), BareNumber::OneJob);
  if (!ids) return call.console.complain(kFailure, ids.error());
  query->ids = *std::move(ids);
  auto results = scheduler->act(*query);
  if (!results) return call.console.complain(kFailure, results.error());
  return tell(call, query->verb, *std::move(results));
}

}  // namespace

int run_cancel(const Call& call) { return act(call, Verb::Cancel); }
int run_hold(const Call& call) { return act(call, Verb::Hold); }
int run_release(const Call& call) { return act(call, Verb::Release); }
int run_requeue(const Call& call) { return act(call, Verb::Requeue); }
int run_suspend(const Call& call) { return act(call, Verb::Suspend); }
int run_resume(const Call& call) { return act(call, Verb::Resume); }

// The same keys and notations as in a job file; the scheduler decides what may still change.
int run_change(const Call& call) {
  if (call.operands().size() < 2)
    return call.console.complain(kMisuse,
                                 "change: which job, and what? As in `berth change 12 priority=5`");
  const std::vector<std::string> settings(call.operands().begin() + 1, call.operands().end());
  auto changes = json_of_settings(settings);
  if (!changes) return call.console.complain(kMisuse, changes.error());
  // A change writes "no limit" as 0, a submit as kUnlimitedTime.
  if (const auto limit = changes->find("time_limit");
      limit != changes->end() && *limit == kUnlimitedTime)
    *limit = 0;
  auto scheduler = call.scheduler();
  if (!scheduler) return call.console.complain(kMisuse, scheduler.error());
  const auto ids = resolve_jobs(*scheduler, {call.operands().front()}, BareNumber::OneJob);
  if (!ids)
    return call.console.complain(scheduler->last_status() == 0 ? kMisuse : kFailure, ids.error());
  for (const JobNumber id : *ids) {
    const auto job = scheduler->change(id, changes->dump());
    if (!job) return call.console.complain(kFailure, job.error());
    if (call.has("json")) call.console.put_json(job->json);
  }
  return call.console.done();
}

}  // namespace berth::client
