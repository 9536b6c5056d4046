#include "policies/themis/ftf_rounds.h"

#include <algorithm>
#include <tuple>

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

void FtfRounds::begin(const View& view) {
  shares_.begin(view);
  rows_.resize(view.jobs.size());
}

/// Furthest behind its fraction first; those without a round before all others.
void FtfRounds::set_order(const View& view) {
  std::vector<FairShareJob> jobs;
  for (const JobId job : order_) {
    const Duration known = view.estimated_left(job);
    const double left = to_seconds(known > Duration::zero() ? known : rounds_.grid().period());
    const double rate = EqualShares::rate(view, job, order_.size());
    jobs.push_back({.elapsed = to_seconds(view.now - view.jobs.submitted[job]),
                    .left = left,
                    .ideal = shares_.seconds(job) + left / rate,
                    .gpus = view.gpus(job)});
  }
  const auto share =
      fair_time_fractions(jobs, std::max<std::int64_t>(1, view.cluster.usable_gpus()));
  for (std::size_t i = 0; i < order_.size(); ++i) rows_[order_[i]].fraction = share.fractions[i];
  std::ranges::sort(order_, {}, [&](JobId job) {
    const Row& row = rows_[job];
    const double urgency = row.rounds == 0 ? row.fraction : row.fraction / row.rounds;
    return std::tuple(row.rounds > 0, -urgency, job);
  });
}

void FtfRounds::start_waiting(Plan& plan) {
  blocked_.clear();
  for (const JobId job : order_) {
    if (plan.cluster().free_gpus() == 0) return;
    if (plan.holds(job) || try_start_unblocked(plan, blocked_, job, Reason::Round)) continue;
  }
}

void FtfRounds::decide(const View& view, Plan& plan, Rng&) {
  if (order_.empty() || !rounds_.is_due(view.now)) return start_waiting(plan);
  shares_.book(view, order_);
  set_order(view);
  for (const JobId job : order_)
    if (plan.holds(job)) plan.preempt(job, Reason::Round);
  start_waiting(plan);
  for (const JobId job : order_)
    if (plan.holds(job)) ++rows_[job].rounds;
  rounds_.hold(view.now);
}

std::optional<Time> FtfRounds::next_wakeup(const View& view) {
  if (order_.empty()) return std::nullopt;
  return rounds_.wakeup(view.now);
}

}  // namespace berth::themis
