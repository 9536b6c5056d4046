// Why a job waits: every gate that is shut, with numbers, who can open it, whether it is the only
// one, and what would let the job start. Gates are evaluated on the state after the last pass; what
// they claim is confirmed by the policy itself, in forked copies of the scheduler in which the
// gates are lifted.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "daemon/board.h"
#include "daemon/gates.h"
#include "daemon/live_executor.h"

namespace berth {

struct WhyReason {
  std::string kind;  // the gate: "capacity", "order", "hold" …
  std::string text;  // with numbers
  std::vector<std::pair<std::string, double>> numbers{};
  std::vector<std::string> entities{};
  std::string who = "nobody";           // can change it: user, operator, admin
  std::string when = "now";             // never, now, until
  std::optional<std::int64_t> until{};  // Unix microseconds
  bool sole = false;                    // without it alone the job would start now
};

struct Why {
  JobNumber job = 0;
  LiveState state{};
  std::string summary;
  std::vector<WhyReason> reasons;
  std::vector<std::string> would_start;
  std::size_t place = 0, of = 0;  // in the policy's order, of those that wait
};
[[nodiscard]] std::string to_json(const Why& why);

class Explainer {
 public:
  struct Parts {
    Engine& engine;  // only copies of it are changed
    Trace& slots;    // likewise
    const LiveExecutor& executor;
    const Gates& gates;
    const LiveClock& clock;
  };
  explicit Explainer(Parts parts) : parts_(parts) {}
  /// Between two passes. `may_see_all`: names of other users' jobs may be told.
  [[nodiscard]] Why explain(const JobView& job, bool may_see_all) const;

 private:
  struct Room;
  [[nodiscard]] Room room_for(const Shape& shape) const;
  void add_gates(const JobView& job, Why& why) const;
  void add_room(const JobView& job, const Shape& shape, const Room& room, Why& why) const;
  void add_order(const JobView& job, JobId slot, const Room& room, bool may_see_all,
                 Why& why) const;
  void add_suggestions(const JobView& job, JobId slot, Why& why) const;

  Parts parts_;
};

}  // namespace berth
