#include "api/openapi.h"

#include <array>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "api/route.h"
#include "base/split.h"
#include "model/job_spec_json.h"
#include "wire/events.h"
#include "wire/requests.h"
#include "wire/shape.h"
#include "wire/step_fields.h"
#include "wire/why.h"

namespace berth::api {

namespace {

using nlohmann::json;

json reference(std::string_view schema) {
  return {{"$ref", fmt::format("#/components/schemas/{}", schema)}};
}

json json_content(std::string_view schema) {
  return {{"application/json", {{"schema", reference(schema)}}}};
}

json job_spec_schema() {
  json properties = json::object();
  for (const JobSpecField& field : job_spec_fields()) {
    json schema{{"description", field.meaning}};
    if (field.kind == "list") {
      schema["type"] = "array";
      schema["items"] = {{"type", "string"}};
    } else if (field.kind == "map") {
      schema["type"] = "object";
      schema["additionalProperties"] = {{"type", "string"}};
    } else {
      schema["type"] = field.kind;
    }
    properties[std::string(field.key)] = std::move(schema);
  }
  return {{"type", "object"},
          {"description", "What to run and how. What is at its default is left out of answers."},
          {"properties", std::move(properties)},
          {"additionalProperties", false}};
}

/// What the routes name, and what is inside of it.
json answer_and_request_schemas() {
  using namespace wire;  // NOLINT(google-build-using-namespace)
  const std::array messages{
      shape_of<ErrorAnswer>(),  shape_of<Submitted>(),      shape_of<JobPage>(),
      shape_of<PastPage>(),     shape_of<AttemptList>(),    shape_of<Why>(),
      shape_of<ActionReason>(), shape_of<JobAction>(),      shape_of<VerbResultList>(),
      shape_of<ClusterView>(),  shape_of<NodeList>(),       shape_of<NodeReason>(),
      shape_of<ShareList>(),    shape_of<PolicySetting>(),  shape_of<ShareChange>(),
      shape_of<TokenList>(),    shape_of<TokenRequest>(),   shape_of<NewToken>(),
      shape_of<Caller>(),       shape_of<LearntProfiles>(), shape_of<Health>(),
      shape_of<JobEvent>(),     shape_of<SettingEvent>(),   shape_of<GapEvent>(),
      shape_of<JobSteps>(),     shape_of<JobStepsList>(),   shape_of<JobJoin>(),
      shape_of<Foreseen>()};
  json schemas = openapi_schemas(messages);
  schemas["Document"] = {{"type", "object"}, {"description", "OpenAPI 3.0"}};
  return schemas;
}

json path_parameters(const Route& route) {
  json all = json::array();
  for (const std::string_view part : split(route.path, '/')) {
    if (!part.starts_with('{')) continue;
    const std::string name(part.substr(1, part.size() - 2));
    all.push_back({{"name", name},
                   {"in", "path"},
                   {"required", true},
                   {"schema", {{"type", name == "job" ? "integer" : "string"}}}});
  }
  return all;
}

json header_parameter(std::string_view name, std::string_view meaning) {
  return {
      {"name", name}, {"in", "header"}, {"description", meaning}, {"schema", {{"type", "string"}}}};
}

json parameters(const Route& route) {
  json all = path_parameters(route);
  for (const Parameter& parameter : route.query) {
    all.push_back({{"name", parameter.name},
                   {"in", "query"},
                   {"description", parameter.meaning},
                   {"schema", {{"type", parameter.kind}}}});
  }
  if (route.name == "submitJob")
    all.push_back(header_parameter("Idempotency-Key", "the same key again is the same job"));
  if (route.name == "readEvents")
    all.push_back(header_parameter("Last-Event-ID", "go on after this event"));
  return all;
}

json good_answer(const Route& route) {
  json answer{{"description", "Done"}};
  if (!route.answer_schema.empty()) {
    answer["content"] = json_content(route.answer_schema);
  } else if (route.method == Method::Get) {
    const char* type = route.name == "readEvents" ? "text/event-stream" : "text/plain";
    answer["content"] = {{type, {{"schema", {{"type", "string"}}}}}};
  }
  return answer;
}

json operation(const Route& route) {
  json responses{{"default", {{"$ref", "#/components/responses/Error"}}}};
  const char* good = "200";
  if (route.name == "submitJob" || route.name == "makeToken") good = "201";
  if (route.name == "revokeToken") good = "204";
  responses[good] = good_answer(route);
  if (route.name == "submitJob") {
    responses["200"] = good_answer(route);
    responses["200"]["description"] = "The key was known: nothing new was made";
  }
  json operation{{"operationId", route.name},
                 {"summary", route.summary},
                 {"parameters", parameters(route)},
                 {"responses", std::move(responses)}};
  if (!route.body_schema.empty()) {
    operation["requestBody"] = {{"required", route.body_schema == "JobSpec"},
                                {"content", json_content(route.body_schema)}};
  }
  if (route.access == Access::Open) operation["security"] = json::array();
  return operation;
}

std::string lower_case(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) c = static_cast<char>(c - 'A' + 'a');
  return lower;
}

json document() {
  json paths = json::object();
  for (const Route& route : routes())
    paths[std::string(route.path)][lower_case(to_string(route.method))] = operation(route);
  json schemas = answer_and_request_schemas();
  schemas["JobSpec"] = job_spec_schema();
  return {{"openapi", "3.0.3"},
          {"info",
           {{"title", "Berth"},
            {"version", BERTH_VERSION},
            {"description",
             "A scheduler for deep-learning jobs. On its Unix socket callers are known "
             "by their user id; over TCP every request carries a token."}}},
          {"paths", std::move(paths)},
          {"security", json::array({{{"token", json::array()}}, json::object()})},
          {"components",
           {{"schemas", std::move(schemas)},
            {"securitySchemes", {{"token", {{"type", "http"}, {"scheme", "bearer"}}}}},
            {"responses",
             {{"Error",
               {{"description", "Refused or failed"}, {"content", json_content("Error")}}}}}}}};
}

}  // namespace

const std::string& openapi_json() {
  static const std::string text = document().dump();
  return text;
}

}  // namespace berth::api
