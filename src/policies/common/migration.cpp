#include "policies/common/migration.h"

#include <algorithm>
#include <tuple>

namespace berth {

bool should_migrate(const MigrationOffer& offer, const MigrationRule& rule) noexcept {
  const double stay = offer.seconds_left * offer.slowdown_now;
  const double go = offer.cost_seconds + offer.seconds_left * offer.slowdown_there;
  return stay - go >= std::max(rule.least_gain * stay, rule.least_seconds);
}

bool leaves_before(const Tenant& a, const Tenant& b) noexcept {
  const auto key = [](const Tenant& tenant) {
    return std::tuple(tenant.gpus > 1, !tenant.any_locality, tenant.gpus, tenant.job);
  };
  return key(a) < key(b);
}

std::optional<DefragDecision> choose_to_empty(std::span<const EmptyingChoice> choices,
                                              double wait_saved_seconds,
                                              std::int32_t gpus_waiting) {
  const EmptyingChoice* best = nullptr;
  double best_cost = 0;
  for (const EmptyingChoice& choice : choices) {
    if (!choice.tenants_fit_elsewhere) continue;
    double cost = 0;
    for (const Tenant& tenant : choice.tenants) cost += tenant.cost_seconds * tenant.gpus;
    const bool better =
        best == nullptr || cost < best_cost || (cost == best_cost && choice.id < best->id);
    if (!better) continue;
    best = &choice;
    best_cost = cost;
  }
  if (best == nullptr || wait_saved_seconds * gpus_waiting <= 2 * best_cost) return std::nullopt;
  std::vector<Tenant> order = best->tenants;
  std::ranges::sort(order, leaves_before);
  DefragDecision decision{best->id, {}};
  for (const Tenant& tenant : order) decision.moves.push_back(tenant.job);
  return decision;
}

}  // namespace berth
