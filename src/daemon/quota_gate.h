// Limits of users and groups: GPUs and jobs that compete or run at once, and GPU time used. Use is
// decayed: it halves every half life, so that a budget that is spent opens again by itself. Owns
// limits, use, who is counted in and who waits for room. A job belongs to the share of its user
// and, if it has one, of its group, and needs room in both.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/time.h"
#include "model/job_spec.h"
#include "why/shut_gate.h"

namespace berth {

/// The most it may take: an elastic job counts with its upper end.
[[nodiscard]] std::int32_t gpus_of_request(const JobSpec& spec);

/// What a user or a group may have in use or in line at once; 0 = no limit.
struct ShareLimits {
  std::int32_t gpus = 0;
  std::int32_t jobs = 0;
  double gpu_seconds = 0;  // of decayed use
};

/// The limit that keeps a job out.
struct FullLimit {
  enum class Of : std::uint8_t { Gpus, Jobs, GpuTime } of{};
  bool is_groups = false;  // its group's rather than its user's
};

class QuotaGate {
 public:
  // Shares are named "user/alice", "group/ml".
  void set_limits(const std::string& who, const ShareLimits& limits);
  /// Seconds in which use counts half; 0 = it is never forgotten.
  void set_half_life(double seconds) { half_life_ = seconds; }
  /// Decayed use of attempts that have ended, as of now.
  void set_use(const std::string& who, double gpu_seconds, Time now);
  /// An attempt of such a job has ended: its user and its group have used this.
  void add_use(const JobSpec& spec, double gpu_seconds, Time now);

  void enter(JobNumber job, const JobSpec& spec);
  void leave(const JobSpec& spec);
  /// It found no room, and is offered some when there is.
  void wait(JobNumber job, const JobSpec& spec);
  void forget(JobNumber job, const JobSpec& spec);

  [[nodiscard]] bool is_open(const JobSpec& spec) const { return !full_limit(spec); }
  /// The first of its user's and its group's limits that leaves no room for it.
  [[nodiscard]] std::optional<FullLimit> full_limit(const JobSpec& spec) const;

  /// Lets use decay until now; budgets that are no longer spent have room again.
  void settle(Time now);
  [[nodiscard]] bool has_room_to_offer() const noexcept { return !opened_.empty(); }
  /// Calls `try_to_enter` for those who wait in shares where somebody has made room, in order of
  /// number, until the share is full. The call may enter() or wait() for the job it is given.
  void offer_room(const std::function<void(JobNumber)>& try_to_enter);
  /// Shares whose budget has been spent since clear_spent().
  [[nodiscard]] bool has_spent() const noexcept { return !spent_.empty(); }
  [[nodiscard]] bool is_spent(const JobSpec& spec) const;
  void clear_spent() { spent_.clear(); }

  /// When the next spent budget that somebody waits for opens by itself.
  [[nodiscard]] std::optional<Time> next() const;
  void explain(const JobSpec& spec, std::vector<ShutGate>& shut) const;

 private:
  struct InUse {
    std::int32_t gpus = 0, jobs = 0;
  };
  struct Share {
    ShareLimits limits;
    double used_seconds = 0;
    Time used_at{};  // as of then
    InUse in;
    std::set<JobNumber> waiting;  // kept out by this limit or another one
    [[nodiscard]] bool is_full() const noexcept {
      return (limits.gpus > 0 && in.gpus >= limits.gpus) ||
             (limits.jobs > 0 && in.jobs >= limits.jobs) || is_budget_spent();
    }
    [[nodiscard]] bool is_budget_spent() const noexcept {
      return limits.gpu_seconds > 0 && used_seconds >= limits.gpu_seconds;
    }
  };
  [[nodiscard]] static std::vector<std::string> shares_of(const JobSpec& spec);
  void decay(Share& share, Time now) const;
  /// When its use will have fallen below the limit by itself.
  [[nodiscard]] std::optional<Time> budget_opens(const Share& share) const;
  void explain_share(const std::string& who, const Share& share, std::int32_t gpus,
                     std::vector<ShutGate>& shut) const;

  std::map<std::string, Share> shares_;
  std::set<std::string> budgets_;  // shares with a limit of GPU time
  std::set<std::string> spent_;    // of these, since clear_spent()
  std::set<std::string> opened_;   // shares in which somebody made room
  double half_life_ = 0;
};

}  // namespace berth
