// Who owns how much of each device type: every user its tickets' part of every type that its jobs
// can use, after trading. Pure bookkeeping; knows no engine.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "base/id.h"

namespace berth::gandiva_fair {

/// One job as its user's books see it.
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

}  // namespace berth::gandiva_fair
