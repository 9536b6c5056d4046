// What commands print for people. Pure: rows in, text out.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "client/console.h"
#include "client/views.h"

namespace berth::client {

struct TableStyle {
  bool has_colour = false;
  int width = 0;         // of the terminal; 0: lines are as long as they are
  std::int64_t now = 0;  // Unix seconds
};

[[nodiscard]] std::string queue_table(const std::vector<JobRow>& jobs, const TableStyle& style);
/// With a last line that adds up.
[[nodiscard]] std::string history_table(const std::vector<JobRow>& jobs, const TableStyle& style);
/// By the users of these jobs, and by node and what it was doing.
[[nodiscard]] std::string energy_table(const std::vector<JobRow>& jobs,
                                       const std::vector<NodeRow>& nodes);
/// The same of these users' kWh.
[[nodiscard]] std::string energy_table(std::string_view title,
                                       const std::map<std::string, double>& users,
                                       const std::vector<NodeRow>& nodes);
[[nodiscard]] std::string node_table(const std::vector<NodeRow>& nodes, const TableStyle& style);
[[nodiscard]] std::string share_table(const std::vector<ShareRow>& shares);
[[nodiscard]] std::string token_table(const std::vector<TokenRow>& tokens);
[[nodiscard]] std::string job_text(const JobRow& job, const std::vector<AttemptRow>& attempts);
[[nodiscard]] std::string why_text(const WhyAnswer& why);

/// Terminal colours around a text, if there are any.
[[nodiscard]] std::string coloured(std::string_view text, std::string_view colour, bool has_colour);
[[nodiscard]] std::string_view colour_of(JobState state);
/// "1.5 GPU h".
[[nodiscard]] std::string gpu_time(double gpu_seconds);
[[nodiscard]] std::string energy(double kwh);
/// Text that others wrote, made harmless and cut to `columns` columns, with … if something was cut.
[[nodiscard]] std::string clipped(std::string_view text, std::size_t columns);
/// A line of our own making, colours and all, cut likewise.
[[nodiscard]] std::string clipped_line(std::string_view line, std::size_t columns);
/// Where it runs, why it waits or how it ended.
[[nodiscard]] std::string circumstance(const JobRow& job);

}  // namespace berth::client
