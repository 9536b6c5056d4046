#include "daemon/beliefs.h"

#include <algorithm>

#include <fmt/format.h>

namespace berth {

std::string to_text(const BeliefOptions& options) {
  const SwitchCosts& costs = options.costs;
  return fmt::format("{} {} {} {} {} {} {}", options.effects, options.profiles_digest,
                     options.profile_error, costs.start.count(), costs.preempt.count(),
                     costs.resume.count(), costs.migrate.count());
}

Result<Effects> effects_of(const BeliefOptions& options, const Cluster& cluster,
                           bool shares_out_cores) {
  Effects effects;
  if (options.effects == "auto") {
    const bool says_how_built = std::ranges::any_of(cluster.nodes, [](const Node& node) {
      return node.shape != NodeShape{} || node.nvlink.has_value();
    });
    effects.device = cluster.pools.size() > 1;
    effects.locality = cluster.nodes.size() > 1 || says_how_built;
  } else {
    BERTH_TRY(effects, parse_effects(options.effects));
  }
  effects.cpu = effects.cpu || shares_out_cores;
  return effects;
}

Result<RateModel> believed_of(const BeliefOptions& options, const Cluster& cluster,
                              bool shares_out_cores, std::uint64_t seed) {
  BERTH_TRY(const Effects effects, effects_of(options, cluster, shares_out_cores));
  const ProfileSet& profiles = options.profiles ? *options.profiles : built_in_profiles();
  return RateModel{profiles.with_error(options.profile_error, seed), cluster, effects};
}

}  // namespace berth
