// A job that waits, in its slot of a copy of the engine: what is free for it, and what dry runs
// say.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "daemon/why.h"
#include "daemon/why_trials.h"

namespace berth {

/// What is free for a shape, and what stands in the way.
struct WhyRoom {
  std::int64_t free = 0;    // devices of acceptable types
  std::int64_t out = 0;     // on nodes that are down or drained
  std::int64_t others = 0;  // free devices of other types
  bool fits = false;        // right now
  bool fits_without_side = false;
  std::int32_t best = 0;  // most free devices on one node
  std::string best_node;
  // Of the nodes with enough free devices, or with most, the one that lacks least beside them.
  std::string side_node;
  std::int32_t side_gpus = 0;
  std::int64_t cores_milli = 0;
  std::int64_t memory_mib = 0;
  std::vector<std::string> nodes_out;
  // Of these, nodes that sleep: not for an operator to bring back.
  std::int64_t asleep = 0;  // their devices
  std::vector<NodeId> booting, off;
};
[[nodiscard]] WhyRoom room_for(const Engine& engine, const Shape& shape);

struct Explainer::Waiting {
  const Asked& asked;
  JobId slot;
  const Shape& shape;
  WhyRoom room;
  Findings findings;
  bool is_gated = false;  // gates before the competition are shut too
};

/// "2 a100", "1 GPU".
[[nodiscard]] std::string devices_text(std::int64_t count, const std::string& type);
/// "4 a100 with 8 cores on one node": what a job asks for, for people.
[[nodiscard]] std::string asked_text(const JobSpec& spec, const Shape& shape);
[[nodiscard]] std::string plural(std::size_t count, std::string_view one);

}  // namespace berth
