// An executor that passes everything on to another one: what a test changes about its world, and
// nothing else, is written over it.
#pragma once

#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "core/executor.h"

namespace berth::test {

class PassingExecutor : public Executor {
 public:
  explicit PassingExecutor(std::unique_ptr<Executor> world) : world_(std::move(world)) {}

  [[nodiscard]] Capabilities capabilities() const noexcept override {
    return world_->capabilities();
  }
  [[nodiscard]] std::optional<Time> advance(Time wakeup) override {
    return world_->advance(wakeup);
  }
  [[nodiscard]] bool expects_events() const noexcept override { return world_->expects_events(); }
  void collect(Time now, std::vector<Event>& due) override { world_->collect(now, due); }
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

 protected:
  [[nodiscard]] Executor& world() noexcept { return *world_; }
  [[nodiscard]] const Executor& world() const noexcept { return *world_; }

 private:
  std::unique_ptr<Executor> world_;
};

}  // namespace berth::test
