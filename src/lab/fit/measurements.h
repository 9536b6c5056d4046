// The measurement tables that `berth fit` takes (docs/formats/profiles.md), row by row into points.
// Every fault is told with its place, the first twenty before it stops.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/result.h"
#include "lab/fit/table.h"
#include "perf/cpu_fit.h"
#include "perf/fit.h"

namespace berth {

template <class Point>
using ByModel = std::map<std::string, std::vector<Point>>;

/// model, device, gpus, batch, seconds; level or nodes where gpus > 1; site if there are several.
[[nodiscard]] Result<ByModel<StepPoint>> read_steps(const Table& table);
/// model, gpus, level or nodes, relative_speed.
[[nodiscard]] Result<ByModel<LocalityPoint>> read_locality(const Table& table);
/// of, beside, slowdown; of_utilisation, beside_utilisation, memory_utilisation if known.
[[nodiscard]] Result<std::vector<PairPoint>> read_pairs(const Table& table);
/// model, cores, speed (samples per second of one worker).
[[nodiscard]] Result<ByModel<CpuPoint>> read_cpu(const Table& table);
/// model, batch, mib.
[[nodiscard]] Result<ByModel<MemoryPoint>> read_memory(const Table& table);

}  // namespace berth
