#include "policies/agents/job_agents.h"

#include <algorithm>

namespace berth::agents {

namespace {

constexpr double kWaitMemory = 0.5;  // weight of the last wait in the smoothed one

Level above(Level level) { return static_cast<Level>(static_cast<int>(level) + 1); }

}  // namespace

SelfView JobAgents::self_of(const View& view, JobId job) const {
  SelfView self;
  self.elapsed = to_seconds(view.now - view.jobs.submitted[job]);
  self.ideal = to_seconds(view.estimate(job));
  const Duration left = view.estimated_left(job);
  // an estimate that was outlived says nothing more: it will run as long again as it has
  self.left =
      seconds_left_or_age(left > Duration::zero() ? std::optional(to_seconds(left)) : std::nullopt,
                          to_seconds(view.jobs.work_done(job, view.now)));
  if (const auto deadline = view.deadline(job)) self.to_deadline = to_seconds(*deadline - view.now);
  return self;
}

double JobAgents::rate_at(const View& view, JobId job, PoolId pool, Level level) const {
  return view.believed().alone({.profile = view.jobs.profile[job],
                                .pool = pool,
                                .reference = view.jobs.reference[job],
                                .gpus = view.gpus(job),
                                .wanted = view.gpus(job),
                                .batch = view.jobs.batch[job],
                                .level = level,
                                .link_jobs = 1,
                                .terms = {}});
}

double JobAgents::best_rate(const View& view, JobId job, PoolId pool) const {
  return rate_at(view, job, pool, view.believed().best_level(pool, view.gpus(job)));
}

LocalityLabel JobAgents::label_of(const View& view, JobId job) {
  const auto [known, is_new] =
      labels_.try_emplace({view.jobs.profile[job], view.gpus(job)}, LocalityLabel::Any);
  if (is_new) {
    const Profile& profile = view.believed().profile(view.jobs.profile[job]);
    known->second = locality_label(locality_sensitivity(
        profile.iteration, profile.batch, view.gpus(job), view.cluster.cluster().links));
  }
  return known->second;
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
    const double ratio = rate_at(view, job, pool, level) / rate_at(view, job, pool, above(level));
    if (ratio > 1 && !should_relax(left, ratio, wait_for(view, job, level))) break;
    level = above(level);
  }
  return level;
}

std::optional<double> JobAgents::worth_of_level(const View& view, JobId job, PoolId pool,
                                                Level level) const {
  if (level == Level::CrossRack) return std::nullopt;
  const double ratio = rate_at(view, job, pool, level) / rate_at(view, job, pool, above(level));
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
  const double rate = best_rate(view, job, pool);
  return {.badness_now = badness(options_.value, self, rate, to_seconds(options_.lease)),
          .bids = {{view.gpus(job), badness(options_.value, self, rate, 0)}}};
}

}  // namespace berth::agents
