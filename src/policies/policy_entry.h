// The line of a policy in the registry: its name, what it is for, its parameters, how to make one.
// A policy declares the function that answers its entry in its own header and defines it at the end
// of its own source.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/params.h"
#include "base/result.h"
#include "core/policy.h"

namespace berth {

struct PolicyEntry {
  std::string name;
  std::string summary;  // one line
  std::vector<ParamSpec> params = {};
  Result<std::unique_ptr<Policy>> (*make)(const PolicyEntry& entry, const Params& params);
  std::string estimator = "oracle";  // whom it asks for run times unless the run says otherwise
  /// With these it does within a minute, on a handful of jobs, what it is for: rounds of seconds,
  /// histories of three jobs, elastic jobs as in its paper. Every feasible job then ends, also
  /// under a policy whose point is to refuse some.
  Settings test_settings = {};
};

}  // namespace berth
