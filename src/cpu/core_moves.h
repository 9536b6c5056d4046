// Coarse-grained rescheduling: in rounds, starved one-GPU jobs move to servers with idle cores
// where gain x remaining time > 2 x cost, the worst off first, no more than a share of all running
// jobs. No round ticks for nothing: there is one only if somebody is starved and something changed
// since the last one.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "cpu/server_cores.h"

namespace berth {

/// Of full speed: a job below it is starved.
inline constexpr double kStarved = 0.95;

class CoreMoves {
 public:
  /// Shares out the cores of these servers anew and carries it out.
  using ShareOut = std::function<void(std::span<const NodeId>)>;
  /// `beliefs` and `cores` must outlive this.
  CoreMoves(const CpuTunerOptions& options, CpuBeliefs& beliefs, ServerCores& cores)
      : interval_(options.reschedule_interval),
        cost_(options.move_cost),
        moved_share_(options.moved_share),
        beliefs_(beliefs),
        cores_(cores) {}

  void note_starved() noexcept { may_move_ = true; }
  [[nodiscard]] bool is_due(Time now) const noexcept { return now >= next_; }
  void run(const View& view, Plan& plan, const ShareOut& share_out);
  /// The next round; kNever if there is none.
  [[nodiscard]] Time wakeup(Time now);

 private:
  struct Candidate {
    double loss = 0;
    JobId job;
    NodeId node;
  };
  struct Target {
    std::int64_t free_milli = 0;
    NodeId node;
  };
  void list_candidates(const Plan& plan);
  void sort_targets();
  [[nodiscard]] std::size_t most_moves(const Plan& plan) const;
  [[nodiscard]] double gain_of(const Plan& plan, const Candidate& candidate, NodeId to);
  [[nodiscard]] bool try_move(const View& view, Plan& plan, const Candidate& candidate, NodeId to);

  Duration interval_;
  Duration cost_;
  double moved_share_;
  CpuBeliefs& beliefs_;
  ServerCores& cores_;
  bool may_move_ = false;  // somebody is starved, and something changed since the last round
  Time next_ = kNever;
  std::vector<Candidate> candidates_;  // scratch
  std::vector<Target> targets_;        // scratch
};

}  // namespace berth
