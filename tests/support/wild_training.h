// What jobs of a simulated host report: some the truth as they see it, some only now and then, some
// less than before, some nonsense, some nothing.
#pragma once

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <limits>
#include <optional>
#include <set>
#include <vector>

#include "base/rng.h"
#include "training/training_channel.h"

namespace berth::test {

class WildTraining final : public TrainingChannel {
 public:
  explicit WildTraining(std::uint64_t seed) : seed_(seed) {}

  [[nodiscard]] std::optional<TrainingReport> report(JobNumber job) const override {
    Rng rng = Rng{seed_ + ++asked_}.fork("report");
    switch (manner_of(job)) {
      case 0: return std::nullopt;
      case 1: return TrainingReport{.epochs = 0.01 * static_cast<double>(asked_), .loss = 1};
      case 2: return TrainingReport{.epochs = 10 * rng.uniform(), .loss = rng.uniform()};
      case 3:
        if (rng.below(4) != 0) return std::nullopt;
        return TrainingReport{.epochs = 1e6 * rng.uniform(), .loss = 1e-9, .noise_scale = 1e9};
      default: break;
    }
    return TrainingReport{
        .epochs = nonsense(rng), .loss = nonsense(rng), .noise_scale = nonsense(rng)};
  }
  void losses(JobNumber job, std::int64_t first, std::vector<double>& losses) const override {
    Rng rng = Rng{seed_ + ++asked_}.fork("losses");
    const std::uint64_t known = manner_of(job) == 0 ? 0 : rng.below(20);
    for (auto epoch = static_cast<std::uint64_t>(std::max<std::int64_t>(0, first)); epoch < known;
         ++epoch)
      losses.push_back(manner_of(job) > 3 ? nonsense(rng) : 1 / (1.0 + static_cast<double>(epoch)));
  }
  [[nodiscard]] bool has_saved(JobNumber) const override { return false; }
  void tell(JobNumber job, const Terms&) override { known_.insert(job); }
  /// As far as such code can be believed: never less than nothing, and no more than it can be.
  [[nodiscard]] std::optional<MeasuredProgress> progress(JobNumber job) const override {
    Rng rng = Rng{seed_ + ++asked_}.fork("progress");
    if (manner_of(job) == 0 || rng.below(3) == 0) return std::nullopt;
    constexpr double kPaces[] = {0, 1e-9, 0.3, 1, 1.02, 2, 1e3, 1e9};
    return MeasuredProgress{.iterations = rng.below(8) == 0 ? 1e12 : 1e3 * rng.uniform(),
                            .seconds_ago = rng.below(8) == 0 ? 1e5 : rng.uniform(),
                            .per_second = kPaces[rng.below(std::size(kPaces))],
                            .first_seconds_ago = 1e4 * rng.uniform(),
                            .batch = static_cast<double>(rng.below(3))};
  }
  void take_progressed(std::vector<JobNumber>& jobs) override {
    Rng rng = Rng{seed_ + ++asked_}.fork("progressed");
    for (const JobNumber job : known_) {
      if (rng.below(3) == 0) jobs.push_back(job);
    }
  }

 private:
  [[nodiscard]] std::uint64_t manner_of(JobNumber job) const {
    return Rng{seed_ + static_cast<std::uint64_t>(job)}.fork("manner").below(6);
  }
  static double nonsense(Rng& rng) {
    using Limits = std::numeric_limits<double>;
    constexpr double kValues[] = {Limits::quiet_NaN(),
                                  Limits::infinity(),
                                  -Limits::infinity(),
                                  -1,
                                  -1e300,
                                  1e300,
                                  1e-300,
                                  0,
                                  1e6};
    return kValues[rng.below(std::size(kValues))];
  }

  std::uint64_t seed_;
  std::set<JobNumber> known_;
  mutable std::uint64_t asked_ = 0;
};

}  // namespace berth::test
