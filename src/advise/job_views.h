// Slurm's jobs in Berth's words: the request, the state, why it waits, where it runs. Slurm's ids
// are the numbers; an array whose tasks still wait is one row with their indices folded.
#pragma once

#include <cstdint>
#include <optional>

#include "advise/sight.h"
#include "wire/views.h"

namespace berth::advise {

[[nodiscard]] LiveState live_state(const slurm::Job& job) noexcept;
[[nodiscard]] WaitCode wait_code(const slurm::Job& job) noexcept;
/// Waits and would start if there were room and its turn had come: neither held nor before its
/// time, behind other jobs, at a limit or never possible.
[[nodiscard]] bool competes(const slurm::Job& job) noexcept;

/// What the user asked for, as far as Berth has words for it.
[[nodiscard]] JobSpec spec_of(const slurm::Job& job, const Sight& sight);
/// `wall`: Unix microseconds, what has run so far is counted until then.
[[nodiscard]] JobView view_of(const slurm::Job& job, const Sight& sight, std::int64_t wall);

/// Parts in which each of a node's GPUs is shared out; 0: they are not.
[[nodiscard]] std::int32_t shards_per_gpu(const slurm::Node& node) noexcept;

}  // namespace berth::advise
