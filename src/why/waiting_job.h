// A job that waits, in its slot of a copy of the engine: what is free for it, and what dry runs
// say. The reasons why it waits are found by three functions, one file each: is there room on the
// machine (room.cpp), who comes before it and what does the policy want (contest.cpp), what would
// let it start (changes.cpp).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "why/explainer.h"
#include "why/trials.h"

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

struct WaitingJob {
  const Explainer::Parts& parts;
  const AskedJob& asked;
  JobId slot;
  const Shape& shape;
  WhyRoom room;
  Findings findings;
  bool is_gated = false;  // gates before the competition are shut too

  [[nodiscard]] bool may_be_named(JobId other) const;
  /// Jobs by number, largest hold first, five at most and the rest as a sum; those of other users
  /// only as a sum unless they may be seen.
  [[nodiscard]] std::vector<std::string> named(const std::vector<JobId>& jobs) const;
  /// Would it start now as this request, in its own place?
  [[nodiscard]] bool would_start_as(const TraceJob& request) const;
};

/// Nodes out of service, too few devices, not together, too little beside them.
void add_room(const WaitingJob& waiting, Why& why);
/// Jobs ahead of it, and devices that are reserved for one of them.
void add_order(const WaitingJob& waiting, Why& why);
/// What the policy wants beyond room and turn: devices kept free, jobs that may not be stopped yet,
/// times of its own.
void add_policy(const WaitingJob& waiting, Why& why);
/// The smallest changes of its request with which it would start now, each tried before it is told.
void add_changes(const WaitingJob& waiting, Why& why);
/// The longest time limit found with which it would start now, in seconds. Every value that counts
/// was tried; policies need not be monotone, so a longer one may exist.
[[nodiscard]] std::optional<std::int64_t> longest_limit(const WaitingJob& waiting);

/// "2 a100", "1 GPU".
[[nodiscard]] std::string devices_text(std::int64_t count, const std::string& type);
/// "4 a100 with 8 cores on one node": what a job asks for, for people.
[[nodiscard]] std::string asked_text(const JobSpec& spec, const Shape& shape);
[[nodiscard]] std::string gib_text(std::int64_t mib);
[[nodiscard]] std::string plural(std::size_t count, std::string_view one);

}  // namespace berth
