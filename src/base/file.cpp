// Reading goes block by block against a limit, so that neither a device file nor a gzip bomb can
// exhaust memory. Writing replaces the file by rename; only pipes and devices are written in place.

#include "base/file.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <memory>
#include <system_error>

#include <unistd.h>

#include <fmt/format.h>
#include <zlib.h>

namespace berth {

namespace {
struct Closer {
  void operator()(std::FILE* file) const noexcept { std::fclose(file); }
};
using File = std::unique_ptr<std::FILE, Closer>;
}  // namespace

Result<std::string> read_file(const std::string& path, ReadLimits limits) {
  std::error_code code;
  if (std::filesystem::is_directory(path, code))
    return fail(fmt::format("{}: is a directory (name a file)", path));
  const File file{std::fopen(path.c_str(), "rb")};
  if (!file) return fail(fmt::format("{}: cannot open: {}", path, std::strerror(errno)));
  std::string bytes;
  const auto size = std::filesystem::file_size(path, code);
  // The size is only a hint: a pipe has none, and a file may grow while it is read.
  if (!code) bytes.reserve(std::min<std::size_t>(size, limits.max_bytes));
  std::string block(1 << 20, '\0');
  for (;;) {
    const std::size_t got = std::fread(block.data(), 1, block.size(), file.get());
    bytes.append(block, 0, got);
    if (bytes.size() > limits.max_bytes)
      return fail(fmt::format("{}: larger than {} bytes", path, limits.max_bytes));
    if (got < block.size()) break;
  }
  if (std::ferror(file.get()) != 0)
    return fail(fmt::format("{}: cannot read: {}", path, std::strerror(errno)));
  return unpack_if_gzip(std::move(bytes), path, limits);
}

Result<std::string> unpack_if_gzip(std::string bytes, const std::string& name, ReadLimits limits) {
  if (bytes.size() < 2 || bytes[0] != '\x1f' || bytes[1] != '\x8b') return bytes;
  z_stream stream{};
  // 15 is the largest window; 16 more makes zlib expect a gzip header.
  if (inflateInit2(&stream, 15 + 16) != Z_OK)
    return fail(fmt::format("{}: cannot start unpacking", name));
  const std::unique_ptr<z_stream, void (*)(z_stream*)> guard{&stream,
                                                             [](z_stream* s) { inflateEnd(s); }};
  stream.next_in = reinterpret_cast<Bytef*>(bytes.data());
  stream.avail_in = static_cast<uInt>(bytes.size());
  std::string out;
  std::string block(1 << 20, '\0');
  for (;;) {
    stream.next_out = reinterpret_cast<Bytef*>(block.data());
    stream.avail_out = static_cast<uInt>(block.size());
    const int status = inflate(&stream, Z_NO_FLUSH);
    out.append(block, 0, block.size() - stream.avail_out);
    if (out.size() > limits.max_bytes)
      return fail(fmt::format("{}: unpacks to more than {} bytes", name, limits.max_bytes));
    if (status == Z_STREAM_END) {
      if (stream.avail_in == 0) return out;
      if (inflateReset(&stream) != Z_OK) break;  // several members in one file
      continue;
    }
    if (status != Z_OK) break;
    // No input left and room in the output: the stream ends in the middle, and another call would
    // loop.
    if (stream.avail_in == 0 && stream.avail_out != 0) break;
  }
  return fail(
      fmt::format("{}: damaged or truncated gzip data after {} bytes (fetch the file again)", name,
                  out.size()));
}

namespace {

Result<void> write_to(const std::string& path, std::string_view content) {
  File file{std::fopen(path.c_str(), "wb")};
  if (!file) return fail(std::strerror(errno));
  const bool written = std::fwrite(content.data(), 1, content.size(), file.get()) == content.size();
  if (!written || std::fflush(file.get()) != 0) return fail(std::strerror(errno));
  return {};
}

/// A reader sees the old file or the new one, whatever happens in between.
Result<void> replace_file(const std::string& path, std::string_view content) {
  const std::string temporary = fmt::format("{}.tmp-{}", path, ::getpid());
  auto written = write_to(temporary, content);
  if (written) {
    std::error_code code;
    std::filesystem::rename(temporary, path, code);
    if (!code) return {};
    written = fail(code.message());
  }
  std::error_code ignored;
  std::filesystem::remove(temporary, ignored);
  return written;
}

/// What a link leads to, also if that is not there yet.
std::filesystem::path behind_link(const std::filesystem::path& link) {
  std::error_code code;
  const auto target = link.parent_path() / std::filesystem::read_symlink(link, code);
  const auto resolved = std::filesystem::weakly_canonical(target, code);
  return code ? target : resolved;
}

}  // namespace

Result<void> write_file(const std::string& path, std::string_view content) {
  std::error_code code;
  const auto status = std::filesystem::status(path, code);  // of what a link leads to
  // Renaming a file over /dev/stdout or a pipe would replace the device, so these are written to. A
  // link keeps pointing where it did: what it leads to is replaced.
  const bool is_special = std::filesystem::exists(status) && !is_regular_file(status);
  const bool is_link = std::filesystem::is_symlink(std::filesystem::symlink_status(path, code));
  const std::string target = is_link ? behind_link(path).string() : path;
  const auto written = is_special ? write_to(path, content) : replace_file(target, content);
  if (!written) return fail(fmt::format("{}: cannot write: {}", path, written.error().text()));
  return {};
}

}  // namespace berth
