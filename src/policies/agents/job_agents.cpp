#include "policies/agents/job_agents.h"

#include <algorithm>

namespace berth::agents {

namespace {

constexpr double kWaitMemory = 0.5;        // weight of the last wait in the smoothed one
constexpr double kNoHurry = 30.0 * 86400;  // a job without a deadline has a month

/// With devices on which it runs at `rate`, after `delay` seconds.
double badness(Value value, const SelfView& self, double rate, double delay) {
  const double finish = delay + std::max(1.0, self.left) / rate;
  switch (value) {
    case Value::Fairness: return (self.elapsed + finish) / std::max(1.0, self.ideal);
    case Value::Jct: return finish;
    case Value::Throughput: return (1 + delay / std::max(1.0, self.left)) / rate;
    case Value::Deadline: break;
  }
  const bool in_time = self.to_deadline && *self.to_deadline > 0;
  return finish / (in_time ? *self.to_deadline : kNoHurry);
}

Level above(Level level) { return static_cast<Level>(static_cast<int>(level) + 1); }

/// How many times as fast as one level farther apart.
double gain_over_next(const View& view, JobId job, PoolId pool, Level level) {
  const std::int32_t gpus = view.gpus(job);
  return believed_rate(view, job, pool, gpus, level) /
         believed_rate(view, job, pool, gpus, above(level));
}

}  // namespace

SelfView JobAgents::self_of(const View& view, JobId job) const {
  SelfView self;
  self.elapsed = to_seconds(view.now - view.jobs.submitted[job]);
  self.ideal = to_seconds(view.estimate(job));
  const Duration left = view.estimated_left(job);
  // An estimate that was outlived says nothing more: it will run as long again as it has.
  self.left =
      seconds_left_or_age(left > Duration::zero() ? std::optional(to_seconds(left)) : std::nullopt,
                          to_seconds(view.jobs.work_done(job, view.now)));
  if (const auto deadline = view.deadline(job)) self.to_deadline = to_seconds(*deadline - view.now);
  return self;
}

LocalityLabel JobAgents::label_of(const View& view, JobId job) {
  return labels_.of(view.jobs.kind[job], [&] {
    const Profile& profile = view.believed().profile(view.jobs.profile[job]);
    return locality_label(locality_sensitivity(profile.iteration, profile.batch, view.gpus(job),
                                               view.cluster.cluster().links));
  });
}

double JobAgents::wait_for(const View& view, JobId job, Level level) const {
  const double own = to_seconds(view.now - view.jobs.submitted[job]);
  const auto known = waits_.find({view.gpus(job), level});
  return known == waits_.end() ? own : std::max(own, known->second);
}

Level JobAgents::accepted_level(const View& view, JobId job, PoolId pool,
                                const TopologyIndex& index) {
  Level level = first_level(label_of(view, job), index.lowest_possible(pool, view.gpus(job)));
  const double left = self_of(view, job).left;
  while (level < Level::CrossRack) {
    const double ratio = gain_over_next(view, job, pool, level);
    if (ratio > 1 && !should_relax(left, ratio, wait_for(view, job, level))) break;
    level = above(level);
  }
  return level;
}

std::optional<double> JobAgents::worth_of_level(const View& view, JobId job, PoolId pool,
                                                Level level) const {
  if (level == Level::CrossRack) return std::nullopt;
  const double ratio = gain_over_next(view, job, pool, level);
  const double loss = std::max(0.0, self_of(view, job).left * (ratio - 1));
  return std::max(0.0, loss - wait_for(view, job, level)) + loss;
}

void JobAgents::note_wait(const View& view, JobId job, Level level) {
  if (view.jobs.first_start[job] != kNever) return;
  const double waited = to_seconds(view.now - view.jobs.submitted[job]);
  double& smoothed = waits_.try_emplace({view.gpus(job), level}, waited).first->second;
  smoothed += kWaitMemory * (waited - smoothed);
}

Bidder JobAgents::bidder_of(const View& view, JobId job, PoolId pool) const {
  const SelfView self = self_of(view, job);
  const double rate = believed_rate(view, job, pool, view.gpus(job));
  return {.badness_now = badness(options_.value, self, rate, to_seconds(options_.lease)),
          .bids = {{view.gpus(job), badness(options_.value, self, rate, 0)}}};
}

double JobAgents::hardship_of(const Bidder& bidder) const {
  const double with_devices = bidder.bids.front().badness;
  const bool small_first = options_.value == Value::Jct || options_.value == Value::Throughput;
  return small_first ? 1 / with_devices : with_devices;
}

}  // namespace berth::agents
