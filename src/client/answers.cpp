// Answers of the API as rows. Readers are tolerant: unknown fields are skipped and missing ones
// keep their default, so that a newer scheduler and an older client understand each other.

#include "client/answers.h"

#include <nlohmann/json.hpp>

#include "wire/reader.h"
#include "wire/requests.h"
#include "wire/step_fields.h"
#include "wire/why.h"

template <>
struct berth::wire::Fields<berth::client::TokenRow> : berth::wire::TokenFields {};

namespace berth::client {

namespace {

using nlohmann::json;

Result<json> parsed(std::string_view body) {
  json value = json::parse(body, nullptr, false);
  if (value.is_discarded())
    return fail("the scheduler's answer is not JSON: is this the scheduler's address?");
  return value;
}

template <class T>
Result<T> answer_from(std::string_view body) {
  BERTH_TRY(const json value, parsed(body));
  T answer;
  wire::read(value, answer);
  return answer;
}

/// The list under a key, or the value itself if it is one.
const json& list_in(const json& value, const char* key) {
  static const json kEmpty = json::array();
  if (value.is_array()) return value;
  if (!value.is_object()) return kEmpty;
  const auto found = value.find(key);
  return found != value.end() && found->is_array() ? *found : kEmpty;
}

template <class Row>
Result<std::vector<Row>> rows_from(std::string_view body, const char* key) {
  BERTH_TRY(const json value, parsed(body));
  std::vector<Row> rows;
  wire::Reader::take(list_in(value, key), rows);
  return rows;
}

JobRow job_of(const json& object, KeepJson keep) {
  JobRow row;
  wire::read(object, static_cast<JobView&>(row));
  if (row.spec->array) row.array_at_once = row.spec->array->at_once;
  // As it came, for --json: fields that this program does not know are not lost.
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

// One that is no object is skipped: a list with one odd entry is still a list.
Result<JobRows> jobs_from(std::string_view body, KeepJson keep) {
  BERTH_TRY(const json value, parsed(body));
  JobRows page;
  const json& list = list_in(value, "jobs");
  page.jobs.reserve(list.size());
  for (const json& item : list)
    if (item.is_object()) page.jobs.push_back(job_of(item, keep));
  page.total = page.jobs.size();
  if (!value.is_object()) return page;
  if (const auto total = value.find("total"); total != value.end())
    wire::Reader::take(*total, page.total);
  // A number of live jobs, a text of past ones; here only to be sent back.
  if (const auto next = value.find("next"); next != value.end() && !next->is_null())
    page.next = next->is_string() ? next->get<std::string>() : next->dump();
  return page;
}

Result<std::vector<JobSteps>> steps_from(std::string_view body) {
  return rows_from<JobSteps>(body, "jobs");
}

Result<std::vector<AttemptView>> attempts_from(std::string_view body) {
  return rows_from<AttemptView>(body, "attempts");
}

Result<std::string> caller_from(std::string_view body) {
  BERTH_TRY(Caller caller, answer_from<Caller>(body));
  if (caller.user.empty()) return fail("the scheduler's answer does not say who we are");
  return std::move(caller.user);
}

Result<Foreseen> foreseen_from(std::string_view body) { return answer_from<Foreseen>(body); }

Result<Submitted> submit_from(std::string_view body) {
  BERTH_TRY(auto submitted, answer_from<Submitted>(body));
  if (submitted.first == 0) return fail("the scheduler's answer names no job");
  return submitted;
}

Result<std::vector<VerbResult>> results_from(std::string_view body) {
  return rows_from<VerbResult>(body, "results");
}

Result<std::vector<NodeView>> nodes_from(std::string_view body) {
  return rows_from<NodeView>(body, "nodes");
}

Result<ClusterView> cluster_from(std::string_view body) {
  BERTH_TRY(const json value, parsed(body));
  if (!value.is_object()) return fail("the scheduler's answer is no cluster");
  ClusterView cluster;
  wire::read(value, cluster);
  return cluster;
}

Result<std::vector<ShareView>> shares_from(std::string_view body) {
  return rows_from<ShareView>(body, "shares");
}

Result<std::vector<TokenRow>> tokens_from(std::string_view body) {
  return rows_from<TokenRow>(body, "tokens");
}

Result<std::string> new_token_from(std::string_view body) {
  const auto token = answer_from<NewToken>(body);
  if (!token || token->token.empty()) return fail("the scheduler's answer holds no token");
  return token->token;
}

Result<std::string> profiles_from(std::string_view body) {
  const json value = json::parse(body, nullptr, false);
  if (!value.is_object() || !value.contains("profiles") || !value["profiles"].is_string())
    return fail("the scheduler's answer was not understood (is it older than this program?)");
  return value["profiles"].get<std::string>();
}

Result<Why> why_from(std::string_view body) {
  BERTH_TRY(const json value, parsed(body));
  if (!value.is_object()) return fail("the scheduler's answer is no explanation");
  Why why;
  why.state = LiveState::Unknown;
  why.is_yours = true;  // an older scheduler does not say
  wire::read(value, why);
  return why;
}

// Empty if the body is not ours, as from a proxy; then the status must do.
std::vector<std::string> error_messages(std::string_view body) {
  const json value = json::parse(body, nullptr, false);
  ErrorAnswer answer;
  if (value.is_object()) wire::read(value, answer);
  return std::move(answer.error.messages);
}

}  // namespace berth::client
