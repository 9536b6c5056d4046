// Which nodes changed, in order, for those who keep something derived from all nodes and want to
// look again only at what changed. The log forgets old entries: whoever has not looked for that
// long has to look at most nodes anyway.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/id.h"

namespace berth {

class ChangeLog {
 public:
  void note(NodeId node) {
    nodes_ = std::max(nodes_, std::size_t{node.value} + 1);
    if (log_.size() >= 4 * nodes_ + 64) {
      const std::size_t half = log_.size() / 2;
      log_.erase(log_.begin(), log_.begin() + static_cast<std::ptrdiff_t>(half));
      begin_ += half;
    }
    log_.push_back(node);
  }
  /// Where the next entry goes.
  [[nodiscard]] std::uint64_t position() const noexcept { return begin_ + log_.size(); }
  /// Entries from that position on, with repetitions. Nothing if the log does not reach back so far
  /// or was never there: then everything may have changed.
  [[nodiscard]] std::optional<std::span<const NodeId>> since(std::uint64_t from) const noexcept {
    if (from < begin_ || from > position()) return std::nullopt;
    return std::span<const NodeId>{log_}.subspan(static_cast<std::size_t>(from - begin_));
  }

 private:
  std::size_t nodes_ = 0;  // seen so far
  std::vector<NodeId> log_;
  std::uint64_t begin_ = 0;  // position of log_[0]
};

}  // namespace berth
