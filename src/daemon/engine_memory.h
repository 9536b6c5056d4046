// What an engine leaves for the next life of the scheduler: which engine it was, and its log since
// it began. An engine that would be the same goes on where that one stood; another one (a policy, a
// placement, a device more) begins anew and takes over what runs.
//
// A log is replayed in whole, so it may not grow for ever: one that is too long ends its engine,
// and the next begins with what is on record of each job.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "model/cluster.h"

namespace berth {

struct EngineMemory {
  std::string identity;   // equal: the same engine
  std::int64_t wall = 0;  // Unix microseconds when it began: it has learned from what was over then
  std::size_t slots = 0;
  std::vector<std::string> passes{};  // to be replayed

  // Of the whole log, replayed and new.
  std::size_t length = 0;
  std::size_t bytes = 0;

  [[nodiscard]] bool is_recalled() const noexcept { return !passes.empty(); }
  [[nodiscard]] bool is_too_long() const noexcept;
};

/// The record that begins a log.
[[nodiscard]] std::string to_bytes(const EngineMemory& memory);
/// From a log with its first record.
[[nodiscard]] Result<EngineMemory> engine_memory_from(std::vector<std::string> log);

/// Equal for clusters in which the same decisions can be made.
[[nodiscard]] std::string fingerprint(const Cluster& cluster);

}  // namespace berth
