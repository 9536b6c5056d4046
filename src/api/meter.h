// Counts what the API does, for /metrics. Safe from any thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>

#include "base/prometheus.h"

namespace berth::api {

class Meter {
 public:
  Meter();
  /// `route` is a name from the table, or "none": a text that lives for ever.
  void count(std::string_view route, int status, double seconds);
  void write(PrometheusText& text) const;

  std::atomic<std::int64_t> connections = 0;  // open now
  std::atomic<std::int64_t> streams = 0;      // of these, event and output readers
  std::atomic<std::uint64_t> refused = 0;     // connections beyond a limit

 private:
  mutable std::mutex mutex_;
  std::map<std::pair<std::string_view, int>, std::uint64_t> answers_;
  PrometheusHistogram seconds_;
};

}  // namespace berth::api
