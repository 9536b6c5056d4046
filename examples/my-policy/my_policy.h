// A policy in fifty lines: whoever has used the least GPU time so far goes first. What is started
// runs to its end. Copy this folder, change the order in decide(), and run the tests beside it.
#pragma once

#include <algorithm>
#include <map>
#include <vector>

#include "core/policy.h"

namespace my {

class LeastServedUser final : public berth::Policy {
 public:
  [[nodiscard]] std::string_view name() const noexcept override { return "least-served-user"; }

  // Hooks keep the policy's own state: here the waiting jobs and what each user has used.
  void on_arrival(const berth::View&, berth::JobId job) override { waiting_.push_back(job); }
  void on_requeue(const berth::View&, berth::JobId job) override { waiting_.push_back(job); }
  void on_departure(const berth::View& view, berth::JobId job) override {
    std::erase(waiting_, job);  // cancelled while it waited
    used_[view.request(job).user] += view.jobs.service[job];
  }

  // Called once per instant. Everything decided goes into the plan; try_start() takes devices for
  // real or declines.
  void decide(const berth::View& view, berth::Plan& plan, berth::Rng&) override {
    std::ranges::sort(waiting_, {}, [&](berth::JobId job) {
      return std::pair(used_[view.request(job).user], job);  // a total order, ending at the job
    });
    std::erase_if(waiting_, [&](berth::JobId job) { return plan.try_start(job); });
  }

 private:
  std::vector<berth::JobId> waiting_;
  std::map<berth::NameId, berth::Duration> used_;  // by user
};

}  // namespace my
