// When it pays to move a running job, and what to move so that a waiting one finds room. Pure
// rules; who may move, and where to, is for the policy that uses them.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/id.h"
#include "base/time.h"

namespace berth {

struct MigrationRule {
  double least_gain = 0.10;                   // eta: part of the time it would still take
  double least_seconds = 30;                  // theta
  Duration pause = std::chrono::minutes{30};  // between two moves of a job
};

struct MigrationOffer {
  double seconds_left = 0;  // R: alone at the best placement
  double slowdown_now = 1;  // against that, where it is
  double slowdown_there = 1;
  double cost_seconds = 0;  // checkpoint, restore, and what else the move takes
};

/// now = R s_now, there = cost + R s_there: go if that saves at least eta of it and theta seconds.
[[nodiscard]] bool should_migrate(const MigrationOffer& offer, const MigrationRule& rule) noexcept;
/// Without a confident prediction a job is taken to be half through: it will run as long again.
[[nodiscard]] constexpr double seconds_left_or_age(std::optional<double> predicted,
                                                   double age_seconds) noexcept {
  return predicted ? *predicted : age_seconds;
}

/// A job that would have to leave.
struct Tenant {
  JobId job;
  std::int32_t gpus = 1;      // of its gang
  double cost_seconds = 0;    // of moving it
  bool any_locality = false;  // its class does not care where it is
};
/// Who leaves first: one-GPU jobs that fit anywhere. Ends at the id.
[[nodiscard]] bool leaves_before(const Tenant& a, const Tenant& b) noexcept;
/// A server (or cell) that could be emptied, or as much of it as is needed.
struct EmptyingChoice {
  std::uint32_t id = 0;
  std::vector<Tenant> tenants;
  bool tenants_fit_elsewhere = false;  // without a worse level
};
struct DefragDecision {
  std::uint32_t id = 0;
  std::vector<JobId> moves;  // in the order of leaves_before()
};
/// The cheapest choice by the sum of cost x GPUs, if the wait it saves is worth twice that:
/// wait_saved * gpus_waiting > 2 * cost. Equals go to the lower id.
[[nodiscard]] std::optional<DefragDecision> choose_to_empty(std::span<const EmptyingChoice> choices,
                                                            double wait_saved_seconds,
                                                            std::int32_t gpus_waiting);

/// Two jobs that slow each other down by more than this are better apart.
inline constexpr double kSwapInterference = 1.2;
[[nodiscard]] constexpr bool should_part(double slowdown_of_one,
                                         double slowdown_of_other) noexcept {
  return slowdown_of_one > kSwapInterference && slowdown_of_other > kSwapInterference;
}

}  // namespace berth
