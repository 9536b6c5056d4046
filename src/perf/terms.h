// How a job runs on the devices it holds: what a scheduler can change about a running job without
// moving it.
#pragma once

#include <cstdint>

namespace berth {

/// How the jobs of one device get on. Free: as the pair table says. Interleaved: stage by stage, a
/// group at a time. Guaranteed and Opportunistic: the second lives on what the first leaves.
enum class ShareMode : std::uint8_t { Free, Interleaved, Guaranteed, Opportunistic };

/// What a job is doing. Cores that feed its training may be too few to validate as fast.
enum class Phase : std::uint8_t { Training, Validation };

struct Terms {
  std::int32_t sub_steps = 1;          // sub-batches per iteration; 1 = no gradient accumulation
  std::int32_t cores_milli = 0;        // CPU cores per GPU; 0 = as many as it wants
  std::int32_t throttle_milli = 1000;  // share of the kernels it may issue
  std::int32_t memory_limit_mib = 0;   // of device memory; 0 = what it needs
  std::int32_t host_memory_mib = 0;    // per GPU, caches its data set; 0 = as much as it wants
  std::int32_t batch = 0;              // samples per GPU and iteration; 0 = the job's own
  ShareMode mode = ShareMode::Free;
  friend bool operator==(const Terms&, const Terms&) = default;
};

}  // namespace berth
