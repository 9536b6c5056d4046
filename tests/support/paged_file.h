// A file on a disk that may lose power: what was written, what is synced, and which 4 KiB pages
// differ. After a power loss any subset of those pages may have arrived, one of them in part.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace berth::test {

class PagedFile {
 public:
  static constexpr std::size_t kPage = 4096;
  static constexpr std::size_t kSector = 512;

  void write(std::size_t offset, std::string_view bytes) {
    if (bytes.empty()) return;
    if (current_.size() < offset + bytes.size()) current_.resize(offset + bytes.size());
    bytes.copy(current_.data() + offset, bytes.size());
    for (std::size_t page = offset / kPage; page <= (offset + bytes.size() - 1) / kPage; ++page)
      mark(page);
  }
  /// Sizes are metadata: taken to reach the disk at once and in order.
  void truncate(std::size_t size) {
    current_.resize(size);
    if (durable_.size() > size) durable_.resize(size);
    for (const std::size_t page : dirty_) is_dirty_[page] = page * kPage < size;
    std::erase_if(dirty_, [&](std::size_t page) { return !is_dirty_[page]; });
  }
  void sync() {
    for (const std::size_t page : dirty_) {
      copy_page(page, kPage, durable_);
      is_dirty_[page] = false;
    }
    dirty_.clear();
  }
  [[nodiscard]] const std::string& bytes() const noexcept { return current_; }
  [[nodiscard]] const std::string& synced() const noexcept { return durable_; }
  /// In the order in which they were first written since the last sync.
  [[nodiscard]] const std::vector<std::size_t>& dirty() const noexcept { return dirty_; }
  /// Puts the first `length` bytes of a page, as written, into an image of the file.
  void copy_page(std::size_t page, std::size_t length, std::string& image) const {
    const std::size_t begin = page * kPage;
    if (begin >= current_.size()) return;
    const std::size_t end = std::min(begin + length, current_.size());
    if (image.size() < end) image.resize(end);
    std::copy(current_.begin() + static_cast<std::ptrdiff_t>(begin),
              current_.begin() + static_cast<std::ptrdiff_t>(end),
              image.begin() + static_cast<std::ptrdiff_t>(begin));
  }
  /// The disk as it is found after a crash: all of it is durable.
  void become(std::string image) {
    current_ = image;
    durable_ = std::move(image);
    dirty_.clear();
    is_dirty_.clear();
  }

 private:
  void mark(std::size_t page) {
    if (page >= is_dirty_.size()) is_dirty_.resize(page + 1);
    if (is_dirty_[page]) return;
    is_dirty_[page] = true;
    dirty_.push_back(page);
  }

  std::string current_, durable_;
  std::vector<std::size_t> dirty_;
  std::vector<bool> is_dirty_;
};

}  // namespace berth::test
