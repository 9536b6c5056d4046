// Who gets how many cores of one server. Workers of one gang rise together; f is a job's speed
// relative to having all the cores it wants, as a table by whole cores.
//
//   sum         one core at a time to the largest weighted gain per core; where a curve is not
//               concave, up to 8 cores at once along its upper hull
//   maxmin      one core at a time to the slowest
//   fair-floor  each starts at the fewest cores that make it as fast as its share in proportion to
//               GPUs would, then as in sum: nobody is worse off than with `bind`
//
// Exact for concave tables without gangs. O(X log J) for X cores and J gangs; an allocator that has
// seen as many gangs before does not allocate memory.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "perf/cpu_curve.h"

namespace berth {

enum class CpuObjective : std::uint8_t { Sum, MaxMin, FairFloor };
/// What becomes of cores that speed nobody up: kept free, or dealt out for bursts (validation).
enum class CpuLeftover : std::uint8_t { Keep, RoundRobin };

/// The workers of one job on one server. Order in the span is the order of ids: it breaks ties.
struct CpuGang {
  std::span<const double> speeds;  // f at 0, 1, 2 … cores per worker, non-decreasing; then flat
  std::int32_t workers = 1;        // at least 1
  std::int32_t gpus = 1;           // per worker
  double weight = 1;
  std::int32_t most = std::numeric_limits<std::int32_t>::max();  // cores per worker, at least 1

  [[nodiscard]] double speed(std::int32_t cores) const noexcept {
    if (speeds.empty()) return 1;
    const auto at = static_cast<std::size_t>(cores);
    return at < speeds.size() ? speeds[at] : speeds.back();
  }
};

struct CpuServer {
  std::int32_t cores = 0;
  std::int32_t gpus = 1;
};

/// f(C) = S(C) / P2 at 0 … max_cores whole cores; a curve that is not known never limits.
[[nodiscard]] std::vector<double> normalised_speeds(const CpuCurve& curve, std::int32_t max_cores);

/// Whole cores in proportion to the worker's GPUs, at least one.
[[nodiscard]] std::int32_t bind_share(const CpuServer& server, std::int32_t gpus) noexcept;

/// Sum of weight * f, in order of ids.
[[nodiscard]] double cpu_objective(std::span<const CpuGang> gangs,
                                   std::span<const std::int32_t> cores) noexcept;

class CpuAllocator {
 public:
  explicit CpuAllocator(CpuObjective objective = CpuObjective::FairFloor,
                        CpuLeftover leftover = CpuLeftover::Keep)
      : objective_(objective), leftover_(leftover) {}

  /// Fills `cores` (one entry per gang) with whole cores per worker. False if the server has not
  /// even one core for each worker: then nobody is given more than another can get, all entries are
  /// zero and the caller divides the cores evenly as fractions.
  [[nodiscard]] bool allocate(const CpuServer& server, std::span<const CpuGang> gangs,
                              std::span<std::int32_t> cores);

 private:
  struct Offer {
    double key = 0;  // larger comes first
    std::uint32_t gang = 0;
    std::int32_t step = 1;  // cores per worker

    [[nodiscard]] bool comes_after(const Offer& other) const noexcept {
      if (key != other.key) return key < other.key;
      return gang > other.gang;
    }
  };
  void start_at_floors(const CpuServer& server, std::span<const CpuGang> gangs,
                       std::span<std::int32_t> cores);
  void raise_while_it_helps(std::span<const CpuGang> gangs, std::span<std::int32_t> cores);
  void push_offer(const CpuGang& gang, std::uint32_t index, std::int32_t held);
  [[nodiscard]] Offer best_step(const CpuGang& gang, std::int32_t held) const noexcept;
  void deal_out(std::span<const CpuGang> gangs, std::span<std::int32_t> cores) noexcept;

  CpuObjective objective_;
  CpuLeftover leftover_;
  std::int32_t free_ = 0;      // during a call
  std::vector<Offer> offers_;  // scratch: a heap
};

}  // namespace berth
