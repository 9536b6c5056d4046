// From what was typed to what can be run: files read, names and values checked, before anything is
// simulated or written. All complaints are collected and made together.
#pragma once

#include <string>
#include <vector>

#include "apps/options.h"
#include "base/result.h"
#include "model/cluster.h"
#include "model/trace.h"
#include "run/run.h"
#include "trace/reader.h"

namespace berth {

struct Prepared {
  Trace trace;
  Cluster cluster;
  std::vector<RunSpec> specs;  // by policy, in the order asked for
  ReadReport read;
};

/// "a,b" or "all" as names of the registry, no name twice.
[[nodiscard]] Result<std::vector<std::string>> policy_list(const std::string& text);
/// Which settings go to which policy. KEY=VALUE reaches every policy that has the key;
/// POLICY.KEY=VALUE that one. A key that nobody has is an error.
[[nodiscard]] Result<std::vector<Settings>> route_settings(const std::vector<std::string>& policies,
                                                           const std::vector<std::string>& texts);
/// Reads the trace and keeps the jobs in the window.
[[nodiscard]] Result<Trace> load_trace(const InputOptions& input, ReadReport* report);
/// What a reader assumed or dropped, for people.
void tell_notes(const Trace& trace, const ReadReport& report);

[[nodiscard]] Result<Prepared> prepare(const InputOptions& input, const WorldOptions& world,
                                       const std::vector<std::string>& policies);
/// Refuses now what could not be written after the run.
[[nodiscard]] Result<void> check_output(const OutputOptions& output);

}  // namespace berth
