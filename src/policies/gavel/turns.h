// Who has a turn in this round, on which type, beside whom and since when. Carries out what
// Candidates chose: who is chosen for the type it is on keeps its devices and pays nothing, the
// others give theirs back by checkpoint. Reports the time of each turn to the candidates.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "policies/gavel/candidates.h"
#include "policies/kit/blocked_set.h"
#include "policies/kit/pass.h"

namespace berth::gavel {

class Turns {
 public:
  void begin(const View& view) { turns_.resize(view.jobs.size()); }
  /// The job is over; its time still counts for its type.
  void leave(const View& view, JobId job, Candidates& candidates);
  /// The job has lost its devices.
  void lose(const View& view, JobId job, Candidates& candidates);
  /// Counts the time since the last round.
  void count_time(const View& view, Candidates& candidates);
  /// Whoever still pays for its start goes on: otherwise a round below that cost would be the end
  /// of all progress.
  [[nodiscard]] std::vector<Pick> still_starting(const View& view,
                                                 const Candidates& candidates) const;
  /// Gives everybody who runs and nobody else a turn as picked. If a gang finds no place, packs
  /// anew; what is free then goes to anybody.
  void carry_out(Pass& pass, const Candidates& candidates, std::span<const Pick> picks);
  /// Starts jobs on what is free until the next round, in order of arrival. Whoever runs is left
  /// alone.
  void start_waiting(Pass& pass, const Candidates& candidates);
  /// By JobId; some may have left since the last round.
  [[nodiscard]] std::span<const JobId> running() const noexcept { return running_; }
  [[nodiscard]] std::optional<PoolId> pool(JobId job) const noexcept { return turns_[job].pool; }

 private:
  struct Turn {
    std::optional<PoolId> pool;
    std::optional<JobId> partner;
    Duration attained{};  // when time was last counted
  };

  void count_time(const View& view, JobId job, Candidates& candidates);
  void remember(const Pass& pass, const Candidates& candidates);

  Column<JobId, Turn> turns_;
  std::vector<JobId> running_;
  Time counted_{};               // until then
  BlockedSet<ShapeId> blocked_;  // scratch
};

}  // namespace berth::gavel
