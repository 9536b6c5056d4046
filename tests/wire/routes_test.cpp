// What every route answers, byte for byte, of a scheduler that has something in every field; what
// it says to bad requests; and the document that describes them.
#include <future>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "api/api.h"
#include "api/openapi.h"
#include "wire/filled_service.h"
#include "wire/recorded.h"

namespace berth::api {
namespace {

using test::expect_recorded;

class Asked {
 public:
  std::string operator()(Method method, const std::string& target, const std::string& body = {},
                         const std::string& token = "root") {
    Head head;
    head.method = method;
    head.target = target;
    head.authorization = "Bearer " + token;
    head.content_type = "application/json";
    std::string text = fmt::format("{} {} {}\n", to_string(method), target, body);
    auto admitted = api_.admit(head, body.empty() ? Api::Body::None : Api::Body::Announced);
    if (!admitted)
      return text + fmt::format("{} {}\n\n", admitted.error().status, admitted.error().body);
    std::promise<Answered> promise;
    api_.answer(*std::move(admitted), body,
                [&](Answered answered) { promise.set_value(std::move(answered)); });
    const Answered answered = promise.get_future().get();
    return text + fmt::format("{} {}\n\n", answered.response.status,
                              answered.source ? "(a stream)" : answered.response.body);
  }

 private:
  test::FilledService service_;
  Api api_{service_, {}};
};

TEST(Wire, WhatEveryRouteAnswers) {
  const std::map<std::string, std::string> bodies{{"submitJob", R"({"command":["true"]})"},
                                                  {"actOnJobs", R"({"verb":"hold","ids":[12]})"},
                                                  {"changeJob", R"({"priority":1})"},
                                                  {"signalJob", R"({"signal":1})"},
                                                  {"joinJob", R"({"request":1})"},
                                                  {"setPolicy", R"({"policy":"fifo"})"},
                                                  {"setShare", R"({"kind":"user","name":"a"})"},
                                                  {"makeToken", R"({"name":"t"})"}};
  Asked ask;
  std::string all;
  for (const Route& route : routes()) {
    if (route.name == "showMetrics" || route.name == "showOpenapi" || route.name == "readOutput")
      continue;
    std::string target(route.path);
    for (const auto& [holder, value] :
         {std::pair{"{job}", "12"}, {"{node}", "n1"}, {"{token}", "ci"}}) {
      if (const auto at = target.find(holder); at != std::string::npos)
        target.replace(at, std::string_view(holder).size(), value);
    }
    const auto body = bodies.find(std::string(route.name));
    all += ask(route.method, target, body == bodies.end() ? "" : body->second);
  }
  for (const char* target :
       {"/api/v1/jobs?brief=1", "/api/v1/jobs?fold=1", "/api/v1/jobs?after=3", "/api/v1/jobs/13",
        "/api/v1/jobs/14", "/api/v1/history?brief=1", "/api/v1/history?cursor=1700000000000004.12"})
    all += ask(Method::Get, target);
  for (const char* target : {"/api/v1/jobs/12", "/api/v1/whoami"})
    all += ask(Method::Get, target, "", "nobody");
  all += ask(Method::Post, "/api/v1/tokens",
             R"({"name":"t","user":"bob","role":"admin","expires":1900000000})");
  all += ask(Method::Put, "/api/v1/shares",
             R"({"kind":"group","name":"ml","shares":3,"gpu_limit":1,"job_limit":2,)"
             R"("gpu_seconds_limit":3.5,"members":["x","y"]})");
  expect_recorded("routes.txt", all);
}

TEST(Wire, WhatBadRequestsHear) {
  Asked ask;
  std::string all;
  const std::string big(300, 'x');
  const std::string many = [] {
    std::string text = "[1";
    for (int i = 0; i < 10'000; ++i) text += ",1";
    return text + "]";
  }();
  for (const std::string& body : {
           std::string{"[]"},
           std::string{"{"},
           std::string{"5"},
           std::string{R"({"a":1e999})"},
           std::string{"[[[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]]]"},
           std::string{R"({"verb":5})"},
           std::string{R"({"verb":"cancle","ids":[1]})"},
           std::string{R"({"ids":[1]})"},
           std::string{R"({"verb":null,"ids":null})"},
           std::string{R"({"verb":"cancel"})"},
           std::string{R"({"verb":"preempt","ids":[1]})"},
           std::string{R"({"verb":"cancel","ids":[]})"},
           std::string{R"({"verb":"cancel","ids":[0]})"},
           std::string{R"({"verb":"cancel","ids":["1"]})"},
           std::string{R"({"verb":"cancel","ids":1})"},
           std::string{R"({"verb":"cancel","ids":[-1],"user":7,"group":{},"x":1,"usr":"a"})"},
           std::string{R"({"verb":"cancel","user":"a\u0000b","name":")"} + big + "\"}",
           std::string{R"({"verb":"cancel","state":"pendng"})"},
           std::string{R"({"verb":"cancel","state":["all"],"why":5})"},
           std::string{R"({"verb":"cancel","state":[1]})"},
           std::string{R"({"verb":"cancel","state":7})"},
           std::string{R"({"verb":"signal","ids":[1]})"},
           std::string{R"({"verb":"signal","ids":[1],"signal":0})"},
           std::string{R"({"verb":"signal","ids":[1],"signal":65})"},
           std::string{R"({"verb":"signal","ids":[1],"signal":1.5})"},
           std::string{R"({"verb":"signal","ids":[1],"signal":18446744073709551615})"},
           std::string{R"({"verb":"signal","ids":[1],"signal":"9"})"},
       })
    all += ask(Method::Post, "/api/v1/jobs/actions", body);
  const std::string long_list =
      ask(Method::Post, "/api/v1/jobs/actions", R"({"verb":"hold","ids":)" + many + "}");
  all += long_list.substr(long_list.find('\n') + 1);
  for (const char* body : {R"({"why":5})", R"({"why":"a\u0000"})", R"({"wy":"a"})", R"([1])",
                           R"({"signal":99})", R"({"why":null})"})
    for (const char* verb : {"cancel", "signal"})
      all += ask(Method::Post, fmt::format("/api/v1/jobs/12/{}", verb), body);
  for (const char* body : {R"({"reason":5})", R"({"raeson":""})", R"({"reason":"\u0000"})"})
    all += ask(Method::Post, "/api/v1/nodes/n1/drain", body);
  for (const char* body :
       {"{}", R"({"policy":5})", R"({"policy":""})", R"({"policy":"a","settings":5})",
        R"({"policy":"a","settings":{"x":[],"y":null,"z":{}}})", R"({"polcy":"a"})",
        R"({"policy":"a","settings":{"x":1,"y":true,"z":0.5,"w":"t","v":"a\u0000"}})"})
    all += ask(Method::Put, "/api/v1/policy", body);
  for (const char* body :
       {"{}", R"({"kind":"user"})", R"({"kind":"usr","name":"a"})", R"({"kind":5,"name":5})",
        R"({"kind":"user","name":"a","shares":-1,"gpu_limit":-1,"job_limit":1e3,)"
        R"("gpu_seconds_limit":"1","members":[5]})",
        R"({"kind":"user","name":"a","shares":2000000000,"gpu_limit":2000000000})",
        R"({"kind":"user","name":"a","gpu_second":1})",
        R"({"kind":"user","name":"a","shares":null,"members":null})",
        R"({"kind":"group","name":"ml","members":"one"})"})
    all += ask(Method::Put, "/api/v1/shares", body);
  for (const char* body :
       {"{}", R"({"name":5})", R"({"name":"a","role":"boss"})", R"({"name":"a","role":5})",
        R"({"name":"a","expires":-1})", R"({"name":"a","expires":1e3})",
        R"({"name":"a","user":5,"nmae":1})", R"({"name":"a","expires":253402300800})"})
    all += ask(Method::Post, "/api/v1/tokens", body);
  for (const char* body : {"{}", R"({"comand":["a"]})", R"({"command":"a","gpus":"x","env":5})",
                           R"({"command":["a"],"kind":"fun","array":5,"dependencies":[]})"})
    all += ask(Method::Post, "/api/v1/jobs", body);
  for (const char* body : {"{}", R"({"gpus":"x"})", R"({"gups":1})"})
    all += ask(Method::Patch, "/api/v1/jobs/12", body);
  for (const char* target :
       {"/api/v1/jobs?state=pendng", "/api/v1/jobs?limit=0", "/api/v1/jobs?x=1",
        "/api/v1/history?outcome=lost", "/api/v1/history?cursor=x", "/api/v1/jobs/x"})
    all += ask(Method::Get, target);
  expect_recorded("refusals.txt", all);
}

TEST(Wire, TheDocument) {
  auto document = nlohmann::json::parse(openapi_json());
  document["info"]["version"] = "";
  expect_recorded("openapi.json", document.dump(1) + "\n");
}

}  // namespace
}  // namespace berth::api
