// An SQLite VFS over the system's own that writes down every write, truncation, removal and sync of
// a database and its logs, and can be told to fail. For building the disk images that a power loss
// may leave, and for errors that real disks rarely give.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "support/paged_file.h"

struct sqlite3_vfs;

namespace berth::test {

enum class DbFile : std::uint8_t { Database, Wal, Journal };
inline constexpr std::size_t kDbFiles = 3;
inline constexpr std::array<const char*, kDbFiles> kDbSuffix{"", "-wal", "-journal"};

struct DiskEvent {
  enum class Kind : std::uint8_t { Write, Truncate, Sync, Remove, Note };
  Kind kind{};
  DbFile file{};
  std::size_t offset = 0;  // of a truncation: the new size; of a note: its number
  std::string bytes;
};

class RecordingVfs {
 public:
  /// Registered under this name while it lives.
  explicit RecordingVfs(const std::string& name);
  ~RecordingVfs();
  RecordingVfs(const RecordingVfs&) = delete;
  RecordingVfs& operator=(const RecordingVfs&) = delete;

  [[nodiscard]] const std::string& name() const noexcept { return name_; }
  [[nodiscard]] const std::vector<DiskEvent>& events() const noexcept { return events_; }
  /// A mark of the test between the events: "so many records are acknowledged".
  void note(std::size_t number);

  /// An operation that writes or syncs fails from this many more on: as EIO, or as a full disk.
  enum class Fault : std::uint8_t { Eio, Full };
  void fail_after(std::int64_t operations, Fault fault);
  void clear_fault() { fails_in_ = kNever; }

  // For the VFS itself.
  void record(DiskEvent event);
  [[nodiscard]] std::optional<int> failure();  // SQLite's code

 private:
  static constexpr std::int64_t kNever = std::int64_t{1} << 60U;
  std::string name_;
  sqlite3_vfs* vfs_;
  std::mutex mutex_;
  std::vector<DiskEvent> events_;
  std::atomic<std::int64_t> fails_in_{kNever};
  Fault fault_ = Fault::Eio;
};

/// The files as the events so far left them.
struct DbFiles {
  std::array<PagedFile, kDbFiles> files;
  std::array<bool, kDbFiles> exists{};
  void apply(const DiskEvent& event);
};

}  // namespace berth::test
