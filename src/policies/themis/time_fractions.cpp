#include "policies/themis/time_fractions.h"

#include <algorithm>

namespace berth::themis {

namespace {

constexpr int kHalvings = 50;

/// Fraction of time with which the job ends at this rho; more than 1: it cannot.
double needed(const FairShareJob& job, double rho) noexcept {
  const double time = rho * job.ideal - job.elapsed;
  return time > 0 ? job.left / time : 2.0;
}

bool is_feasible(std::span<const FairShareJob> jobs, double rho, std::int64_t gpus) noexcept {
  double sum = 0;
  for (const FairShareJob& job : jobs) {
    const double fraction = needed(job, rho);
    if (fraction > 1) return false;
    sum += fraction * job.gpus;
  }
  return sum <= static_cast<double>(gpus);
}

}  // namespace

TimeFractions fair_time_fractions(std::span<const FairShareJob> jobs, std::int64_t gpus) {
  if (jobs.empty()) return {};
  double low = 0;
  double high = 1;
  while (!is_feasible(jobs, high, gpus)) {
    low = high;
    high *= 2;
  }
  for (int i = 0; i < kHalvings; ++i) {
    const double middle = (low + high) / 2;
    (is_feasible(jobs, middle, gpus) ? high : low) = middle;
  }
  TimeFractions result{high, {}};
  for (const FairShareJob& job : jobs) result.fractions.push_back(needed(job, high));
  return result;
}

double isolated_rate(std::int64_t gpus, std::size_t jobs, std::int32_t wanted) noexcept {
  const auto n = static_cast<std::int64_t>(jobs);
  const std::int64_t share = (gpus + n - 1) / n;
  return std::min(1.0, static_cast<double>(share) / wanted);
}

}  // namespace berth::themis
