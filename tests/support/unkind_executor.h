// A world as unkind as the real one: whoever sleeps wakes late, by microseconds, by seconds, now
// and then by hours; and training code says what it likes, or nothing.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "base/rng.h"
#include "support/passing_executor.h"

namespace berth::test {

enum class Lateness : std::uint8_t {
  Microseconds,  // what a sleeping thread always is
  Seconds,       // a busy machine
  Hours,         // now and then: a suspended machine, a stopped process
};

class UnkindExecutor final : public PassingExecutor {
 public:
  UnkindExecutor(std::unique_ptr<Executor> world, Lateness lateness, std::uint64_t seed)
      : PassingExecutor(std::move(world)), lateness_(lateness), seed_(seed), rng_(seed) {}

  [[nodiscard]] std::optional<Time> advance(Time wakeup) override {
    const auto then = world().advance(wakeup);
    if (!then) return std::nullopt;
    now_ = std::max(now_, *then + late());
    return now_;
  }
  [[nodiscard]] std::optional<TrainingReport> report(Time now, JobId job,
                                                     const JobTable& jobs) const override {
    auto said = world().report(now, job, jobs);
    Rng rng = said_at(now, job);
    switch (manner_of(job)) {
      case Manner::Honest: return said;
      case Manner::Silent: return std::nullopt;
      case Manner::NowAndThen: return rng.below(3) == 0 ? said : std::nullopt;
      case Manner::Backwards:
        if (said) said->epochs *= rng.uniform();
        return said;
      case Manner::Nonsense: break;
    }
    return TrainingReport{
        .epochs = nonsense(rng), .loss = nonsense(rng), .noise_scale = nonsense(rng)};
  }
  void losses(Time now, JobId job, const JobTable& jobs, std::int64_t first,
              std::vector<double>& losses) const override {
    const std::size_t before = losses.size();
    if (manner_of(job) == Manner::Silent) return;
    world().losses(now, job, jobs, first, losses);
    if (manner_of(job) != Manner::Nonsense) return;
    Rng rng = said_at(now, job);
    for (std::size_t i = before; i < losses.size(); ++i) losses[i] = nonsense(rng);
  }

 private:
  enum class Manner : std::uint8_t { Honest, Silent, NowAndThen, Backwards, Nonsense };

  Duration late() {
    constexpr std::uint64_t kSecond = 1'000'000;
    const bool is_hours = lateness_ == Lateness::Hours && rng_.below(10) == 0;
    const bool is_seconds = lateness_ != Lateness::Microseconds && rng_.below(3) == 0;
    const std::uint64_t most = is_hours ? 5 * 3600 * kSecond : is_seconds ? 5 * kSecond : 2'000;
    return Duration{static_cast<std::int64_t>(1 + rng_.below(most))};
  }
  [[nodiscard]] Manner manner_of(JobId job) const {
    return static_cast<Manner>(Rng{seed_ + job.value}.fork("manner").below(5));
  }
  /// Who asks twice at one moment hears the same.
  [[nodiscard]] Rng said_at(Time now, JobId job) const {
    const auto moment = static_cast<std::uint64_t>(now.time_since_epoch().count());
    return Rng{seed_ ^ (moment * 1'000'003 + job.value)}.fork("said");
  }
  static double nonsense(Rng& rng) {
    constexpr double kInfinite = std::numeric_limits<double>::infinity();
    constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
    constexpr double kValues[] = {kNone, kInfinite, -kInfinite, -1, -1e300, 1e300, 1e-300, 0, 1e6};
    return kValues[rng.below(std::size(kValues))];
  }

  Lateness lateness_;
  std::uint64_t seed_;
  Rng rng_;
  Time now_ = kTimeZero;
};

}  // namespace berth::test
