#include "policies/goodput/goodput_tables.h"

#include <algorithm>
#include <cmath>

namespace berth::goodput {

namespace {

constexpr double kPhiStep = 1.1;
constexpr double kLeastPhi = 1e-3;
constexpr std::int32_t kMostGrowth = 32;  // of the total batch where the model names no limit

IterationClock believed_clock(const RateModel& rates, const Subject& subject) {
  return [&rates, subject](const Gang& gang, std::int32_t per_step, std::int32_t extra_steps) {
    const Level best = rates.best_level(subject.pool, gang.gpus);
    return rates
        .iteration({.profile = subject.profile,
                    .pool = subject.pool,
                    .gpus = gang.gpus,
                    .wanted = gang.gpus,
                    .batch = subject.batch,
                    .level = gang.nodes > 1 ? std::max(best, Level::Rack) : best,
                    .terms = {.sub_steps = extra_steps + 1, .batch = per_step * (extra_steps + 1)}})
        .total;
  };
}

}  // namespace

std::int32_t own_total_batch(const RateModel& rates, const Subject& subject) noexcept {
  const std::int32_t own = subject.batch > 0 ? subject.batch : rates.profile(subject.profile).batch;
  return std::max(1, subject.wanted) * std::max(1, own);
}

BatchRange batch_range(const RateModel& rates, const Subject& subject) {
  const Profile& profile = rates.profile(subject.profile);
  const BatchLimits& limits = profile.batch_limits;
  const std::int32_t own = subject.batch > 0 ? subject.batch : profile.batch;
  const std::int32_t total = own_total_batch(rates, subject);
  BatchRange range;
  range.two_on_one = subject.two_on_one;
  range.most_per_step = std::max(limits.most_per_gpu, own);
  const bool is_known = limits.most_total > 0 || limits.most_per_gpu > 0;
  if (subject.adaptation == Adaptation::Fixed || !is_known) {
    range.first = range.most_total = total;
    return range;
  }
  range.least_per_step = std::min(limits.least_per_gpu, own);
  range.first = std::min(total, std::max(profile.batch, range.least_per_step));
  const std::int32_t most = limits.most_total > 0 ? limits.most_total : kMostGrowth * range.first;
  range.most_total = std::max(most, total);
  return range;
}

const BatchChoice& Table::best(std::int32_t gpus, bool spread) const {
  const auto at = 2 * static_cast<std::size_t>(gpus) + (spread ? 1 : 0);
  if (at >= entries_.size()) entries_.resize(at + 2);
  Entry& entry = entries_[at];
  if (!entry.known) entry = {true, compute({.nodes = spread ? 2 : 1, .gpus = gpus})};
  return entry.choice;
}

BatchChoice Table::compute(const Gang& gang) const {
  if (gang.gpus <= 0) return {};
  const auto seconds = [&](std::int32_t per_step, std::int32_t extra_steps) {
    return clock_(gang, per_step, extra_steps);
  };
  const bool is_fixed = range_.first == range_.most_total;
  BatchRange range = range_;
  // A batch that stays what it is still has to be a whole number of samples per GPU.
  if (is_fixed) range.most_total = (range.first + gang.gpus - 1) / gang.gpus * gang.gpus;
  BatchChoice choice = best_batch(range, gang.gpus, phi_, seconds);
  if (!choice.is_valid() && is_fixed) {  // nor do sub-batches divide it: as near as they come
    range.most_total += gang.gpus * range.most_per_step;
    choice = best_batch(range, gang.gpus, phi_, seconds);
  }
  return choice;
}

std::int32_t noise_step(const RateModel& rates, const Subject& subject, double phi) {
  const double scale = phi > 0 ? phi : own_total_batch(rates, subject);
  return static_cast<std::int32_t>(
      std::lround(portable_log(std::max(scale, kLeastPhi)) / portable_log(kPhiStep)));
}

Table believed_table(const RateModel& rates, const Subject& subject, std::int32_t noise_step) {
  return {batch_range(rates, subject), portable_exp(noise_step * portable_log(kPhiStep)),
          believed_clock(rates, subject)};
}

}  // namespace berth::goodput
