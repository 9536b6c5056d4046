// Whether a job would wait for itself, through whatever others wait for. Asked in the journal's
// order, so that two changes at once cannot make a ring between them.
#pragma once

#include <optional>
#include <string>

#include "store/ledger.h"

namespace berth {

/// "4 waits for 7, 7 waits for 4": the ring that there would be if `job` asked for this; nothing if
/// there is none. A job that runs waits for nobody. Costs what the jobs cost that it waits for, and
/// a look at all jobs if one of these is the only one of its name.
[[nodiscard]] std::optional<std::string> waiting_cycle(const Ledger& ledger, JobNumber job,
                                                       const JobSpec& asked);

}  // namespace berth
