// How far apart the devices of an allocation are.
#pragma once

#include <span>

#include "core/cluster_state.h"
#include "model/cluster.h"
#include "model/level.h"

namespace berth {

[[nodiscard]] Level level_of(const Cluster& cluster, std::span<const Slice> slices) noexcept;

}  // namespace berth
