#include "baseline.h"

#include <algorithm>
#include <charconv>

#include <fmt/format.h>

#include "base/split.h"

namespace berth::bench {
namespace {

constexpr std::string_view kHeader = "policy,placement,cluster,jobs,load,cost";

template <class T>
bool read_number(std::string_view text, T& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc{} && end == text.data() + text.size();
}

/// The cluster has commas of its own, written as '+'.
std::string with(std::string text, char from, char to) {
  std::ranges::replace(text, from, to);
  return text;
}

}  // namespace

Result<std::vector<BaselineRow>> parse_baseline(std::string_view text, const std::string& name) {
  std::vector<BaselineRow> rows;
  bool has_header = false;
  std::size_t number = 0;
  for (const std::string_view line : split(text, '\n')) {
    ++number;
    if (line.empty() || line.starts_with('#')) continue;
    if (!has_header) {
      if (line != kHeader)
        return tl::unexpected(
            Error{fmt::format("{}:{}: the header must be {}", name, number, kHeader)});
      has_header = true;
      continue;
    }
    const auto cells = split(line, ',');
    BaselineRow row;
    const bool is_good = cells.size() == 6 && read_number(cells[3], row.each.jobs) &&
                         read_number(cells[4], row.each.load) && read_number(cells[5], row.cost) &&
                         row.cost > 0;
    if (!is_good)
      return tl::unexpected(Error{fmt::format("{}:{}: no row of {}", name, number, kHeader)});
    row.each.policy = std::string(cells[0]);
    row.each.placement = std::string(cells[1]);
    row.each.cluster = with(std::string(cells[2]), '+', ',');
    rows.push_back(std::move(row));
  }
  if (rows.empty())
    return tl::unexpected(
        Error{fmt::format("{}: has no rows (write it with ./run bench --baseline)", name)});
  return rows;
}

std::string to_csv(std::span<const BaselineRow> rows) {
  std::string text =
      "# Processor time of each case over that of a fixed reference, measured side by side.\n"
      "# Written by ./run bench --baseline, read by ./run bench --check.\n";
  text += fmt::format("{}\n", kHeader);
  for (const BaselineRow& row : rows) {
    text += fmt::format("{},{},{},{},{},{:.4g}\n", row.each.policy, row.each.placement,
                        with(row.each.cluster, ',', '+'), row.each.jobs, row.each.load, row.cost);
  }
  return text;
}

Compared compare(const BaselineRow& row, const CostOf& cost_of, int attempts) {
  Compared compared{.row = row};
  for (int attempt = 0; attempt < attempts; ++attempt) {
    const Result<double> cost = cost_of(row.each);
    if (!cost) {
      compared.error = cost.error().text();
      return compared;
    }
    compared.now = attempt == 0 ? *cost : std::min(compared.now, *cost);
    if (!compared.is_too_slow()) break;
  }
  return compared;
}

}  // namespace berth::bench
