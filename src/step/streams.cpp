#include "step/streams.h"

#include <algorithm>
#include <array>
#include <cerrno>

#include <unistd.h>

namespace berth {

namespace {
constexpr std::size_t kBlock = 65'536;
constexpr std::size_t kLongestPart = std::size_t{1} << 20U;  // a line without an end
}  // namespace

void OutputRelay::put(std::string_view text) {
  if (label_.empty()) {
    static_cast<void>(write_all(to_, text));
    return;
  }
  std::string labelled;
  while (!text.empty()) {
    if (!in_line_) labelled += label_;
    const auto end = text.find('\n');
    in_line_ = end == std::string_view::npos;
    const auto line = text.substr(0, in_line_ ? text.size() : end + 1);
    labelled += line;
    text.remove_prefix(line.size());
  }
  static_cast<void>(write_all(to_, labelled));
}

void OutputRelay::flush() {
  if (!part_.empty()) put(part_);
  part_.clear();
}

void OutputRelay::pump() {
  std::array<char, kBlock> block;
  const ssize_t got = ::read(from_.get(), block.data(), block.size());
  if (got < 0 && (errno == EINTR || errno == EAGAIN)) return;
  if (got <= 0) {
    flush();
    from_.reset();
    return;
  }
  const std::string_view text(block.data(), static_cast<std::size_t>(got));
  if (!whole_lines_) return put(text);
  part_ += text;
  const auto end = part_.rfind('\n');
  if (end == std::string::npos) {
    if (part_.size() > kLongestPart) flush();
    return;
  }
  put(std::string_view(part_).substr(0, end + 1));
  part_.erase(0, end + 1);
}

InputFan::InputFan(int from, std::vector<Fd> to) : from_(from) {
  for (Fd& one : to) targets_.push_back({std::move(one)});
}

bool InputFan::wants_input() const noexcept {
  const bool has_reader =
      std::ranges::any_of(targets_, [](const Target& one) { return one.to.is_open(); });
  const bool is_full =
      std::ranges::any_of(targets_, [](const Target& one) { return one.rest.size() >= kBlock; });
  return !is_over_ && has_reader && !is_full;
}

std::vector<InputFan::Waiting> InputFan::waiting() const {
  std::vector<Waiting> all;
  for (std::size_t task = 0; task < targets_.size(); ++task)
    if (targets_[task].to.is_open() && !targets_[task].rest.empty())
      all.push_back({targets_[task].to.get(), task});
  return all;
}

void InputFan::read_more() {
  std::array<char, kBlock> block;
  const ssize_t got = ::read(from_, block.data(), block.size());
  if (got < 0 && (errno == EINTR || errno == EAGAIN)) return;
  if (got <= 0) is_over_ = true;
  for (Target& one : targets_)
    if (got > 0 && one.to.is_open()) one.rest.append(block.data(), static_cast<std::size_t>(got));
  close_done();
}

void InputFan::write_to(std::size_t task) {
  Target& one = targets_[task];
  const ssize_t done = ::write(one.to.get(), one.rest.data(), one.rest.size());
  if (done > 0) {
    one.rest.erase(0, static_cast<std::size_t>(done));
  } else if (errno != EINTR && errno != EAGAIN) {  // it reads no more
    one.to.reset();
    one.rest.clear();
  }
  close_done();
}

void InputFan::close_done() {
  if (!is_over_) return;
  for (Target& one : targets_)
    if (one.rest.empty()) one.to.reset();
}

}  // namespace berth
