// A world that is looked at now and then: at an instant at which nothing happened and that no
// policy wished for, somebody asks (as `berth why` does), or an event comes that changes nothing.
#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "core/executor.h"

namespace berth::test {

class AskedExecutor final : public Executor {
 public:
  /// `asked` rises. Whoever asks after the last event is not heard: the world has ended. With
  /// `stranger`, a job that does not run at any of these times, each is an event of that job.
  AskedExecutor(std::unique_ptr<Executor> world, std::vector<Time> asked,
                std::optional<JobId> stranger)
      : world_(std::move(world)), asked_(std::move(asked)), stranger_(stranger) {}

  [[nodiscard]] Capabilities capabilities() const noexcept override {
    return world_->capabilities();
  }
  [[nodiscard]] std::optional<Time> advance(Time wakeup) override {
    while (next_ < asked_.size() && asked_[next_] <= now_) ++next_;
    const bool goes_on = wakeup != kNever || world_->expects_events();
    const Time asked = goes_on && next_ < asked_.size() ? asked_[next_] : kNever;
    const auto then = world_->advance(std::min(wakeup, asked));
    if (then) now_ = *then;
    return then;
  }
  [[nodiscard]] bool expects_events() const noexcept override { return world_->expects_events(); }
  void collect(Time now, std::vector<Event>& due) override {
    if (stranger_ && std::ranges::binary_search(asked_, now))
      due.push_back({.kind = EventKind::Lost, .job = *stranger_, .node = {}});
    world_->collect(now, due);
    std::ranges::stable_sort(due, {}, &Event::kind);
  }
  [[nodiscard]] StartReceipt start(Time now, const Action& action, const JobTable& jobs) override {
    return world_->start(now, action, jobs);
  }
  [[nodiscard]] Time stop(Time now, const Action& action, const JobTable& jobs) override {
    return world_->stop(now, action, jobs);
  }
  void adjust(Time now, const Action& action, const JobTable& jobs) override {
    world_->adjust(now, action, jobs);
  }
  [[nodiscard]] JobPast past(JobId job) const override { return world_->past(job); }
  void power(Time now, const Action& action) override { world_->power(now, action); }
  [[nodiscard]] std::optional<TrainingReport> report(Time now, JobId job,
                                                     const JobTable& jobs) const override {
    return world_->report(now, job, jobs);
  }
  void losses(Time now, JobId job, const JobTable& jobs, std::int64_t first,
              std::vector<double>& losses) const override {
    world_->losses(now, job, jobs, first, losses);
  }
  void rates(Time now, const JobTable& jobs, std::vector<RateChange>& changes) override {
    world_->rates(now, jobs, changes);
  }

 private:
  std::unique_ptr<Executor> world_;
  std::vector<Time> asked_;
  std::optional<JobId> stranger_;
  std::size_t next_ = 0;
  Time now_ = kTimeZero;
};

}  // namespace berth::test
