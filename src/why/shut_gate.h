// What keeps a job from competing for devices, as an explanation shows it: the kind of gate, the
// reason in words and in numbers, and when or by what it opens. Plain data: the gates of the daemon
// fill it in, the room why reads it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/time.h"
#include "model/job_spec.h"
#include "wire/why.h"

namespace berth {

enum class GateKind : std::uint8_t {
  Hold,
  Suspension,
  Begin,
  Dependency,
  Array,
  Quota,
  RetryDelay,  // "pace" for programs
  Fit,         // the cluster, as it is described now, could never hold it
};
[[nodiscard]] std::string_view to_string(GateKind kind) noexcept;

struct ShutGate {
  GateKind kind{};
  std::string text;               // with numbers: "alice has 4 of 4 GPUs"
  WhyNumbers numbers{};           // the same for programs
  std::optional<Time> until{};    // it opens by itself
  std::vector<JobNumber> jobs{};  // those it waits for
  std::string change{};  // what an admin would change, for "berth share set": "ann --gpu-limit 4"
};

}  // namespace berth
