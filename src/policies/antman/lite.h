// AntMan as other papers' simulators model it: first come, first served, never preempted; jobs
// share a device as long as their utilisations sum to at most 1 and their memory fits. The least
// used devices first, a gang on as few servers as possible. The first job that finds no place
// blocks the rest.
#pragma once

#include <string>
#include <vector>

#include "core/policy.h"
#include "policies/antman/spare_devices.h"
#include "policies/common/job_heap.h"

namespace berth::antman {

class Lite final : public Policy {
 public:
  explicit Lite(std::string name) : name_(std::move(name)) {}
  [[nodiscard]] std::string_view name() const noexcept override { return name_; }
  [[nodiscard]] PolicyTraits traits() const noexcept override {
    return {.needs = Need::Profile, .shares_devices = true};
  }
  void begin(const View& view) override;
  void on_arrival(const View&, JobId job) override { queue_.push(job); }
  void on_departure(const View& view, JobId job) override;
  void on_requeue(const View& view, JobId job) override;
  void on_capacity_change(const View& view, NodeId node) override;
  void decide(const View& view, Plan& plan, Rng& rng) override;

 private:
  [[nodiscard]] bool try_start(const View& view, Plan& plan, JobId job);
  void give_back(const View& view, JobId job);
  void offer_devices(const View& view, NodeId node);

  std::string name_;
  JobHeap queue_;
  std::vector<SpareDevices> spare_;          // by pool
  std::vector<std::vector<Slice>> devices_;  // by JobId, while it runs
};

}  // namespace berth::antman
