#include "policies/bsbf/running_jobs.h"

#include <algorithm>
#include <bit>

#include "base/device_mask.h"
#include "policies/kit/beliefs.h"

namespace berth::bsbf {

void RunningJobs::add(const Pass& pass, JobId job) {
  const auto slices = pass.plan.slices(job);
  place_of_[job] = places_.store(pass.plan.pool_of(job), slices);
  partners_.assign(job, group_of(pass.view, job));
  occupancy_.refresh(pass.view.cluster, slices);
  file(pass.view, job);
  file_neighbours(pass.view, job, slices);
}

void RunningJobs::remove(const View& view, JobId job) {
  partners_.remove(job);
  const auto slices = devices(job);
  occupancy_.refresh(view.cluster, slices);
  file_neighbours(view, job, slices);
  for (const Slice& slice : slices)
    gained_ += std::popcount(slice.devices & view.cluster.free_mask(slice.node));
  places_.release(place_of_[job]);
  place_of_[job] = Allocation{};
}

void RunningJobs::restore_batches(const Pass& pass) {
  std::ranges::sort(survivors_);
  for (const JobId job : survivors_) {
    if (!contains(job) || !partners_.contains(job)) continue;
    Terms terms = pass.view.jobs.terms[job];
    terms.sub_steps = steps_alone(pass.view, job);
    if (!pass.plan.set_terms(job, terms, Reason::Packing)) continue;
    // It takes more memory now, so it belongs to another group.
    partners_.remove(job);
    partners_.assign(job, group_of(pass.view, job));
    gained_ += file(pass.view, job);
  }
  survivors_.clear();
}

PartnerGroup RunningJobs::group_of(const View& view, JobId job) const {
  std::int32_t gpus = 0;
  for (const Slice& slice : devices(job)) gpus += slice.gpus;
  return {.profile = view.jobs.profile[job],
          .pool = place_of_[job].pool,
          .gpus = gpus,
          .memory_mib = believed_memory_mib(view, job, view.jobs.terms[job])};
}

/// Seconds it would still take by itself where it is.
double RunningJobs::solo_left(const View& view, JobId job) const {
  const Terms& terms = view.jobs.terms[job];
  const double left = to_seconds(view.estimated_left(job));
  if (view.believed().effects() == Effects{} && terms.sub_steps == 1) return left;
  Standing standing = standing_of(view, view.jobs.kind[job], place_of_[job].pool, view.gpus(job));
  standing.level = view.believed().servers().level_of(devices(job));
  standing.link_jobs = 1;
  standing.terms = terms;
  return left / view.believed().alone(standing);
}

/// Where more than sharing has an effect its rate may change without its being filed anew; one that
/// starts in this very pass has none yet.
SoloLeft RunningJobs::left(const View& view, JobId job) const {
  const bool steady = view.believed().effects() == Effects{} &&
                      view.jobs.terms[job].sub_steps == 1 && view.jobs.is_running(job);
  if (!steady)
    return {.left = seconds_to_duration(solo_left(view, job)), .from = kNever, .rate = {}};
  return {.left = view.estimate(job) - view.jobs.work[job],
          .from = view.jobs.work_from[job],
          .rate = view.jobs.rate[job]};
}

/// Files a running job by how many of its devices it has for itself, which it answers.
std::int32_t RunningJobs::file(const View& view, JobId job) {
  partners_.remove(job);
  const std::int32_t single = occupancy_.single_of(devices(job));
  if (single == partners_.group_of(job).gpus) {
    partners_.add_alone(job, view.now + seconds_to_duration(solo_left(view, job)));
    if (after_ == AfterSharing::RestoreBatch &&
        view.jobs.terms[job].sub_steps > steps_alone(view, job))
      survivors_.push_back(job);
  } else if (single > 0) {
    partners_.add_sharing(job, view.now);
  }
  return single;
}

/// Files the jobs anew on devices that the job took or left. What is left of one that is filed anew
/// may be more than was reckoned while it was not looked at, so its devices count as gained.
void RunningJobs::file_neighbours(const View& view, JobId job, std::span<const Slice> slices) {
  JobId filed = job;
  for (const Slice& slice : slices) {
    for (const std::int32_t device :
         DeviceMask{slice.devices & ~view.cluster.free_mask(slice.node)}) {
      for (const JobId mate : view.cluster.jobs_on(slice.node, device)) {
        if (mate == job || mate == filed) continue;  // gangs meet on many devices at once
        filed = mate;
        gained_ += file(view, mate);
      }
    }
  }
}

}  // namespace berth::bsbf
