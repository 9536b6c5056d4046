// The lines that Berth and the link program exchange (link/slurm/README.md has the protocol): fields
// between tabs, with escapes, so that any byte that people write into names arrives as it is.
#pragma once

#include <cstdint>
#include <deque>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "slurm/facts.h"

namespace berth::slurm {

inline constexpr int kLinkProtocol = 1;

/// One line with its newline.
[[nodiscard]] std::string encode_line(const std::vector<std::string_view>& fields);

/// The fields of one line, used again for the next one. A field that is not there is empty.
class Row {
 public:
  void read(std::string_view line);  // the line must outlive its reading
  [[nodiscard]] std::size_t size() const noexcept { return fields_.size(); }
  [[nodiscard]] std::string_view operator[](std::size_t at) const noexcept {
    return at < fields_.size() ? fields_[at] : std::string_view{};
  }

 private:
  std::vector<std::string_view> fields_{};
  std::deque<std::string> decoded_{};  // those that hold an escape
};

/// Of a row that begins with "job" and "node". Fewer fields than protocol 1 has are an error, more
/// are passed over.
[[nodiscard]] Result<Job> job_of(const Row& row);
[[nodiscard]] Result<Node> node_of(const Row& row);

}  // namespace berth::slurm
