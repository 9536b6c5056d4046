// What the engine's thread is told, in the order in which it came: records that others have
// written, events of processes, answers of training code, questions. In a test the queue is the
// world: it lets time pass until there is a message.
#pragma once

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <variant>
#include <vector>

#include "daemon/clock.h"
#include "daemon/journal_writer.h"
#include "daemon/power_programs.h"
#include "exec/host.h"

namespace berth {

struct StopOrder {};
/// Something to be answered between two passes, when nothing is in the middle of changing. Exactly
/// one of the two is called: `too_late` if no pass comes any more, from any thread.
struct Question {
  std::function<void()> ask;
  std::function<void()> too_late{};
  bool calls_for_pass = false;  // something has changed that a policy or a tuner may look at
};
/// Training code has answered a request for another size.
struct ResizeAnswer {
  JobNumber job = 0;
  std::uint64_t id = 0;
  bool done = false;
};
using Message = std::variant<Committed, HostEvent, StopOrder, Question, ResizeAnswer, ProgramEnd>;

class MessageQueue {
 public:
  virtual ~MessageQueue() = default;
  /// Waits until something has come or that engine time is reached.
  virtual void wait(Time until) = 0;
  /// Everything that has come; empties it.
  virtual void take(std::vector<Message>& messages) = 0;
};

class BlockingMessageQueue final : public MessageQueue {
 public:
  explicit BlockingMessageQueue(const LiveClock& clock) : clock_(clock) {}
  void post(Message message);
  void wait(Time until) override;
  void take(std::vector<Message>& messages) override;
  /// No engine will hear of anything any more: questions, also those to come, are too late.
  void close();

 private:
  const LiveClock& clock_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::vector<Message> messages_;
  bool is_closed_ = false;
};

}  // namespace berth
