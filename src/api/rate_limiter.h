// How many requests a second one caller may make: a bucket of tokens per caller, filled at a steady
// rate. Who stays away long enough to have a full bucket is forgotten. Used by one thread.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <string>
#include <unordered_map>

namespace berth::api {

class RateLimiter {
 public:
  using Clock = std::chrono::steady_clock;

  /// A rate of 0 limits nothing.
  RateLimiter(double per_second, double burst) : per_second_(per_second), burst_(burst) {}

  [[nodiscard]] bool try_take(const std::string& caller, Clock::time_point now) {
    if (per_second_ <= 0) return true;
    if (buckets_.size() >= kMany) forget_full(now);
    Bucket& bucket = buckets_.try_emplace(caller, Bucket{burst_, now}).first->second;
    bucket = Bucket{filled(bucket, now), now};
    if (bucket.tokens < 1) return false;
    bucket.tokens -= 1;
    return true;
  }
  [[nodiscard]] std::size_t remembered() const noexcept { return buckets_.size(); }

 private:
  static constexpr std::size_t kMany = 4'096;
  struct Bucket {
    double tokens = 0;
    Clock::time_point at;
  };

  [[nodiscard]] double filled(const Bucket& bucket, Clock::time_point now) const {
    const double seconds = std::chrono::duration<double>(now - bucket.at).count();
    return std::min(burst_, bucket.tokens + seconds * per_second_);
  }
  void forget_full(Clock::time_point now) {
    std::erase_if(buckets_, [&](const auto& entry) { return filled(entry.second, now) >= burst_; });
  }

  double per_second_;
  double burst_;
  std::unordered_map<std::string, Bucket> buckets_;
};

}  // namespace berth::api
