#include "daemon/energy_sampler.h"

#include <chrono>

namespace berth {

EnergySampler::EnergySampler(EnergyMeter& meter, const LiveClock& clock) {
  const auto wait = meter.sample(clock.now());
  if (!wait) return;
  thread_ = std::thread([this, &meter, &clock, first = *wait] {
    double seconds = first;
    std::unique_lock lock{mutex_};
    while (!leaving_.wait_for(lock, std::chrono::duration<double>(seconds),
                              [this] { return is_over_; })) {
      lock.unlock();
      seconds = meter.sample(clock.now()).value_or(seconds);
      lock.lock();
    }
  });
}

EnergySampler::~EnergySampler() {
  {
    const std::lock_guard lock{mutex_};
    is_over_ = true;
  }
  leaving_.notify_all();
  if (thread_.joinable()) thread_.join();
}

}  // namespace berth
