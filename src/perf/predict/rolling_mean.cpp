#include "perf/predict/rolling_mean.h"

#include <algorithm>

namespace berth {

std::optional<double> RollingMean::Means::of(std::int32_t gpus) const {
  if (const auto found = by_gpus.find(gpus); found != by_gpus.end()) return found->second.value();
  if (all.count == 0) return std::nullopt;
  return all.value();
}

void RollingMean::add(NameId user, NameId name, std::int32_t gpus, double seconds) {
  ++order_;
  const auto note = [&](User& row, bool with_name) {
    row.means.add(gpus, seconds);
    if (!with_name) return;
    auto named = std::ranges::find(row.names, name, &Named::name);
    if (named == row.names.end()) {
      if (row.names.size() == kNames)
        row.names.erase(std::ranges::min_element(row.names, {}, &Named::used));
      row.names.push_back({.name = name});
      named = row.names.end() - 1;
    }
    // The name that was used least recently makes room for a new one.
    named->used = order_;
    named->ring[named->count++ % kLast] = {order_, gpus, seconds};
  };
  note(users_[user], true);
  note(everybody_, rule_.names_across_users);
}

/// Over the last jobs of similar names and the same size, or of any size if there is none.
std::optional<double> RollingMean::by_similar_names(const User& user, NameId name,
                                                    std::int32_t gpus) {
  std::vector<Past> same, any;
  for (const Named& named : user.names) {
    if (!similar_(named.name, name)) continue;
    const auto used = std::min<std::size_t>(named.count, kLast);
    for (std::size_t i = 0; i < used; ++i) {
      any.push_back(named.ring[i]);
      if (named.ring[i].gpus == gpus) same.push_back(named.ring[i]);
    }
  }
  std::vector<Past>& jobs = same.empty() ? any : same;
  if (jobs.empty()) return std::nullopt;
  std::ranges::sort(jobs, std::ranges::greater{}, &Past::order);
  jobs.resize(std::min(jobs.size(), kLast));
  double sum = 0, weights = 0, weight = 1;
  for (const Past& past : jobs) {
    sum += weight * past.seconds;
    weights += weight;
    weight *= rule_.decay;
  }
  return sum / weights;
}

std::optional<double> RollingMean::by_other_users(NameId name, std::int32_t gpus) {
  Means means;
  for (const Named& named : everybody_.names) {
    if (!similar_(named.name, name)) continue;
    const auto used = std::min<std::size_t>(named.count, kLast);
    for (std::size_t i = 0; i < used; ++i) means.add(named.ring[i].gpus, named.ring[i].seconds);
  }
  return means.of(gpus);
}

// The user's similar names first, then other users' if allowed, then whatever the user runs.
std::optional<double> RollingMean::predict(NameId user, NameId name, std::int32_t gpus) {
  const auto known = users_.find(user);
  if (known != users_.end()) {
    if (const auto similar = by_similar_names(known->second, name, gpus)) return similar;
  }
  if (rule_.names_across_users) {
    if (const auto others = by_other_users(name, gpus)) return others;
  }
  return known != users_.end() ? known->second.means.of(gpus) : everybody_.means.of(gpus);
}

}  // namespace berth
