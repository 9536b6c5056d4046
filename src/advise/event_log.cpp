#include "advise/event_log.h"

#include <utility>

namespace berth::advise {

namespace {
constexpr std::size_t kKept = 10'000;
}  // namespace

class EventLog::Listening final : public Service::Subscription {
 public:
  Listening(std::shared_ptr<State> state, std::uint64_t id) : state_(std::move(state)), id_(id) {}
  ~Listening() override {
    const std::lock_guard lock{state_->mutex};
    state_->listeners.erase(id_);
  }
  Listening(const Listening&) = delete;
  Listening& operator=(const Listening&) = delete;

 private:
  std::shared_ptr<State> state_;
  std::uint64_t id_;
};

void EventLog::tell(ServiceEvent event) {
  const std::lock_guard lock{state_->mutex};
  event.sequence = ++state_->sequence;
  for (const auto& [id, listener] : state_->listeners) listener(event);
  state_->kept.push_back(std::move(event));
  if (state_->kept.size() > kKept) state_->kept.pop_front();
}

std::unique_ptr<Service::Subscription> EventLog::subscribe(
    std::uint64_t after, std::function<void(const ServiceEvent&)> listener) {
  const std::lock_guard lock{state_->mutex};
  for (const ServiceEvent& event : state_->kept)
    if (event.sequence > after) listener(event);
  const std::uint64_t id = state_->next_listener++;
  state_->listeners.emplace(id, std::move(listener));
  return std::make_unique<Listening>(state_, id);
}

std::uint64_t EventLog::latest() const {
  const std::lock_guard lock{state_->mutex};
  return state_->sequence;
}

}  // namespace berth::advise
