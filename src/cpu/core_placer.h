// Where a job starts: by its demand for GPUs and cores together. On the server with the least left
// over, measured by whichever of GPUs and cores has the larger part left, of those that have all
// the cores it wants. If none has, jobs wait for one, but not for long, and then take the server
// where the jobs together gain most.
//
// Costs a look at every server with a free device, but for empty ones, of which the first will do;
// a job that finds no cores costs 32 allocations on trial beyond that.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <vector>

#include "cpu/server_cores.h"

namespace berth {

class CorePlacer {
 public:
  /// `beliefs` and `cores` must outlive this.
  CorePlacer(Duration wait, CpuBeliefs& beliefs, ServerCores& cores)
      : wait_(wait), beliefs_(beliefs), cores_(cores) {}
  void begin(std::size_t jobs);
  void begin_instant(Time now) { now_ = now; }
  /// See NodeTuner::place(); for a gang that fits one server, which says how many cores it has.
  [[nodiscard]] bool place(const Plan& plan, JobId job, PoolId pool, Slice& slice);
  /// What a job that runs wants, in cores per GPU.
  void set_demand(JobId job, std::int32_t cores) { demand_[job] = cores * 1000; }
  /// When those that wait for cores wait no longer, if they do.
  [[nodiscard]] std::optional<Time> wakeup(const View& view);

 private:
  /// A server a job could start on.
  struct Site {
    double rest = 0;         // of GPUs or cores, whichever is more
    double other_rest = 0;   // breaks ties
    std::int64_t spare = 0;  // cores nobody there wants, in thousandths, once the job is there
    Slice slice;
  };
  enum class Cores : std::uint8_t { Enough, TooFew };

  void list_sites(const Plan& plan, JobId job, PoolId pool, const Slice& placed);
  void add_site(const Plan& plan, JobId job, const Slice& slice);
  [[nodiscard]] std::int64_t claimed_milli(const Plan& plan, NodeId node) const;
  [[nodiscard]] const Site* tightest_fit() const;
  [[nodiscard]] const Site* best_objective(const Plan& plan, JobId job, PoolId pool);
  [[nodiscard]] bool is_patient(const Plan& plan, JobId job);
  void end_wait(JobId job, Cores cores);

  Duration wait_;
  CpuBeliefs& beliefs_;
  ServerCores& cores_;
  Time now_{};
  Column<JobId, std::int32_t> demand_;  // cores per GPU, in thousandths; of jobs seen so far
  Column<JobId, Time> held_back_;       // the last instant at which it was
  std::set<JobId> waits_;               // held back now
  std::optional<Time> patient_since_;   // jobs wait for cores, or did until their patience ended
  std::vector<Site> sites_;             // scratch
};

}  // namespace berth
