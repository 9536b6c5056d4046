#include "daemon/pending_starts.h"

#include <algorithm>

namespace berth {

bool PendingStarts::set_rate(JobNumber job, std::int32_t milli) {
  const auto start = starts_.find(job);
  if (start == starts_.end()) return false;
  start->second.rate_milli = milli;
  return true;
}

void PendingStarts::clear() {
  starts_.clear();
  resuming_.clear();
}

std::set<JobNumber> PendingStarts::rivals_of(const Attempt& attempt,
                                             const AttemptTable& attempts) const {
  const auto meets = [&](std::span<const Slice> slices) {
    return std::ranges::any_of(slices, [&](const Slice& theirs) {
      return std::ranges::any_of(attempt.slices, [&](const Slice& own) {
        return own.node == theirs.node && (own.devices & theirs.devices) != 0;
      });
    });
  };
  std::set<JobNumber> rivals;
  for (const auto& [job, start] : starts_) {
    if (job != attempt.job && meets(start.slices)) rivals.insert(job);
  }
  for (const JobNumber job : resuming_) {
    if (meets(attempts.at(job).slices)) rivals.insert(job);
  }
  return rivals;
}

}  // namespace berth
