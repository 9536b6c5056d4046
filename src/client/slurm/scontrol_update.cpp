// scontrol update, and the verbs: hold, release, requeue, suspend, resume.
#include <algorithm>
#include <array>
#include <charconv>
#include <functional>
#include <map>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/split.h"
#include "base/terminal_text.h"
#include "client/http.h"
#include "client/job_ids.h"
#include "client/moment.h"
#include "client/slurm/scontrol.h"
#include "client/slurm/words.h"
#include "wire/requests.h"
#include "wire/tree.h"

namespace berth::client::slurm {

namespace {

using nlohmann::json;

Result<std::int64_t> whole(std::string_view text) {
  std::int64_t number = 0;
  if (text.starts_with('+')) text.remove_prefix(1);
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (text.empty() || error != std::errc{} || end != text.data() + text.size())
    return fail(fmt::format("'{}' is no number", text));
  return number;
}

/// "gres/gpu:a100:2", "gres:gpu:2", "gpu:2", "gpu=2": how many, and which.
Result<void> take_gres(std::string_view text, json& changes) {
  if (text.starts_with("gres/") || text.starts_with("gres:")) text.remove_prefix(5);
  const auto stop = text.find_first_of(":=");
  if (text.substr(0, stop) != "gpu") return fail(fmt::format("'{}': only gpu is known", text));
  if (stop == std::string_view::npos) return changes["gpus"] = 1, Result<void>{};
  const std::string_view rest = text.substr(stop + 1);
  const auto last = rest.find_last_of(":=");
  BERTH_TRY(const auto count, whole(last == std::string_view::npos ? rest : rest.substr(last + 1)));
  changes["gpus"] = count;
  if (last != std::string_view::npos) changes["gpu_type"] = rest.substr(0, last);
  return {};
}

/// Of a running job +MIN and -MIN count from what it has; "30" is minutes.
Result<void> take_time_limit(std::string_view text, const JobRow& job, json& changes) {
  const bool is_more = text.starts_with('+'), is_less = text.starts_with('-');
  if (is_more || is_less) text.remove_prefix(1);
  BERTH_TRY(auto limit, parse_job_limit(text));
  if (limit == kUnlimitedTime) limit = 0;
  if (is_more) limit = job.spec->time_limit + limit;
  if (is_less) limit = std::max<std::int64_t>(1, job.spec->time_limit - limit);
  changes["time_limit"] = limit;
  return {};
}

/// "8", "4-8": the least.
Result<std::int64_t> least(std::string_view text) { return whole(text.substr(0, text.find('-'))); }

using Taker = std::function<Result<void>(std::string_view, const JobRow&, json&)>;

Taker text_key(const char* key) {
  return [key](std::string_view text, const JobRow&, json& changes) -> Result<void> {
    changes[key] = std::string(text);
    return {};
  };
}
Taker number_key(const char* key) {
  return [key](std::string_view text, const JobRow&, json& changes) -> Result<void> {
    BERTH_TRY(changes[key], least(text));
    return {};
  };
}
Taker moment_key(const char* key) {
  return [key](std::string_view text, const JobRow&, json& changes) -> Result<void> {
    BERTH_TRY(changes[key], parse_moment(text, unix_now()));
    return {};
  };
}
Taker memory_key() {
  return [](std::string_view text, const JobRow&, json& changes) -> Result<void> {
    BERTH_TRY(changes["memory_mib"], parse_memory_mib(text));
    return {};
  };
}

const std::map<std::string, Taker, std::less<>>& takers() {
  static const std::map<std::string, Taker, std::less<>> all{
      {"account", text_key("group")},
      {"comment", text_key("comment")},
      {"cpuspertask",
       [](std::string_view text, const JobRow& job, json& changes) -> Result<void> {
         BERTH_TRY(const auto each, whole(text));
         changes["cpus"] = each * std::max(1, job.spec->tasks);
         return {};
       }},
      {"deadline", moment_key("deadline")},
      {"dependency", text_key("dependencies")},
      {"gres", [](std::string_view text, const JobRow&,
                  json& changes) { return take_gres(text, changes); }},
      {"jobname", text_key("name")},
      {"minmemorynode", memory_key()},
      {"name", text_key("name")},
      {"nice",
       [](std::string_view text, const JobRow&, json& changes) -> Result<void> {
         BERTH_TRY(const auto nice, whole(text.empty() ? "100" : text));
         changes["priority"] = -nice;
         return {};
       }},
      {"numcpus", number_key("cpus")},
      {"mincpusnode", number_key("cpus")},
      {"numtasks", number_key("tasks")},
      {"partition", text_key("queue")},
      {"priority",
       [](std::string_view text, const JobRow&, json& changes) -> Result<void> {
         BERTH_TRY(changes["priority"], whole(text));
         return {};
       }},
      {"requeue",
       [](std::string_view text, const JobRow&, json& changes) -> Result<void> {
         changes["requeue"] = text == "1" || lower(text) == "yes";
         return {};
       }},
      {"reqnodelist",
       [](std::string_view text, const JobRow&, json& changes) -> Result<void> {
         BERTH_TRY(changes["nodes"], expanded_hosts(text));
         return {};
       }},
      {"starttime", moment_key("begin")},
      {"stdout", text_key("output")},
      {"stderr", text_key("error")},
      {"timelimit", take_time_limit},
      {"trespernode", [](std::string_view text, const JobRow&,
                         json& changes) { return take_gres(text, changes); }},
      {"workdir", text_key("workdir")},
  };
  return all;
}

/// A refusal in two lines, as scripts know it.
Error aborted(const std::string& why) {
  Error error(why);
  error.messages.emplace_back("Request aborted");
  return error;
}

struct Setting {
  std::string key, value;
};

Result<std::vector<Setting>> settings_of(std::span<const std::string> words) {
  std::vector<Setting> settings;
  for (const std::string& word : words) {
    const auto equals = word.find('=');
    if (equals == std::string::npos)
      return tl::unexpected<Error>(aborted(fmt::format("Invalid input: {}", word)));
    // "TimeLimit+=30" is "TimeLimit=+30".
    const bool is_more = equals > 0 && word[equals - 1] == '+';
    const bool is_less = equals > 0 && word[equals - 1] == '-';
    settings.push_back({lower(word.substr(0, equals - (is_more || is_less ? 1 : 0))),
                        (is_more   ? "+"
                         : is_less ? "-"
                                   : "") +
                            word.substr(equals + 1)});
  }
  return settings;
}

int update_jobs(const Control& control, const std::string& id,
                const std::vector<Setting>& settings) {
  for (const Setting& one : settings) {
    const auto taker = takers().find(one.key);
    if (taker == takers().end() || !taker->second)
      return control.console.complain(
          kFailure, aborted(fmt::format("Update of this parameter is not supported: {}={}", one.key,
                                        one.value)));
  }
  const auto ids = resolve_jobs(control.scheduler, {id}, BareNumber::WholeArray);
  if (!ids) return control.console.complain(kFailure, ids.error());
  int code = kSuccess;
  for (const JobNumber number : *ids) {
    const auto job = control.scheduler.job(number);
    if (!job) {
      const bool is_unknown = control.scheduler.last_status() == 404;
      code = is_unknown ? control.console.complain(
                              kFailure, fmt::format("Invalid job id specified for job {}", number))
                        : control.console.complain(kFailure, job.error());
      continue;
    }
    json changes = json::object();
    for (const Setting& one : settings)
      if (const auto taken = takers().find(one.key)->second(one.value, *job, changes); !taken)
        return control.console.complain(
            kFailure, fmt::format("{}: {}", harmless(one.key), taken.error().text()));
    if (const auto done = control.scheduler.change(number, changes.dump()); !done)
      code = control.console.complain(kFailure, done.error());
  }
  return code;
}

int update_nodes(const Control& control, const std::string& list,
                 const std::vector<Setting>& settings) {
  std::string state, reason;
  for (const Setting& one : settings) {
    if (one.key == "state")
      state = lower(one.value);
    else if (one.key == "reason")
      reason = one.value;
    else
      return control.console.complain(
          kFailure, aborted(fmt::format("Update of this parameter is not supported: {}={}", one.key,
                                        one.value)));
  }
  const bool is_known = state == "drain" || state == "resume" || state == "down" ||
                        state == "undrain" || state == "idle";
  if (!is_known)
    return control.console.complain(
        kFailure,
        aborted(fmt::format("Invalid node state specified: {} (drain, down, resume)", state)));
  if ((state == "drain" || state == "down") && reason.empty())
    return control.console.complain(kFailure,
                                    "You must specify a reason when DOWNING or DRAINING a node. "
                                    "Request denied");
  if (state == "undrain" || state == "idle") state = "resume";
  const auto names = expanded_hosts(list);
  if (!names) return control.console.complain(kFailure, names.error());
  for (const std::string& name : *names)
    if (const auto done = control.scheduler.send(
            "POST", fmt::format("/nodes/{}/{}", percent_encoded(name), state),
            wire::to_sorted_json(NodeReason{reason}));
        !done)
      return control.console.complain(kFailure, done.error());
  return kSuccess;
}

/// "12,13", "name=train", "12_[1-3]": the jobs a verb is about.
Result<std::vector<JobNumber>> meant(const Control& control, std::span<const std::string> words) {
  std::vector<std::string> names;
  std::vector<JobNumber> numbers;
  for (const std::string& word : words) {
    const std::string small = lower(word);
    if (small.starts_with("name=") || small.starts_with("jobname=")) {
      JobQuery query;
      query.name = word.substr(word.find('=') + 1);
      BERTH_TRY(const JobRows rows, control.scheduler.jobs(query));
      if (rows.jobs.empty()) return fail(fmt::format("No job is called {}", query.name));
      for (const JobRow& job : rows.jobs) numbers.push_back(job.number);
    } else {
      names.push_back(small.starts_with("jobid=") ? word.substr(6) : word);
    }
  }
  BERTH_TRY(auto resolved, resolve_jobs(control.scheduler, names, BareNumber::WholeArray));
  numbers.insert(numbers.end(), resolved.begin(), resolved.end());
  return numbers;
}

int do_verb(const Control& control, Verb verb, const std::vector<JobNumber>& numbers) {
  const auto results = control.scheduler.act({.verb = verb, .ids = numbers});
  if (!results) return control.console.complain(kFailure, results.error());
  int code = kSuccess;
  for (const VerbResult& result : *results)
    if (!result.is_done) {
      code = kFailure;
      if (!control.style.is_quiet) control.console.note(result_text(result));
    }
  return code;
}

}  // namespace

int update(const Control& control, std::span<const std::string> words) {
  auto settings = settings_of(words);
  if (!settings) return control.console.complain(kFailure, settings.error());
  // A job before anything else: of a job the partition is a setting.
  auto entity = settings->end();
  for (const std::string_view key : {"jobid", "job", "nodename", "node", "partitionname",
                                     "partition", "reservationname", "stepid"})
    if (entity == settings->end()) entity = std::ranges::find(*settings, key, &Setting::key);
  if (entity == settings->end())
    return control.console.complain(
        kFailure, "No valid entity in update command: it must name a JobId or a NodeName");
  const Setting what = *entity;
  settings->erase(entity);
  if (what.key.starts_with("job")) {
    if (settings->empty()) return control.console.complain(kFailure, "No changes specified");
    return update_jobs(control, what.value, *settings);
  }
  if (what.key.starts_with("node")) return update_nodes(control, what.value, *settings);
  return control.console.complain(
      kFailure,
      fmt::format("{} cannot be changed by a command: queues are in the scheduler's configuration",
                  what.key));
}

int act(const Control& control, const std::string& verb, std::span<const std::string> words) {
  static const std::map<std::string, Verb, std::less<>> kVerbs{
      {"hold", Verb::Hold},       {"holdu", Verb::Hold},      {"uhold", Verb::Hold},
      {"release", Verb::Release}, {"requeue", Verb::Requeue}, {"requeuehold", Verb::Requeue},
      {"suspend", Verb::Suspend}, {"resume", Verb::Resume}};
  if (words.empty())
    return control.console.complain(kFailure,
                                    fmt::format("too few arguments for keyword:{}", verb));
  const auto numbers = meant(control, words);
  if (!numbers) return control.console.complain(kFailure, numbers.error());
  // Held first: in between it would start again.
  const int held = verb == "requeuehold" ? do_verb(control, Verb::Hold, *numbers) : kSuccess;
  return std::max(held, do_verb(control, kVerbs.find(verb)->second, *numbers));
}

}  // namespace berth::client::slurm
