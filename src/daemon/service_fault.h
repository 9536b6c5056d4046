// Refusals of the service, in one line.
#pragma once

#include <string>
#include <utility>

#include <fmt/format.h>

#include "daemon/service.h"

namespace berth {

[[nodiscard]] inline tl::unexpected<Fault> fault(FaultKind kind, std::string message) {
  return tl::unexpected<Fault>(Fault{.kind = kind, .messages = {std::move(message)}});
}

[[nodiscard]] inline tl::unexpected<Fault> not_found(JobNumber job) {
  return fault(FaultKind::NotFound, fmt::format("there is no job {}", job));
}

[[nodiscard]] inline tl::unexpected<Fault> needs(Role role) {
  return fault(FaultKind::Forbidden,
               fmt::format("this needs {} {}", role == Role::User ? "a" : "an", to_string(role)));
}

/// Letters, digits and -_.@, at most 64: what a user, a group or a token can be
/// called.
[[nodiscard]] bool is_plain_name(const std::string& text);

/// To whoever has asked the engine's thread when no pass comes any more.
inline constexpr std::string_view kTooLate = "the scheduler is stopping or begins anew: ask again";

}  // namespace berth
