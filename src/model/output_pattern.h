// Names of output files: "%x-%j.out" and the like, as Slurm writes them (model/path_pattern.h).
//   %j job  %J with its step  %A array (or job)  %a array index  %b its last digit  %x name  %u user
//   %N its node  %n node's number here  %s step  %t task  %% a percent sign
// A number between pads with zeros: %4j is 0012. Done in two steps, for a task is known only to the
// shim: the first leaves %t and %%.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"
#include "model/job_spec.h"

namespace berth {

struct PatternContext {
  JobNumber job = 0;
  JobNumber array = 0;  // 0: no array, %A is the job
  std::int32_t array_index = 0;
  std::string name = {}, user = {}, node = {};
  std::string step = {};  // empty: the script itself
};

/// All but the task. A slash in a name or user becomes '_': values choose no directories.
[[nodiscard]] Result<std::string> expand_pattern(std::string_view pattern,
                                                 const PatternContext& context);
/// The rest.
[[nodiscard]] std::string path_of_task(std::string_view pattern, std::int32_t task);
/// Each task has its own file.
[[nodiscard]] bool is_per_task(std::string_view pattern);

}  // namespace berth
