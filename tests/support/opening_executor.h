// A simulated world whose jobs nobody knows before they come: the engine's trace is a table of
// empty slots, filled as jobs arrive. Whatever runs on it must run as if it had known the trace.
#pragma once

#include "core/executor.h"
#include "model/trace.h"
#include "sim/sim_executor.h"

namespace berth::test {

/// Slots for as many jobs, and the names.
[[nodiscard]] inline Trace slots_of(const Trace& trace) {
  Trace slots;
  slots.source = trace.source;
  slots.names = trace.names;
  slots.jobs.resize(trace.jobs.size());
  return slots;
}

class OpeningExecutor final : public Executor {
 public:
  OpeningExecutor(const Trace& whole, Trace& slots, const Cluster& cluster, const SimOptions& sim)
      : whole_(whole), slots_(slots), world_(whole, cluster, sim) {}

  [[nodiscard]] Capabilities capabilities() const noexcept override {
    return world_.capabilities();
  }
  [[nodiscard]] std::optional<Time> advance(Time wakeup) override { return world_.advance(wakeup); }
  [[nodiscard]] bool expects_events() const noexcept override { return world_.expects_events(); }
  void collect(Time now, std::vector<Event>& due) override {
    world_.collect(now, due);
    for (const Event& event : due) {
      if (event.kind == EventKind::Arrival)
        slots_.jobs[event.job.value] = whole_.jobs[event.job.value];
    }
  }
  [[nodiscard]] StartReceipt start(Time now, const Action& action, const JobTable& jobs) override {
    return world_.start(now, action, jobs);
  }
  [[nodiscard]] Time stop(Time now, const Action& action, const JobTable& jobs) override {
    return world_.stop(now, action, jobs);
  }
  void adjust(Time now, const Action& action, const JobTable& jobs) override {
    world_.adjust(now, action, jobs);
  }
  void power(Time now, const Action& action) override { world_.power(now, action); }
  [[nodiscard]] std::optional<TrainingReport> report(Time now, JobId job,
                                                     const JobTable& jobs) const override {
    return world_.report(now, job, jobs);
  }
  void losses(Time now, JobId job, const JobTable& jobs, std::int64_t first,
              std::vector<double>& losses) const override {
    world_.losses(now, job, jobs, first, losses);
  }
  void rates(Time now, const JobTable& jobs, std::vector<RateChange>& changes) override {
    world_.rates(now, jobs, changes);
  }

 private:
  const Trace& whole_;
  Trace& slots_;
  SimExecutor world_;
};

}  // namespace berth::test
