// Who stands where, by node, and therefore whose rate changes when somebody comes or goes. Changes
// of one instant are only marked; rates() works them out once, when everybody of that instant has
// moved.

#include "sim/neighbourhood.h"

#include <algorithm>
#include <bit>

#include "base/check.h"

namespace berth {

Neighbourhood::Neighbourhood(const Trace& trace, const RateModel& truth)
    : trace_(&trace),
      truth_(&truth),
      standing_(trace.jobs.size()),
      residents_(truth.cluster().nodes.size()),
      is_changed_(trace.jobs.size()),
      moves_rates_alone_(truth.effects().locality || truth.effects().cpu ||
                         truth.effects().memory || truth.effects().device) {}

void Neighbourhood::mark(JobId job) {
  if (is_changed_[job] != 0) return;
  is_changed_[job] = 1;
  changed_.push_back(job);
}

void Neighbourhood::mark_around(const Slice& slice) {
  // Without these effects only jobs on the same devices feel each other.
  const bool whole_node = truth_->effects().server || truth_->effects().locality;
  for (const Resident& other : residents_[slice.node.value]) {
    if (whole_node || (other.devices & slice.devices) != 0) mark(other.job);
  }
}

void Neighbourhood::enter(JobId job, PoolId pool, std::span<const Slice> slices) {
  Place& place = standing_[job];
  BERTH_CHECK(!place.place.holds(), "a job enters once");
  place.place = places_.store(pool, slices);
  place.level = truth_->servers().level_of(slices);
  mark(job);
  for (const Slice& slice : slices) {
    mark_around(slice);
    residents_[slice.node.value].push_back({job, slice.devices});
  }
}

void Neighbourhood::leave(JobId job) {
  Place& place = standing_[job];
  for (const Slice& slice : places_.slices(place.place)) {
    auto& here = residents_[slice.node.value];
    // Before marking: a job that leaves needs no new rate.
    here.erase(std::ranges::find(here, job, &Resident::job));
    mark_around(slice);
  }
  places_.release(place.place);
  place = Place{};
}

void Neighbourhood::touch(JobId job) {
  mark(job);
  for (const Slice& slice : slices(job)) mark_around(slice);
}

void Neighbourhood::settle() noexcept {
  for (const JobId job : changed_) is_changed_[job] = 0;
  changed_.clear();
}

void Neighbourhood::rates(Time now, const JobTable& jobs, std::vector<RateChange>& rated) {
  if (changed_.empty()) return;
  // Ordered by id, so that events do not depend on the order in which jobs were marked.
  std::ranges::sort(changed_);
  for (const JobId job : changed_) {
    is_changed_[job] = 0;
    if (!standing_[job].place.holds()) continue;  // it has left since
    const double speed = rate_of(now, job, jobs);
    Rate rate = Rate::from(speed);
    BERTH_CHECK(speed > 0 || jobs.terms[job].throttle_milli == 0,
                "only a job that is held back stands still");
    // Too slow for the fixed point of a rate: the least one, because a rate of zero would never
    // end.
    if (speed > 0 && rate.is_zero()) rate = Rate::from(1e-9);
    rated.push_back({.job = job, .rate = rate});
  }
  changed_.clear();
}

void Neighbourhood::company(JobId job, std::vector<JobId>& others) const {
  const std::size_t first = others.size();
  for (const Slice& slice : slices(job)) {
    for (const Resident& other : residents_[slice.node.value]) {
      if (other.job != job && (other.devices & slice.devices) != 0) others.push_back(other.job);
    }
  }
  const auto mine = others.begin() + static_cast<std::ptrdiff_t>(first);
  std::sort(mine, others.end());
  others.erase(std::unique(mine, others.end()), others.end());
}

double Neighbourhood::rate_of(Time now, JobId job, const JobTable& jobs) {
  if (jobs.granted[job] == 0) return 1;  // cores alone: nothing of a device that could be slow
  const Place& place = standing_[job];
  const auto slices = places_.slices(place.place);
  Standing standing{.profile = jobs.profile[job],
                    .pool = place.place.pool,
                    .reference = jobs.reference[job],
                    .gpus = jobs.granted[job],
                    .wanted = trace_->jobs[job.value].gpus,
                    .batch = jobs.batch[job],
                    .level = place.level,
                    .link_jobs = 1,
                    .phase = jobs.phase[job],
                    .terms = jobs.terms[job]};
  double shared = 1;
  double server = 1;
  for (const Slice& slice : slices) {
    shared = std::min(shared, beside(job, jobs, slice));
    if (truth_->effects().server) server = std::max(server, server_slowdown(job, jobs, slice));
    if (truth_->effects().locality)
      standing.link_jobs = std::max(standing.link_jobs, link_jobs(slice, place.level));
  }
  // Then the duration in the trace is the truth: no formula may change it by a rounding error.
  const bool as_traced = !moves_rates_alone_ && standing.gpus == standing.wanted &&
                         standing.terms.sub_steps == 1 && standing.terms.batch == 0;
  const auto& noise = truth_->profile(standing.profile).noise;
  if (!as_traced && !noise.empty()) {
    const double done = share_done(jobs.work_done(job, now), trace_->jobs[job.value].duration);
    standing.noise = static_cast<std::int32_t>(std::min(1e9, noise_scale_at(noise, done)));
  }
  return (as_traced ? 1.0 : truth_->alone(standing)) * shared / server;
}

/// The slowest of the job's devices on this node.
double Neighbourhood::beside(JobId job, const JobTable& jobs, const Slice& slice) {
  const auto& here = residents_[slice.node.value];
  const PoolId pool = standing_[job].place.pool;
  std::uint64_t shared = 0;
  for (const Resident& other : here) {
    if (other.job != job) shared |= other.devices & slice.devices;
  }
  double least = truth_->beside(jobs.profile[job], jobs.terms[job], pool, {});
  // Device by device, because each may have other guests; the slowest decides for the gang.
  for (; shared != 0; shared &= shared - 1) {
    const std::uint64_t device = shared & (~shared + 1);
    group_.clear();
    for (const Resident& other : here) {
      if (other.job == job || (other.devices & device) == 0) continue;
      group_.push_back({jobs.profile[other.job], jobs.terms[other.job]});
    }
    least = std::min(least, truth_->beside(jobs.profile[job], jobs.terms[job], pool, group_));
  }
  return least;
}

/// Gangs over several servers share the server's uplink, gangs inside it the way between its
/// sockets. A switch or an NVLink island carries all its gangs at full speed.
std::int32_t Neighbourhood::link_jobs(const Slice& slice, Level level) const noexcept {
  if (level < Level::Server) return 1;
  const bool leaves_server = level > Level::Server;
  const auto crosses = [&](const Resident& other) {
    const Level theirs = standing_[other.job].level;
    return leaves_server ? theirs > Level::Server : theirs == Level::Server;
  };
  return static_cast<std::int32_t>(std::ranges::count_if(residents_[slice.node.value], crosses));
}

double Neighbourhood::server_slowdown(JobId job, const JobTable& jobs,
                                      const Slice& slice) const noexcept {
  BusPressure pressure{truth_->profile(jobs.profile[job]).bus};
  for (const Resident& other : residents_[slice.node.value]) {
    const bool same_device = (other.devices & slice.devices) != 0;  // itself, or priced elsewhere
    if (!same_device && other.devices != 0)
      pressure.add_neighbour(truth_->profile(jobs.profile[other.job]).bus);
  }
  return pressure.slowdown();
}

}  // namespace berth
