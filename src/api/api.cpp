#include "api/api.h"

#include <algorithm>
#include <exception>

#include <fmt/format.h>

#include "base/suggest.h"

namespace berth::api {

namespace {

/// "application/json", in any case, with or without parameters.
bool is_json_type(std::string_view type) {
  constexpr std::string_view kJson = "application/json";
  const std::string_view name = type.substr(0, type.find_first_of("; \t"));
  return std::ranges::equal(name, kJson, [](char a, char b) {
    return (a >= 'A' && a <= 'Z' ? static_cast<char>(a - 'A' + 'a') : a) == b;
  });
}

std::vector<std::string> unknown_parameters(const Route& route, const Target& target) {
  std::vector<std::string> known;
  for (const Parameter& parameter : route.query) known.emplace_back(parameter.name);
  std::vector<std::string> faults;
  for (const auto& [name, value] : target.query) {
    if (std::ranges::find(known, name) != known.end()) continue;
    faults.push_back(known.empty() ? fmt::format("{}: there are no parameters here", name)
                                   : fmt::format("{}: unknown{}", name, suggestion(name, known)));
  }
  return faults;
}

Response unauthorized(std::string message) {
  Response response = error_response(401, std::move(message));
  response.headers.emplace_back("WWW-Authenticate", "Bearer realm=\"berth\"");
  return response;
}

/// The token of "Bearer TOKEN"; empty if it is something else.
std::string bearer_token(std::string_view header) {
  constexpr std::string_view kScheme = "bearer ";
  const auto is_equal = [](char a, char b) { return (a | 0x20) == b; };
  if (header.size() <= kScheme.size() ||
      !std::ranges::equal(header.substr(0, kScheme.size()), kScheme, is_equal))
    return {};
  header.remove_prefix(kScheme.size());
  while (header.starts_with(' ')) header.remove_prefix(1);
  return std::string(header);
}

tl::unexpected<Response> refuse(Response response) {
  return tl::unexpected<Response>(std::move(response));
}

}  // namespace

Api::Api(Service& service, ApiOptions options)
    : service_(service), options_(options), limiter_(options.requests_per_second, options.burst) {}

tl::expected<Caller, Response> Api::caller_of(const Head& head, const Route& route) {
  if (!head.authorization.empty()) {
    const std::string token = bearer_token(head.authorization);
    if (token.empty()) return refuse(unauthorized("Authorization: 'Bearer TOKEN' expected"));
    if (auto caller = service_.caller_of(token)) return *std::move(caller);
    return refuse(unauthorized("the token is not good: unknown, revoked or expired"));
  }
  if (head.peer.is_local) return service_.caller_of_peer(head.peer.uid, head.peer.gid);
  const bool is_open =
      route.access == Access::Open || (route.access == Access::Metrics && options_.open_metrics);
  if (is_open) return Caller{};
  // Any user of this machine can reach a loopback port, so being local proves nothing there.
  return refuse(unauthorized("a token is needed here (Authorization: Bearer TOKEN)"));
}

tl::expected<Admitted, Response> Api::admit(const Head& head, Body body) {
  if (head.target.size() > options_.max_target_bytes) {
    return refuse(error_response(414, fmt::format("target: {} bytes, at most {}",
                                                  head.target.size(), options_.max_target_bytes)));
  }
  auto target = parse_target(head.target);
  if (!target) return refuse(error_response(400, target.error().messages));
  Match match = match_route(head.method, *target);
  if (match.route == nullptr && match.allowed.empty())
    return refuse(error_response(404, "there is nothing at this path (see /api/v1/openapi.json)"));
  if (match.route == nullptr) {
    Response response = error_response(405, fmt::format("this path takes {}", match.allowed));
    response.headers.emplace_back("Allow", match.allowed);
    return refuse(std::move(response));
  }
  const Route& route = *match.route;
  auto caller = caller_of(head, route);
  const std::string& payer =
      caller && !caller->user.empty() ? caller->user : head.peer.address;  // who fails pays too
  if (!limiter_.try_take(payer, RateLimiter::Clock::now())) {
    return refuse(error_response(
        429, fmt::format("more than {} requests a second", options_.requests_per_second)));
  }
  if (!caller) return refuse(std::move(caller).error());
  if (body == Body::Announced && route.takes == Takes::Nothing)
    return refuse(error_response(400, "body: none is taken here"));
  if (body == Body::Announced && !is_json_type(head.content_type))
    return refuse(error_response(415, "Content-Type: application/json expected"));
  if (const auto faults = unknown_parameters(route, *target); !faults.empty())
    return refuse(error_response(400, faults));

  const bool is_submit = route.answer_later != nullptr;
  return Admitted{&route,
                  *std::move(target),
                  std::move(match.arguments),
                  *std::move(caller),
                  head,
                  is_submit ? options_.max_submit_bytes : options_.max_body_bytes};
}

void Api::answer(Admitted request, std::string body, Reply reply) {
  const Route& route = *request.route;
  const Call call{service_, request, body, options_, meter_};
  Answered answered;
  try {
    if (route.answer_later != nullptr) return route.answer_later(call, reply);
    answered = route.answer(call);
  } catch (const std::exception&) {  // of a library; its text is not for strangers
    answered.response = error_response(500, "something went wrong inside; this is a bug");
    answered.source.reset();
  }
  reply(std::move(answered));
}

}  // namespace berth::api
