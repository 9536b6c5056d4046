// Processes of this machine by their parents, as /proc tells: which ones a step has, and what they
// use. What ends while one looks is left out.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace berth::client::slurm {

struct ProcessUse {
  std::int64_t pid = 0;
  std::int64_t parent = 0;
  double cpu_seconds = 0;  // its own, and of its children that are gone
  std::int64_t rss_kib = 0;
  std::int64_t virtual_kib = 0;
  std::int64_t page_faults = 0;  // major ones
};

[[nodiscard]] std::vector<ProcessUse> all_processes();
/// One and all that descend from it; empty: it is not here. `without` and theirs are left out.
[[nodiscard]] std::vector<ProcessUse> family_of(std::span<const ProcessUse> all, std::int64_t pid,
                                                std::span<const std::int64_t> without = {});

}  // namespace berth::client::slurm
