// The target of a request, taken apart: path segments and query parameters, percent-decoded. What
// cannot be text (bad escapes, NUL, broken UTF-8) is refused here, so that nobody behind has to
// ask.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "daemon/service.h"

namespace berth::api {

struct Target {
  std::vector<std::string> path;  // "/api/v1/jobs/7" is {"api","v1","jobs","7"}
  std::vector<std::pair<std::string, std::string>> query;
};
/// Origin form ("/path?query") or absolute form ("http://host/path?query").
[[nodiscard]] Result<Target> parse_target(std::string_view text);

/// Reads typed parameters and collects what is wrong with them, so that one answer tells it all.
class QueryReader {
 public:
  explicit QueryReader(const Target& target) : target_(target) {}

  /// Nothing if absent. An empty value counts as absent: forms send them.
  [[nodiscard]] std::optional<std::string> text(std::string_view name);
  [[nodiscard]] std::optional<std::int64_t> whole(std::string_view name, std::int64_t low,
                                                  std::int64_t high);
  /// "1", "true", "yes" or "" (just named); "0", "false", "no".
  [[nodiscard]] bool flag(std::string_view name);
  /// "1,5-9,12": at most `most` numbers.
  [[nodiscard]] std::vector<JobNumber> numbers(std::string_view name, std::size_t most);
  /// "a,b,c"
  [[nodiscard]] std::vector<std::string> list(std::string_view name);

  void wrong(std::string_view name, std::string_view what);
  [[nodiscard]] bool is_good() const noexcept { return faults_.empty(); }
  [[nodiscard]] const std::vector<std::string>& faults() const noexcept { return faults_; }

 private:
  const Target& target_;
  std::vector<std::string> faults_;
};

/// All of `text` as a number.
[[nodiscard]] std::optional<JobNumber> job_number_from(std::string_view text);
[[nodiscard]] bool is_utf8_text(std::string_view text) noexcept;  // valid, and no NUL

}  // namespace berth::api
