// The jobs that run, where they are and which of them a newcomer may join. One owner for all of it:
// every start and every departure changes the devices with a single job, the partners, and what is
// known of the jobs next door.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "core/allocation.h"
#include "policies/bsbf/newcomers.h"
#include "policies/bsbf/occupancy.h"
#include "policies/bsbf/partners.h"
#include "policies/kit/pass.h"

namespace berth::bsbf {

/// What becomes of the sub-batches of a job whose partner is gone.
enum class AfterSharing : std::uint8_t { RestoreBatch, KeepSubBatches };

class RunningJobs {
 public:
  RunningJobs(const View& view, Newcomers& newcomers, AfterSharing after)
      : newcomers_(newcomers),
        after_(after),
        occupancy_(view.cluster),
        partners_(view.jobs.size(), view.cluster.pools()),
        place_of_(view.jobs.size()) {}

  /// The plan has started it.
  void add(const Pass& pass, JobId job);
  /// It has left its devices.
  void remove(const View& view, JobId job);
  /// Ends the gradient accumulation of jobs that have become alone on their devices.
  void restore_batches(const Pass& pass);

  [[nodiscard]] bool contains(JobId job) const noexcept { return place_of_[job].holds(); }
  [[nodiscard]] std::span<const Slice> devices(JobId job) const noexcept {
    return places_.slices(place_of_[job]);
  }
  [[nodiscard]] const Occupancy& occupancy() const noexcept { return occupancy_; }
  [[nodiscard]] const PartnerIndex& partners() const noexcept { return partners_; }
  /// Solo run time left of a job that shares some of its devices.
  [[nodiscard]] SoloLeft left(const View& view, JobId job) const;
  /// Counts devices that came free, or whose job was filed anew: more than before may be left of
  /// it. Between two counts that are equal nobody has found a device that was not there.
  [[nodiscard]] std::int64_t gained() const noexcept { return gained_; }
  void gain(std::int32_t devices) noexcept { gained_ += devices; }

 private:
  [[nodiscard]] PartnerGroup group_of(const View& view, JobId job) const;
  [[nodiscard]] double solo_left(const View& view, JobId job) const;
  [[nodiscard]] std::int32_t steps_alone(const View& view, JobId job) {
    return newcomers_.steps_alone(view, view.jobs.kind[job], place_of_[job].pool).value_or(1);
  }
  std::int32_t file(const View& view, JobId job);
  void file_neighbours(const View& view, JobId job, std::span<const Slice> slices);

  Newcomers& newcomers_;
  AfterSharing after_;
  Occupancy occupancy_;
  PartnerIndex partners_;
  SliceArena places_;
  Column<JobId, Allocation> place_of_;
  std::vector<JobId> survivors_;  // whose gradient accumulation may end
  std::int64_t gained_ = 0;
};

}  // namespace berth::bsbf
