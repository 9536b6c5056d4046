#include "policies/themis/fairness.h"

#include <algorithm>
#include <cmath>

namespace berth::themis {

void ActiveApps::change(Time now, std::int32_t by) {
  integral_ = integral(now);
  since_ = now;
  count_ += by;
}

double ActiveApps::integral(Time now) const noexcept {
  return integral_ + count_ * to_seconds(now - since_);
}

double ActiveApps::average(Time then, double integral_then, Time now) const noexcept {
  const double life = to_seconds(now - then);
  return life > 0 ? (integral(now) - integral_then) / life : count_;
}

std::int32_t AppSplit::gpus() const noexcept {
  std::int32_t sum = 0;
  for (const SplitJob& job : jobs_) sum += job.held;
  return sum;
}

double AppSplit::seconds_left() const {
  const std::int32_t all = gpus();
  if (all == 0) return kInfinite;
  double longest = 0;
  double in_turn = 0;
  bool everybody_runs = true;
  for (std::size_t i = 0; i < jobs_.size(); ++i) {
    everybody_runs = everybody_runs && jobs_[i].held > 0;
    if (jobs_[i].held > 0) longest = std::max(longest, times_->seconds(i, jobs_[i].held));
  }
  if (everybody_runs) return longest;
  for (std::size_t i = 0; i < jobs_.size(); ++i)
    in_turn += times_->seconds(i, std::min(all, jobs_[i].most));
  return in_turn;
}

std::optional<std::size_t> AppSplit::next(std::int32_t most) const {
  std::optional<std::size_t> best;
  double longest = -1;
  for (std::size_t i = 0; i < jobs_.size(); ++i) {
    const SplitJob& job = jobs_[i];
    if (!job.can_grow || job.unit > most || job.held + job.unit > job.most) continue;
    if (job.held == 0) return i;
    const double seconds = times_->seconds(i, job.held);
    if (seconds <= longest) continue;
    longest = seconds;
    best = i;
  }
  return best;
}

AppBid make_bid(AppSplit split, double elapsed, double ideal, std::int32_t most) {
  AppBid bid;
  const auto add_row = [&](std::int32_t gpus) {
    const double left = split.seconds_left();
    bid.curve.push_back({gpus, left < kInfinite ? ideal / (elapsed + left) : 0.0});
  };
  add_row(0);
  std::int32_t given = 0;
  while (const auto job = split.next(most - given)) {
    split.give(*job);
    given += split.jobs()[*job].unit;
    bid.jobs.push_back(static_cast<std::uint32_t>(*job));
    add_row(given);
  }
  make_monotone(bid.curve);
  return bid;
}

std::size_t bidders_among(std::size_t apps, double f) noexcept {
  // (1 - 0.7) * 10 is above 3 in doubles
  const double part = std::ceil((1 - f) * static_cast<double>(apps) - 1e-9);
  return std::clamp<std::size_t>(static_cast<std::size_t>(std::max(0.0, part)), 1,
                                 std::max<std::size_t>(1, apps));
}

}  // namespace berth::themis
