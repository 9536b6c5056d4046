#include "api/message.h"

#include <algorithm>
#include <array>

#include "wire/requests.h"
#include "wire/writer.h"

namespace berth::api {

namespace {

struct StatusRow {
  int status;
  std::string_view code;    // for programs
  std::string_view phrase;  // on the status line
};
constexpr std::array kStatus{
    StatusRow{200, "ok", "OK"},
    StatusRow{201, "created", "Created"},
    StatusRow{204, "no_content", "No Content"},
    StatusRow{400, "bad_request", "Bad Request"},
    StatusRow{401, "unauthorized", "Unauthorized"},
    StatusRow{403, "forbidden", "Forbidden"},
    StatusRow{404, "not_found", "Not Found"},
    StatusRow{405, "method_not_allowed", "Method Not Allowed"},
    StatusRow{408, "timeout", "Request Timeout"},
    StatusRow{409, "conflict", "Conflict"},
    StatusRow{413, "too_large", "Payload Too Large"},
    StatusRow{414, "target_too_long", "URI Too Long"},
    StatusRow{415, "unsupported_media_type", "Unsupported Media Type"},
    StatusRow{417, "expectation_failed", "Expectation Failed"},
    StatusRow{422, "impossible", "Unprocessable Entity"},
    StatusRow{429, "too_many", "Too Many Requests"},
    StatusRow{431, "headers_too_large", "Request Header Fields Too Large"},
    StatusRow{500, "internal", "Internal Server Error"},
    StatusRow{503, "unavailable", "Service Unavailable"},
    StatusRow{505, "version_not_supported", "HTTP Version Not Supported"},
};

const StatusRow& row_of(int status) noexcept {
  const auto found = std::ranges::find(kStatus, status, &StatusRow::status);
  return found != kStatus.end() ? *found : *std::ranges::find(kStatus, 500, &StatusRow::status);
}

int status_of(FaultKind kind) noexcept {
  switch (kind) {
    case FaultKind::BadRequest: return 400;
    case FaultKind::Forbidden: return 403;
    case FaultKind::NotFound: return 404;
    case FaultKind::Conflict: return 409;
    case FaultKind::Impossible: return 422;
    case FaultKind::TooMany: return 429;
    case FaultKind::Unavailable: return 503;
  }
  return 500;
}

}  // namespace

std::string_view to_string(Method method) noexcept {
  constexpr std::string_view kNames[] = {"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OTHER"};
  return kNames[static_cast<std::size_t>(method)];
}

std::string_view reason_phrase(int status) noexcept { return row_of(status).phrase; }

Response error_response(int status, const std::vector<std::string>& messages) {
  Response response;
  response.status = status;
  response.body = wire::to_json(ErrorAnswer{{std::string(row_of(status).code), messages}});
  if (status == 429 || status == 503) response.headers.emplace_back("Retry-After", "1");
  return response;
}

Response error_response(int status, std::string message) {
  return error_response(status, std::vector<std::string>{std::move(message)});
}

Response fault_response(const Fault& fault) {
  return error_response(status_of(fault.kind), fault.messages);
}

}  // namespace berth::api
