// The resources under /api/v1, without sockets: a request's head is admitted or refused, then with
// its body answered. The server asks the two questions; so do tests and the fuzzer.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "api/message.h"
#include "api/meter.h"
#include "api/rate_limiter.h"
#include "api/route.h"
#include "api/target.h"

namespace berth::api {

struct ApiOptions {
  bool open_metrics = false;           // /metrics without a token
  double requests_per_second = 5'000;  // of one caller; 0: no limit
  double burst = 10'000;
  std::size_t max_target_bytes = 8U << 10U;
  std::size_t max_body_bytes = 1U << 20U;
  std::size_t max_submit_bytes = 8U << 20U;  // a script, its environment, and quoting
  std::size_t max_event_buffer_bytes = 1U << 20U;
  std::chrono::milliseconds heartbeat{15'000};
};

/// A request that may be read on and answered.
struct Admitted {
  const Route* route = nullptr;
  Target target;
  std::vector<std::string> arguments;  // what stands for {…} in the route's path
  Caller caller;
  Head head;
  std::size_t max_body_bytes = 0;
};

class Api {
 public:
  Api(Service& service, ApiOptions options);

  /// By its head alone, before a body is read from a stranger. `has_body`: one is announced. One
  /// thread at a time.
  enum class Body : std::uint8_t { None, Announced };
  [[nodiscard]] tl::expected<Admitted, Response> admit(const Head& head, Body body);
  /// Any thread; `reply` is called exactly once, now or later, from any thread. Nothing is thrown.
  void answer(Admitted request, std::string body, Reply reply);

  [[nodiscard]] Meter& meter() noexcept { return meter_; }
  [[nodiscard]] const ApiOptions& options() const noexcept { return options_; }

 private:
  [[nodiscard]] tl::expected<Caller, Response> caller_of(const Head& head, const Route& route);

  Service& service_;
  const ApiOptions options_;
  RateLimiter limiter_;
  Meter meter_;
};

}  // namespace berth::api
