// How the cores of servers are shared out among their jobs: by the curves believed of them (or
// measured, live), for the most speed in sum. A gang over several servers has what its poorest
// worker has; what it leaves on its richer servers goes to the others there. Also on trial: what a
// server's jobs would come to with one more or one less.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "cpu/cpu_beliefs.h"
#include "cpu/cpu_tuner.h"
#include "cpu/server_jobs.h"

namespace berth {

/// Cores per GPU in thousandths, of each job on servers that were shared out.
using CoreGrants = std::map<JobId, std::int32_t>;

class ServerCores {
 public:
  /// `beliefs` must outlive this.
  ServerCores(const CpuTunerOptions& options, CpuBeliefs& beliefs)
      : beliefs_(beliefs),
        goes_by_measurement_(options.measured != nullptr),
        allocator_(options.objective, options.leftover) {}

  /// Shares these servers out anew, and others that gangs reach onto. Changes nothing in the plan.
  [[nodiscard]] const CoreGrants& share_out(const Plan& plan, std::span<const NodeId> nodes);
  /// Speeds of a job on that server by whole cores, relative to having enough.
  [[nodiscard]] std::span<const double> speeds_of(const Plan& plan, JobId job, NodeId node);
  /// Cores nobody holds, in thousandths; below zero if they are overcommitted. `jobs`: who is there.
  [[nodiscard]] std::int64_t free_milli(const Plan& plan, NodeId node);

  /// On trial: the jobs of a server as they are. Gangs keep what they have at most, unless all
  /// their servers were shared out last.
  void gather(const Plan& plan, NodeId node);
  [[nodiscard]] std::span<const ServerJob> gathered() const noexcept { return jobs_; }
  /// One who is gathered leaves; `add` puts it, or another one, beside those that are.
  CpuGang take_out(JobId job);
  void add(const CpuGang& gang) { gangs_.push_back(gang); }
  /// The sum of normalised speeds if all cores of the server were shared out among these.
  [[nodiscard]] double objective(const Plan& plan, NodeId node);
  /// No server counts as shared out last.
  void forget_shared_out() { nodes_.clear(); }

 private:
  void allocate_gathered(const Plan& plan, NodeId node);
  [[nodiscard]] std::int32_t most_of(const Plan& plan, JobId job) const;

  CpuBeliefs& beliefs_;
  bool goes_by_measurement_;
  CpuAllocator allocator_;
  std::map<std::int32_t, std::vector<double>> even_shares_;  // speeds that ask for so many cores
  std::vector<NodeId> nodes_;                                // shared out last, ascending
  CoreGrants grants_;                                        // of these
  std::map<JobId, std::int32_t> caps_;  // scratch: gangs over several servers, whole cores
  std::vector<JobId> on_node_;          // scratch
  std::vector<ServerJob> jobs_;         // scratch: of one server
  std::vector<CpuGang> gangs_;          // scratch: in step with jobs_
  std::vector<std::int32_t> cores_;     // scratch: in step with gangs_
};

}  // namespace berth
