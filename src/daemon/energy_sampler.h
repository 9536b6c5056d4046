// Samples a meter's counters as often as it asks for, in a thread of its own: counters wrap, and a
// draw that nobody looks at is not known. Without counters there is no thread.
#pragma once

#include <condition_variable>
#include <mutex>
#include <thread>

#include "daemon/clock.h"
#include "daemon/energy_meter.h"

namespace berth {

class EnergySampler {
 public:
  EnergySampler(EnergyMeter& meter, const LiveClock& clock);
  ~EnergySampler();
  EnergySampler(const EnergySampler&) = delete;
  EnergySampler& operator=(const EnergySampler&) = delete;

 private:
  std::mutex mutex_;
  std::condition_variable leaving_;
  bool is_over_ = false;
  std::thread thread_;
};

}  // namespace berth
