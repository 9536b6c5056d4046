// AntMan as other papers' simulators model it: first come, first served, never preempted; jobs
// share a device as long as their utilisations sum to at most 1 and their memory fits. The least
// used devices first, a gang on as few servers as possible. The first job that finds no place
// blocks the rest.
#include <algorithm>
#include <optional>

#include "policies/antman/antman.h"
#include "policies/antman/spare_devices.h"
#include "policies/kit/waiting_jobs.h"

namespace berth::antman {

namespace {

double utilisation(const View& view, JobId job) {
  return view.believed().profile(view.jobs.profile[job]).gpu_utilisation;
}

class Lite final : public Policy {
 public:
  [[nodiscard]] std::string_view name() const noexcept override { return "antman-lite"; }
  [[nodiscard]] PolicyTraits traits() const noexcept override {
    return {.needs = Need::Profile, .shares_devices = true};
  }
  void begin(const View& view) override {
    spare_.emplace(view.cluster);
    devices_.resize(view.jobs.size());
    for (std::uint32_t node = 0; node < view.cluster.cluster().nodes.size(); ++node)
      offer_devices(view, NodeId{node});
  }
  void on_arrival(const View& view, JobId job) override {
    waiting_.push(view.jobs.shape[job], job);
  }
  void on_departure(const View& view, JobId job) override {
    waiting_.forget(view.jobs.shape[job], job);
    give_back(view, job);
  }
  void on_requeue(const View& view, JobId job) override {
    give_back(view, job);
    waiting_.push(view.jobs.shape[job], job);
  }
  void on_capacity_change(const View& view, NodeId node) override { offer_devices(view, node); }
  void decide(const View& view, Plan& plan, Rng&) override {
    waiting_.pass(
        [](ShapeId) { return true; },
        [&](JobId job) { return try_start(view, plan, job) ? Tried::Started : Tried::Enough; });
  }

 private:
  /// Memory is looked at on the devices chosen; where it is short, idle ones will do.
  [[nodiscard]] bool try_start(const View& view, Plan& plan, JobId job) {
    const double room = std::max(0.0, 1 - utilisation(view, job));
    for (const std::int32_t highest : {level_within(room), 0}) {
      for (const PoolId pool : view.shape(job).pools) {
        const auto chosen = spare_->choose(pool, view.gpus(job), highest);
        if (!chosen || !plan.try_share_on(job, pool, *chosen, kMaxSharers, Reason::Order)) continue;
        devices_[job] = *chosen;
        for (const Slice& slice : *chosen) offer_devices(view, slice.node);
        return true;
      }
    }
    return false;
  }
  void give_back(const View& view, JobId job) {
    for (const Slice& slice : devices_[job]) offer_devices(view, slice.node);
    devices_[job].clear();
  }
  void offer_devices(const View& view, NodeId node) {
    spare_->refresh(view.cluster, node, [&](std::int32_t device) -> std::optional<double> {
      const auto jobs = view.cluster.jobs_on(node, device);
      double busy = 0;
      for (const JobId job : jobs) busy += utilisation(view, job);
      if (jobs.size() >= kMaxSharers || busy >= 1) return std::nullopt;
      return busy;
    });
  }

  WaitingByShape waiting_;
  std::optional<SparePools> spare_;
  Column<JobId, std::vector<Slice>> devices_;  // while it runs
};

}  // namespace

}  // namespace berth::antman

namespace berth {

PolicyEntry antman_lite_entry() {
  return {.name = "antman-lite",
          .summary =
              "FIFO without preemption; jobs share a GPU while their utilisations sum to at most 1",
          .make = [](const PolicyEntry&, const Params&) -> Result<std::unique_ptr<Policy>> {
            return std::make_unique<antman::Lite>();
          }};
}

}  // namespace berth
