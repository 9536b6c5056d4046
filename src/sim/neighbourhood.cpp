#include "sim/neighbourhood.h"

#include <algorithm>
#include <bit>

#include "base/check.h"
#include "core/locality.h"

namespace berth {

Neighbourhood::Neighbourhood(const Trace& trace, const RateModel& truth)
    : trace_(&trace),
      truth_(&truth),
      standing_(trace.jobs.size()),
      residents_(truth.cluster().nodes.size()),
      is_changed_(truth.cluster().nodes.size()) {}

void Neighbourhood::mark(NodeId node) {
  if (is_changed_[node.value]) return;
  is_changed_[node.value] = true;
  changed_.push_back(node);
}

void Neighbourhood::enter(JobId job, PoolId pool, std::span<const Slice> slices) {
  Place& place = standing_[job];
  BERTH_CHECK(!place.place.holds(), "a job enters once");
  place.place = places_.store(pool, slices);
  place.level = level_of(truth_->cluster(), slices);
  for (const Slice& slice : slices) {
    residents_[slice.node.value].push_back({job, slice.devices});
    mark(slice.node);
  }
}

void Neighbourhood::leave(JobId job) {
  Place& place = standing_[job];
  for (const Slice& slice : places_.slices(place.place)) {
    auto& here = residents_[slice.node.value];
    here.erase(std::ranges::find(here, job, &Resident::job));
    mark(slice.node);
  }
  places_.release(place.place);
  place = Place{};
}

void Neighbourhood::touch(JobId job) {
  for (const Slice& slice : slices(job)) mark(slice.node);
}

void Neighbourhood::rates(const JobTable& jobs, std::vector<RateChange>& rated) {
  if (changed_.empty()) return;
  around_.clear();
  for (const NodeId node : changed_) {
    is_changed_[node.value] = false;
    for (const Resident& resident : residents_[node.value]) around_.push_back(resident.job);
  }
  changed_.clear();
  std::ranges::sort(around_);
  around_.erase(std::unique(around_.begin(), around_.end()), around_.end());
  for (const JobId job : around_) {
    const double speed = rate_of(job, jobs);
    Rate rate = Rate::from(speed);
    BERTH_CHECK(speed > 0 || jobs.terms[job].throttle_milli == 0,
                "only a job that is held back stands still");
    if (speed > 0 && rate.is_zero()) rate = Rate::from(1e-9);
    rated.push_back({job, rate});
  }
}

double Neighbourhood::rate_of(JobId job, const JobTable& jobs) {
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
                    .terms = jobs.terms[job]};
  double shared = 1;
  double server = 1;
  for (const Slice& slice : slices) {
    shared = std::min(shared, beside(job, jobs, slice));
    if (truth_->effects().server) server = std::max(server, server_slowdown(job, jobs, slice));
    if (truth_->effects().locality)
      standing.link_jobs = std::max(standing.link_jobs, link_jobs(slice, place.level));
  }
  return truth_->alone(standing) * shared / server;
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
    if (!same_device) pressure.add_neighbour(truth_->profile(jobs.profile[other.job]).bus);
  }
  return pressure.slowdown();
}

}  // namespace berth
