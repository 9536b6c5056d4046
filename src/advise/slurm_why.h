// Why Slurm lets a job wait, in its own words and with numbers: who comes before it, what is free
// and where, which nodes are missing, which limit is reached. Reads a picture; asks nobody.
#pragma once

#include <cstdint>
#include <string>

#include "advise/sight.h"
#include "wire/why.h"

namespace berth::advise {

struct WhyQuestion {
  const Sight& sight;
  const slurm::Job& job;
  std::int64_t wall = 0;    // Unix microseconds
  bool may_see_all = true;  // names of other users' jobs may be told
  std::string limits{};  // `scontrol show assoc_mgr` of its user, account and QOS; empty: not known
};

/// Of a job that waits: the summary and the reasons; of any other one sentence.
[[nodiscard]] Why explain_slurm(const WhyQuestion& question);
/// explain_slurm() wants to know the limits of the job.
[[nodiscard]] bool wants_limits(const slurm::Job& job);

}  // namespace berth::advise
