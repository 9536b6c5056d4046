// Which moves empty loosely used servers, by numbers alone.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "base/id.h"
#include "policies/gandiva/servers.h"

namespace berth::gandiva {

/// A server as defragmentation sees it. Idle servers are not listed.
struct Occupied {
  UnitId server;
  std::int32_t gpus = 0;
  std::int32_t free = 0;
  std::vector<std::pair<std::int32_t, JobId>> movable;  // (GPUs, job), may change server now
};
struct Move {
  JobId job;
  UnitId from;
  UnitId to;
  friend bool operator==(const Move&, const Move&) = default;
};
/// Repeats: from the server with the most free GPUs, its smallest job to the server with the fewest
/// that still fits; ties to the lower id. A server none of whose jobs fits elsewhere is passed
/// over. Ends when no move is left or all servers have less than `threshold` of their GPUs free.
/// Each move makes a fuller server fuller, so it ends; a server that empties stays empty. O(log n)
/// per move.
[[nodiscard]] std::vector<Move> defragment(std::vector<Occupied> servers, double threshold);

}  // namespace berth::gandiva
