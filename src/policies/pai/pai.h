// The scheduler of the PAI study (NSDI 2022): shortest predicted run time first, and high-end
// devices kept for the jobs that make use of them.
//
// Predictions come from the run's estimator, by default the recurrence of user, name and GPUs. A
// job that has waited five times its prediction (an hour at least) goes first. A job is "high" if
// it runs at least 1.5 times as fast on the high-end type as on the weakest, or its memory fits
// nowhere else; the others are packed on the rest and borrow high-end devices only beyond the
// reserve.
#pragma once

#include <string>
#include <vector>

#include "core/policy.h"
#include "policies/common/aged_queues.h"
#include "policies/pai/reserve.h"
#include "policies/registry.h"

namespace berth {

struct PaiOptions {
  bool gpu_time = false;  // order by run time times GPUs
  double aging = 5;       // predictions waited until a job goes first; 0: never
  Duration least_wait = std::chrono::hours{1};
  bool reserve = true;
  double high_speedup = 1.5;
  double high_use = 0.4;  // share of a device's compute, where speeds were not measured
  std::string high_type;  // empty: the fastest
  bool preempt_borrowers = false;
  bool balance = false;                          // servers of the low-end types by cores and GPUs
  Duration high_wait = std::chrono::minutes{5};  // then borrowers give way
};

class Pai final : public Policy {
 public:
  explicit Pai(PaiOptions options) : options_(std::move(options)) {}
  [[nodiscard]] std::string_view name() const noexcept override { return "pai"; }
  [[nodiscard]] PolicyTraits traits() const noexcept override {
    return {.needs = Need::RunTime | Need::Profile, .preempts = true};
  }
  void begin(const View& view) override;
  void on_arrival(const View& view, JobId job) override;
  void on_departure(const View& view, JobId job) override;
  void on_requeue(const View& view, JobId job) override;
  void decide(const View& view, Plan& plan, Rng& rng) override;
  [[nodiscard]] std::optional<Time> next_wakeup(const View& view) override;

 private:
  enum Lane : std::size_t { kHigh = 0, kLow = 1 };
  void enqueue(const View& view, JobId job);
  [[nodiscard]] bool is_high(const View& view, JobId job) const;
  [[nodiscard]] bool needs_large_memory(const View& view, JobId job) const;
  [[nodiscard]] bool start(const View& view, Plan& plan, JobId job);
  [[nodiscard]] bool start_in(const View& view, Plan& plan, PoolId pool, JobId job);
  void note_stop(const View& view, JobId job);
  void take_back(const View& view, Plan& plan);

  PaiOptions options_;
  AgedQueues queues_;
  bool has_high_type_ = false;  // and others beside it
  PoolId high_{};
  Reserve reserve_;
  std::int64_t held_by_high_ = 0;    // high-end devices
  std::vector<JobId> borrowers_;     // in order of start
  std::vector<JobId> high_waiting_;  // in order of arrival
  struct Place {
    std::int32_t gpus = 0;  // high-end devices it holds
  };
  std::vector<Place> places_;  // by JobId
};

[[nodiscard]] PolicyEntry pai_entry();

}  // namespace berth
