// A finished run as text: a row for each job and one for each GPU, a column for each moment, so
// that a changed decision shows as a changed picture. Made from what the run recorded alone; every
// recorded action that a person would notice has a character of its own.
#pragma once

#include <string>

#include "base/time.h"
#include "metrics/run_data.h"
#include "model/cluster.h"
#include "model/trace.h"

namespace berth::test {

struct DrawOptions {
  Duration column{std::chrono::seconds{1}};  // what one character stands for
  Duration boot{};                           // how long a node boots that was switched on
};

/// The run must have recorded everything, on a cluster whose devices are named (not `count`). Ends
/// with a legend of the characters that occur.
[[nodiscard]] std::string draw(const RunData& run, const Trace& trace, const Cluster& cluster,
                               const DrawOptions& options);

}  // namespace berth::test
