// How far a job has come and how fast it gets on, by what its code says. What cannot be is not
// believed: an iteration that goes back without a new connection, more iterations in a second than
// any training makes, more seconds of training than have passed. Whoever says such a thing once
// counts as silent for the rest of its attempt.
//
// The pace is that of the clock on the wall between reports, since conditions last changed: the
// mean of the last minute, or the median where pauses (a checkpoint, a validation) tear the two
// apart. Bounded memory; no clock and no lock of its own.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>

#include "training/message.h"
#include "training/training_channel.h"

namespace berth {

class ProgressMeter {
 public:
  /// Another attempt speaks: it is trusted, and may begin at any iteration.
  void begin_attempt();
  /// It speaks again: it may have gone back to a checkpoint.
  void reconnect();
  /// It was given other devices, neighbours or terms: the pace so far says nothing any more.
  void conditions_changed();
  /// Why what it says cannot be; from then on it is not believed.
  [[nodiscard]] std::optional<std::string> add(const Report& report, double now);

  [[nodiscard]] bool is_believed() const noexcept { return is_believed_; }
  /// Nothing: it has said nothing in this attempt, or is not believed.
  [[nodiscard]] std::optional<MeasuredProgress> measured(double now) const;

 private:
  struct Point {
    double at = 0;
    double iterations = 0;
  };
  [[nodiscard]] std::optional<std::string> fault_of(const Report& report, double now) const;
  [[nodiscard]] double pace() const;

  bool is_believed_ = true;
  std::optional<Point> last_;       // since the connection began
  std::optional<Point> connected_;  // the first one since then
  double said_seconds_ = 0;         // of training, after that one
  std::optional<double> epoch_;     // the same
  std::optional<Point> reported_;   // in this attempt
  double first_at_ = 0;             // its first report
  double batch_ = 0;
  std::deque<Point> points_;  // a second apart or more
};

}  // namespace berth
