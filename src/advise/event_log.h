// What has happened to jobs, for whoever follows: numbered without gaps, the last ones kept. Safe
// from any thread; a listener is called by whoever tells.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>

#include "daemon/service.h"

namespace berth::advise {

class EventLog {
 public:
  void tell(ServiceEvent event);
  [[nodiscard]] std::unique_ptr<Service::Subscription> subscribe(
      std::uint64_t after, std::function<void(const ServiceEvent&)> listener);
  [[nodiscard]] std::uint64_t latest() const;

 private:
  struct State {
    mutable std::mutex mutex;
    std::map<std::uint64_t, std::function<void(const ServiceEvent&)>> listeners;
    std::uint64_t next_listener = 1, sequence = 0;
    std::deque<ServiceEvent> kept;
  };
  class Listening;
  std::shared_ptr<State> state_ = std::make_shared<State>();  // a subscription may outlive us
};

}  // namespace berth::advise
