#include "daemon/attempt_launcher.h"

#include <exception>

#include <fmt/format.h>

namespace berth {

namespace {

template <class Make>
auto without_throwing(const char* what, Make make) -> decltype(make()) {
  try {
    return make();
  } catch (const std::exception& error) {
    return fail(fmt::format("{}, this is a bug: {}", what, error.what()));
  }
}

}  // namespace

std::optional<AttemptLauncher::Failure> AttemptLauncher::launch(const LedgerJob& job,
                                                                const Attempt& attempt) const {
  const auto order =
      without_throwing("its start could not be prepared", [&] { return order_(job, attempt); });
  if (!order) return Failure{order.error().text(), true};
  const auto launched =
      without_throwing("it could not be started", [&] { return host_.launch(*order); });
  if (!launched) return Failure{launched.error().text(), false};
  return std::nullopt;
}

}  // namespace berth
