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

namespace berth::client {

namespace {

using nlohmann::json;

/// By name and filter; nothing at all is misuse, so that nobody cancels everything by accident.
Result<ActionQuery> query_of(const Call& call, std::string_view verb) {
  ActionQuery query;
  query.verb = std::string(verb);
  BERTH_TRY(const Selection selection, selection_of(call));
  query.user = selection.user;
  query.group = selection.group;
  query.queue = selection.queue;
  query.name = selection.name;
  query.study = call.value("study");
  query.states = selection.states;
  query.why = call.value("why");
  const bool selects = !query.user.empty() || !query.group.empty() || !query.queue.empty() ||
                       !query.name.empty() || !query.study.empty() || !query.states.empty();
  if (call.operands().empty() && !selects)
    return fail(fmt::format(
        "{}: which jobs? As in `berth {} 12`, or --me, --user, --name, --study, --state", verb,
        verb));
  if (verb == "cancel" && call.has("signal")) {
    query.verb = "signal";
    BERTH_TRY(query.signal, parse_signal(call.value("signal")));
  }
  return query;
}

int tell(const Call& call, const ActionQuery& query, const std::vector<DeedRow>& deeds) {
  std::size_t done = 0;
  json list = json::array();
  for (const DeedRow& deed : deeds) {
    if (deed.is_done) ++done;
    if (!deed.is_done && !call.has("json")) call.console.note(told(deed));
    list.push_back({{"job", deed.job}, {"done", deed.is_done}, {"text", deed.text}});
  }
  if (call.has("json"))
    call.console.put_json(json{{"results", list}}.dump(2));
  else if (deeds.empty())
    call.console.note(fmt::format("{}: no job is meant by that", query.verb));
  else if (call.console.is_terminal())
    call.console.put(fmt::format("{}: {} of {} job{}\n", query.verb, done, deeds.size(),
                                 deeds.size() == 1 ? "" : "s"));
  if (deeds.empty() || done < deeds.size()) return kFailure;
  return call.console.done();
}

int act(const Call& call, std::string_view verb) {
  auto query = query_of(call, verb);
  if (!query) return call.console.complain(kMisuse, query.error());
  for (const std::string& name : call.operands())
    if (const auto names = parse_job_names(name); !names)
      return call.console.complain(kMisuse, names.error());
  auto scheduler = call.scheduler();
  if (!scheduler) return call.console.complain(kMisuse, scheduler.error());
  auto ids = resolve_jobs(*scheduler, call.operands(), BareNumber::OneJob);
  if (!ids) return call.console.complain(kFailure, ids.error());
  query->ids = *std::move(ids);
  const auto deeds = scheduler->act(*query);
  if (!deeds) return call.console.complain(kFailure, deeds.error());
  return tell(call, *query, *deeds);
}

}  // namespace

int run_cancel(const Call& call) { return act(call, "cancel"); }
int run_hold(const Call& call) { return act(call, "hold"); }
int run_release(const Call& call) { return act(call, "release"); }
int run_requeue(const Call& call) { return act(call, "requeue"); }
int run_suspend(const Call& call) { return act(call, "suspend"); }
int run_resume(const Call& call) { return act(call, "resume"); }

int run_change(const Call& call) {
  if (call.operands().size() < 2)
    return call.console.complain(kMisuse,
                                 "change: which job, and what? As in `berth change 12 priority=5`");
  const std::vector<std::string> settings(call.operands().begin() + 1, call.operands().end());
  auto changes = json_of_settings(settings);
  if (!changes) return call.console.complain(kMisuse, changes.error());
  // Of a job that is there already no limit is written as 0.
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
