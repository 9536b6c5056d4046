// What a live scheduler believes of how jobs run before anybody has measured it: which effects
// count, profiles beside the built-in ones, and what moving a job about costs. The same choices as
// those of a simulation (docs/formats/serve.md).
#pragma once

#include <memory>
#include <string>

#include "base/result.h"
#include "model/cluster.h"
#include "perf/rate_model.h"
#include "sim/sim_executor.h"

namespace berth {

struct BeliefOptions {
  /// As parse_effects() reads it, or "auto": what is known of the machine (see effects_of()).
  std::string effects = "auto";
  std::shared_ptr<const ProfileSet> profiles = {};  // empty: the built-in catalogue
  std::string profiles_digest = {};                 // of the files they come from
  double profile_error = 0;  // deviation of what is believed of profiles, to see what it costs
  /// During a cost a job is believed to hold its devices without getting on.
  SwitchCosts costs = {};
};
/// Equal: the same is believed.
[[nodiscard]] std::string to_text(const BeliefOptions& options);
[[nodiscard]] inline bool operator==(const BeliefOptions& a, const BeliefOptions& b) {
  return to_text(a) == to_text(b);
}

/// "auto": sharing a device always counts; its type where the cluster has several; how far the
/// devices of a gang are apart where it has several nodes or says how a node is built. A tuner that
/// shares out cores counts them whatever is said.
[[nodiscard]] Result<Effects> effects_of(const BeliefOptions& options, const Cluster& cluster,
                                         bool shares_out_cores);
/// What an engine begins with.
[[nodiscard]] Result<RateModel> believed_of(const BeliefOptions& options, const Cluster& cluster,
                                            bool shares_out_cores, std::uint64_t seed);

}  // namespace berth
