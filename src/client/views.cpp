#include "client/views.h"

#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "model/job_spec_json.h"

namespace berth::client {

namespace {

using nlohmann::json;

void take(const json& from, std::string& to) {
  if (from.is_string()) to = from.get<std::string>();
}
void take(const json& from, bool& to) {
  if (from.is_boolean()) to = from.get<bool>();
}
template <class T>
requires std::is_arithmetic_v<T>
void take(const json& from, T& to) {
  if (from.is_number()) to = from.get<T>();
}
template <class T>
void take(const json& from, std::optional<T>& to) {
  T value{};
  if (from.is_null()) return;
  take(from, value);
  to = value;
}
template <class T>
void take(const json& from, std::vector<T>& to) {
  if (!from.is_array()) return;
  for (const json& item : from) {
    T value{};
    take(item, value);
    to.push_back(std::move(value));
  }
}
/// What stands under a key, and under as many more as are named; what is not there is left alone.
template <class T, class... More>
void get(const json& object, const char* key, T& to, More&&... more) {
  if (const auto found = object.find(key); found != object.end()) take(*found, to);
  if constexpr (sizeof...(more) > 0) get(object, std::forward<More>(more)...);
}

std::string plain(const json& value) {
  return value.is_string() ? value.get<std::string>()
                           : value.dump(-1, ' ', false, json::error_handler_t::replace);
}
void take_map(const json& object, const char* key, std::map<std::string, std::string>& to) {
  const auto found = object.find(key);
  if (found == object.end() || !found->is_object()) return;
  for (const auto& [name, value] : found->items()) to[name] = plain(value);
}

Result<json> parsed(std::string_view body) {
  json value = json::parse(body, nullptr, false);
  if (value.is_discarded())
    return fail("the scheduler's answer is not JSON: is this the scheduler's address?");
  return value;
}

/// The list under a key, or the value itself if it is one.
const json& list_in(const json& value, const char* key) {
  static const json kEmpty = json::array();
  if (value.is_array()) return value;
  if (!value.is_object()) return kEmpty;
  const auto found = value.find(key);
  return found != value.end() && found->is_array() ? *found : kEmpty;
}

template <class Row, class Read>
Result<std::vector<Row>> rows_from(std::string_view body, const char* key, Read read) {
  BERTH_TRY(const json value, parsed(body));
  std::vector<Row> rows;
  for (const json& item : list_in(value, key)) read(item, rows.emplace_back());
  return rows;
}

void take_places(const json& object, std::vector<HeldOn>& to) {
  for (const json& item : list_in(object, "where")) {
    if (!item.is_object()) continue;
    HeldOn held;
    get(item, "node", held.node, "devices", held.devices, "cores", held.cores);
    to.push_back(std::move(held));
  }
}

JobRow job_of(const json& object, KeepJson keep) {
  JobRow row;
  if (!object.is_object()) return row;
  get(object, "number", row.number, "array", row.array, "array_index", row.array_index,
      "array_at_once", row.array_at_once);
  if (const auto found = object.find("spec"); found != object.end()) row.spec = known_part(*found);
  if (row.spec.array) row.array_at_once = row.spec.array->at_once;
  std::string indices;
  get(object, "array_indices", indices);
  if (!indices.empty())
    if (auto folded = parse_array(indices)) row.folded = std::move(folded->indices);
  std::string state;
  get(object, "state", state);
  const auto states = states_from(state);
  if (states.size() == 1) row.state = states.front();
  get(object, "reason", row.reason, "reason_code", row.reason_code, "submitted", row.submitted,
      "started", row.started, "last_started", row.last_started, "ended", row.ended, "run_seconds",
      row.run_seconds, "gpu_seconds", row.gpu_seconds, "energy_kwh", row.energy_kwh, "attempts",
      row.attempts, "preemptions", row.preemptions, "failures", row.failures);
  take_places(object, row.where);
  get(object, "granted", row.granted, "exit_code", row.exit_code, "signal", row.signal, "pid",
      row.pid, "output", row.output, "error", row.error);
  if (const auto found = object.find("training"); found != object.end() && found->is_object()) {
    Training& training = row.training.emplace();
    get(*found, "iterations", training.iterations, "iterations_per_second",
        training.iterations_per_second, "samples_per_second", training.samples_per_second, "loss",
        training.loss, "sub_steps", training.sub_steps, "last_heard_seconds_ago",
        training.last_heard_seconds_ago);
  }
  if (const auto found = object.find("pace"); found != object.end() && found->is_object()) {
    PaceRow& pace = row.pace.emplace();
    get(*found, "rate", pace.rate, "progress", pace.progress, "seconds_left", pace.seconds_left,
        "source", pace.source);
  }
  if (keep == KeepJson::Yes) row.json = object.dump(-1, ' ', false, json::error_handler_t::replace);
  return row;
}

}  // namespace

Result<JobRow> job_from(std::string_view body) {
  BERTH_TRY(const json value, parsed(body));
  if (!value.is_object() || !value.contains("number"))
    return fail("the scheduler's answer is no job");
  return job_of(value, KeepJson::Yes);
}

Result<JobPage> jobs_from(std::string_view body, KeepJson keep) {
  BERTH_TRY(const json value, parsed(body));
  JobPage page;
  const json& list = list_in(value, "jobs");
  page.jobs.reserve(list.size());
  for (const json& item : list) page.jobs.push_back(job_of(item, keep));
  page.total = page.jobs.size();
  if (!value.is_object()) return page;
  get(value, "total", page.total);
  if (const auto next = value.find("next"); next != value.end() && !next->is_null())
    page.next = plain(*next);
  return page;
}

Result<std::vector<AttemptRow>> attempts_from(std::string_view body) {
  return rows_from<AttemptRow>(body, "attempts", [](const json& item, AttemptRow& row) {
    get(item, "id", row.id);
    take_places(item, row.where);
    get(item, "begun", row.begun, "ended", row.ended, "outcome", row.outcome, "why", row.why,
        "exit_code", row.exit_code, "signal", row.signal, "gpu_seconds", row.gpu_seconds);
  });
}

Result<std::string> caller_from(std::string_view body) {
  BERTH_TRY(const json value, parsed(body));
  std::string user;
  get(value, "user", user);
  if (user.empty()) return fail("the scheduler's answer does not say who we are");
  return user;
}

Result<SubmitReply> submit_from(std::string_view body) {
  BERTH_TRY(const json value, parsed(body));
  SubmitReply reply;
  get(value, "job", reply.first, "count", reply.count, "repeat", reply.is_repeat, "notes",
      reply.notes);
  if (reply.first == 0) return fail("the scheduler's answer names no job");
  return reply;
}

Result<std::vector<DeedRow>> deeds_from(std::string_view body) {
  return rows_from<DeedRow>(body, "results", [](const json& item, DeedRow& row) {
    get(item, "job", row.job, "done", row.is_done, "text", row.text);
  });
}

Result<std::vector<NodeRow>> nodes_from(std::string_view body) {
  return rows_from<NodeRow>(body, "nodes", [](const json& item, NodeRow& row) {
    get(item, "name", row.name, "state", row.state, "reason", row.reason, "type", row.type, "gpus",
        row.gpus, "gpus_used", row.gpus_used, "cpus", row.cpus, "cpus_used", row.cpus_used,
        "memory_mib", row.memory_mib, "devices", row.devices);
    if (const auto found = item.find("energy_kwh"); found != item.end() && found->is_object()) {
      for (const auto& [use, kwh] : found->items())
        if (kwh.is_number()) row.energy_kwh[use] = kwh.get<double>();
    }
  });
}

Result<ClusterRow> cluster_from(std::string_view body) {
  BERTH_TRY(const json value, parsed(body));
  ClusterRow row;
  if (!value.is_object()) return fail("the scheduler's answer is no cluster");
  get(value, "policy", row.policy, "version", row.version, "trouble", row.trouble);
  take_map(value, "settings", row.settings);
  for (const json& item : list_in(value, "queues")) {
    QueueRow& queue = row.queues.emplace_back();
    get(item, "name", queue.name, "max_time_limit", queue.max_time_limit);
  }
  get(value, "uptime_seconds", row.uptime_seconds, "last_pass_seconds", row.last_pass_seconds,
      "worst_pass_seconds", row.worst_pass_seconds, "pending", row.pending, "running", row.running,
      "held", row.held, "passes", row.passes, "gpus", row.gpus, "gpus_used", row.gpus_used);
  return row;
}

Result<std::vector<ShareRow>> shares_from(std::string_view body) {
  return rows_from<ShareRow>(body, "shares", [](const json& item, ShareRow& row) {
    get(item, "kind", row.kind, "name", row.name, "shares", row.shares, "gpu_seconds",
        row.gpu_seconds, "gpus_now", row.gpus_now, "jobs_now", row.jobs_now, "waiting", row.waiting,
        "gpu_limit", row.gpu_limit, "job_limit", row.job_limit, "gpu_seconds_limit",
        row.gpu_seconds_limit);
  });
}

Result<std::vector<TokenRow>> tokens_from(std::string_view body) {
  return rows_from<TokenRow>(body, "tokens", [](const json& item, TokenRow& row) {
    get(item, "name", row.name, "user", row.user, "role", row.role, "created", row.created,
        "expires", row.expires);
  });
}

Result<WhyAnswer> why_from(std::string_view body) {
  BERTH_TRY(const json value, parsed(body));
  WhyAnswer answer;
  if (!value.is_object()) return fail("the scheduler's answer is no explanation");
  get(value, "job", answer.job, "state", answer.state, "summary", answer.summary, "place",
      answer.place, "of", answer.of, "age_seconds", answer.age_seconds, "would_start",
      answer.would_start, "user", answer.user, "yours", answer.is_yours);
  for (const json& item : list_in(value, "reasons")) {
    WhyReason& reason = answer.reasons.emplace_back();
    get(item, "kind", reason.kind, "text", reason.text, "who", reason.who, "when", reason.when,
        "sole", reason.is_sole, "entities", reason.entities, "fix", reason.fix);
    take_map(item, "numbers", reason.numbers);
  }
  return answer;
}

std::vector<std::string> error_messages(std::string_view body) {
  const json value = json::parse(body, nullptr, false);
  std::vector<std::string> messages;
  if (!value.is_object() || !value.contains("error") || !value["error"].is_object())
    return messages;
  get(value["error"], "messages", messages);
  return messages;
}

}  // namespace berth::client
