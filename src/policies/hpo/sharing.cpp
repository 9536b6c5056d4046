// Trials of one study among its GPUs: small ones beside each other on one GPU (as Hydro fuses
// them), and idle GPUs to those with most to do (as Fluid shares them out).
#include <algorithm>
#include <bit>
#include <tuple>

#include "policies/hpo/hpo.h"
#include "policies/kit/beliefs.h"
#include "policies/kit/training_reports.h"

namespace berth::hpo {

namespace {

/// What all of them get done beside each other, in trials that have a GPU of their own.
double together(const View& view, PoolId pool, ProfileId profile, std::size_t trials) {
  const std::vector<CoRunner> others(trials - 1, CoRunner{profile, {}});
  return static_cast<double>(trials) * view.believed().beside(profile, {}, pool, others);
}

}  // namespace

/// Epochs to its next rung: what it has to do next.
double Hpo::epochs_left(const View& view, JobId job) const {
  const JobRow& row = jobs_[job.value];
  const Study& study = studies_[row.study].study;
  const auto report = sensible_report(view, job);
  const double done = report ? report->epochs : 0;
  std::size_t rung = study.target(row.trial);
  while (rung < study.rungs().last() && study.rungs().epochs(rung) <= done) ++rung;
  return std::max(1e-3, study.rungs().epochs(rung) - done);
}

/// By their work, whether the trials on a device and this one would fit on it: parts of a GPU as
/// Fluid deals them out if it has to do with those the study holds.
bool Hpo::fits_by_share(const View& view, JobId job, std::span<const JobId> there) const {
  const StudyRow& row = studies_[jobs_[job.value].study];
  std::vector<double> work;
  std::vector<bool> is_there;
  for (const JobId other : row.trials) {
    if (!running_.contains(other) && other != job) continue;
    work.push_back(epochs_left(view, other));
    is_there.push_back(other == job || std::ranges::find(there, other) != there.end());
  }
  const std::vector<double> shares = trial_shares(work, std::max(1, row.held));
  double sum = 0;
  for (std::size_t i = 0; i < shares.size(); ++i) sum += is_there[i] ? shares[i] : 0;
  return sum <= 1 + 1e-9;
}

/// Beside trials of the same study and model on one GPU, while all of them together get more done
/// by it: where fewest are, then the first device.
bool Hpo::try_join(const View& view, Plan& plan, JobId job) {
  const JobRow& row = jobs_[job.value];
  if (options_.fuse < 2 || row.kind != Kind::Trial || view.gpus(job) != 1 ||
      view.shape(job).is_fraction())
    return false;
  struct Device {
    std::size_t trials;
    PoolId pool;
    Slice slice;
  };
  std::vector<Device> devices;
  for (const JobId other : studies_[row.study].trials) {
    if (!plan.holds(other) || plan.gpus_of(other) != 1) continue;
    const Slice slice = plan.slices(other).front();
    const auto there = plan.cluster().jobs_on(
        slice.node, static_cast<std::int32_t>(std::countr_zero(slice.devices)));
    const auto is_sibling = [&](JobId on) {
      const JobRow& sibling = jobs_[on.value];
      return sibling.kind == Kind::Trial && sibling.study == row.study && plan.gpus_of(on) == 1 &&
             view.jobs.profile[on] == view.jobs.profile[job];
    };
    const PoolId pool = plan.pool_of(other);
    if (there.size() >= static_cast<std::size_t>(options_.fuse) ||
        !std::ranges::all_of(there, is_sibling) ||
        std::ranges::find(view.shape(job).pools, pool) == view.shape(job).pools.end() ||
        together(view, pool, view.jobs.profile[job], there.size() + 1) <=
            together(view, pool, view.jobs.profile[job], there.size()) ||
        (options_.fluid && !fits_by_share(view, job, there)))
      continue;
    devices.push_back({there.size(), pool, slice});
  }
  std::ranges::sort(devices, {}, [](const Device& device) {
    return std::tuple(device.trials, device.slice.node, device.slice.devices);
  });
  return std::ranges::any_of(devices, [&](const Device& device) {
    return plan.try_share_on(job, device.pool, {&device.slice, 1}, options_.fuse, Reason::Packing);
  });
}

/// Nobody waits and GPUs are idle: each study deals its own and its part of the idle ones out by
/// what its running trials have to do. A trial gives them back at its next rung.
void Hpo::grow_trials(const View& view, Plan& plan) {
  auto left = static_cast<std::int32_t>(active_.size());
  for (const StudyId id : active_) {
    const auto idle = static_cast<std::int32_t>(plan.cluster().free_gpus());
    if (idle == 0) return;
    const StudyRow& row = studies_[id];
    std::vector<JobId> trials;
    std::vector<double> work;
    for (const JobId job : row.trials) {
      if (!plan.holds(job) || !view.jobs.is_running(job)) continue;
      trials.push_back(job);
      work.push_back(epochs_left(view, job));
    }
    const std::int32_t gpus = row.held + (idle + left - 1) / left;
    --left;
    if (trials.empty() || static_cast<std::int32_t>(trials.size()) > gpus) continue;
    const std::vector<double> shares = trial_shares(work, gpus);
    for (std::size_t i = 0; i < trials.size(); ++i) {
      const std::int32_t most = elastic_range(view, trials[i], options_.elastic).most;
      try_grow(view, plan, trials[i], std::min(static_cast<std::int32_t>(shares[i]), most));
    }
  }
}

/// Up to so many GPUs, if there are so many and that pays.
void Hpo::try_grow(const View& view, Plan& plan, JobId job, std::int32_t gpus) {
  const PoolId pool = plan.pool_of(job);
  const std::int32_t has = plan.gpus_of(job);
  if (gpus <= has || plan.cluster().free_gpus(pool) < gpus - has ||
      !should_grow(believed_rate(view, job, pool, has), believed_rate(view, job, pool, gpus)))
    return;
  const Plan::Mark mark = plan.mark();
  plan.preempt(job, Reason::Growth);
  if (!plan.try_start_sized(pool, job, gpus, Reason::Growth)) return plan.rollback(mark);
  note_held(job, gpus);
  drop_check(job);
  jobs_[job.value].check = view.now + options_.probe;
  checks_.emplace(jobs_[job.value].check, job);
}

}  // namespace berth::hpo
