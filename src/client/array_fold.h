// squeue's one line for the jobs of an array that wait alike: 12_[2-5%2]. What has begun once, or
// waits for another reason, has a line of its own.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "client/answers.h"

namespace berth::client {

struct QueueLine {
  const JobRow* job = nullptr;  // the first of them; borrowed
  std::string indices = {};     // "2-5%2"; empty: this job alone
};

/// In the order of their first jobs.
[[nodiscard]] std::vector<QueueLine> folded_arrays(std::span<const JobRow> jobs);
[[nodiscard]] std::vector<QueueLine> one_line_each(std::span<const JobRow> jobs);

}  // namespace berth::client
