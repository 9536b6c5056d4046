// Which jobs run beside each other, and the rate of each there: the true one in a simulation, the
// believed one where nobody measures it. Only jobs around a change are rated again: those on the
// same devices and, if servers or links have an effect, those on the same nodes. Decides nothing.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/id.h"
#include "base/time.h"
#include "core/action.h"
#include "core/allocation.h"
#include "core/executor.h"
#include "core/job_table.h"
#include "model/trace.h"
#include "perf/rate_model.h"

namespace berth {

class Neighbourhood {
 public:
  Neighbourhood(const Trace& trace, const RateModel& truth);

  void enter(JobId job, PoolId pool, std::span<const Slice> slices);
  void leave(JobId job);
  /// Its terms changed: it and those beside it are to be rated again.
  void touch(JobId job);
  [[nodiscard]] std::span<const Slice> slices(JobId job) const noexcept {
    return places_.slices(standing_[job].place);
  }
  /// Everybody's rate is known as things are.
  void settle() noexcept;
  /// Appends who else is on its devices, each once.
  void company(JobId job, std::vector<JobId>& others) const;
  /// Appends the true rate of every job around a change since the last call, by JobId.
  void rates(Time now, const JobTable& jobs, std::vector<RateChange>& rated);

 private:
  struct Resident {
    JobId job;
    std::uint64_t devices = 0;
  };
  struct Place {
    Allocation place;
    Level level = Level::Device;
  };
  void mark(JobId job);
  void mark_around(const Slice& slice);
  [[nodiscard]] double rate_of(Time now, JobId job, const JobTable& jobs);
  [[nodiscard]] double beside(JobId job, const JobTable& jobs, const Slice& slice);
  [[nodiscard]] std::int32_t link_jobs(const Slice& slice, Level level) const noexcept;
  [[nodiscard]] double server_slowdown(JobId job, const JobTable& jobs,
                                       const Slice& slice) const noexcept;

  const Trace* trace_;
  const RateModel* truth_;
  SliceArena places_;
  Column<JobId, Place> standing_;
  std::vector<std::vector<Resident>> residents_;  // by node, in order of arrival
  std::vector<JobId> changed_;
  Column<JobId, std::uint8_t> is_changed_;
  bool moves_rates_alone_;       // some effect changes a job's rate even without neighbours
  std::vector<CoRunner> group_;  // scratch
};

}  // namespace berth
