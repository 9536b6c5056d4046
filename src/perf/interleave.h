// Interleaving: up to four jobs take turns on the storage, the cores, the GPU and the network of
// the same machines, so that at any moment each uses another resource (Muri, SIGCOMM 2022).
//
// Jobs stand at consecutive positions q = 0, 1, … of a round of four phases; in phase i the job at
// q uses resource (i - q) mod 4, and a phase lasts as long as its slowest stage:
//
//   T = sum over i of max over q of t_q[(i - q) mod 4]        efficiency = sum of all t / (4 T)
//
// Every member completes one iteration per T. Measured overhead multiplies T.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace berth {

struct Profile;

inline constexpr std::size_t kStages = 4;  // storage, CPU, GPU, network
inline constexpr std::size_t kMaxInterleaved = 4;
using StageTimes = std::array<double, kStages>;  // seconds of one iteration

[[nodiscard]] constexpr double iteration_of(const StageTimes& stages) noexcept {
  return stages[0] + stages[1] + stages[2] + stages[3];
}

/// What T is multiplied by for one, two, three and four jobs.
struct InterleaveOverhead {
  std::array<double, kMaxInterleaved> times{1, 1, 1, 1};
  [[nodiscard]] double of(std::size_t jobs) const noexcept { return times[jobs - 1]; }
  friend bool operator==(const InterleaveOverhead&, const InterleaveOverhead&) = default;
};
/// As calibrated on the testbed of the authors.
inline constexpr InterleaveOverhead kMeasuredOverhead{{1.0, 1.3, 1.5, 1.37}};

/// The stages of one iteration of the model. Where they were not measured: its share of GPU time as
/// its utilisation says, the rest half on storage and half on the cores.
[[nodiscard]] StageTimes stages_of(const Profile& profile) noexcept;

struct Interleaving {
  double seconds = 0;     // T of the best ordering, without overhead
  double efficiency = 0;  // mean busy share of the four resources
  std::uint8_t jobs = 0;
  std::array<std::uint8_t, kMaxInterleaved> order{};  // order[position] = member
};

/// T with the jobs at positions 0, 1, … in the order given.
[[nodiscard]] double interleaved_time(std::span<const StageTimes> in_order) noexcept;
/// The ordering of one to four jobs with the least T; of equal ones the first in lexical order.
[[nodiscard]] Interleaving best_interleaving(std::span<const StageTimes> jobs) noexcept;

/// Fewer iterations per second than the quickest member would make alone: not worth sharing.
[[nodiscard]] bool loses_throughput(std::span<const StageTimes> jobs, double seconds) noexcept;
/// Sum over the members of (own iteration alone) / `seconds`: what the group gets done beside one
/// device for each job in turn. Below 1 they are better off apart.
[[nodiscard]] double total_speed(std::span<const StageTimes> jobs, double seconds) noexcept;

}  // namespace berth
