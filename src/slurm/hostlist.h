// Names of nodes as Slurm writes them, `n[1-3,07-09],login1`, and back. Several brackets in one name
// and numbers with leading zeros are kept as they are written.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace berth::slurm {

inline constexpr std::size_t kMaxHosts = 1'000'000;

/// In the order of the list; nothing is merged. "" and "(null)" are no names. A list of more than
/// kMaxHosts names is an error, found before they are made.
[[nodiscard]] Result<std::vector<std::string>> expand_hostlist(std::string_view list);

/// The shortest form that every Slurm reads: numbers at the end of names with the same beginning
/// are joined to ranges, sorted and without doubles. Other names stay as they are.
[[nodiscard]] std::string compress_hostlist(const std::vector<std::string>& names);

}  // namespace berth::slurm
