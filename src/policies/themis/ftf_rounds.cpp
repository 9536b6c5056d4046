#include "policies/themis/ftf_rounds.h"

#include <algorithm>
#include <tuple>

#include "policies/themis/time_fractions.h"

namespace berth::themis {

void FtfRounds::on_arrival(const View&, JobId job) { order_.push_back(job); }

void FtfRounds::on_departure(const View&, JobId job) { std::erase(order_, job); }

double FtfRounds::isolated(const View& view, JobId job) const {
  return isolated_rate(std::max<std::int64_t>(1, view.cluster.usable_gpus()), order_.size(),
                       view.gpus(job));
}

/// What was done in the round that ends, at the rate an equal share has now.
void FtfRounds::book(const View& view) {
  for (const JobId job : order_) {
    Row& row = rows_[job.value];
    const Duration done = view.jobs.work_done(job, view.now);
    // Live, work is set right by what a job reports, also to less than was thought.
    row.ideal_done =
        std::max(0.0, row.ideal_done + to_seconds(done - row.booked) / isolated(view, job));
    row.booked = done;
  }
}

/// Furthest behind its fraction first; those without a round before all others.
void FtfRounds::set_order(const View& view) {
  std::vector<FairShareJob> jobs;
  for (const JobId job : order_) {
    const Duration known = view.estimated_left(job);
    const double left = to_seconds(known > Duration::zero() ? known : rounds_.grid().period());
    jobs.push_back({.elapsed = to_seconds(view.now - view.jobs.submitted[job]),
                    .left = left,
                    .ideal = rows_[job.value].ideal_done + left / isolated(view, job),
                    .gpus = view.gpus(job)});
  }
  const auto share =
      fair_time_fractions(jobs, std::max<std::int64_t>(1, view.cluster.usable_gpus()));
  for (std::size_t i = 0; i < order_.size(); ++i)
    rows_[order_[i].value].fraction = share.fractions[i];
  std::ranges::sort(order_, {}, [&](JobId job) {
    const Row& row = rows_[job.value];
    const double urgency = row.rounds == 0 ? row.fraction : row.fraction / row.rounds;
    return std::tuple(row.rounds > 0, -urgency, job);
  });
}

void FtfRounds::start_waiting(const View& view, Plan& plan) {
  blocked_.assign(view.shapes.size(), false);
  for (const JobId job : order_) {
    if (plan.cluster().free_gpus() == 0) return;
    const ShapeId shape = view.jobs.shape[job];
    if (plan.holds(job) || blocked_[shape.value]) continue;
    if (!plan.try_start(job, Reason::Round)) blocked_[shape.value] = true;
  }
}

void FtfRounds::decide(const View& view, Plan& plan, Rng&) {
  if (rounds_.is_due(view.now) && !order_.empty()) {
    book(view);
    set_order(view);
    for (const JobId job : order_)
      if (plan.holds(job)) plan.preempt(job, Reason::Round);
    start_waiting(view, plan);
    for (const JobId job : order_)
      if (plan.holds(job)) ++rows_[job.value].rounds;
    rounds_.hold(view.now);
  } else {
    start_waiting(view, plan);
  }
}

std::optional<Time> FtfRounds::next_wakeup(const View& view) {
  if (order_.empty()) return std::nullopt;
  return rounds_.wakeup(view.now);
}

}  // namespace berth::themis
