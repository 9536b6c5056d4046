// Who a job of Slurm is, and the note that an attempt was placed on one of its runs. The note is in
// the journal (a setting) before anything is placed: after a crash an attempt without one was never
// placed, and one with it is found by its run.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/job_spec.h"
#include "slurm/facts.h"
#include "store/record.h"

namespace berth {

/// A job, or a task of an array: both keep this name over all their runs, until a slurmctld that
/// forgot it gives it to somebody else.
struct SlurmName {
  std::uint32_t job = 0;   // of a task: its array's
  std::int32_t task = -1;  // -1: no task
  friend auto operator<=>(const SlurmName&, const SlurmName&) = default;
};
[[nodiscard]] std::string to_text(SlurmName name);  // "7", "7_2": as scontrol takes it

/// The key of its job in the journal: its name, and when it was submitted as it was first seen.
struct FirstSight {
  SlurmName name;
  std::int64_t submitted = 0;
  std::uint32_t restarts = 0;
  friend bool operator==(const FirstSight&, const FirstSight&) = default;
};
[[nodiscard]] std::string key_of(const FirstSight& seen);  // "slurm/7_2/0/1700000000"
[[nodiscard]] std::optional<FirstSight> first_sight_from(std::string_view key);

/// Which run an attempt was placed on, and where.
struct Claim {
  AttemptId attempt{};
  SlurmName name{};
  std::string user{};
  std::uint32_t restarts = 0;
  std::int64_t submitted = 0;
  std::vector<std::string> nodes{};
  friend bool operator==(const Claim&, const Claim&) = default;
};
inline constexpr std::string_view kClaimSettings = "slurm/claim/";
[[nodiscard]] SettingRecord to_setting(JobNumber job, const Claim& claim);
/// Nothing is claimed of this job any more.
[[nodiscard]] SettingRecord no_claim(JobNumber job);
/// Nothing: it is no claim.
[[nodiscard]] std::optional<std::pair<JobNumber, Claim>> claim_from(std::string_view key,
                                                                    std::string_view value);

}  // namespace berth
