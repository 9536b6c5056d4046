// Files of a Slurm's configuration, changed so that slurmctld and a power loss find the old one or
// the new one and never half of one: a temporary beside it, synced, renamed, the folder synced.
// Owner and mode stay. Links and what belongs to a third party are refused: whoever may change
// where a name leads to would otherwise have root write there.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <sys/types.h>

#include "base/result.h"

namespace berth::slurm {

struct Ownership {
  std::uint32_t uid = 0, gid = 0;
  mode_t mode = 0644;
};

struct PlainFile {
  std::string text;
  Ownership ownership;
};

/// Nothing: no such file. A link, a folder, a device is an error.
[[nodiscard]] Result<std::optional<PlainFile>> read_plain(const std::string& path);
/// The same text only, for those who do not change it; links are followed.
[[nodiscard]] Result<std::optional<std::string>> read_any(const std::string& path);
[[nodiscard]] Result<void> put_plain(const std::string& path, std::string_view text,
                                     const Ownership& ownership);
/// Fine if it is not there.
[[nodiscard]] Result<void> remove_plain(const std::string& path);
/// Replaces `to`.
[[nodiscard]] Result<void> move_plain(const std::string& from, const std::string& to);
/// Removes what a killed put_plain() may have left beside `path`.
void sweep_temporary(const std::string& path);

/// The folder and, where it is there, the file belong to one of `trusted` and nobody else may write
/// the folder.
[[nodiscard]] Result<void> check_trusted(const std::string& path,
                                         const std::vector<std::uint32_t>& trusted);

/// What to change to get from one text to the other, in the form of `diff -u`; empty: equal. A text
/// that is not there is nothing.
[[nodiscard]] std::string unified_diff(const std::string& path,
                                       const std::optional<std::string>& before,
                                       const std::optional<std::string>& after);

}  // namespace berth::slurm
