// Traces published as JSON: the Philly log with its attempts (and the short list derived from it)
// and what `sacct --json` prints. Exceptions of the JSON library end here.
#pragma once

#include "trace/formats.h"

namespace berth {

[[nodiscard]] bool looks_like_json_list(const Sample& sample);    // Philly
[[nodiscard]] bool looks_like_json_object(const Sample& sample);  // sacct
[[nodiscard]] Result<Trace> read_philly_json(std::string_view bytes, const std::string& file,
                                             const ReadOptions& options, ReadReport* report);
[[nodiscard]] Result<Trace> read_sacct_json(std::string_view bytes, const std::string& file,
                                            const ReadOptions& options, ReadReport* report);

}  // namespace berth
