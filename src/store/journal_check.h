// The journal against the tables: folding it again, and dropping its oldest records.
#pragma once

#include <cstddef>

#include "base/time.h"
#include "store/sqlite.h"

namespace berth {

/// Folds what is kept of the journal onto the base and compares with the tables: how many records,
/// or the first thing that does not agree.
[[nodiscard]] Result<std::size_t> check_journal(Database& database);

/// Moves the base over the oldest records, while they are older than this, and drops them; one
/// transaction. Costs what is dropped, not what is there.
[[nodiscard]] Result<std::size_t> drop_records(Database& database, Time older_than,
                                               std::size_t at_most);

}  // namespace berth
