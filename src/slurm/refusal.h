// Why Slurm did not do something, by the words of its commands and of libslurm, which are the same
// in all versions: the errors have numbers, and numbers have these words.
#pragma once

#include <string>
#include <string_view>

#include "slurm/link.h"

namespace berth::slurm {

/// By a sentence like "Invalid job id specified for job 7".
[[nodiscard]] Refusal refusal_of(std::string_view words) noexcept;

/// "scontrol release 7: Invalid job id specified": the first line that says something.
[[nodiscard]] LinkError refused(std::string_view attempt, std::string_view words);

}  // namespace berth::slurm
