// Pseudonyms for people and what they call things: the same name is the same pseudonym in every
// file and in every capture by this user, and nobody without the user's key can find out by trying
// which name stands behind it. Nodes, racks and zones are just counted.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "base/result.h"

namespace berth {

class Pseudonyms {
 public:
  explicit Pseudonyms(std::string key) : key_(std::move(key)) {}

  /// "user-1f9c02ab"; of kind node, rack or zone "n1", "r1", "z1".
  [[nodiscard]] std::string of(std::string_view kind, std::string_view name);

 private:
  std::string key_;
  std::map<std::pair<std::string, std::string>, std::string> counted_;
  std::map<std::string, std::size_t> counts_;  // by kind
};

/// The key of this user, drawn at its first use and kept in a file that only they can read:
/// capture.key in $XDG_CONFIG_HOME/berth or ~/.config/berth.
[[nodiscard]] Result<std::string> pseudonym_key();

}  // namespace berth
