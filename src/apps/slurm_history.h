// A Slurm's past and present as traces: what sacct prints for us, what jobcomp has written down,
// and the jobs that run or wait now.
//
// Users write names freely, separators and line breaks included. Fields are therefore set apart by
// a mark that is drawn anew for every question: nobody can have written it before.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "apps/slurm_cluster.h"
#include "base/result.h"
#include "model/trace.h"
#include "slurm/facts.h"

namespace berth {

struct SlurmHistory {
  Trace trace;                     // may be empty
  std::vector<std::string> notes;  // what was left out or is not as it was
};

/// The words of the command, without its path. Run it with SLURM_TIME_FORMAT=%s.
[[nodiscard]] std::vector<std::string> sacct_words(const std::string& mark, std::int64_t days);
/// What it printed. Jobs that ran on nodes outside of the cluster file are left out.
[[nodiscard]] Result<SlurmHistory> history_of_sacct(std::string_view text, const std::string& mark,
                                                    const SlurmCluster& cluster);
/// The text file of jobcomp, with the jobs that run now: it has only what is over.
[[nodiscard]] Result<SlurmHistory> history_of_jobcomp(std::string_view text,
                                                      std::span<const slurm::Job> jobs,
                                                      std::int64_t now);
/// Leaves what was submitted since (Unix seconds).
void keep_since(SlurmHistory& history, std::int64_t since);

/// Jobs that wait, with their time limit, or that of their partition, as run time.
[[nodiscard]] SlurmHistory waiting_jobs(std::span<const slurm::Job> jobs,
                                        std::span<const slurm::Partition> partitions,
                                        const SlurmCluster& cluster);

/// Users, groups, queues and names as `naming` has them.
void rename(Trace& trace, const Naming& naming);

}  // namespace berth
