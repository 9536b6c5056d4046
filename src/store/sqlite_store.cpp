// One connection writes, two read: one answers short questions, one makes lists, so that a long
// list does not hold up a submit. Durability is SQLite's WAL with synchronous = FULL: a commit
// returns after its sync.

#include "store/sqlite_store.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <mutex>
#include <vector>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/crash_point.h"
#include "store/directory_lock.h"
#include "store/journal_check.h"
#include "store/schema.h"
#include "store/store_reader.h"
#include "store/store_writer.h"

namespace berth {

struct SqliteStore::Parts {
  Options options;
  DirectoryLock lock;
  StoreWriter writer;
  std::unique_ptr<StoreReader> reader;
  std::unique_ptr<StoreReader> lister;  // of lists, which may take long: a submit asks the other
  DecayedUsage usage;
  // Held during a commit and during questions about use: a sum that is being built must count each
  // attempt once, from the table or from the commit.
  std::mutex usage_mutex;
  std::atomic<bool> is_broken{false};
  Error reason;  // written before is_broken
};

namespace {

/// The file exists before SQLite opens it, so that nobody else may read it: jobs hold secrets.
Result<void> make_private(const std::string& path) {
  const int file = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (file < 0) return fail(fmt::format("{}: cannot be opened: {}", path, std::strerror(errno)));
  ::close(file);
  return {};
}

/// A new name is durable when its directory is.
Result<void> sync_directory(const std::string& directory) {
  const int file = ::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  const bool is_synced = file >= 0 && ::fsync(file) == 0;
  const int reason = errno;
  if (file >= 0) ::close(file);
  if (!is_synced)
    return fail(fmt::format("{}: cannot be synced: {}", directory, std::strerror(reason)));
  return {};
}

/// A sync of a growing log also writes its new length; a log that already has its final length costs
/// half. SQLite goes by the content of the log, not by its length. Without space for this only speed
/// is lost.
void stretch_log(const std::string& path, int pages) {
  constexpr std::size_t kFrame = 4096 + 24;
  const auto wanted = static_cast<off_t>(kFrame) * pages * 5 / 4;  // a checkpoint comes late
  const int file = ::open(path.c_str(), O_RDWR | O_NOFOLLOW | O_CLOEXEC);
  struct stat found {};
  if (file >= 0 && ::fstat(file, &found) == 0) {
    const std::vector<char> zeros(std::size_t{1} << 18U);
    off_t at = found.st_size;
    while (at < wanted) {
      const auto most = std::min<off_t>(wanted - at, static_cast<off_t>(zeros.size()));
      const ssize_t done = ::pwrite(file, zeros.data(), static_cast<std::size_t>(most), at);
      if (done <= 0) break;
      at += done;
    }
    if (at > found.st_size) static_cast<void>(::fsync(file));
  }
  if (file >= 0) ::close(file);
}

Result<Database> open_writer(const std::string& path, const SqliteStore::Options& options) {
  BERTH_TRY(Database database, Database::open(path, Database::Access::ReadWrite, options.vfs));
  BERTH_TRY(const std::string mode, database.text("PRAGMA journal_mode = WAL"));
  if (mode != "wal")
    return fail(
        fmt::format("{}: the file system does not allow a write-ahead log (choose a local "
                    "directory)",
                    path));
  BERTH_TRY_VOID(
      database.run(fmt::format("PRAGMA synchronous = FULL; PRAGMA wal_autocheckpoint = {}; "
                               "PRAGMA journal_size_limit = 67108864; PRAGMA temp_store = MEMORY; "
                               "PRAGMA cache_size = -16384",
                               options.checkpoint_pages)));
  BERTH_TRY_VOID(migrate(database, migrations(), path));
  stretch_log(path + "-wal", options.checkpoint_pages);
  return database;
}

}  // namespace

SqliteStore::SqliteStore(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}
SqliteStore::~SqliteStore() = default;

Result<std::unique_ptr<SqliteStore>> SqliteStore::open(const Options& options) {
  BERTH_TRY(DirectoryLock lock, DirectoryLock::take(options.directory));
  const std::string path = options.directory + "/berth.db";
  BERTH_TRY_VOID(make_private(path));
  // The lock comes first: opening and migrating already write.
  BERTH_TRY(Database writing, open_writer(path, options));
  BERTH_TRY(StoreWriter writer, StoreWriter::open(std::move(writing)));
  BERTH_TRY(Database reading, Database::open(path, Database::Access::ReadOnly, options.vfs));
  BERTH_TRY(auto reader, StoreReader::open(std::move(reading)));
  BERTH_TRY(Database listing, Database::open(path, Database::Access::ReadOnly, options.vfs));
  BERTH_TRY(auto lister, StoreReader::open(std::move(listing)));
  BERTH_TRY_VOID(sync_directory(options.directory));
  auto parts = std::unique_ptr<Parts>(new Parts{.options = options,
                                                .lock = std::move(lock),
                                                .writer = std::move(writer),
                                                .reader = std::move(reader),
                                                .lister = std::move(lister),
                                                .usage = {},
                                                .usage_mutex = {},
                                                .is_broken = {},
                                                .reason = {}});
  return std::unique_ptr<SqliteStore>(new SqliteStore(std::move(parts)));
}

// After an error on the disk every call fails with the first reason: the process must end and
// recover.
Result<void> SqliteStore::usable() const {
  if (!parts_->is_broken.load(std::memory_order_acquire)) return {};
  return fail(fmt::format("the store stopped: {}", parts_->reason.text()));
}

tl::unexpected<Error> SqliteStore::broken(Error error) {
  parts_->reason = error;
  parts_->is_broken.store(true, std::memory_order_release);
  return tl::unexpected<Error>(std::move(error));
}

Result<Ledger> SqliteStore::recover() {
  BERTH_TRY_VOID(usable());
  return load_ledger(parts_->writer.database(), Side::Now);
}

Result<std::vector<LoggedPass>> SqliteStore::engine() {
  BERTH_TRY_VOID(usable());
  return parts_->reader->engine();
}

Result<void> SqliteStore::append(const Record& record, const Ledger::Change& change) {
  BERTH_TRY_VOID(usable());
  parts_->writer.append(record, change);
  crash_point("store.appended");
  return {};
}

Result<void> SqliteStore::commit() {
  BERTH_TRY_VOID(usable());
  // Nothing to sync, and no crash point: a commit of nothing does not count.
  if (parts_->writer.is_empty()) return {};
  crash_point("store.committing");
  {
    const std::lock_guard lock(parts_->usage_mutex);
    // After a failed sync nobody knows what the disk holds: never tried again.
    if (auto done = parts_->writer.commit(); !done) return broken(std::move(done).error());
    for (const auto& [wall, usage] : parts_->writer.ended()) parts_->usage.add(wall, usage);
  }
  crash_point("store.committed");
  return {};
}

// Less a reserve, in which ends of running jobs can still be written when submits are refused.
std::uint64_t SqliteStore::space_left() const {
  struct statvfs disk {};
  if (::statvfs(parts_->options.directory.c_str(), &disk) != 0) return 0;
  const std::uint64_t free = std::uint64_t{disk.f_bavail} * disk.f_frsize;
  return free > parts_->options.reserve_bytes ? free - parts_->options.reserve_bytes : 0;
}

Result<std::optional<PastJob>> SqliteStore::past(JobNumber job) {
  BERTH_TRY_VOID(usable());
  return parts_->reader->past(job);
}

Result<std::vector<PastJob>> SqliteStore::past_jobs(const PastQuery& query) {
  BERTH_TRY_VOID(usable());
  return parts_->lister->past_jobs(query);
}

Result<std::size_t> SqliteStore::count_past(const PastQuery& query) {
  BERTH_TRY_VOID(usable());
  return parts_->lister->count_past(query);
}

Result<std::vector<AttemptRow>> SqliteStore::attempts(JobNumber job) {
  BERTH_TRY_VOID(usable());
  return parts_->reader->attempts(job);
}

Result<std::optional<JobNumber>> SqliteStore::by_key(const std::string& user,
                                                     const std::string& key) {
  BERTH_TRY_VOID(usable());
  return parts_->reader->by_key(user, key);
}

Result<std::set<AttemptId>> SqliteStore::started_since(Time since) {
  BERTH_TRY_VOID(usable());
  return parts_->reader->started_since(since);
}

Result<std::vector<Store::Usage>> SqliteStore::usage(std::int64_t now_wall, double half_life) {
  BERTH_TRY_VOID(usable());
  if (!(half_life > 0)) return parts_->reader->plain_usage();
  const std::lock_guard lock(parts_->usage_mutex);
  if (!parts_->usage.has(half_life)) {
    // Filled on a copy: a failed read leaves the sums as they were.
    DecayedUsage begun = parts_->usage;
    begun.open(half_life, now_wall);
    BERTH_TRY_VOID(parts_->reader->fill(begun, half_life, now_wall));
    parts_->usage = std::move(begun);
  }
  return parts_->usage.at(half_life, now_wall);
}

Result<std::size_t> SqliteStore::compact(Time older_than, std::size_t at_most) {
  BERTH_TRY_VOID(usable());
  auto dropped = drop_records(parts_->writer.database(), older_than, at_most);
  if (!dropped) return broken(std::move(dropped).error());
  return dropped;
}

Result<std::size_t> SqliteStore::verify() {
  BERTH_TRY_VOID(usable());
  return check_journal(parts_->writer.database());
}

}  // namespace berth
