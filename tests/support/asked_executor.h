// A world that is looked at now and then: at an instant at which nothing happened and that no
// policy wished for, somebody asks (as `berth why` does), or an event comes that changes nothing.
#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "support/passing_executor.h"

namespace berth::test {

class AskedExecutor final : public PassingExecutor {
 public:
  /// `asked` rises. Whoever asks after the last event is not heard: the world has ended. With
  /// `stranger`, a job that does not run at any of these times, each is an event of that job.
  AskedExecutor(std::unique_ptr<Executor> world, std::vector<Time> asked,
                std::optional<JobId> stranger)
      : PassingExecutor(std::move(world)), asked_(std::move(asked)), stranger_(stranger) {}

  [[nodiscard]] std::optional<Time> advance(Time wakeup) override {
    while (next_ < asked_.size() && asked_[next_] <= now_) ++next_;
    const bool goes_on = wakeup != kNever || world().expects_events();
    const Time asked = goes_on && next_ < asked_.size() ? asked_[next_] : kNever;
    const auto then = world().advance(std::min(wakeup, asked));
    if (then) now_ = *then;
    return then;
  }
  void collect(Time now, std::vector<Event>& due) override {
    if (stranger_ && std::ranges::binary_search(asked_, now))
      due.push_back({.kind = EventKind::Lost, .job = *stranger_, .node = {}});
    world().collect(now, due);
    std::ranges::stable_sort(due, {}, &Event::kind);
  }

 private:
  std::vector<Time> asked_;
  std::optional<JobId> stranger_;
  std::size_t next_ = 0;
  Time now_ = kTimeZero;
};

}  // namespace berth::test
