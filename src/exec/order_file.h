// The launch order and the exit record as files: written by one process, read by another that may
// be of another version. Decoding checks every value, so that what it returns can be acted on.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "exec/host.h"

namespace berth {

/// The launch order and what only this host knows.
struct ShimOrder {
  LaunchOrder order;
  std::vector<std::string> cgroups;  // directories made for the attempt, one per hierarchy
};

inline constexpr std::int32_t kMaxTasks = 4096;
inline constexpr std::int32_t kMaxCore = 8191;

[[nodiscard]] std::string encode_order(const ShimOrder& order);
[[nodiscard]] Result<ShimOrder> decode_order(std::string_view bytes);

[[nodiscard]] std::string encode_exit(const ExitRecord& record);
[[nodiscard]] Result<ExitRecord> decode_exit(std::string_view bytes);

/// "3.17", as in the names of files and in the journal.
[[nodiscard]] std::string attempt_name(AttemptId attempt);
[[nodiscard]] std::optional<AttemptId> attempt_named(std::string_view text) noexcept;
/// "0,1,7"; nothing if it is no such list.
[[nodiscard]] std::string cores_text(const std::vector<std::int32_t>& cores);
[[nodiscard]] std::optional<std::vector<std::int32_t>> cores_from(std::string_view text);

}  // namespace berth
