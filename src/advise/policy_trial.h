// What a policy of Berth would do with a job that Slurm lets wait. An engine is made from a picture
// of the cluster, in a forked copy of the process: the nodes that the job may use, the jobs that
// run there where they are, and those that wait for the same partitions with their own submit
// times. Held jobs and those behind others do not compete. Nothing of it lives on.
//
// What Berth's engine has no words for is left out: licences, several types of GPU on one node, and
// limits of associations and QOS.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "advise/sight.h"
#include "daemon/scheduler_options.h"
#include "wire/why.h"

namespace berth::advise {

struct TrialQuestion {
  const Sight& sight;
  const slurm::Job& job;  // it waits
  std::int64_t wall = 0;  // Unix microseconds
  bool may_see_all = true;
};

/// The first is of kind "berth" and says what would happen; those behind it, of kind "berth: …", say
/// why it would wait.
[[nodiscard]] std::vector<WhyReason> ask_policy(const TrialQuestion& question,
                                                const SchedulerOptions& options);

}  // namespace berth::advise
