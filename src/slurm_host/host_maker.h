// A daemon's host over a Slurm: made, told what is left of earlier lives, and turned once a second.
#pragma once

#include <memory>

#include "daemon/daemon.h"
#include "slurm/link.h"
#include "slurm_host/run_track.h"

namespace berth {

struct SlurmHostOptions {
  TrackRules rules{};
  std::chrono::milliseconds every{1000};  // between two readings
};
/// The link is used by the host's own thread, and while it is made.
[[nodiscard]] HostMaker slurm_host_maker(std::shared_ptr<slurm::Link> link,
                                         SlurmHostOptions options = {});

}  // namespace berth
