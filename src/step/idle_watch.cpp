#include "step/idle_watch.h"

#include <algorithm>

namespace berth::step {

namespace {

constexpr std::int64_t kSecond = 1'000'000;
constexpr std::int64_t kIdleShare = 100;  // of a core: one part in so many

}  // namespace

IdleWatch::IdleWatch(std::int64_t limit_micros, std::int64_t now) noexcept
    : limit_(limit_micros),
      interval_(std::clamp(limit_micros / 20, kSecond / 5, 30 * kSecond)),
      used_(now),
      last_look_(now),
      next_look_(now + interval_) {}

void IdleWatch::note_use(std::int64_t now) noexcept {
  used_ = now;
  is_warned_ = false;
}

IdleWatch::Verdict IdleWatch::look(const Look& seen) noexcept {
  const std::int64_t passed = seen.now - last_look_;
  last_look_ = seen.now;
  next_look_ = seen.now + interval_;
  const bool computes = seen.cpu_micros * kIdleShare >= std::max<std::int64_t>(1, passed);
  // A session that was suspended had no chance to be used.
  const bool stood_still = passed > 3 * interval_ + kSecond;
  if (computes || stood_still || seen.are_gpus_busy) note_use(seen.now);
  const std::int64_t idle = seen.now - used_;
  if (limit_ <= 0) return Verdict::Fine;
  if (idle >= limit_) return Verdict::End;
  if (is_warned_ || idle < limit_ / 5 * 4) return Verdict::Fine;
  is_warned_ = true;
  return Verdict::Warn;
}

}  // namespace berth::step
