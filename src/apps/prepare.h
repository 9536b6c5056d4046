// From what was typed to what can be run: files read, names and values checked, before anything is
// simulated or written. All complaints are collected and made together.
#pragma once

#include <string>
#include <vector>

#include "apps/load_trace.h"
#include "apps/options.h"
#include "base/result.h"
#include "model/cluster.h"
#include "model/trace.h"
#include "run/run.h"

namespace berth {

struct Prepared {
  Trace trace;
  Cluster cluster;
  std::vector<RunSpec> specs;  // by policy, in the order asked for
  ReadReport read;
};

[[nodiscard]] Result<Prepared> prepare(const InputOptions& input, const WorldOptions& world,
                                       const std::vector<std::string>& policies);
/// Refuses now what could not be written after the run.
[[nodiscard]] Result<void> check_output(const OutputOptions& output);

}  // namespace berth
