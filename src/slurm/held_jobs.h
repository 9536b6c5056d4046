// Who holds the jobs that wait, read from `squeue --json`: the text forms either lack the admin
// comment or let a user shape a name like another job's record, and on this hangs what is released.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "slurm/commands.h"
#include "slurm/mark.h"

namespace berth::slurm {

enum class Holder : std::uint8_t { Nobody, Berth, User, Admin };

struct WaitingJob {
  std::uint32_t id = 0;
  /// As scontrol takes it without touching other tasks of its array: "7", or "7_[2-4]" of those
  /// that still wait together.
  std::string ref{};
  std::string name{}, user{}, qos{}, reason{}, admin_comment{}, required_nodes{};
  bool is_held = false;
  std::int64_t eligible = 0;  // Unix seconds; 0: not known
  std::optional<HoldMark> mark{};
};

[[nodiscard]] Holder holder_of(const WaitingJob& job);
[[nodiscard]] Result<std::vector<WaitingJob>> waiting_jobs(SlurmCommands& commands);
/// The same from its text, in any of the forms that versions of Slurm have.
[[nodiscard]] Result<std::vector<WaitingJob>> waiting_jobs_of(const std::string& json);

}  // namespace berth::slurm
