#include "policies/pollux/filling.h"

#include <algorithm>
#include <map>
#include <queue>
#include <tuple>

#include "policies/pollux/fitness.h"

namespace berth::pollux {

namespace {

/// From one size of a job to a larger one.
struct Step {
  double gain = 0;  // per GPU
  std::uint32_t job = 0;
  std::uint32_t to = 0;  // index of the size, counted from 1
  std::int32_t gpus = 0;
};
struct Later {
  bool operator()(const Step& a, const Step& b) const noexcept {
    return std::tuple(a.gain, b.gpus, b.job) < std::tuple(b.gain, a.gpus, a.job);
  }
};

class Filling {
 public:
  Filling(std::span<const FillJob> jobs, double p) : jobs_(jobs), p_(p), at_(jobs.size(), 0) {}

  std::vector<std::int32_t> run(std::int64_t free) {
    for (std::uint32_t job = 0; job < jobs_.size(); ++job) push_best(job, free);
    while (!steps_.empty()) {
      const Step step = steps_.top();
      steps_.pop();
      if (step.gpus <= free) {
        at_[step.job] = step.to;
        free -= step.gpus;
      }
      push_best(step.job, free);  // if it did not fit, a smaller step may
    }
    std::vector<std::int32_t> result;
    for (std::uint32_t job = 0; job < jobs_.size(); ++job) result.push_back(size_at(job, at_[job]));
    return result;
  }

 private:
  [[nodiscard]] std::int32_t size_at(std::uint32_t job, std::uint32_t index) const {
    return index == 0 ? 0 : jobs_[job].sizes[index - 1];
  }
  /// The larger the better, whatever the sign of p.
  [[nodiscard]] double worth_at(std::uint32_t job, std::uint32_t index) const {
    const double utility = index == 0 ? 0 : jobs_[job].utility[index - 1];
    return p_ < 0 ? -powered(utility, p_) : powered(utility, p_);
  }

  /// The step with the largest gain per GPU among those that fit.
  void push_best(std::uint32_t job, std::int64_t free) {
    const std::uint32_t from = at_[job];
    const double worth = worth_at(job, from);
    Step best;
    for (auto to = from + 1; to <= jobs_[job].sizes.size(); ++to) {
      const std::int32_t gpus = size_at(job, to) - size_at(job, from);
      if (gpus > free) break;
      const double gain = (worth_at(job, to) - worth) / gpus;
      if (gain > best.gain) best = {gain, job, to, gpus};
    }
    if (best.gpus > 0) steps_.push(best);
  }

  std::span<const FillJob> jobs_;
  double p_;
  std::vector<std::uint32_t> at_;
  std::priority_queue<Step, std::vector<Step>, Later> steps_;
};

/// Of waiting jobs that are alike the first is served first, and each takes its least: those behind
/// as many as all GPUs can hold get nothing, so they are left out.
std::vector<JobId> within_reach(const PoolRound& round) {
  using Alike = std::pair<const goodput::Table*, std::int32_t>;  // kind and noise, largest size now
  std::map<Alike, std::int64_t> left;  // lookup only: its order is that of addresses
  const std::int64_t gpus = round.pass.view.cluster.usable_gpus(round.pool);
  std::vector<JobId> jobs;
  for (const JobId job : round.jobs) {
    if (round.pass.plan.holds(job)) {
      jobs.push_back(job);
      continue;
    }
    const std::int64_t places = gpus / std::max(1, round.models.least(job));
    const Alike alike{&round.table(job), round.models.most(job)};
    std::int64_t& room = left.try_emplace(alike, places).first->second;
    if (room-- > 0) jobs.push_back(job);
  }
  return jobs;
}

FillJob fill_job(const PoolRound& round, JobId job) {
  FillJob fill;
  const ElasticRange range{round.models.least(job), round.models.most(job)};
  fill.sizes = doubling_sizes(range, round.pass.plan.gpus_of(job));
  const double fair = round.fair_goodput(job);
  for (const std::int32_t size : fill.sizes)
    fill.utility.push_back(round.table(job).goodput(size, size > round.largest_node()) / fair);
  return fill;
}

/// Growth that a restart eats up is undone; so is shrinking that nobody needs.
void keep_what_gains_little(const PoolRound& round, std::span<const JobId> jobs,
                            std::vector<std::int32_t>& sizes) {
  constexpr double kWorthAMove = 1.05;
  const Plan& plan = round.pass.plan;
  std::int64_t spare = round.pass.view.cluster.usable_gpus(round.pool);
  for (std::size_t j = 0; j < jobs.size(); ++j) {
    const std::int32_t now = plan.gpus_of(jobs[j]);
    if (now > 0 && sizes[j] > now) {
      const goodput::Table& table = round.table(jobs[j]);
      const double grown = table.goodput(sizes[j], sizes[j] > round.largest_node());
      const double stays = table.goodput(now, plan.slices(jobs[j]).size() > 1);
      const double factor = round.models.restart_factor(round.pass.view, jobs[j]);
      if (grown * factor < kWorthAMove * stays) sizes[j] = now;
    }
    spare -= sizes[j];
  }
  for (std::size_t j = 0; j < jobs.size(); ++j) {
    const std::int32_t now = plan.gpus_of(jobs[j]);
    if (sizes[j] >= now || now - sizes[j] > spare) continue;
    spare -= now - sizes[j];
    sizes[j] = now;
  }
}

}  // namespace

std::vector<std::int32_t> water_fill(std::span<const FillJob> jobs, std::int64_t gpus, double p) {
  return Filling(jobs, p).run(gpus);
}

bool optimise_by_filling(const PoolRound& round) {
  const std::vector<JobId> considered = within_reach(round);
  const Plan& plan = round.pass.plan;
  std::int64_t gpus = round.pass.view.cluster.usable_gpus(round.pool);
  std::vector<FillJob> jobs;
  for (const JobId job : considered) {
    const bool is_pinned = round.is_pinned(job);  // without sizes it takes no part
    if (is_pinned) gpus -= plan.gpus_of(job);
    jobs.push_back(is_pinned ? FillJob{} : fill_job(round, job));
  }
  std::vector<std::int32_t> sizes = water_fill(jobs, gpus, round.p);
  for (std::size_t j = 0; j < jobs.size(); ++j) {
    if (jobs[j].sizes.empty()) sizes[j] = plan.gpus_of(considered[j]);
  }
  keep_what_gains_little(round, considered, sizes);
  std::vector<goodput::SizeWish> wishes;
  for (std::size_t j = 0; j < jobs.size(); ++j) {
    if (sizes[j] != plan.gpus_of(considered[j]))
      wishes.push_back({considered[j], round.pool, sizes[j]});
  }
  return round.resizer.apply(round.pass, wishes, goodput::Repack::Nobody);
}

}  // namespace berth::pollux
