// What happened in a demo, beside what a simulation of the same jobs says of other policies.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "client/answers.h"

namespace berth {

struct DemoOutcome {
  std::vector<client::JobRow> jobs;  // all over
  std::string policy;                // that decided
  std::string cluster;               // short form
};

/// A row for each job and a line of averages, measured and under fifo. The simulation knows the
/// run times that were measured; starting a job costs it nothing.
[[nodiscard]] Result<std::string> demo_report(const DemoOutcome& outcome);

}  // namespace berth
