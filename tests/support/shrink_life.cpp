// A life that goes wrong, made smaller while it still does.
#include <algorithm>
#include <array>

#include "support/random_life.h"

namespace berth::test {

namespace {

constexpr double kDay = 86'400;

constexpr std::array kInTheHost = {
    FaultClass::LateClaims, FaultClass::ShimDeaths, FaultClass::LateEvents, FaultClass::TwiceTold,
    FaultClass::LateWakes,  FaultClass::Reports,    FaultClass::SlowPasses};

/// What would come after the end is left out.
LifeSettings in_half_the_time(LifeSettings settings) {
  settings.days /= 2;
  const double end = settings.days * kDay;
  std::erase_if(settings.strikes, [&](const Strike& strike) { return strike.at >= end; });
  std::erase_if(settings.jobs, [&](const auto& job) { return job.first >= end; });
  return settings;
}

class Shrinker {
 public:
  explicit Shrinker(LifeSettings settings) : smallest_(std::move(settings)) {}

  void drop_classes() {
    for (std::size_t i = 0; i < kFaultClasses; ++i) {
      const auto what = static_cast<FaultClass>(i);
      const bool is_there =
          what == FaultClass::Narrow || std::ranges::find(kInTheHost, what) != kInTheHost.end() ||
          std::ranges::find(smallest_.strikes, what, &Strike::what) != smallest_.strikes.end();
      if (smallest_.has(what) && is_there) static_cast<void>(take(without(smallest_, what)));
    }
  }
  template <class List>
  void halve(List LifeSettings::*member) {
    for (std::size_t part = (smallest_.*member).size(); part > 0; part /= 2) {
      for (std::size_t at = 0; at < (smallest_.*member).size();) {
        LifeSettings less = smallest_;
        auto& list = less.*member;
        const auto from = list.begin() + static_cast<std::ptrdiff_t>(at);
        list.erase(from, from + static_cast<std::ptrdiff_t>(std::min(part, list.size() - at)));
        if (!take(std::move(less))) at += part;
      }
    }
  }
  void shorten() {
    while (take(in_half_the_time(smallest_))) continue;
  }
  [[nodiscard]] LifeSettings smallest() const { return smallest_; }

 private:
  static constexpr int kMostRuns = 200;
  /// True: it goes wrong as well, and is the smallest now.
  bool take(LifeSettings less) {
    if (runs_ == kMostRuns) return false;
    ++runs_;
    if (live_through(less).violations.empty()) return false;
    smallest_ = std::move(less);
    return true;
  }
  LifeSettings smallest_;
  int runs_ = 0;
};

}  // namespace

LifeSettings without(LifeSettings settings, FaultClass what) {
  settings.classes.reset(static_cast<std::size_t>(what));
  std::erase_if(settings.strikes, [&](const Strike& strike) {
    return strike.what == what || (what == FaultClass::Narrow && strike.moment == Moment::Narrow);
  });
  const SimHost::Options calm{};
  SimHost::Options& host = settings.host;
  if (what == FaultClass::LateClaims) host.claim_delay = calm.claim_delay;
  if (what == FaultClass::ShimDeaths)
    host.dies_unclaimed = host.dies_claimed = host.dies_unrecorded = 0;
  if (what == FaultClass::LateEvents) host.told_late = calm.told_late;
  if (what == FaultClass::TwiceTold) host.told_twice = calm.told_twice;
  if (what == FaultClass::SlowPasses) settings.oversleeping.in_passes = 0;
  if (what == FaultClass::LateWakes)
    settings.oversleeping.seconds = settings.oversleeping.hours = 0;
  return settings;
}

LifeSettings shrunk(LifeSettings settings) {
  Shrinker shrinker{std::move(settings)};
  shrinker.drop_classes();
  shrinker.halve(&LifeSettings::strikes);
  shrinker.halve(&LifeSettings::jobs);
  shrinker.shorten();
  return shrinker.smallest();
}

}  // namespace berth::test
