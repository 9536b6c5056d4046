#include <algorithm>

#include "api/json.h"
#include "api/openapi.h"
#include "base/prometheus.h"

namespace berth::api {

namespace {

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

PolicySetting policy_of(ClusterView cluster) {
  return {std::move(cluster.policy), std::move(cluster.settings)};
}

}  // namespace

Answered show_cluster(const Call& call) {
  return answer_of(call.service.cluster(call.request.caller));
}

Answered list_nodes(const Call& call) {
  return answer_of(NodeList{call.service.nodes(call.request.caller)});
}

Answered set_node(const Call& call) {
  const auto asked = read_body<NodeReason>(call);
  if (!asked) return Answered{asked.error(), nullptr};
  return answer_of(call.service.set_node(call.request.caller, call.request.arguments.front(),
                                         call.request.target.path.back(), asked->reason));
}

Answered show_policy(const Call& call) {
  return answer_of(policy_of(call.service.cluster(call.request.caller)));
}

Answered set_policy(const Call& call) {
  const auto asked = read_body<PolicySetting>(call);
  if (!asked) return Answered{asked.error(), nullptr};
  auto cluster = call.service.set_policy(call.request.caller, asked->policy, asked->settings);
  if (!cluster) return fault_answer(cluster.error());
  return answer_of(policy_of(*std::move(cluster)));
}

Answered list_shares(const Call& call) {
  return answer_of(ShareList{call.service.shares(call.request.caller)});
}

Answered set_share(const Call& call) {
  const auto asked = read_body<ShareChange>(call, [](BodyReader& body, const ShareChange& change) {
    const bool is_known =
        std::ranges::find(wire::kShareKinds, change.kind) != wire::kShareKinds.end();
    if (!is_known && !change.kind.empty()) body.wrong("kind", "user or group expected");
  });
  if (!asked) return Answered{asked.error(), nullptr};
  ShareView share = share_now(call, asked->kind, asked->name);
  share.shares = asked->shares.value_or(share.shares);
  share.gpu_limit = asked->gpu_limit.value_or(share.gpu_limit);
  share.job_limit = asked->job_limit.value_or(share.job_limit);
  share.gpu_seconds_limit = asked->gpu_seconds_limit.value_or(share.gpu_seconds_limit);
  if (asked->members) share.members = *asked->members;
  return answer_of(call.service.set_share(call.request.caller, share));
}

Answered list_tokens(const Call& call) {
  auto tokens = call.service.tokens(call.request.caller);
  if (!tokens) return fault_answer(tokens.error());
  return answer_of(TokenList{*std::move(tokens)});
}

Answered make_token(const Call& call) {
  std::optional<Role> role;
  const auto asked =
      read_body<TokenRequest>(call, [&](BodyReader& body, const TokenRequest& request) {
        role = role_from(request.role.value_or("user"));
        if (!role) body.wrong("role", "user, operator or admin expected");
      });
  if (!asked) return Answered{asked.error(), nullptr};
  const TokenView token{.name = asked->name,
                        .user = asked->user.value_or(call.request.caller.user),
                        .role = role.value(),
                        .expires = asked->expires.value_or(0)};
  const auto text = call.service.make_token(call.request.caller, token);
  if (!text) return fault_answer(text.error());
  return answer_of(NewToken{*text, token.name, token.user, token.role, token.expires}, 201);
}

Answered revoke_token(const Call& call) {
  const auto done = call.service.revoke_token(call.request.caller, call.request.arguments.front());
  if (!done) return fault_answer(done.error());
  return json_answer("", 204);
}

Answered show_caller(const Call& call) { return answer_of(call.request.caller); }

Answered show_profiles(const Call& call) {
  return answer_of(LearntProfiles{call.service.learnt_profiles(call.request.caller)});
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
  return answer_of(Health{is_well ? "ok" : "trouble"}, is_well ? 200 : 503);
}

Answered show_openapi(const Call&) { return json_answer(openapi_json()); }

}  // namespace berth::api
