// The document and the program agree: every route is in it and nothing else, every key of a job is,
// and the answers hold exactly the keys it promises.
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <future>
#include <map>
#include <set>
#include <tuple>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "api/api.h"
#include "api/openapi.h"
#include "model/job_spec_json.h"
#include "support/fake_service.h"

namespace berth::api {
namespace {

using nlohmann::json;

const json& document() {
  static const json the = json::parse(openapi_json());
  return the;
}

std::string lower(std::string_view text) {
  std::string out(text);
  for (char& c : out) c = static_cast<char>(std::tolower(c));
  return out;
}

TEST(Openapi, HasEveryRouteAndNothingElse) {
  std::set<std::string> in_table;
  std::set<std::string> names;
  for (const Route& route : routes()) {
    EXPECT_TRUE(
        in_table.insert(fmt::format("{} {}", lower(to_string(route.method)), route.path)).second)
        << route.path;
    EXPECT_TRUE(names.insert(std::string(route.name)).second) << route.name;
    EXPECT_TRUE((route.answer == nullptr) != (route.answer_later == nullptr)) << route.name;
    EXPECT_EQ(route.takes == Takes::Json, !route.body_schema.empty()) << route.name;
  }
  std::set<std::string> in_document;
  for (const auto& [path, operations] : document()["paths"].items()) {
    for (const auto& [method, operation] : operations.items())
      in_document.insert(fmt::format("{} {}", method, path));
  }
  EXPECT_EQ(in_table, in_document);
  EXPECT_GE(in_table.size(), 30U);
}

TEST(Openapi, HasTheKeysOfAJob) {
  std::set<std::string> keys;
  for (const JobSpecField& field : job_spec_fields()) keys.insert(std::string(field.key));
  std::set<std::string> in_document;
  for (const auto& [key, schema] :
       document()["components"]["schemas"]["JobSpec"]["properties"].items())
    in_document.insert(key);
  EXPECT_EQ(keys, in_document);
}

void check_references(const json& node, int& seen) {
  if (node.is_object() && node.contains("$ref")) {
    const json::json_pointer pointer(node["$ref"].get<std::string>().substr(1));
    EXPECT_TRUE(document().contains(pointer)) << node["$ref"];
    ++seen;
  }
  if (node.is_structured()) {
    for (const auto& item : node) check_references(item, seen);
  }
}

TEST(Openapi, LeadsNowhereWrong) {
  int seen = 0;
  check_references(document(), seen);
  EXPECT_GT(seen, 60);
}

/// Every key of the answer is promised and every promised key is there, all the way down.
void compare(const json& answer, json schema, const std::string& where) {
  if (schema.contains("$ref")) {
    if (schema["$ref"].get<std::string>().ends_with("/JobSpec")) return;  // leaves out defaults
    schema = document()[json::json_pointer(schema["$ref"].get<std::string>().substr(1))];
  }
  if (answer.is_null()) {
    EXPECT_TRUE(schema.value("nullable", false)) << where;
    return;
  }
  const std::string type = schema.value("type", "");
  EXPECT_TRUE(type != "integer" || answer.is_number_integer()) << where;
  EXPECT_TRUE(type != "number" || answer.is_number()) << where;
  EXPECT_TRUE(type != "string" || answer.is_string()) << where;
  EXPECT_TRUE(type != "boolean" || answer.is_boolean()) << where;
  if (schema.contains("enum")) {
    const auto& known = schema["enum"];
    EXPECT_NE(std::find(known.begin(), known.end(), answer), known.end()) << where << answer;
  }
  if (type == "array") {
    ASSERT_TRUE(answer.is_array()) << where;
    for (const json& item : answer) compare(item, schema["items"], where + "[]");
  }
  if (!schema.contains("properties")) return;
  ASSERT_TRUE(answer.is_object()) << where;
  for (const auto& [key, value] : answer.items()) {
    EXPECT_TRUE(schema["properties"].contains(key)) << where << "." << key;
    if (schema["properties"].contains(key))
      compare(value, schema["properties"][key], where + "." + key);
  }
  for (const auto& [key, value] : schema["properties"].items()) {
    const bool is_of_brief_rows = value.value("description", "").starts_with("brief rows only");
    EXPECT_NE(answer.contains(key), is_of_brief_rows) << where << "." << key << " is promised";
  }
}

class Answers : public ::testing::Test {
 protected:
  void SetUp() override {
    service_.add_token("root", {"root", 0, 0, Role::Admin});
    const auto submitted = service_.submit({"root", 0, 0, Role::Admin}, job());
    ASSERT_TRUE(submitted);
    service_.run(1);
    std::ignore = service_.submit({"root", 0, 0, Role::Admin}, job());
    service_.run(2);
    service_.finish(2, LiveState::Completed);
    std::ignore = service_.set_share({"root", 0, 0, Role::Admin}, {.kind = "user", .name = "a"});
  }
  static JobSpec job() {
    JobSpec spec;
    spec.command = {"true"};
    return spec;
  }
  json answer(Method method, const std::string& target, const std::string& body, int& status) {
    Head head;
    head.method = method;
    head.target = target;
    head.authorization = "Bearer root";
    head.content_type = "application/json";
    auto admitted = api_.admit(head, body.empty() ? Api::Body::None : Api::Body::Announced);
    EXPECT_TRUE(admitted) << target;
    std::promise<Answered> promise;
    api_.answer(*std::move(admitted), body,
                [&](Answered answered) { promise.set_value(std::move(answered)); });
    const Answered answered = promise.get_future().get();
    status = answered.response.status;
    return answered.response.body.empty() ? json() : json::parse(answered.response.body);
  }

  testing::FakeService service_;
  Api api_{service_, {}};
};

TEST_F(Answers, HoldExactlyWhatIsPromised) {
  const std::map<std::string, std::string> bodies{{"submitJob", R"({"command":["true"]})"},
                                                  {"actOnJobs", R"({"verb":"hold","ids":[1]})"},
                                                  {"changeJob", R"({"priority":1})"},
                                                  {"signalJob", R"({"signal":1})"},
                                                  {"joinJob", R"({"request":1})"},
                                                  {"setPolicy", R"({"policy":"fifo"})"},
                                                  {"setShare", R"({"kind":"user","name":"a"})"},
                                                  {"makeToken", R"({"name":"t"})"}};
  int compared = 0;
  for (const Route& route : routes()) {
    if (route.answer_schema.empty() || route.name == "deleteJob" || route.name == "cancelJob")
      continue;  // streams; and job 1 is still needed
    std::string target(route.path);
    for (const auto& [holder, value] : {std::pair{"{job}", "1"}, {"{node}", "n1"}}) {
      if (const auto at = target.find(holder); at != std::string::npos)
        target.replace(at, std::string_view(holder).size(), value);
    }
    if (route.name == "suspendJob") service_.run(1);
    const auto body = bodies.find(std::string(route.name));
    int status = 0;
    const json answered =
        answer(route.method, target, body == bodies.end() ? "" : body->second, status);
    const bool is_error = status >= 300;
    compare(answered,
            {{"$ref", fmt::format("#/components/schemas/{}",
                                  is_error ? "Error" : std::string(route.answer_schema))}},
            std::string(route.name));
    if (!is_error) ++compared;
  }
  EXPECT_GE(compared, 20);
}

}  // namespace
}  // namespace berth::api
