// How Berth's hold is told from a user's own on a Slurm that knows only "JobHeldUser" for both. The
// job_submit script that `berth slurm setup` writes leaves a mark in the admin comment of each job
// that it holds, which users cannot change:
//   berth=held                          a batch job that waits for Berth
//   berth=held;nodes=n[1-2];n=1-2;begin=1795003457
//                                       the same, with what the user had asked for: nodes, their
//                                       number, a begin time
// A user's own hold of such a job is a begin time that never comes (kUserHold): Slurm shows it, it
// outlives every restart, and whoever respects begin times respects it. An admin's hold is Slurm's
// own JobHeldAdmin.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace berth::slurm {

/// Unix seconds (in 2096). A marked job that may not begin before is held by its user.
inline constexpr std::int64_t kUserHold = 4'000'000'000;

struct HoldMark {
  std::string nodes{};       // the user's own; empty: none
  std::string node_count{};  // "1-2"; empty: not said
  std::int64_t begin = 0;    // 0: at once
};

/// Anywhere between the words of an admin comment; nothing: not ours.
[[nodiscard]] std::optional<HoldMark> hold_mark_of(std::string_view admin_comment);

/// What else stands in an admin comment.
[[nodiscard]] std::string without_mark(std::string_view admin_comment);

}  // namespace berth::slurm
