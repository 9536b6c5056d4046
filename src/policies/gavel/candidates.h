// From fractions of time to turns: who runs on which type in the next round.
//
// A candidate is a job, or two jobs that share devices. Its priority on a type is the fraction it
// should have over the part of that type's time it got since the fractions were computed; whoever
// is owed most goes first. What a candidate was owed before, in seconds, outlives a new computation
// and decides ties, then the fraction, then the JobId. Whoever is owed nothing fills what is left.
//
// choose() sorts as many (candidate, type) as it takes to use all devices: O(J R), at most
// O(J R log(J R)).
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/id.h"

namespace berth::gavel {

struct Candidate {
  JobId job;
  std::optional<JobId> partner;  // shares all of the job's devices
  std::int32_t gpus = 1;
};

struct Pick {
  std::uint32_t candidate = 0;
  PoolId pool;
  friend bool operator==(const Pick&, const Pick&) = default;
};

/// How a candidate stands on one type.
struct Claim {
  double share = 0;     // fraction of time it should run here
  double received = 0;  // seconds it ran here since the shares were set
  double owed = 0;      // seconds it should have run here so far less those it did; never reset
  double rate = 0;      // how fast it is here; 0 = it cannot run here
  bool may_fill = true;
};

class Candidates {
 public:
  explicit Candidates(std::size_t types) : types_(types), time_(types) {}

  [[nodiscard]] std::size_t size() const noexcept { return candidates_.size(); }
  [[nodiscard]] const Candidate& operator[](std::uint32_t at) const noexcept {
    return candidates_[at];
  }
  /// Where the job stands by itself, not as half of a pair.
  [[nodiscard]] std::uint32_t alone(JobId job) const noexcept { return alone_[job]; }
  [[nodiscard]] std::optional<std::uint32_t> find_pair(JobId first, JobId second) const;
  /// Its claims are empty until they are set.
  std::uint32_t add(const Candidate& candidate);
  /// The job and the pairs it is in. The last candidate takes the place of one that leaves.
  void remove(JobId job);
  void remove_pairs();
  [[nodiscard]] Claim& claim(std::uint32_t at, PoolId pool) noexcept {
    return claims_[at * types_ + pool.value];
  }
  [[nodiscard]] const Claim& claim(std::uint32_t at, PoolId pool) const noexcept {
    return claims_[at * types_ + pool.value];
  }

  /// New shares are about to be set: what was received counts only `carry` (0 to 1) from now on.
  void restart(double carry);
  /// Everybody is owed its share of so many seconds.
  void elapse(double seconds);
  void receive(std::uint32_t at, PoolId pool, double seconds);
  /// Somebody who is here no more ran there.
  void receive_gone(PoolId pool, double seconds) { time_[pool.value] += seconds; }

  [[nodiscard]] double priority(std::uint32_t at, PoolId pool) const noexcept;
  /// In order of priority, while devices of the type last; no job twice. Those of `kept` are taken
  /// before all others.
  [[nodiscard]] std::vector<Pick> choose(std::span<const std::int64_t> free,
                                         std::span<const Pick> kept = {}) const;

 private:
  struct Entry;
  void remove_at(std::uint32_t at);
  void add_entries(std::uint32_t at, std::vector<Entry>& entries) const;

  std::size_t types_;
  std::vector<double> time_;  // by type: seconds received by all
  std::vector<Candidate> candidates_;
  std::size_t pairs_ = 0;               // among them
  Column<JobId, std::uint32_t> alone_;  // positions
  std::vector<Claim> claims_;           // by candidate, type
};

}  // namespace berth::gavel
