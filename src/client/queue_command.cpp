// queue, history and show: what there is, for people or as JSON.
#include <charconv>
#include <map>
#include <thread>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "base/split.h"
#include "client/commands.h"
#include "client/draft.h"
#include "client/job_ids.h"
#include "client/moment.h"
#include "client/selection.h"
#include "client/tables.h"

namespace berth::client {

namespace {

TableStyle style_of(const Console& console) {
  return {console.has_colour(), console.width(), unix_now()};
}

// Rows as the scheduler sent them, joined: no field is lost on the way.
std::string json_list(const std::vector<JobRow>& jobs) {
  std::string text = "{\"jobs\":[";
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    if (i > 0) text += ",\n";
    text += jobs[i].json;
  }
  return harmless_json(text + "]}\n");
}

Result<JobQuery> query_of(const Call& call) {
  BERTH_TRY(const Selection selection, selection_of(call));
  JobQuery query{
      .states = selection.states,
      .any_state = selection.any_state || (!call.operands().empty() && !call.has("state")),
      .user = selection.user,
      .group = selection.group,
      .queue = selection.queue,
      .name = selection.name,
      .rows = call.has("json") ? Rows::WithJson : Rows::Brief};
  if (call.has("limit")) {
    BERTH_TRY(const auto limit, parse_count(call.value("limit"), 0, 10'000'000));
    query.most = static_cast<std::size_t>(limit);
  }
  for (const std::string& name : call.operands()) BERTH_TRY_VOID(parse_job_names(name));
  return query;
}

/// Jobs of a grid that wait alike share a line.
std::vector<JobRow> with_folded_grids(const std::vector<JobRow>& jobs) {
  std::vector<JobRow> rows;
  std::map<std::tuple<JobNumber, LiveState, WaitCode>, std::size_t> row_of;
  for (const JobRow& job : jobs) {
    const bool is_folded =
        !job.spec->grid.empty() && job.array != 0 && is_waiting(job.state) && job.attempts == 0;
    const auto [entry, is_new] =
        is_folded ? row_of.try_emplace({job.array, job.state, job.code}, rows.size())
                  : std::pair{row_of.end(), true};
    if (is_new) rows.push_back(job);
    if (is_folded) rows[entry->second].folded.push_back(job.array_index);
  }
  for (JobRow& row : rows)
    if (row.folded.size() == 1) row.folded.clear();
  return rows;
}

// Cut lists say so: nobody should take a page for the whole queue.
Result<std::string> queue_page(const Call& call, Scheduler& scheduler, const JobQuery& query) {
  BERTH_TRY(const JobRows page, scheduler.jobs(query));
  if (call.has("json")) return json_list(page.jobs);
  std::string text = queue_table(with_folded_grids(page.jobs), style_of(call.console));
  if (page.jobs.empty()) text = "no jobs\n";
  if (page.jobs.size() < page.total)
    text += fmt::format("… and {} more\n", page.total - page.jobs.size());
  return text;
}

/// The screen again and again; a scheduler that restarts is waited for.
/// \x1b[H and \x1b[J: to the top and clear below, which does not flicker as clearing first would.
int watch(const Call& call, Scheduler& scheduler, const JobQuery& query, double seconds) {
  bool is_first = true;
  while (true) {
    auto text = queue_page(call, scheduler, query);
    // Later the screen shows the error and goes on: the scheduler may be restarting.
    if (!text && is_first) return call.console.complain(kFailure, text.error());
    if (call.console.is_terminal()) call.console.put("\x1b[H\x1b[J");
    if (!call.console.put(text ? *text : fmt::format("{}\n", harmless(text.error().text()))))
      return call.console.done();
    is_first = false;
    std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
  }
}

/// Whoever looks at a list should know that it is old, or not all there is.
void note_trouble(const Call& call, Scheduler& scheduler) {
  const auto cluster = scheduler.cluster();
  if (cluster && !cluster->trouble.empty()) call.console.note(cluster->trouble);
}

}  // namespace

int run_queue(const Call& call) {
  auto query = query_of(call);
  if (!query) return call.console.complain(kMisuse, query.error());
  double seconds = 2;
  if (const std::string text = call.value("watch"); !text.empty()) {
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), seconds);
    if (error != std::errc{} || end != text.data() + text.size() || !(seconds >= 0.1) ||
        seconds > 86'400)
      return call.console.complain(
          kMisuse,
          fmt::format("queue: --watch={} must be a number of seconds from 0.1 to 86400", text));
  }
  auto scheduler = call.scheduler();
  if (!scheduler) return call.console.complain(kMisuse, scheduler.error());
  auto ids = resolve_jobs(*scheduler, call.operands(), BareNumber::OneJob);
  if (!ids) return call.console.complain(kFailure, ids.error());
  query->ids = *std::move(ids);
  if (call.has("watch")) return watch(call, *scheduler, *query, seconds);
  const auto text = queue_page(call, *scheduler, *query);
  if (!text) return call.console.complain(kFailure, text.error());
  call.console.put(*text);
  note_trouble(call, *scheduler);
  return call.console.done();
}

int run_history(const Call& call) {
  HistoryQuery query;
  const auto read = [&]() -> Result<void> {
    BERTH_TRY(const Selection selection, selection_of(call));
    query.user = selection.user;
    query.group = selection.group;
    query.queue = selection.queue;
    query.name = selection.name;
    query.rows = call.has("json") ? Rows::WithJson : Rows::Brief;
    if (call.has("outcome")) {
      BERTH_TRY(const auto states, parse_states(call.value("outcome")));
      for (const LiveState state : states.states) query.outcomes.emplace_back(to_string(state));
    }
    if (call.has("since")) {
      BERTH_TRY(query.since, parse_past_moment(call.value("since"), unix_now()));
    }
    if (call.has("until")) {
      BERTH_TRY(query.until, parse_past_moment(call.value("until"), unix_now()));
    }
    if (call.has("limit")) {
      BERTH_TRY(const auto limit, parse_count(call.value("limit"), 0, 10'000'000));
      query.most = static_cast<std::size_t>(limit);
    }
    return {};
  };
  if (const auto fine = read(); !fine) return call.console.complain(kMisuse, fine.error());
  auto scheduler = call.scheduler();
  if (!scheduler) return call.console.complain(kMisuse, scheduler.error());
  const auto page = scheduler->history(query);
  if (!page) return call.console.complain(kFailure, page.error());
  call.console.put(call.has("json") ? json_list(page->jobs)
                                    : history_table(page->jobs, style_of(call.console)));
  if (call.has("energy") && !call.has("json")) {
    const auto nodes = scheduler->nodes();
    if (!nodes) return call.console.complain(kFailure, nodes.error());
    call.console.put("\n" + energy_table(page->jobs, *nodes));
  }
  note_trouble(call, *scheduler);
  if (!page->next.empty() && !call.has("json"))
    call.console.note("there are more: --limit 0 shows all of them");
  return call.console.done();
}

int run_show(const Call& call) {
  if (call.operands().empty())
    return call.console.complain(kMisuse, "show: which job? As in `berth show 12`");
  for (const std::string& name : call.operands())
    if (const auto names = parse_job_names(name); !names)
      return call.console.complain(kMisuse, names.error());
  auto scheduler = call.scheduler();
  if (!scheduler) return call.console.complain(kMisuse, scheduler.error());
  const auto ids = resolve_jobs(*scheduler, call.operands(), BareNumber::OneJob);
  if (!ids) return call.console.complain(kFailure, ids.error());
  for (const JobNumber id : *ids) {
    const auto job = scheduler->job(id);
    if (!job) return call.console.complain(kFailure, job.error());
    if (call.has("json")) {
      call.console.put_json(job->json);
      continue;
    }
    const auto attempts = scheduler->attempts(id);  // not everybody may see them
    call.console.put(job_text(*job, attempts ? *attempts : std::vector<AttemptView>{}));
  }
  return call.console.done();
}

}  // namespace berth::client
