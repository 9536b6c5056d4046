// What a job agent tells the arbiter: how badly off its job is with an allocation, in the currency
// of the cluster's policy. Lower is better, always positive. A job without devices is as badly off
// as if it got its devices one lease later.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>

namespace berth::agents {

/// fairness: rho, finish time against the ideal one. jct: seconds left. throughput: one over the
/// normalised speed. deadline: seconds left against seconds to the deadline.
enum class Value : std::uint8_t { Fairness, Jct, Throughput, Deadline };

/// What the agent knows of its own job.
struct SelfView {
  double elapsed = 0;                 // seconds since it was submitted
  double left = 0;                    // seconds of work left at the reference placement
  double ideal = 1;                   // seconds it would take alone there
  std::optional<double> to_deadline;  // seconds from now; none or passed: no hurry
};

inline constexpr double kNoHurry = 30.0 * 86400;  // a job without a deadline has a month

/// With devices on which it runs at `rate`, after `delay` seconds.
[[nodiscard]] inline double badness(Value value, const SelfView& self, double rate, double delay) {
  const double finish = delay + std::max(1.0, self.left) / rate;
  switch (value) {
    case Value::Fairness: return (self.elapsed + finish) / std::max(1.0, self.ideal);
    case Value::Jct: return finish;
    case Value::Throughput: return (1 + delay / std::max(1.0, self.left)) / rate;
    case Value::Deadline: break;
  }
  const bool in_time = self.to_deadline && *self.to_deadline > 0;
  return finish / (in_time ? *self.to_deadline : kNoHurry);
}

/// By what the worst-off are found who see an offer: larger is worse. Under jct the shortest job is
/// hurt most by waiting, under throughput the one that would run best; under fairness and deadline
/// it is the badness itself.
[[nodiscard]] inline double plight(Value value, double badness_with) {
  const bool small_first = value == Value::Jct || value == Value::Throughput;
  return small_first ? 1 / badness_with : badness_with;
}

}  // namespace berth::agents
