// Jobs that were promised nothing and run, as guests, on GPUs that nobody was promised: those whose
// price was refused, or who are late and would not be worth what the rest costs. They give way to
// whoever has a schedule.
#pragma once

#include "policies/common/elastic.h"
#include "policies/common/job_list.h"
#include "policies/kit/pass.h"
#include "policies/kit/waiting_jobs.h"

namespace berth::oasis {

class Guests {
 public:
  explicit Guests(const ElasticRule& elastic) : elastic_(elastic) {}

  void add(const View& view, JobId job);
  void remove(const View& view, JobId job);
  /// It has lost its devices and waits again.
  void requeue(const View& view, JobId job);

  /// In order of arrival, each with as many GPUs as it asks for, or held just now, or as are left.
  void start_waiting(Pass& pass);
  /// Stops the guests of a pool, the last to arrive first, until `is_enough()`, which is asked
  /// after each.
  template <class IsEnough>
  bool give_way(Plan& plan, PoolId pool, IsEnough&& is_enough) {
    for (std::size_t i = running_.size(); i-- > 0;) {
      const JobId guest = running_[i];
      if (plan.pool_of(guest) != pool) continue;
      plan.preempt(guest, Reason::Reservation);
      running_.erase_at(i);
      waiting_.push(plan.shape_of(guest), guest);
      if (is_enough()) return true;
    }
    return false;
  }

 private:
  [[nodiscard]] bool try_start(Pass& pass, JobId job) const;

  ElasticRule elastic_;
  WaitingByShape waiting_;
  JobList running_;
};

}  // namespace berth::oasis
