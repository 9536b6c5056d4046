// Non-preemptive list scheduling: waiting jobs in order of a key; what is started runs to its end.
//
//   fifo      arrival order, stops at the first job that does not fit (strict)
//   fifo-skip arrival order, goes on to the next that fits
//   sjf       shortest estimated run time first
//   smallest  fewest GPUs first
//
// Strict keeps the order and lets a big job block; skip fills every hole and may starve big jobs. A
// pass looks at one head per request shape, so its cost does not grow with the queue.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/policy.h"
#include "policies/kit/waiting_jobs.h"

namespace berth {

enum class ListKey : std::uint8_t { Arrival, RunTime, Gpus };
enum class PassRule : std::uint8_t { Strict, Skip };

class ListOrder final : public Policy {
 public:
  ListOrder(std::string name, ListKey key, PassRule pass)
      : name_(std::move(name)), key_(key), pass_(pass) {}
  [[nodiscard]] std::string_view name() const noexcept override { return name_; }
  [[nodiscard]] PolicyTraits traits() const noexcept override {
    return {.needs = key_ == ListKey::RunTime ? Need::RunTime : Need::Nothing};
  }
  void on_arrival(const View& view, JobId job) override;
  void on_departure(const View& view, JobId job) override {
    queues_.forget(view.jobs.shape[job], job);
  }
  void on_requeue(const View& view, JobId job) override { on_arrival(view, job); }
  void decide(const View& view, Plan& plan, Rng& rng) override;

 private:
  [[nodiscard]] Int128 key_of(const View& view, JobId job) const;

  std::string name_;
  ListKey key_;
  PassRule pass_;
  WaitingByShape queues_;
};

}  // namespace berth
