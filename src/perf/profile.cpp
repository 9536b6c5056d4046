// Profiles by name and by id. Names are compared without case and punctuation; the first profile is
// the class default, which stands for every model that nobody described.

#include "perf/profile.h"

#include <algorithm>
#include <cctype>

#include "base/rng.h"

namespace berth {

namespace {

std::uint64_t pair_key(ProfileId of, ProfileId beside) noexcept {
  return (std::uint64_t{of.value} << 32U) | beside.value;
}

Profile class_default() {
  Profile profile;
  profile.name = "default";
  // A fixed cost of a sixth of an iteration: with the whole batch kept (rate_model.cpp) 2, 4, 8 and
  // 16 GPUs are 1.7, 2.7, 3.7 and 4.6 times one, the median of what was measured of seven models
  // (docs/performance-model.md).
  profile.iteration.alpha = 0.03;
  profile.iteration.beta = 0.0046875;
  profile.sources.push_back({.part = "everything",
                             .provenance = Provenance::Default,
                             .source = "a middling one-GPU training job",
                             .error = 0,
                             .points = 0});
  return profile;
}

}  // namespace

std::string plain_model_name(std::string_view model) {
  std::string plain;
  for (const char c : model) {
    if (std::isalnum(static_cast<unsigned char>(c)) != 0)
      plain += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  return plain;
}

ProfileSet::ProfileSet() {
  profiles_.push_back(class_default());
  by_name_.emplace("default", fallback());
}

ProfileId ProfileSet::add(Profile profile) {
  const auto [entry, is_new] = by_name_.try_emplace(
      plain_model_name(profile.name), ProfileId{static_cast<std::uint32_t>(profiles_.size())});
  const ProfileId id = entry->second;
  for (const std::string& alias : profile.aliases)
    by_name_.try_emplace(plain_model_name(alias), id);
  if (is_new) {
    profiles_.push_back(std::move(profile));
  } else {
    // A profile of the same name replaces the old one under its id: pairs that refer to it stay
    // valid.
    profiles_[id.value] = std::move(profile);
  }
  return id;
}

ProfileId ProfileSet::append(Profile profile) {
  profiles_.push_back(std::move(profile));
  return ProfileId{static_cast<std::uint32_t>(profiles_.size() - 1)};
}

std::optional<ProfileId> ProfileSet::find(std::string_view model) const {
  const auto found = by_name_.find(plain_model_name(model));
  if (found == by_name_.end()) return std::nullopt;
  return found->second;
}

bool ProfileSet::has_pair(ProfileId of, ProfileId beside) const noexcept {
  return pairs_.contains(pair_key(of, beside));
}

// A measured pair, else the rule from utilisations, else the default for models nobody knows.
double ProfileSet::slowdown(ProfileId of, ProfileId beside) const noexcept {
  if (const auto found = pairs_.find(pair_key(of, beside)); found != pairs_.end())
    return found->second;
  const bool known = of != fallback() && beside != fallback();
  if (!known || !pairs_from_utilisation_) return default_slowdown_;
  const double both = profiles_[of.value].gpu_utilisation + profiles_[beside.value].gpu_utilisation;
  return std::max(1.0, both) / 0.95;
}

void ProfileSet::set_slowdown(ProfileId of, ProfileId beside, double times) {
  pairs_[pair_key(of, beside)] = times;
}

// One factor per profile, so that the shape of a model stays; pairs err in what they exceed 1 by.
ProfileSet ProfileSet::with_error(double deviation, std::uint64_t seed) const {
  ProfileSet wrong = *this;
  if (deviation <= 0) return wrong;
  Rng rng = Rng{seed}.fork("profile error");
  for (Profile& profile : wrong.profiles_) {
    const double factor = rng.lognormal(0, deviation);
    profile.iteration.alpha *= factor;
    profile.iteration.beta *= factor;
    profile.cpu.log_gain *= factor;
    profile.cpu.linear_gain *= factor;
    profile.validation.cpu.log_gain *= factor;
    profile.validation.cpu.linear_gain *= factor;
    for (auto& [device, speed] : profile.speeds) speed *= rng.lognormal(0, deviation);
  }
  // By ids, not in the order of the hash: the same draws everywhere.
  for (std::uint32_t of = 0; of < wrong.profiles_.size(); ++of) {
    for (std::uint32_t beside = 0; beside < wrong.profiles_.size(); ++beside) {
      const double truth = slowdown(ProfileId{of}, ProfileId{beside});
      wrong.pairs_[pair_key(ProfileId{of}, ProfileId{beside})] =
          1 + (truth - 1) * rng.lognormal(0, deviation);
    }
  }
  return wrong;
}

}  // namespace berth
