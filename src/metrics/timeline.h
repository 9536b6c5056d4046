// Step functions over time in bounded memory. Every instant may be given; at most kMaxPoints
// stretches are kept. When they are full, the time resolution becomes coarser: neighbours that
// together stay within it merge into their time-weighted mean, so integrals survive, and quiet
// times stay as exact as they were.
#pragma once

#include <cstdint>
#include <vector>

#include "base/time.h"

namespace berth {

/// What held at an instant, or on average over a stretch.
struct Levels {
  double queue = 0;        // jobs submitted and not running
  double queued_gpus = 0;  // what they ask for
  double running = 0;
  double busy = 0;      // GPUs granted
  double capacity = 0;  // GPUs of nodes that are up
  friend bool operator==(const Levels&, const Levels&) = default;
};

struct TimelinePoint {
  Time at;  // the levels hold from here to the next point
  Levels levels;
};

class Timeline {
 public:
  static constexpr std::size_t kMaxPoints = 4096;

  /// Times ascend; of several calls for one time the last counts.
  void add(Time now, const Levels& levels);
  /// What was kept, and a last point with the levels that hold now.
  [[nodiscard]] std::vector<TimelinePoint> points() const;

 private:
  void close_stretch();

  std::vector<TimelinePoint> kept_;
  bool started_ = false;
  Levels current_;
  Time since_{};
  Time stretch_from_{};
  Levels stretch_integral_;  // level x seconds since stretch_from_
  Duration width_{};         // what a stretch of several instants may span
};

/// At most `limit` points (at least 4): merged further, the last point kept as it is.
[[nodiscard]] std::vector<TimelinePoint> thinned(std::vector<TimelinePoint> points,
                                                 std::size_t limit);

}  // namespace berth
