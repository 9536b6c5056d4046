// Trading between users: whose jobs gain little from fast devices sells them to whoever gains most,
// for slow ones. One fast device at a time, at a rate that leaves nobody worse off than with its
// own part of every type.
#pragma once

#include <cstdint>
#include <span>

namespace berth::gandiva_fair {

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
