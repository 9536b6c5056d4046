// How far a replayed run is from the one that really happened, job by job.
#pragma once

#include <span>
#include <string>

namespace berth {

struct ReplayError {
  double per_job = 0;     // mean of |ours / measured - 1|
  double of_average = 0;  // average of ours / average of measured - 1
  double rank = 0;        // Spearman's correlation; ties have their mean rank
};

/// Both by job, of equal length, measured above zero.
[[nodiscard]] ReplayError replay_error(std::span<const double> ours,
                                       std::span<const double> measured);
/// "average -3.1 %, per job 12 %, rank 0.98"
[[nodiscard]] std::string as_text(const ReplayError& error);

}  // namespace berth
