#include "store/decayed_usage.h"

#include <cmath>

namespace berth {

namespace {

/// By what a second counts after this much time.
double weight(std::int64_t age_microseconds, double half_life) {
  if (half_life <= 0) return 1;
  return std::exp2(-static_cast<double>(age_microseconds) * 1e-6 / half_life);
}

}  // namespace

void DecayedUsage::add(double half_life, std::int64_t ended_wall, const Store::Usage& attempt) {
  add(sums_[half_life], half_life, ended_wall, attempt);
}

void DecayedUsage::add(std::int64_t ended_wall, const Store::Usage& attempt) {
  for (auto& [half_life, sum] : sums_) add(sum, half_life, ended_wall, attempt);
}

void DecayedUsage::add(Sum& sum, double half_life, std::int64_t ended_wall,
                       const Store::Usage& attempt) {
  // Weights far above 1 would overflow some day: the moment follows the attempts.
  if (const double factor = weight(ended_wall - sum.wall, half_life); factor < 0x1p-64) {
    for (auto& [who, seconds] : sum.by_user) seconds *= factor;
    sum.wall = ended_wall;
  }
  // Everything is weighed to one moment, so that an attempt costs one addition and no other sum has
  // to be touched as time passes.
  sum.by_user[{attempt.user, attempt.group}] +=
      attempt.gpu_seconds * weight(sum.wall - ended_wall, half_life);
}

std::vector<Store::Usage> DecayedUsage::at(double half_life, std::int64_t now_wall) const {
  std::vector<Store::Usage> all;
  const auto found = sums_.find(half_life);
  if (found == sums_.end()) return all;
  const double factor = weight(now_wall - found->second.wall, half_life);
  for (const auto& [who, seconds] : found->second.by_user)
    all.push_back({who.first, who.second, seconds * factor});
  return all;
}

}  // namespace berth
