#include "api/output_stream.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

namespace berth::api {

namespace {

constexpr std::int64_t kPieceBytes = 64 << 10;

bool is_same(const FileHandle& one, const FileHandle& other) {
  struct stat a {};
  struct stat b {};
  return one.is_open() && ::fstat(one.get(), &a) == 0 && ::fstat(other.get(), &b) == 0 &&
         a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

}  // namespace

OutputStream::Shape OutputStream::shape_of(const FileHandle& file) {
  struct stat status {};
  if (!file.is_open() || ::fstat(file.get(), &status) != 0) return {};
  return {status.st_size, {status.st_mtim.tv_sec, status.st_mtim.tv_nsec}};
}

OutputStream::OutputStream(std::function<std::optional<Look>()> look, FileHandle file,
                           OutputRange range)
    : look_(std::move(look)), file_(std::move(file)), range_(range) {
  seen_ = shape_of(file_);
  const std::int64_t size = seen_.size;
  offset_ = range_.offset < 0 ? std::max<std::int64_t>(0, size + range_.offset) : range_.offset;
  end_ = range_.limit > 0 && size - offset_ > range_.limit ? offset_ + range_.limit : size;
}

std::string OutputStream::read_piece(std::int64_t end) {
  std::string bytes(
      static_cast<std::size_t>(std::clamp<std::int64_t>(end - offset_, 0, kPieceBytes)), '\0');
  const ssize_t count = ::pread(file_.get(), bytes.data(), bytes.size(), offset_);
  bytes.resize(static_cast<std::size_t>(std::max<ssize_t>(count, 0)));
  offset_ += static_cast<std::int64_t>(bytes.size());
  return bytes;
}

BodySource::Piece OutputStream::next(Because) {
  if (!range_.follow) {
    if (!file_.is_open()) return {{}, true};
    std::string bytes = read_piece(end_);
    const bool is_last = bytes.empty() || offset_ >= end_;  // empty: it was cut meanwhile
    return {std::move(bytes), is_last};
  }
  if (std::string bytes = read_growth(); !bytes.empty()) return {std::move(bytes), false};
  // Ask whether the job is over before looking for more: what was written before its end is then
  // there to be seen.
  const auto look = look_();
  if (!look) return {{}, true};
  look_for_another_file(*look);
  std::string bytes = read_growth();
  const bool is_last = bytes.empty() && look->is_over;
  return {std::move(bytes), is_last};
}

std::string OutputStream::read_growth() {
  if (!file_.is_open()) return {};
  const Shape shape = shape_of(file_);
  // Begun anew by the next attempt: shorter than what was read, or as long but written since. (A
  // write sets the time before the size, so an append is never mistaken for this.)
  const bool is_rewritten = shape.size == offset_ && shape.changed != seen_.changed;
  if (shape.size < offset_ || is_rewritten) offset_ = 0;
  seen_ = shape;
  return read_piece(shape.size);
}

void OutputStream::look_for_another_file(const Look& look) {
  auto found = open_as_owner(look.path, look.user);
  if (!found || is_same(file_, *found)) return;
  if (file_.is_open()) offset_ = 0;
  file_ = *std::move(found);
  seen_ = shape_of(file_);
}

}  // namespace berth::api
