// The temporary directory of one attempt: made by its user, readable by nobody else, gone when the
// attempt is over. A file of the run directory says where it is, so that whoever finds the shim
// killed can remove it.
#pragma once

#include <string>

#include "exec/order_file.h"
#include "exec/run_dir.h"

namespace berth {

/// Its path; empty: none was asked for, or none could be made, and the job does without.
[[nodiscard]] std::string make_private_tmp(const RunDir& directory, const LaunchOrder& order);
/// Waits for its removal, but not for ever: a file system may hang.
void remove_private_tmp(const RunDir& directory, const LaunchOrder& order, const std::string& path);

}  // namespace berth
