// An elastic policy in eighty lines: the GPUs are dealt out anew in rounds. In order of arrival, each
// job first gets the fewest GPUs it agrees to; what is left goes, one GPU at a time, to the job that
// is believed to gain the most speed from one more. A job whose size stays is not touched.
#pragma once

#include <algorithm>
#include <queue>
#include <utility>
#include <vector>

#include "base/rounds.h"
#include "core/policy.h"
#include "policies/common/elastic.h"
#include "policies/kit/beliefs.h"

namespace my {

using namespace berth;

class LargestGain final : public Policy {
 public:
  explicit LargestGain(Duration round) : rounds_(round) {}
  [[nodiscard]] std::string_view name() const noexcept override { return "largest-gain"; }
  [[nodiscard]] PolicyTraits traits() const noexcept override {
    return {.needs = Need::Profile, .preempts = true, .resizes = true};
  }

  // Whatever happens, the next round looks at it; between two rounds nothing does.
  void on_arrival(const View& view, JobId job) override {
    active_.push_back({.job = job});
    rounds_.stir(view.now);
  }
  void on_departure(const View& view, JobId job) override {
    std::erase_if(active_, [&](const Share& share) { return share.job == job; });
    rounds_.stir(view.now);
  }
  void on_requeue(const View& view, JobId) override { rounds_.stir(view.now); }
  void on_capacity_change(const View& view, NodeId) override { rounds_.stir(view.now); }
  [[nodiscard]] std::optional<Time> next_wakeup(const View& view) override {
    return rounds_.wakeup(view.now);
  }

  void decide(const View& view, Plan& plan, Rng&) override {
    if (!rounds_.is_due(view.now)) return;
    rounds_.settle();
    deal(view, plan);
    // First everybody who changes gives back, then they take: nobody waits for GPUs of somebody who
    // is about to shrink. Stopped and started in one plan is a resize, on the same devices nothing.
    for (const Share& share : active_) {
      if (plan.holds(share.job) && plan.gpus_of(share.job) != share.gpus)
        plan.preempt(share.job, Reason::Growth);
    }
    for (const Share& share : active_) {
      if (share.gpus == 0 || plan.holds(share.job)) continue;
      if (!plan.try_start_sized(share.pool, share.job, share.gpus)) rounds_.go_on(view.now);
    }
  }

 private:
  struct Share {
    JobId job;
    PoolId pool = {};       // where it runs or is to run
    std::int32_t gpus = 0;  // of this round; 0: it waits
  };

  void deal(const View& view, const Plan& plan) {
    Column<PoolId, std::int64_t> left(view.cluster.pools());
    for (PoolId pool; pool.value < left.size(); ++pool.value)
      left[pool] = view.cluster.usable_gpus(pool);
    for (Share& share : active_) {
      share.gpus = 0;
      const std::int32_t least = elastic_range(view, share.job).least;
      for (const PoolId pool : view.shape(share.job).pools) {
        const bool is_elsewhere = plan.holds(share.job) && plan.pool_of(share.job) != pool;
        if (is_elsewhere || left[pool] < least) continue;
        share.pool = pool;
        share.gpus = least;
        left[pool] -= least;
        break;
      }
    }
    grow(view, left);
  }

  void grow(const View& view, Column<PoolId, std::int64_t>& left) {
    // What the next GPU would bring to which share; of equals the older job comes first.
    std::priority_queue<std::pair<double, std::ptrdiff_t>> gains;
    const auto look_at = [&](std::ptrdiff_t index) {
      const Share& share = active_[static_cast<std::size_t>(index)];
      if (share.gpus == 0 || share.gpus == elastic_range(view, share.job).most) return;
      const auto& curve = beliefs_.curve(view, share.job, share.pool, share.gpus + 1);
      const auto gpus = static_cast<std::size_t>(share.gpus);
      if (const double gain = curve[gpus + 1] - curve[gpus]; gain > 0) gains.emplace(gain, -index);
    };
    for (std::ptrdiff_t i = 0; i < std::ssize(active_); ++i) look_at(i);
    while (!gains.empty()) {
      const std::ptrdiff_t index = -gains.top().second;
      gains.pop();
      Share& share = active_[static_cast<std::size_t>(index)];
      if (left[share.pool] == 0) continue;
      ++share.gpus;
      --left[share.pool];
      look_at(index);
    }
  }

  std::vector<Share> active_;  // in order of arrival
  Rounds rounds_;
  Beliefs beliefs_;
};

}  // namespace my
