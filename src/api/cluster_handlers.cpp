#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "api/body.h"
#include "api/handlers.h"
#include "api/json.h"
#include "api/openapi.h"
#include "base/prometheus.h"

namespace berth::api {

namespace {

constexpr std::size_t kMaxReasonBytes = 1'024;
constexpr std::size_t kMostMembers = 1'000;
constexpr double kMuch = 1e15;
constexpr std::int64_t kMany = 1'000'000'000;
constexpr std::int64_t kLastSecond = 253'402'300'799;  // the year 9999

/// Reads an object with `read` and refuses keys it did not ask for.
template <class Read>
tl::expected<void, Response> read_body(const Call& call, Read read) {
  const auto document = parse_body(call.body);
  if (!document) return tl::unexpected<Response>(error_response(400, document.error().messages));
  BodyReader body(*document);
  read(body);
  body.finish();
  if (!body.is_good()) return tl::unexpected<Response>(error_response(400, body.faults()));
  return {};
}

/// A text that has to be there.
std::string needed_text(BodyReader& body, std::string_view key) {
  const auto text = body.text(key, kMaxNameBytes);
  if ((!text || text->empty()) && body.is_good()) body.wrong(key, "missing");
  return text.value_or("");
}

/// The share as it is, or a new one: a request changes what it names and keeps the rest.
ShareView share_now(const Call& call, const std::string& kind, const std::string& name) {
  for (const ShareView& share : call.service.shares(call.request.caller)) {
    if (share.kind == kind && share.name == name) return share;
  }
  ShareView share;
  share.kind = kind;
  share.name = name;
  return share;
}

}  // namespace

Answered show_cluster(const Call& call) {
  return json_answer(to_json(call.service.cluster(call.request.caller)));
}

Answered list_nodes(const Call& call) {
  return json_answer(list_json("nodes", call.service.nodes(call.request.caller)));
}

Answered set_node(const Call& call) {
  std::string reason;
  const auto read = read_body(
      call, [&](BodyReader& body) { reason = body.text("reason", kMaxReasonBytes).value_or(""); });
  if (!read) return Answered{read.error(), nullptr};
  const auto node = call.service.set_node(call.request.caller, call.request.arguments.front(),
                                          call.request.target.path.back(), reason);
  if (!node) return fault_answer(node.error());
  return json_answer(to_json(*node));
}

Answered show_policy(const Call& call) {
  return json_answer(policy_json(call.service.cluster(call.request.caller)));
}

Answered set_policy(const Call& call) {
  std::string policy;
  std::vector<std::pair<std::string, std::string>> settings;
  const auto read = read_body(call, [&](BodyReader& body) {
    policy = needed_text(body, "policy");
    settings = body.settings("settings");
  });
  if (!read) return Answered{read.error(), nullptr};
  const auto cluster = call.service.set_policy(call.request.caller, policy, settings);
  if (!cluster) return fault_answer(cluster.error());
  return json_answer(policy_json(*cluster));
}

Answered list_shares(const Call& call) {
  return json_answer(list_json("shares", call.service.shares(call.request.caller)));
}

Answered set_share(const Call& call) {
  ShareView share;
  const auto read = read_body(call, [&](BodyReader& body) {
    const std::string kind = needed_text(body, "kind");
    const std::string name = needed_text(body, "name");
    if (kind != "user" && kind != "group" && body.is_good())
      body.wrong("kind", "user or group expected");
    share = share_now(call, kind, name);
    share.shares = body.number("shares", 0, 1e9).value_or(share.shares);
    share.gpu_limit =
        static_cast<std::int32_t>(body.whole("gpu_limit", 0, kMany).value_or(share.gpu_limit));
    share.job_limit =
        static_cast<std::int32_t>(body.whole("job_limit", 0, kMany).value_or(share.job_limit));
    share.gpu_seconds_limit =
        body.number("gpu_seconds_limit", 0, kMuch).value_or(share.gpu_seconds_limit);
    if (body.has("members")) share.members = body.texts("members", kMostMembers);
  });
  if (!read) return Answered{read.error(), nullptr};
  const auto set = call.service.set_share(call.request.caller, share);
  if (!set) return fault_answer(set.error());
  return json_answer(to_json(*set));
}

Answered list_tokens(const Call& call) {
  const auto tokens = call.service.tokens(call.request.caller);
  if (!tokens) return fault_answer(tokens.error());
  return json_answer(list_json("tokens", *tokens));
}

Answered make_token(const Call& call) {
  TokenView token;
  const auto read = read_body(call, [&](BodyReader& body) {
    token.name = needed_text(body, "name");
    token.user = body.text("user", kMaxNameBytes).value_or(call.request.caller.user);
    const auto role = role_from(body.text("role", kMaxNameBytes).value_or("user"));
    if (!role) body.wrong("role", "user, operator or admin expected");
    token.role = role.value_or(Role::User);
    token.expires = body.whole("expires", 0, kLastSecond).value_or(0);
  });
  if (!read) return Answered{read.error(), nullptr};
  const auto text = call.service.make_token(call.request.caller, token);
  if (!text) return fault_answer(text.error());
  JsonWriter out;
  out.begin_object().field("token", *text).field("name", token.name).field("user", token.user);
  out.field("role", to_string(token.role)).key("expires");
  if (token.expires == 0)
    out.null();
  else
    out.value(token.expires);
  out.end_object();
  return json_answer(out.take(), 201);
}

Answered revoke_token(const Call& call) {
  const auto done = call.service.revoke_token(call.request.caller, call.request.arguments.front());
  if (!done) return fault_answer(done.error());
  return json_answer("", 204);
}

Answered show_caller(const Call& call) { return json_answer(to_json(call.request.caller)); }

Answered show_profiles(const Call& call) {
  JsonWriter out;
  out.begin_object().field("profiles", call.service.learnt_profiles(call.request.caller));
  return json_answer(out.end_object().str());
}

Answered show_metrics(const Call& call) {
  PrometheusText text;
  call.meter.write(text);
  Answered answered = json_answer(call.service.metrics() + text.str());
  answered.response.content_type = "text/plain; version=0.0.4; charset=utf-8";
  return answered;
}

Answered show_health(const Call& call) {
  // What the trouble is, is not for strangers: /api/v1/cluster tells.
  const bool is_well = call.service.cluster(call.request.caller).trouble.empty();
  return json_answer(is_well ? R"({"status":"ok"})" : R"({"status":"trouble"})",
                     is_well ? 200 : 503);
}

Answered show_openapi(const Call&) { return json_answer(openapi_json()); }

}  // namespace berth::api
