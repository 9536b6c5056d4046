// From what srun was asked for, what its job holds and what the step was given to tasks: program,
// environment, devices and cores of each.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "step/book.h"

namespace berth {

using Environment = std::map<std::string, std::string>;

/// What a job's steps live by: which job, by its environment, and what it holds, by its record.
struct JobWorld {
  std::string job;       // "12"
  std::string steps;     // directory
  std::string node;      // its name, for messages
  std::string job_name;  // for patterns
  std::int32_t tasks = 1;
  JobGrant grant;         // read_grant()
  std::int64_t shim = 0;  // process that signals everybody in the job; 0: not known
};
/// All but what it holds. An error: this is no environment of a job.
[[nodiscard]] Result<JobWorld> world_of(const Environment& environment);

/// How a step's devices are dealt to its tasks.
enum class GpuBinding : std::uint8_t {
  All,      // every task sees all of them
  PerTask,  // so many each, its own
  Single,   // one each, shared by so many tasks
  Map,      // as listed, by index among the step's
};

/// A step as it was asked for; what is absent follows from the job.
struct StepRequest {
  std::int32_t tasks = 1;
  std::optional<std::int32_t> cpus_per_task, gpus, gpus_per_task;
  bool is_exact = false;  // no more cores than it asks for
  bool overlaps = false;
  bool overcommits = false;            // more tasks than cores
  std::vector<std::string> gpu_types;  // any of these; none: whatever the job has
  std::vector<std::string> nodes;      // none: the job's
  GpuBinding binding = GpuBinding::All;
  std::int32_t binding_count = 1;
  std::vector<std::int32_t> binding_map;
  std::string name;
  std::string exported = "ALL";
  /// Per rank: its program. One line for all of them, unless it is a list of several programs.
  std::vector<std::vector<std::string>> programs;
};

[[nodiscard]] StepWish wish_of(const StepRequest& request);

struct TaskPlan {
  std::vector<std::string> program;
  Environment environment;
  std::vector<std::int32_t> cores;  // empty: as its parent
};
[[nodiscard]] std::vector<TaskPlan> plan_tasks(const StepRequest& request, const StepView& step,
                                               const JobWorld& world,
                                               const Environment& environment);

/// "0-2,5 ./server %t": which ranks run which program; %t is the rank, %o its place in the line.
/// Every rank below `tasks` must be there once.
[[nodiscard]] Result<std::vector<std::vector<std::string>>> parse_multi_prog(std::string_view text,
                                                                             std::int32_t tasks);

}  // namespace berth
