#include "run/parts.h"

#include <charconv>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "cpu/cpu_tuner.h"
#include "placements/placements.h"
#include "power/power_managers.h"

namespace berth {

namespace {

/// Takes what was made, or remembers why it could not be.
template <class T>
void take(Result<std::unique_ptr<T>> made, std::unique_ptr<T>& into, Error& error) {
  if (made) {
    into = std::move(*made);
    return;
  }
  error.messages.insert(error.messages.end(), made.error().messages.begin(),
                        made.error().messages.end());
}

/// Tiresias calls the limit of skew pack_limit, so it may also come with the policy's settings.
PlacementOptions placement_options(const SchedulerNames& names) {
  PlacementOptions options;
  options.profiles = names.profiles;
  for (const auto& [key, value] : names.settings) {
    if (key != "pack_limit") continue;
    std::from_chars(value.data(), value.data() + value.size(), options.pack_limit);
  }
  return options;
}

void check_power(const SchedulerNames& names, const SchedulerParts& parts, Error& error) {
  if (names.power == "off") return;
  if (parts.policy && parts.policy->traits().manages_power) {
    error.messages.push_back(fmt::format(
        "--policy {} switches nodes on and off itself (leave --power out)", names.policy));
  }
  if (names.placement == "count") {
    error.messages.emplace_back(
        "--power switches nodes on and off, and --placement count knows none (choose another "
        "placement)");
  }
}

}  // namespace

std::string estimator_name(const SchedulerNames& names) {
  if (!names.estimator.empty()) return names.estimator;
  const auto entry = find_policy(names.policy);
  return entry ? (*entry)->estimator : "oracle";
}

Result<SchedulerParts> make_parts(const SchedulerNames& names) {
  SchedulerParts parts;
  Error error;
  take(make_policy(names.policy, names.settings), parts.policy, error);
  // The options of a tuner depend on the policy: without a policy there is nothing to check them
  // against.
  if (names.cpu != "off" && parts.policy)
    take(make_cpu_tuner(names.cpu, *parts.policy), parts.tuner, error);
  take(make_power_manager(names.power), parts.power, error);
  check_power(names, parts, error);
  take(make_placement(names.placement, placement_options(names)), parts.placement, error);
  take(make_estimator(estimator_name(names), names.seed), parts.estimator, error);
  // Everything is tried before anything is reported: a user sees all mistakes of a command at once.
  if (!error.messages.empty()) return tl::unexpected<Error>(std::move(error));
  return parts;
}

}  // namespace berth
