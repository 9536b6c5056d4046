// Which jobs share GPUs (Muri, SIGCOMM 2022): the pure part of the policy. From candidates in
// policy order it makes groups of at most four jobs of one bucket (equal GPUs), merging by maximum
// weight matching on interleaving efficiency until the groups fit the cluster.
//
// Deterministic; ties go to the better policy key. A bucket of up to `exact_limit` groups is
// matched exactly (blossom); a larger one by classes of similar profiles, the most efficient pair
// of classes first, which is at least half as good and measured at nine tenths of the optimum.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "perf/interleave.h"

namespace berth::muri {

struct Candidate {
  std::int32_t gpus = 1;
  std::uint32_t bucket = 0;  // only jobs of one bucket share; implies equal gpus
  StageTimes stages{};
  std::int64_t memory_mib = 0;         // on each device
  std::int64_t device_memory_mib = 0;  // of the smallest device it may go to; 0 = no limit
};

struct Group {
  std::array<std::uint32_t, kMaxInterleaved> member{};  // positions in policy order, rising
  std::uint32_t bucket = 0;
  std::int32_t gpus = 0;
  Interleaving interleaving;

  [[nodiscard]] std::span<const std::uint32_t> members() const noexcept {
    return {member.data(), interleaving.jobs};
  }
};

struct GroupingOptions {
  InterleaveOverhead overhead;
  std::size_t exact_limit = 256;  // groups of one bucket that are matched exactly
};

/// How many candidates from the front are looked at: up to four times the GPUs, strictly in order.
[[nodiscard]] std::size_t admitted(std::span<const Candidate> candidates, std::int64_t gpus);

/// Groups of all candidates, by their first member. Nothing is merged beyond what makes them fit.
[[nodiscard]] std::vector<Group> group_jobs(std::span<const Candidate> candidates,
                                            std::int64_t gpus, const GroupingOptions& options = {});

/// Two groups of one bucket that would share from now on; by position in the list of groups.
struct Merge {
  std::uint32_t a = 0;
  std::uint32_t b = 0;  // a < b
  Interleaving interleaving;
};
/// The two ways to match the groups of one bucket, for comparison.
[[nodiscard]] std::vector<Merge> match_exactly(std::span<const Candidate> candidates,
                                               std::span<const Group> groups,
                                               const InterleaveOverhead& overhead);
[[nodiscard]] std::vector<Merge> match_by_class(std::span<const Candidate> candidates,
                                                std::span<const Group> groups,
                                                const InterleaveOverhead& overhead);

}  // namespace berth::muri
