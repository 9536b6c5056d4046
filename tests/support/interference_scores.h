// How a class of jobs gets on with all others: the mean slowdown it causes and suffers beside each
// of them. What the worked examples of locality are checked with; no policy asks for it.
#pragma once

#include "perf/profile.h"
#include "perf/rate_function.h"

namespace berth {

struct InterferenceScores {
  double give = 1;
  double take = 1;
};

template <class Slowdown>
[[nodiscard]] InterferenceScores mean_over_others(const ProfileSet& profiles, ProfileId id,
                                                  Slowdown slowdown) {
  InterferenceScores sum{0, 0};
  for (std::uint32_t i = 0; i < profiles.size(); ++i) {
    sum.give += slowdown(ProfileId{i}, id);
    sum.take += slowdown(id, ProfileId{i});
  }
  const auto count = static_cast<double>(profiles.size());
  return {sum.give / count, sum.take / count};
}

/// On one device.
[[nodiscard]] inline InterferenceScores device_interference(const ProfileSet& profiles,
                                                            ProfileId id) {
  return mean_over_others(
      profiles, id, [&](ProfileId of, ProfileId beside) { return profiles.slowdown(of, beside); });
}

/// On one server, by the bus both load.
[[nodiscard]] inline InterferenceScores server_interference(const ProfileSet& profiles,
                                                            ProfileId id) {
  return mean_over_others(profiles, id, [&](ProfileId of, ProfileId beside) {
    BusPressure pressure(profiles[of].bus);
    pressure.add_neighbour(profiles[beside].bus);
    return pressure.slowdown();
  });
}

}  // namespace berth
