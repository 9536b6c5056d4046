#include "daemon/inbox.h"

#include <chrono>

namespace berth {

namespace {
/// The clock of a wait is not the boot clock: after a machine slept, look again within a minute.
constexpr Duration kLongestNap = std::chrono::minutes{1};
}  // namespace

void ThreadInbox::post(Message message) {
  {
    const std::lock_guard lock{mutex_};
    messages_.push_back(std::move(message));
  }
  wake_.notify_one();
}

void ThreadInbox::wait(Time until) {
  std::unique_lock lock{mutex_};
  while (messages_.empty()) {
    if (until == kNever) {
      wake_.wait(lock);
      continue;
    }
    const Duration left = clock_.until(until);
    if (left <= Duration::zero()) return;
    wake_.wait_for(lock, std::min(left, kLongestNap));
  }
}

void ThreadInbox::take(std::vector<Message>& messages) {
  const std::lock_guard lock{mutex_};
  messages.swap(messages_);
  messages_.clear();
}

}  // namespace berth
