// A row as squeue prints it for slurm::squeue_format, made from the format itself: a column that is
// added there has a value here before anybody thinks of it.
#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>

#include "slurm/squeue_text.h"

namespace berth::test {

class SqueueRow {
 public:
  SqueueRow& set(const std::string& column, std::string value) {
    values_[column] = std::move(value);
    return *this;
  }
  /// As a squeue prints it that does not know the column.
  SqueueRow& without(const std::string& column) {
    left_out_.insert(column);
    return *this;
  }
  /// What `-O` asks for is "Column:suffix,Column:suffix": the values with the suffixes behind them.
  [[nodiscard]] std::string text(const slurm::SqueueForm& form) const {
    const std::string format = slurm::squeue_format(form);
    std::string row;
    for (std::size_t begin = 0; begin < format.size();) {
      const std::size_t end = std::min(format.find(',', begin), format.size());
      const std::string item = format.substr(begin, end - begin);
      const std::size_t colon = item.find(':');
      const std::string column = item.substr(0, colon);
      if (!left_out_.contains(column)) row += value(column) + item.substr(colon + 1);
      begin = end + 1;
    }
    return row + '\n';
  }

 private:
  [[nodiscard]] std::string value(const std::string& column) const {
    const auto found = values_.find(column);
    if (found != values_.end()) return found->second;
    if (column == "JobID") return "1";
    if (column == "State") return "PENDING";
    if (column == "SubmitTime") return "2026-11-17T03:58:30";
    if (column == "ArrayTaskID" || column == "StartTime" || column == "EndTime") return "N/A";
    return column == "Name" ? "job" : "(null)";
  }
  std::map<std::string, std::string> values_{};
  std::set<std::string> left_out_{};
};

}  // namespace berth::test
