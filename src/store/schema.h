// The tables of the store and how an older file becomes a present one. A migration is one
// transaction, so a crash leaves the old file or the new one. A file of a newer version is refused:
// an older program would not keep what it does not know.
#pragma once

#include <span>

#include "store/sqlite.h"

namespace berth {

/// SQL that leads from version i to version i + 1, in order; the first makes an empty file ours.
[[nodiscard]] std::span<const char* const> migrations();

/// Brings the file to the last version. `path` is for messages.
[[nodiscard]] Result<void> migrate(Database& database, std::span<const char* const> steps,
                                   const std::string& path);

}  // namespace berth
