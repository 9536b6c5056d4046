// The recorded history of a live scheduler as a trace: what was submitted when, with how many
// devices, and how long it really ran. A policy can then be tried on the jobs of last week.
#pragma once

#include <cstddef>
#include <vector>

#include "client/answers.h"
#include "model/trace.h"

namespace berth {

/// Jobs that never ran say nothing about run times and are left out, with a note. Several attempts
/// of one job count as one run of their whole length. Submit times are Unix time in the file and
/// count from the first one here.
[[nodiscard]] Trace trace_of_history(const std::vector<client::JobRow>& jobs);

}  // namespace berth
