// What would happen if: changes an engine for good and asks its policy. Only for a copy that is
// thrown away afterwards, such as a forked process. Between two passes only; nothing is carried
// out.
#pragma once

#include <optional>
#include <vector>

#include "core/engine.h"

namespace berth {

class Trial {
 public:
  explicit Trial(Engine& engine) : engine_(engine) {}

  /// All running jobs have gone.
  void clear_running();
  /// All waiting jobs but this one have gone.
  void clear_waiting(JobId except);
  void clear(std::span<const JobId> jobs);
  void put_all_nodes_up();
  /// A job comes in this slot, which its owner has filled.
  void arrive(JobId slot);
  /// One decision, at the engine's time or later: the jobs that would hold devices which do not
  /// now, in the order in which the policy took them.
  [[nodiscard]] std::vector<JobId> decide(std::optional<Time> at = std::nullopt);
  /// When the policy wants to decide again by itself.
  [[nodiscard]] std::optional<Time> next_wakeup();

 private:
  Engine& engine_;
};

}  // namespace berth
