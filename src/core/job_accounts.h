// The accounts of jobs: who runs, and what each job has held, done and lost so far. A stretch is
// the time from when a job is given devices until it loses them; its held time, service and
// overhead are booked when it ends, its work whenever its rate changes. Writes the columns of the
// job table that are about this and no others; does not know devices, plans or policies.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/id.h"
#include "base/time.h"
#include "core/executor.h"
#include "core/job_table.h"

namespace berth {

class JobAccounts {
 public:
  /// What the rates of running jobs rest on: the truth of a simulation, or what an open run
  /// measures.
  enum class Rates : std::uint8_t { Exact, Measured };
  JobAccounts(JobTable& jobs, Rates rates)
      : jobs_(&jobs), rates_(rates), running_at_(jobs.size()) {}

  /// In no particular order.
  [[nodiscard]] std::span<const JobId> running() const noexcept { return running_; }
  void set_running(JobId job);
  void set_stopped(JobId job, JobState state);

  /// A job that this engine has not seen before comes with what it has behind it.
  void restore(JobId job, const JobPast& past);
  /// The job was given devices, or others than it had; it runs from now on.
  void begin_stretch(Time now, JobId job, std::int32_t gpus, const StartReceipt& receipt);
  /// Saving a checkpoint may hold the devices longer than until now.
  void end_stretch(Time now, JobId job, Time held_until);
  /// What was done so far was done at the old rate.
  void change_rate(Time now, const RateChange& change);

 private:
  void set_begun(JobId job, Time begun);
  void set_basis(Time now, JobId job, RateBasis basis);

  JobTable* jobs_;
  Rates rates_;
  std::vector<JobId> running_;
  Column<JobId, std::uint32_t> running_at_;  // position there, while running
};

}  // namespace berth
