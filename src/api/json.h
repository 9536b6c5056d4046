// The body of a request as what it describes, and the answer as JSON: the two ends of wire/ here.
#pragma once

#include <string>
#include <utility>

#include <nlohmann/json.hpp>

#include "api/body.h"
#include "api/handlers.h"
#include "wire/reader.h"
#include "wire/requests.h"
#include "wire/writer.h"

namespace berth::api {

/// Reads the body, lets `check` look at it, and refuses keys that nobody asked for.
template <wire::Described T, class Check>
[[nodiscard]] tl::expected<T, Response> read_body(const Call& call, Check check) {
  const auto document = parse_body(call.body);
  if (!document) return tl::unexpected<Response>(error_response(400, document.error().messages));
  BodyReader body(*document);
  T request;
  wire::read_strictly(body, request);
  check(body, request);
  body.finish();
  if (!body.is_good()) return tl::unexpected<Response>(error_response(400, body.faults()));
  return request;
}
template <wire::Described T>
[[nodiscard]] tl::expected<T, Response> read_body(const Call& call) {
  return read_body<T>(call, [](BodyReader&, T&) {});
}

/// The view, or what was wrong.
template <wire::Described T>
[[nodiscard]] Answered answer_of(const T& view, int status = 200) {
  return json_answer(wire::to_json(view), status);
}
template <wire::Described T>
[[nodiscard]] Answered answer_of(const Answer<T>& answer) {
  return answer ? answer_of(*answer) : fault_answer(answer.error());
}

}  // namespace berth::api
