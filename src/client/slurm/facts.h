// What Slurm's commands tell of a job, worked out once from what the scheduler tells.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "client/answers.h"
#include "client/selection.h"
#include "client/slurm/words.h"

namespace berth::client::slurm {

/// Everybody has it: there are no others.
inline constexpr std::string_view kQos = "normal";

/// The kinds of GPUs by node.
using NodeTypes = std::map<std::string, std::string>;
[[nodiscard]] NodeTypes types_of(const std::vector<NodeView>& nodes);

[[nodiscard]] Resources requested(const JobRow& job);
/// Nothing while it waits.
[[nodiscard]] Resources allocated(const JobRow& job, const NodeTypes& types);
/// How many tasks it has or its script said it would start.
[[nodiscard]] std::int32_t tasks_of(const JobRow& job);
[[nodiscard]] std::string partition_of(const JobRow& job);
/// What people call it, with its parameters if it is one of a grid: "train lr=0.1 seed=1".
[[nodiscard]] std::string name_of(const JobRow& job, const std::string& indices);
/// Its group's share, or its user's own.
[[nodiscard]] std::string account_name(const JobRow& job);
[[nodiscard]] std::string nodes_of(const JobRow& job);
/// Unix microseconds; 0: not yet. The last start, for that is the run Slurm tells of.
[[nodiscard]] std::int64_t start_of(const JobRow& job);
/// When it could first have started: its submit or its begin time; 0: it is held back still.
[[nodiscard]] std::int64_t eligible_of(const JobRow& job);
/// Its end or, while it runs, the end its limit sets; 0: neither.
[[nodiscard]] std::int64_t end_of(const JobRow& job, std::int64_t now);
/// Seconds of its last run.
[[nodiscard]] double elapsed_of(const JobRow& job, std::int64_t now);
/// Slurm's word; of a cancelled job with by whom: "CANCELLED by 1000".
[[nodiscard]] std::string accounted_state(const JobRow& job);
struct AccountedExit {
  std::int32_t code = 0, signal = 0;
};
/// Who was stopped has no exit code of its own: the signal stands with its batch step. Out of memory
/// is 0:125.
[[nodiscard]] AccountedExit accounted_exit(const JobRow& job);
[[nodiscard]] AccountedExit accounted_exit(const StepView& step);
/// The same as scontrol and squeue have it, where a job that was stopped keeps its signal.
[[nodiscard]] AccountedExit shown_exit(const JobRow& job);
/// What it runs: a path for a script, otherwise its words.
[[nodiscard]] std::string command_of(const JobRow& job);
/// "12_[2-5%2]" or "12_3" or "12".
[[nodiscard]] std::string shown_id(const JobRow& job, const std::string& indices);
/// "PD,running" of a command of Slurm's; who is wrong is told Slurm's words.
[[nodiscard]] Result<States> parse_slurm_states(std::string_view text);
/// Those of `users` whom neither this machine knows nor any of these jobs names.
[[nodiscard]] std::vector<std::string> unknown_users(const std::vector<std::string>& users,
                                                     std::span<const JobRow> jobs);
/// A line with every word for a state of a job that jobs have here.
[[nodiscard]] std::string state_names();
/// Of a step: RUNNING, COMPLETED …
[[nodiscard]] std::string_view state_word(StepState state);
/// Of processors, over all steps.
[[nodiscard]] double cpu_seconds_of(const std::vector<StepView>& steps);
/// Where it begins in the order of states that Slurm has: PENDING, RUNNING, SUSPENDED, COMPLETED …
[[nodiscard]] int state_rank(LiveState state);

}  // namespace berth::client::slurm
