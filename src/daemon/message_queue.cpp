#include "daemon/message_queue.h"

#include <chrono>

namespace berth {

namespace {
/// The clock of a wait is not the boot clock: after a machine slept, look again within a minute.
constexpr Duration kLongestNap = std::chrono::minutes{1};

void tell_too_late(const Message& message) {
  const auto* question = std::get_if<Question>(&message);
  if (question != nullptr && question->too_late) question->too_late();
}
}  // namespace

void BlockingMessageQueue::post(Message message) {
  {
    const std::lock_guard lock{mutex_};
    if (!is_closed_) messages_.push_back(std::move(message));
    if (!is_closed_) return wake_.notify_one();
  }
  tell_too_late(message);
}

void BlockingMessageQueue::close() {
  std::vector<Message> unheard;
  {
    const std::lock_guard lock{mutex_};
    is_closed_ = true;
    unheard.swap(messages_);
  }
  for (const Message& message : unheard) tell_too_late(message);
}

void BlockingMessageQueue::wait(Time until) {
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

void BlockingMessageQueue::take(std::vector<Message>& messages) {
  const std::lock_guard lock{mutex_};
  messages.swap(messages_);
  messages_.clear();
}

}  // namespace berth
