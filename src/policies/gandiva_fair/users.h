// Who owns how much of each device type: every user its tickets' part of every type that its jobs
// can use, after trading. A user whose jobs gain little from fast devices sells them for slow ones
// to the user that gains most, one fast device at a time, at a rate that leaves neither worse off
// than with its own part of every type. Knows no engine.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "base/id.h"

namespace berth::gandiva_fair {

struct OwnedJob {
  std::int32_t gpus = 1;
  std::span<const double> rates;  // by type; 0 = cannot run there
};

struct User {
  double tickets = 1;
  std::map<JobId, OwnedJob> jobs;
  std::vector<double> owned;  // by type: GPUs, after trading
  std::vector<double> used;   // by type: GPUs of its jobs that live there
};

/// Sets `owned` of all users with jobs; the others own nothing. `gpus` by type.
void share_out(std::span<User> users, std::span<const double> gpus);

/// Fast devices for slow ones between users with jobs, for every pair of types, the pair furthest
/// apart first. A user's speedup is the mean over its jobs that run on both.
void trade_all(std::span<User> users, std::span<const std::size_t> fastest_first);

/// What a user owns of two types, and how much faster its jobs are on the fast one.
struct Holding {
  double fast = 0;
  double slow = 0;
  double speedup = 1;

  /// In devices of the slow type.
  [[nodiscard]] double value() const noexcept { return fast * speedup + slow; }
};

/// Slow devices paid per fast one: the second highest speedup, which for two users is the seller's.
[[nodiscard]] double trading_rate(std::span<const Holding> users);

/// While the user with the lowest speedup that holds a fast device would not lose, and the one with
/// the highest that can pay would gain. Ties go to the earlier user. Answers how many were traded.
std::int32_t trade(std::span<Holding> users, double rate);

}  // namespace berth::gandiva_fair
