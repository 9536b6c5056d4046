// `berth serve --engine slurm`: the scheduler decides for a Slurm, whose nodes are the cluster and
// whose jobs are the queue.
#pragma once

#include "base/result.h"
#include "daemon/config.h"
#include "daemon/daemon.h"
#include "model/cluster.h"

namespace berth {

/// As Slurm describes it now. An error: Slurm does not answer, or has no GPUs.
[[nodiscard]] Result<Cluster> cluster_of_slurm(const SlurmConfig& options);
/// Jobs come from Slurm and run there; nothing is taken but by sbatch.
void decide_for_slurm(const SlurmConfig& options, DaemonOptions& daemon);

}  // namespace berth
