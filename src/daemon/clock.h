// The engine's time on a live machine: goes on by the boot clock, so that setting the wall clock
// moves nothing, and never runs backwards over restarts. Across a reboot it stands still: nobody
// can know how long that took. Wall time is a note for people.
#pragma once

#include <cstdint>
#include <string>

#include "base/time.h"

namespace berth {

/// Where time comes from; tests have their own.
class ClockSource {
 public:
  virtual ~ClockSource() = default;
  [[nodiscard]] virtual std::int64_t boot_micros() const = 0;  // since boot, suspend included
  [[nodiscard]] virtual std::int64_t wall_micros() const = 0;  // Unix
  [[nodiscard]] virtual std::string boot_id() const = 0;
};

class MachineClock final : public ClockSource {
 public:
  [[nodiscard]] std::int64_t boot_micros() const override;
  [[nodiscard]] std::int64_t wall_micros() const override;
  [[nodiscard]] std::string boot_id() const override;
};

class LiveClock {
 public:
  /// `last`: engine time of the last record; its boot and boot clock come from the last LifeRecord
  /// and are of use only within the same boot.
  LiveClock(const ClockSource& source, Time last, const std::string& last_boot_id = {},
            std::int64_t last_life_boot = 0, Time last_life = {});
  [[nodiscard]] Time now() const noexcept;
  [[nodiscard]] std::int64_t wall() const { return source_->wall_micros(); }
  [[nodiscard]] const ClockSource& source() const noexcept { return *source_; }
  /// How long until then by the boot clock; zero if it has passed.
  [[nodiscard]] Duration until(Time time) const noexcept;

 private:
  const ClockSource* source_;
  Time zero_at_;            // engine time at …
  std::int64_t zero_boot_;  // … this boot clock
};

}  // namespace berth
