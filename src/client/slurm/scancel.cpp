#include <array>

#include <fmt/format.h>

#include "client/commands.h"
#include "client/job_ids.h"
#include "client/moment.h"
#include "client/selection.h"
#include "client/slurm_names.h"

namespace berth::client {

namespace {

using enum Takes;

constexpr std::array kOptions{
    OptionSpec{"account", 'A', Value, "NAME", "only of this account"},
    OptionSpec{"batch", 'b', Nothing, "", "the script alone: here every process of the job"},
    OptionSpec{"full", 'f', Nothing, "", "every process of the job (the default)"},
    OptionSpec{"help", 0, Nothing, "", "this text"},
    OptionSpec{"me", 0, Nothing, "", "your own jobs"},
    OptionSpec{"name", 'n', Value, "NAME", "jobs of this name"},
    OptionSpec{"jobname", 0, Value, "NAME", "jobs of this name"},
    OptionSpec{"partition", 'p', Value, "NAME", "jobs of this partition"},
    OptionSpec{"quiet", 'Q', Nothing, "", "no word about jobs that are over"},
    OptionSpec{"signal", 's', Value, "SIGNAL", "send this signal instead of ending it"},
    OptionSpec{"state", 't', Value, "STATE", "jobs in this state: PENDING, RUNNING, SUSPENDED"},
    OptionSpec{"user", 'u', Value, "NAME", "jobs of this user"},
    OptionSpec{"verbose", 'v', Nothing, "", "a word about every job"},
    OptionSpec{"version", 'V', Nothing, "", "print the version"},
};

Result<JobAction> query_of(const Parsed& parsed) {
  JobAction query;
  query.verb = Verb::Cancel;
  query.user = parsed.has("me") ? std::string(kMe) : parsed.value("user");
  query.name = parsed.has("name") ? parsed.value("name") : parsed.value("jobname");
  query.queue = parsed.value("partition");
  query.group = parsed.value("account");
  if (parsed.has("state")) {
    BERTH_TRY(auto states, parse_states(parsed.value("state")));
    for (const LiveState state : states.states) query.states.emplace_back(to_string(state));
  }
  if (parsed.has("signal")) {
    BERTH_TRY(query.signal, parse_signal(parsed.value("signal")));
    query.verb = query.signal == 9 && !parsed.has("batch") ? Verb::Cancel : Verb::Signal;
    if (query.verb == Verb::Cancel) query.signal.reset();
  }
  const bool selects = !query.user->empty() || !query.name->empty() || !query.queue->empty() ||
                       !query.group->empty() || !query.states.empty();
  if (parsed.operands.empty() && !selects)
    return fail("no job identification provided (as in scancel 12, or -u, -n, -p, -t)");
  return query;
}

}  // namespace

int run_scancel(std::span<const std::string> words, Console& console) {
  const Parsed parsed = parse_options(kOptions, words, OperandOrder::Mixed);
  if (const auto code = complaint(parsed, console)) return *code;
  if (parsed.has("help"))
    return console.put(slurm_help("scancel [OPTIONS] [JOB_ID[_INDEX]…]", kOptions)), console.done();
  if (parsed.has("version")) return console.put("berth " BERTH_VERSION "\n"), console.done();
  auto query = query_of(parsed);
  if (!query) return console.complain(kMisuse, query.error());
  for (const std::string& name : parsed.operands)
    if (const auto names = parse_job_names(name); !names)
      return console.complain(kMisuse, names.error());
  auto found = patient_scheduler("", console);
  if (!found) return console.complain(kMisuse, found.error());
  Scheduler& scheduler = *found;
  auto ids = resolve_jobs(scheduler, parsed.operands, BareNumber::WholeArray);
  if (!ids) return console.complain(kFailure, ids.error());
  query->ids = *std::move(ids);
  const auto results = scheduler.act(*query);
  if (!results) return console.complain(kFailure, results.error());
  int code = kSuccess;
  for (const VerbResult& result : *results) {
    if (!result.is_done) code = kFailure;
    if ((!result.is_done && !parsed.has("quiet")) || parsed.has("verbose"))
      console.note(fmt::format("{}{}", result.is_done ? "" : "error: ", result_text(result)));
  }
  return parsed.has("quiet") ? kSuccess : code;
}

}  // namespace berth::client
