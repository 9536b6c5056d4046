// What `sacct` prints, in whatever columns its user asked for: a column may be absent where another
// says the same (ElapsedRaw, Elapsed, or Start and End). What cannot be known is named with the
// columns that would say it. The tables behind it are in trace/tables.h.
#pragma once

#include <string>
#include <string_view>

#include "trace/formats.h"

namespace berth {

/// A header with sacct's names, enough of them or not.
[[nodiscard]] bool looks_like_sacct_text(const Sample& sample);
[[nodiscard]] Result<Trace> read_sacct_text(std::string_view bytes, const std::string& file,
                                            const ReadOptions& options, ReadReport* report);

/// Columns of fixed width over a line of dashes: sacct without -P, which cuts long values.
[[nodiscard]] bool looks_like_sacct_for_people(const Sample& sample);
[[nodiscard]] Result<Trace> refuse_sacct_for_people(std::string_view bytes, const std::string& file,
                                                    const ReadOptions& options, ReadReport* report);

}  // namespace berth
