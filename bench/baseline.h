// What the benchmarks took when somebody last wrote it down (bench/baseline.csv), and what became
// slower since. Costs are ratios to a reference that is measured beside every case and is none of
// our code, so that a file written on one machine, busy or not, can be compared with another.
// Measuring is left to whoever asks: this reads, compares and writes.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "cases.h"

namespace berth::bench {

struct BaselineRow {
  Case each;
  double cost = 0;  // processor time over that of the reference
};

/// Slower than this many times its baseline is too slow.
inline constexpr double kTooSlow = 1.3;

/// Rows of `policy,placement,cluster,jobs,load,cost` below a header; '#' begins a comment.
[[nodiscard]] Result<std::vector<BaselineRow>> parse_baseline(std::string_view text,
                                                              const std::string& name);
[[nodiscard]] std::string to_csv(std::span<const BaselineRow> rows);

/// Cost of a case as it is now, or nothing if it does not run.
using CostOf = std::function<Result<double>(const Case&)>;

struct Compared {
  BaselineRow row;
  double now = 0;
  std::string error = {};  // it does not run

  [[nodiscard]] double times() const noexcept { return now / row.cost; }
  [[nodiscard]] bool is_too_slow() const noexcept { return !error.empty() || times() > kTooSlow; }
};

/// One measurement decides for a case that is fast enough. One that is not is measured up to
/// `attempts` times and judged by the best: what else the machine does only ever adds.
[[nodiscard]] Compared compare(const BaselineRow& row, const CostOf& cost_of, int attempts = 4);

}  // namespace berth::bench
