// Points in time and sizes as people write them to a scheduler: "now+2hours", "16:00", "tomorrow",
// "2026-11-20T08:30"; "4G"; "USR1". Local time; the present is a parameter.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"

namespace berth::client {

/// Unix seconds. A time of day that is past today is tomorrow's.
[[nodiscard]] Result<std::int64_t> parse_moment(std::string_view text, std::int64_t now);
/// The same, but looking back: "2h" is two hours ago, a time of day that is to come is yesterday's.
[[nodiscard]] Result<std::int64_t> parse_past_moment(std::string_view text, std::int64_t now);

/// "4G", "512M", "1024" (MiB), "2T", rounded up to MiB.
[[nodiscard]] Result<std::int32_t> parse_memory_mib(std::string_view text);

/// "USR1", "SIGTERM", "15".
[[nodiscard]] Result<int> parse_signal(std::string_view text);
[[nodiscard]] std::string signal_name(int signal);

/// As Slurm prints spans: "4:05", "1:00:00", "2-03:00:00".
[[nodiscard]] std::string clock_span(double seconds);
/// "2026-11-16T15:04:05", local; "N/A" for nothing. From Unix microseconds.
[[nodiscard]] std::string local_time(std::int64_t micros);
/// For tables: "15:04:05" today, "Nov 14 15:04" otherwise.
[[nodiscard]] std::string short_time(std::int64_t micros, std::int64_t now);

}  // namespace berth::client
