// One cell of a table into one member of a job, with the rules every format shares: finite, in
// range, known words. What holds between columns (gpus_min <= gpus) is checked for the whole row.
#pragma once

#include <cstddef>
#include <string_view>

#include "trace/table.h"

namespace berth {

struct Cell {
  std::string_view column_name;
  std::size_t column;  // 1-based field number
  std::string_view text;
  std::int64_t ticks_per_unit;
  std::int64_t least_gpus = 1;
};

/// An empty cell of an optional column leaves the member alone.
void store_cell(TraceBuilder& builder, TraceJob& job, Field field, const Cell& cell);

/// Completes the elastic range and checks what holds between columns. `gpus_column` is for
/// messages.
void check_row(TraceBuilder& builder, TraceJob& job, std::size_t gpus_column);

inline constexpr std::int64_t kMaxGpus = 1'000'000;

}  // namespace berth
