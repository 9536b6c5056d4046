// Figures with their targets, as a table for people.
#pragma once

#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "base/text_table.h"

namespace berth::bench {

/// 0 is the smallest, 1 the largest.
[[nodiscard]] inline double quantile(std::vector<double> values, double share) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  return values[static_cast<std::size_t>(share * static_cast<double>(values.size() - 1))];
}

class FigureTable {
 public:
  void plain(const std::string& what, double value, const std::string& unit) {
    add({what, number(value) + " " + unit, "", ""});
  }
  void below(const std::string& what, double value, const std::string& unit, double target) {
    judge(what, value, unit, "< " + number(target) + " " + unit, value < target);
  }
  void at_least(const std::string& what, double value, const std::string& unit, double target) {
    judge(what, value, unit, ">= " + number(target) + " " + unit, value >= target);
  }
  [[nodiscard]] bool all_met() const noexcept { return all_met_; }
  [[nodiscard]] std::string text() const {
    TextTable table({{"what", Align::Left}, {"measured"}, {"target"}, {"met", Align::Left}});
    for (const auto& row : rows_) table.add_row(row);
    return table.str();
  }

 private:
  static std::string number(double value) {
    return value >= 100 ? fmt::format("{:.0f}", value) : fmt::format("{:.3g}", value);
  }
  void judge(const std::string& what, double value, const std::string& unit,
             const std::string& target, bool is_met) {
    all_met_ = all_met_ && is_met;
    add({what, number(value) + " " + unit, target, is_met ? "yes" : "NO"});
  }
  /// Told at once as well: the whole takes minutes.
  void add(std::vector<std::string> row) {
    std::fprintf(stderr, "%s: %s\n", row[0].c_str(), row[1].c_str());
    rows_.push_back(std::move(row));
  }

  std::vector<std::vector<std::string>> rows_;
  bool all_met_ = true;
};

}  // namespace berth::bench
