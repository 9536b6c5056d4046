// How scheduler and shim talk beside the files of the run directory. Downwards: a queued real-time
// signal with a small number, so that a scheduler that found the shim after a restart can say
// everything the one that made it could. Upwards, while it lives: lines in a pipe, descriptor 3.
#pragma once

#include <algorithm>
#include <csignal>
#include <cstdint>

namespace berth {

enum class ShimAction : std::uint8_t {
  Warn = 1,  // value: grace in seconds
  Kill,
  Suspend,
  Resume,
  Signal,       // value: its number
  Cores,        // as the file cores.ID says
  Limit,        // value: seconds since it began; 0: none
  Rate,         // value: thousandths of the time in which it runs
  SignalShell,  // value: its number; to the processes it was started with alone
  Join,         // value: number of a request in its directory of steps
};

struct ShimCommand {
  ShimAction action{};
  std::int64_t value = 0;
};

inline constexpr std::int64_t kMaxCommandValue = (1 << 23) - 1;  // as seconds: 97 days

[[nodiscard]] inline int shim_signal() noexcept { return SIGRTMIN + 1; }

[[nodiscard]] constexpr int pack(ShimCommand command) noexcept {
  const auto value = std::clamp<std::int64_t>(command.value, 0, kMaxCommandValue);
  return static_cast<int>(value << 8 | static_cast<std::int64_t>(command.action));
}
[[nodiscard]] constexpr ShimCommand unpack(int packed) noexcept {
  return {static_cast<ShimAction>(packed & 0xff), packed >> 8};
}

inline constexpr int kShimPipe = 3;
// Lines of the pipe: "claimed", "taken" (somebody else has the claim), "started PID".

/// In the environment of every process of an attempt: the path of its claim. Tells survivors of a
/// shim that was killed from everybody else.
inline constexpr const char* kClaimVariable = "BERTH_CLAIM";
/// The same: the shim's process. What comes from it comes to every process of the job.
inline constexpr const char* kShimVariable = "BERTH_SHIM";

}  // namespace berth
