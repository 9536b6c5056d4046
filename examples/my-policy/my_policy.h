// A policy in fifty lines: whoever has used the least GPU time so far goes first, each user's jobs in
// order of arrival. What is started runs to its end. Copy this folder, change the order in decide(),
// and run the tests beside it.
#pragma once

#include <algorithm>
#include <map>
#include <vector>

#include "core/policy.h"
#include "policies/kit/waiting_jobs.h"

namespace my {

class LeastServedUser final : public berth::Policy {
 public:
  [[nodiscard]] std::string_view name() const noexcept override { return "least-served-user"; }

  // Hooks keep the policy's own state: here a queue for each user and what each user has used.
  void on_arrival(const berth::View& view, berth::JobId job) override {
    waiting_.push(view.request(job).user, job);
  }
  void on_requeue(const berth::View& view, berth::JobId job) override { on_arrival(view, job); }
  void on_departure(const berth::View& view, berth::JobId job) override {
    const berth::NameId user = view.request(job).user;
    waiting_.forget(user, job);  // it may have been cancelled while it waited
    used_[user] += view.jobs.service[job];
  }

  // Called once per instant. Everything decided goes into the plan; try_start() takes devices for
  // real or declines.
  void decide(const berth::View&, berth::Plan& plan, berth::Rng&) override {
    users_ = waiting_.active();
    std::ranges::sort(users_, {}, [&](berth::NameId user) {
      return std::pair(used_[user], user);  // a total order: equal users are told apart by name
    });
    for (const berth::NameId user : users_) {
      while (!waiting_.empty(user) && plan.try_start(waiting_.top(user).job)) waiting_.pop(user);
    }
  }

 private:
  berth::WaitingJobs<berth::NameId> waiting_;      // a queue for each user, first come first served
  std::map<berth::NameId, berth::Duration> used_;  // by user
  std::vector<berth::NameId> users_;               // scratch, so that a warm pass does not allocate
};

}  // namespace my
