#include "policies/hpo/fusing.h"

#include <algorithm>
#include <bit>
#include <span>
#include <tuple>
#include <vector>

#include "policies/hpo/rules.h"

namespace berth::hpo {

namespace {

/// What all of them get done beside each other, in trials that have a GPU of their own.
double together(const View& view, PoolId pool, ProfileId profile, std::size_t trials) {
  const std::vector<CoRunner> others(trials - 1, CoRunner{profile, {}});
  return static_cast<double>(trials) * view.believed().beside(profile, {}, pool, others);
}

/// By their work, whether the trials on a device and this one would fit on it: parts of a GPU as
/// Fluid deals them out if it has to do with those the study holds.
bool fits_by_work(const Pass& pass, const Trials& trials, JobId job, std::span<const JobId> there) {
  const Trials::Row& study = trials[trials.study_of(job)];
  std::vector<double> work;
  std::vector<bool> is_there;
  for (const JobId other : study.jobs) {
    if (!pass.plan.holds(other) && other != job) continue;
    work.push_back(trials.epochs_left(pass.view, other));
    is_there.push_back(other == job || std::ranges::find(there, other) != there.end());
  }
  const std::vector<double> shares = trial_shares(work, std::max(1, study.held));
  double sum = 0;
  for (std::size_t i = 0; i < shares.size(); ++i) sum += is_there[i] ? shares[i] : 0;
  return sum <= 1 + 1e-9;
}

}  // namespace

bool try_fuse(Pass& pass, const Trials& trials, JobId job, const FusingRules& rules) {
  const View& view = pass.view;
  const Plan& plan = pass.plan;
  const Shape& shape = view.shape(job);
  if (rules.most < 2 || trials.study_of(job) == kNoStudy || view.gpus(job) != 1 ||
      shape.is_fraction())
    return false;
  const StudyId study = trials.study_of(job);
  const ProfileId profile = view.jobs.profile[job];
  struct Device {
    std::size_t trials;
    PoolId pool;
    Slice slice;
  };
  std::vector<Device> devices;
  for (const JobId other : trials[study].jobs) {
    if (!plan.holds(other) || plan.gpus_of(other) != 1) continue;
    const Slice slice = plan.slices(other).front();
    const auto there = plan.cluster().jobs_on(
        slice.node, static_cast<std::int32_t>(std::countr_zero(slice.devices)));
    const auto is_alike = [&](JobId on) {
      return trials.study_of(on) == study && plan.gpus_of(on) == 1 &&
             view.jobs.profile[on] == profile;
    };
    const PoolId pool = plan.pool_of(other);
    if (there.size() >= static_cast<std::size_t>(rules.most) ||
        !std::ranges::all_of(there, is_alike) ||
        std::ranges::find(shape.pools, pool) == shape.pools.end() ||
        together(view, pool, profile, there.size() + 1) <=
            together(view, pool, profile, there.size()) ||
        (rules.gpus == TrialGpus::Fluid && !fits_by_work(pass, trials, job, there)))
      continue;
    devices.push_back({there.size(), pool, slice});
  }
  std::ranges::sort(devices, {}, [](const Device& device) {
    return std::tuple(device.trials, device.slice.node, device.slice.devices);
  });
  return std::ranges::any_of(devices, [&](const Device& device) {
    return pass.plan.try_share_on(job, device.pool, {&device.slice, 1}, rules.most,
                                  Reason::Packing);
  });
}

}  // namespace berth::hpo
