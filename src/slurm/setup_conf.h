// slurm.conf as far as `berth slurm setup` must understand it: what a key is set to (the last one
// wins, over Include lines), and one line of ours that is added at its end and taken out again byte
// by byte. Lines are joined at a backslash, keys have no case, `#` begins a comment. Nothing here
// writes a file.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace berth::slurm {

/// A file by its path; nothing: there is none.
using ConfReader = std::function<Result<std::optional<std::string>>(const std::string& path)>;

/// What slurm.conf and the files it includes set.
struct ConfValues {
  struct Setting {
    std::string key;  // lower case
    std::string value;
  };
  std::vector<Setting> settings{};     // in the order in which Slurm meets them
  std::vector<std::string> files{};    // read, slurm.conf first
  std::vector<std::string> missing{};  // included, but not there

  /// The one that counts; nothing: it is not set.
  [[nodiscard]] std::optional<std::string> value(std::string_view key) const;
};

/// `without`: a path that is not read although it is included (the file of ours).
[[nodiscard]] Result<ConfValues> read_conf(const std::string& path, const ConfReader& read,
                                           const std::string& without = {});

/// What to add at the end of `conf` so that `line` is a line of its own there: a last line without
/// an end, or one that a backslash would join to ours, is ended first.
[[nodiscard]] std::string addition_for(std::string_view conf, std::string_view line);
/// `conf` without what addition_for() added, wherever in it that stands now; nothing: it is not
/// there, or more than once.
[[nodiscard]] std::optional<std::string> without_addition(std::string_view conf,
                                                          std::string_view added);

/// A comma list with `item` at its end unless it has it already. Other items and their order stay.
[[nodiscard]] std::string with_item(std::string_view list, std::string_view item);
/// Whether a comma list has an item `name`, or `name=anything`.
[[nodiscard]] bool has_item(std::string_view list, std::string_view name);

}  // namespace berth::slurm
