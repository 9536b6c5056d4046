// Typed fields of YAML mappings with complaints that say place, fact and remedy. Faults are
// collected (the first twenty), so that a file is told everything that is wrong with it at once.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include <yaml-cpp/yaml.h>

#include "base/result.h"

namespace berth {

struct NumberRange {
  double low = 0;
  double high = 0;
};

class YamlFields {
 public:
  explicit YamlFields(const std::string& file) : file_(file) {}

  void wrong(const YAML::Mark& mark, std::string_view what);
  /// Unknown, doubled and non-scalar keys are wrong.
  void check_keys(const YAML::Node& map, std::span<const std::string> known,
                  std::string_view where);

  /// The value under a key; undefined if there is none.
  [[nodiscard]] static YAML::Node child(const YAML::Node& map, std::string_view key);
  /// Nothing if the key is absent; nothing and a complaint if the value is no number in the range.
  std::optional<double> number(const YAML::Node& map, std::string_view key, NumberRange range);
  /// The same for a value that stands in a list; `what` names it.
  std::optional<double> number_at(const YAML::Node& node, std::string_view what, NumberRange range);
  std::optional<std::int32_t> whole(const YAML::Node& map, std::string_view key, NumberRange range);
  std::optional<std::string> text(const YAML::Node& map, std::string_view key);
  /// A text made of letters, digits, '-', '_' and '.'.
  std::optional<std::string> name(const YAML::Node& map, std::string_view key);

  /// Everything that was wrong, if anything was.
  [[nodiscard]] Result<void> verdict();

 private:
  const std::string& file_;
  Error error_;
  std::size_t unsaid_ = 0;
};

}  // namespace berth
