// Moments and spans in the forms of Slurm's text commands. The links run these with TZ=UTC, so that
// the hour that comes twice in autumn is no question.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace berth::slurm {

/// "2026-11-17T03:58:43" in UTC as Unix seconds; 0 of anything else ("N/A", "Unknown", "NONE").
[[nodiscard]] std::int64_t parse_time(std::string_view text) noexcept;

/// Seconds of "1-02:03:04", "2:03:04", "30:00", of minutes alone ("45") and of days and hours
/// ("2-12"); 0 of "UNLIMITED" and of what is no span.
[[nodiscard]] std::int64_t parse_span(std::string_view text) noexcept;

/// A time limit as every Slurm takes it, in whole minutes, rounded up: "45"; "UNLIMITED" of 0.
[[nodiscard]] std::string limit_text(std::int64_t seconds);

}  // namespace berth::slurm
