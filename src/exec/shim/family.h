// All processes of an attempt, as the shim sees them: whatever descends from it, for orphans of the
// job become its own children (it is their subreaper). Signals, stops and cores go to each of them;
// control groups help where there are any.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "exec/cgroup.h"

namespace berth {

class Family {
 public:
  explicit Family(AttemptCgroups groups) : groups_(std::move(groups)) {}

  void signal(int number) const;
  /// To the tasks of steps and what they have started alone.
  void signal_steps(int number) const;
  /// To all, and to what they make meanwhile; call again until none is left.
  void kill() const;
  /// None of them runs a step until resume().
  void suspend();
  void resume();
  /// Whoever was killed while it was frozen goes, and nobody else runs a step. True: there was one.
  bool let_the_killed_go() const;
  /// Someone has to ask for that now and then.
  [[nodiscard]] bool holds_the_killed() const { return is_frozen_ && groups_.holds_the_killed(); }
  void bind(const std::vector<std::int32_t>& cores) const;
  [[nodiscard]] bool is_suspended() const noexcept { return is_suspended_; }
  [[nodiscard]] bool was_out_of_memory() const { return groups_.was_out_of_memory(); }
  [[nodiscard]] std::int64_t peak_kib() const { return groups_.peak_kib(); }
  void remove_groups() const { groups_.remove(); }

 private:
  AttemptCgroups groups_;
  bool is_suspended_ = false;
  bool is_frozen_ = false;  // by a group rather than by signals
};

}  // namespace berth
