// Small trials of one study beside each other on one GPU, as Hydro fuses them.
#pragma once

#include <cstdint>

#include "policies/hpo/trials.h"
#include "policies/kit/pass.h"

namespace berth::hpo {

/// How many GPUs a trial gets: as many as it asks for, or by what it has to do (Fluid).
enum class TrialGpus : std::uint8_t { Asked, Fluid };

struct FusingRules {
  std::int32_t most = 1;  // trials on one GPU
  TrialGpus gpus = TrialGpus::Asked;
};

/// Starts a trial beside trials of the same study and model on one GPU, while all of them together
/// get more done by it: where fewest are, then the first device.
[[nodiscard]] bool try_fuse(Pass& pass, const Trials& trials, JobId job, const FusingRules& rules);

}  // namespace berth::hpo
