// The latest output of a session, for whoever attaches again.
#pragma once

#include <cstddef>
#include <deque>
#include <string>
#include <string_view>

#include "step/attach_protocol.h"

namespace berth::step {

class KeptOutput {
 public:
  explicit KeptOutput(std::size_t most) : most_(most) {}

  void add(FrameKind kind, std::string_view text);
  [[nodiscard]] const std::deque<Frame>& pieces() const noexcept { return pieces_; }

 private:
  std::size_t most_;
  std::size_t size_ = 0;
  std::deque<Frame> pieces_;
};

inline void KeptOutput::add(FrameKind kind, std::string_view text) {
  if (text.size() > most_) text.remove_prefix(text.size() - most_);
  if (!pieces_.empty() && pieces_.back().kind == kind && pieces_.back().payload.size() < most_ / 16)
    pieces_.back().payload.append(text);
  else
    pieces_.push_back({kind, std::string(text)});
  size_ += text.size();
  while (size_ > most_) {
    std::string& oldest = pieces_.front().payload;
    const std::size_t surplus = size_ - most_;
    if (oldest.size() > surplus) {
      oldest.erase(0, surplus);
      size_ = most_;
    } else {
      size_ -= oldest.size();
      pieces_.pop_front();
    }
  }
}

}  // namespace berth::step
