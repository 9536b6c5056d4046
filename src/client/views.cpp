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
template <class T>
void get(const json& object, const char* key, T& to) {
  if (const auto found = object.find(key); found != object.end()) take(*found, to);
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

void take_places(const json& object, std::vector<HeldOn>& to) {
  for (const json& item : list_in(object, "where")) {
    if (!item.is_object()) continue;
    HeldOn held;
    get(item, "node", held.node);
    get(item, "devices", held.devices);
    get(item, "cores", held.cores);
    to.push_back(std::move(held));
  }
}

/// Keys of a newer scheduler are passed over, a value that cannot be read is left at its default.
JobSpec spec_of(const json& object) {
  JobSpec spec;
  const auto found = object.find("spec");
  if (found == object.end() || !found->is_object()) return spec;
  json known = json::object();
  for (const JobSpecField& field : job_spec_fields()) {
    const std::string key(field.key);
    if (found->contains(key)) known[key] = (*found)[key];
  }
  if (auto read = job_spec_from_json(known)) return *std::move(read);
  get(known, "name", spec.name);
  get(known, "user", spec.user);
  get(known, "queue", spec.queue);
  get(known, "gpus", spec.gpus);
  return spec;
}

JobRow job_of(const json& object) {
  JobRow row;
  if (!object.is_object()) return row;
  get(object, "number", row.number);
  get(object, "array", row.array);
  get(object, "array_index", row.array_index);
  row.spec = spec_of(object);
  std::string state;
  get(object, "state", state);
  const auto states = states_from(state);
  if (states.size() == 1) row.state = states.front();
  get(object, "reason", row.reason);
  get(object, "submitted", row.submitted);
  get(object, "started", row.started);
  get(object, "last_started", row.last_started);
  get(object, "ended", row.ended);
  get(object, "run_seconds", row.run_seconds);
  get(object, "gpu_seconds", row.gpu_seconds);
  get(object, "attempts", row.attempts);
  get(object, "preemptions", row.preemptions);
  get(object, "failures", row.failures);
  take_places(object, row.where);
  get(object, "granted", row.granted);
  get(object, "exit_code", row.exit_code);
  get(object, "signal", row.signal);
  get(object, "pid", row.pid);
  get(object, "output", row.output);
  get(object, "error", row.error);
  if (const auto found = object.find("training"); found != object.end() && found->is_object()) {
    Training& training = row.training.emplace();
    get(*found, "iterations", training.iterations);
    get(*found, "iterations_per_second", training.iterations_per_second);
    get(*found, "samples_per_second", training.samples_per_second);
    get(*found, "loss", training.loss);
    get(*found, "sub_steps", training.sub_steps);
    get(*found, "last_heard_seconds_ago", training.last_heard_seconds_ago);
  }
  row.json = object.dump(-1, ' ', false, json::error_handler_t::replace);
  return row;
}

}  // namespace

Result<JobRow> job_from(std::string_view body) {
  BERTH_TRY(const json value, parsed(body));
  if (!value.is_object() || !value.contains("number"))
    return fail("the scheduler's answer is no job");
  return job_of(value);
}

Result<JobPage> jobs_from(std::string_view body) {
  BERTH_TRY(const json value, parsed(body));
  JobPage page;
  for (const json& item : list_in(value, "jobs")) page.jobs.push_back(job_of(item));
  page.total = page.jobs.size();
  if (!value.is_object()) return page;
  get(value, "total", page.total);
  if (const auto next = value.find("next"); next != value.end() && !next->is_null())
    page.next = plain(*next);
  return page;
}

Result<std::vector<AttemptRow>> attempts_from(std::string_view body) {
  BERTH_TRY(const json value, parsed(body));
  std::vector<AttemptRow> rows;
  for (const json& item : list_in(value, "attempts")) {
    AttemptRow& row = rows.emplace_back();
    get(item, "id", row.id);
    take_places(item, row.where);
    get(item, "begun", row.begun);
    get(item, "ended", row.ended);
    get(item, "outcome", row.outcome);
    get(item, "why", row.why);
    get(item, "exit_code", row.exit_code);
    get(item, "signal", row.signal);
    get(item, "gpu_seconds", row.gpu_seconds);
  }
  return rows;
}

Result<SubmitReply> submit_from(std::string_view body) {
  BERTH_TRY(const json value, parsed(body));
  SubmitReply reply;
  get(value, "job", reply.first);
  get(value, "count", reply.count);
  get(value, "repeat", reply.is_repeat);
  get(value, "notes", reply.notes);
  if (reply.first == 0) return fail("the scheduler's answer names no job");
  return reply;
}

Result<std::vector<DeedRow>> deeds_from(std::string_view body) {
  BERTH_TRY(const json value, parsed(body));
  std::vector<DeedRow> rows;
  for (const json& item : list_in(value, "results")) {
    DeedRow& row = rows.emplace_back();
    get(item, "job", row.job);
    get(item, "done", row.is_done);
    get(item, "text", row.text);
  }
  return rows;
}

Result<std::vector<NodeRow>> nodes_from(std::string_view body) {
  BERTH_TRY(const json value, parsed(body));
  std::vector<NodeRow> rows;
  for (const json& item : list_in(value, "nodes")) {
    NodeRow& row = rows.emplace_back();
    get(item, "name", row.name);
    get(item, "state", row.state);
    get(item, "reason", row.reason);
    get(item, "type", row.type);
    get(item, "gpus", row.gpus);
    get(item, "gpus_used", row.gpus_used);
    get(item, "cpus", row.cpus);
    get(item, "cpus_used", row.cpus_used);
    get(item, "memory_mib", row.memory_mib);
    get(item, "devices", row.devices);
  }
  return rows;
}

Result<ClusterRow> cluster_from(std::string_view body) {
  BERTH_TRY(const json value, parsed(body));
  ClusterRow row;
  if (!value.is_object()) return fail("the scheduler's answer is no cluster");
  get(value, "policy", row.policy);
  get(value, "version", row.version);
  get(value, "trouble", row.trouble);
  take_map(value, "settings", row.settings);
  get(value, "uptime_seconds", row.uptime_seconds);
  get(value, "last_pass_seconds", row.last_pass_seconds);
  get(value, "worst_pass_seconds", row.worst_pass_seconds);
  get(value, "pending", row.pending);
  get(value, "running", row.running);
  get(value, "held", row.held);
  get(value, "passes", row.passes);
  get(value, "gpus", row.gpus);
  get(value, "gpus_used", row.gpus_used);
  return row;
}

Result<std::vector<ShareRow>> shares_from(std::string_view body) {
  BERTH_TRY(const json value, parsed(body));
  std::vector<ShareRow> rows;
  for (const json& item : list_in(value, "shares")) {
    ShareRow& row = rows.emplace_back();
    get(item, "kind", row.kind);
    get(item, "name", row.name);
    get(item, "shares", row.shares);
    get(item, "gpu_seconds", row.gpu_seconds);
    get(item, "gpus_now", row.gpus_now);
    get(item, "jobs_now", row.jobs_now);
    get(item, "waiting", row.waiting);
    get(item, "gpu_limit", row.gpu_limit);
    get(item, "job_limit", row.job_limit);
    get(item, "gpu_seconds_limit", row.gpu_seconds_limit);
  }
  return rows;
}

Result<std::vector<TokenRow>> tokens_from(std::string_view body) {
  BERTH_TRY(const json value, parsed(body));
  std::vector<TokenRow> rows;
  for (const json& item : list_in(value, "tokens")) {
    TokenRow& row = rows.emplace_back();
    get(item, "name", row.name);
    get(item, "user", row.user);
    get(item, "role", row.role);
    get(item, "created", row.created);
    get(item, "expires", row.expires);
  }
  return rows;
}

Result<WhyAnswer> why_from(std::string_view body) {
  BERTH_TRY(const json value, parsed(body));
  WhyAnswer answer;
  if (!value.is_object()) return fail("the scheduler's answer is no explanation");
  get(value, "job", answer.job);
  get(value, "state", answer.state);
  get(value, "summary", answer.summary);
  get(value, "place", answer.place);
  get(value, "of", answer.of);
  get(value, "age_seconds", answer.age_seconds);
  get(value, "would_start", answer.would_start);
  for (const json& item : list_in(value, "reasons")) {
    WhyReason& reason = answer.reasons.emplace_back();
    get(item, "kind", reason.kind);
    get(item, "text", reason.text);
    get(item, "who", reason.who);
    get(item, "when", reason.when);
    get(item, "sole", reason.is_sole);
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
