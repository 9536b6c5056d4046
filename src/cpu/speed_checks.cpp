#include "cpu/speed_checks.h"

#include <algorithm>
#include <cmath>

namespace berth {
namespace {

constexpr double kTolerance = 0.15;  // measured against believed speed
constexpr int kSamples = 3;

/// Relative to having cores enough.
double measured_speed(const Plan& plan, JobId job, const CpuBeliefs& beliefs) {
  return plan.jobs().rate[job].value() / beliefs.full_rate(plan, job);
}

enum class Verdict : std::uint8_t { Settled, NotUnderWay, Contradicts };

/// Whoever agrees with its belief is not looked at again until its server changes; beside others on
/// a GPU a speed says nothing about cores.
Verdict sample(const Plan& plan, JobId job, Time now, const CpuBeliefs& beliefs) {
  const JobTable& jobs = plan.jobs();
  if (!jobs.is_running(job) || !plan.holds(job) || has_device_company(plan, job))
    return Verdict::Settled;
  if (now <= jobs.work_from[job]) return Verdict::NotUnderWay;
  const double measured = measured_speed(plan, job, beliefs);
  const double expected = beliefs.speed(plan, job, plan.terms(job).cores_milli);
  const bool agrees = std::abs(measured / expected - 1) <= kTolerance;
  return measured <= 0 || agrees ? Verdict::Settled : Verdict::Contradicts;
}

}  // namespace

/// Only from the front: that somebody is watched matters, not who else is.
void SpeedChecks::forget_stopped(const View& view) {
  while (!watched_.empty() && !view.jobs.is_running(watched_.begin()->first))
    watched_.erase(watched_.begin());
}

bool SpeedChecks::take_samples(const Plan& plan, Time now, CpuBeliefs& beliefs) {
  bool corrected = false;
  for (auto it = watched_.begin(); it != watched_.end();) {
    auto& [job, strikes] = *it;
    const Verdict verdict = sample(plan, job, now, beliefs);
    const bool enough = verdict == Verdict::Contradicts && ++strikes == kSamples;
    if (enough && beliefs.correct(plan, job, measured_speed(plan, job, beliefs))) corrected = true;
    it = enough || verdict == Verdict::Settled ? watched_.erase(it) : std::next(it);
  }
  return corrected;
}

void SpeedProbes::forget_stopped(const View& view) {
  std::erase_if(probing_, [&](JobId job) { return !view.jobs.is_running(job); });
}

void SpeedProbes::collect(const Plan& plan, Look look, CpuBeliefs& beliefs,
                          std::vector<NodeId>& nodes) {
  news_.clear();
  measured_.take_changed(news_);
  for (const JobId job : news_) beliefs.forget_measured(job);
  if (look == Look::AtAll) news_.insert(news_.end(), probing_.begin(), probing_.end());
  for (const JobId job : news_) {
    if (!plan.holds(job)) continue;
    for (const Slice& slice : plan.slices(job)) nodes.push_back(slice.node);
  }
}

/// Within what it has and what nobody holds: the others are not touched. Beside others on a GPU a
/// speed says nothing about cores, and the workers of a gang would have to change as one.
void SpeedProbes::bind(Plan& plan, const CoreGrants& grants, ServerCores& cores) {
  for (const auto& [job, granted] : grants) {
    probing_.erase(job);
    if (!plan.jobs().is_running(job) || plan.slices(job).size() != 1) continue;
    if (has_device_company(plan, job)) continue;
    const Slice slice = plan.slices(job).front();
    const std::int64_t free = std::max<std::int64_t>(0, cores.free_milli(plan, slice.node));
    const std::int64_t within_reach = (granted + free / slice.gpus) / 1000;
    const auto probed = measured_.probe(job, static_cast<std::int32_t>(within_reach));
    if (!probed) continue;
    give_cores(plan, job, *probed * 1000);
    probing_.insert(job);
  }
}

}  // namespace berth
