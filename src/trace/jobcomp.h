// The text file that Slurm's jobcomp plug-in appends a line to whenever a run of a job is over:
// `JobId=3 UserId=ann(5) … Name=train JobState=FAILED …`. All that is left of the past where no
// accounting is kept. A name and a folder are as their user wrote them, blanks and keys included.
#pragma once

#include <string>
#include <string_view>

#include "trace/formats.h"

namespace berth {

[[nodiscard]] bool looks_like_jobcomp(const Sample& sample);
[[nodiscard]] Result<Trace> read_jobcomp(std::string_view bytes, const std::string& file,
                                         const ReadOptions& options, ReadReport* report);

}  // namespace berth
