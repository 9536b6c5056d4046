// One task of an attempt, from fork to its first instruction: its own session, control groups,
// cores, then its user, and only as that user the working directory, the files and the program.
#pragma once

#include <cstdint>
#include <string>

#include <sys/types.h>

#include "base/result.h"
#include "exec/order_file.h"

namespace berth {

struct TaskPlace {
  std::string program;  // path of the script; empty: the order's command
  std::string claim;    // path, for the environment
  std::string steps;    // the same
  std::string tmp{};    // its own temporary directory; empty: none
  std::int32_t rank = 0;
};

/// The running program's process. An error says in words for its user why it could not be started;
/// nothing of it is left then.
[[nodiscard]] Result<pid_t> start_task(const ShimOrder& shim, const TaskPlace& place);

}  // namespace berth
