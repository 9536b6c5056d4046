// How a client asks to step into a job that runs already: a file in the directory of its steps,
// read once by the step-host that the job's shim starts for it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"

namespace berth::step {

/// A request has a number that no other of its job has; it travels in a signal.
inline constexpr std::uint32_t kMaxJoin = (1U << 23U) - 1;

struct JoinRequest {
  std::vector<std::string> words;  // the program's
  bool is_srun = true;             // they are srun's rather than a program of their own
  bool on_terminal = false;
  std::string workdir;
};

[[nodiscard]] std::string join_socket(std::uint32_t number);

/// Puts it there under a number of its own.
[[nodiscard]] Result<std::uint32_t> put_join(const std::string& directory,
                                             const JoinRequest& request);
/// Reads it and takes it away.
[[nodiscard]] Result<JoinRequest> take_join(const std::string& directory, std::uint32_t number);
/// The client no longer wants it.
void drop_join(const std::string& directory, std::uint32_t number);

}  // namespace berth::step
