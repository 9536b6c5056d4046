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
  /// A connection beyond a limit, or one that had to go for a new one. `cause` lives for ever.
  void refused(std::string_view cause);
  void cut(std::string_view cause);

 private:
  mutable std::mutex mutex_;
  std::map<std::pair<std::string_view, int>, std::uint64_t> answers_;
  std::map<std::string_view, std::uint64_t> refused_, cut_;
  PrometheusHistogram seconds_;
};

}  // namespace berth::api
