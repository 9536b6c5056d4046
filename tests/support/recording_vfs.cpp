#include "support/recording_vfs.h"

#include <cstring>
#include <new>

#include <sqlite3.h>

#include "base/check.h"

namespace berth::test {

namespace {

/// SQLite allocates the space: ours first, the system's file behind it.
struct File {
  sqlite3_file base;
  RecordingVfs* recorder;
  DbFile which;
  bool is_recorded;
  sqlite3_file* real() { return reinterpret_cast<sqlite3_file*>(this + 1); }
};

File& mine(sqlite3_file* file) { return *reinterpret_cast<File*>(file); }
sqlite3_file* real(sqlite3_file* file) { return mine(file).real(); }
sqlite3_vfs* system_vfs() { return sqlite3_vfs_find(nullptr); }

/// What came to pass, if the real operation did.
int done(sqlite3_file* file, int code, DiskEvent event) {
  File& f = mine(file);
  if (code != SQLITE_OK || !f.is_recorded) return code;
  event.file = f.which;
  f.recorder->record(std::move(event));
  return code;
}

int io_close(sqlite3_file* file) { return real(file)->pMethods->xClose(real(file)); }
int io_read(sqlite3_file* file, void* to, int size, sqlite3_int64 at) {
  return real(file)->pMethods->xRead(real(file), to, size, at);
}
int io_write(sqlite3_file* file, const void* from, int size, sqlite3_int64 at) {
  if (const auto failure = mine(file).recorder->failure()) return *failure;
  return done(
      file, real(file)->pMethods->xWrite(real(file), from, size, at),
      {.kind = DiskEvent::Kind::Write,
       .file = {},
       .offset = static_cast<std::size_t>(at),
       .bytes = std::string(static_cast<const char*>(from), static_cast<std::size_t>(size))});
}
int io_truncate(sqlite3_file* file, sqlite3_int64 size) {
  if (const auto failure = mine(file).recorder->failure()) return *failure;
  return done(file, real(file)->pMethods->xTruncate(real(file), size),
              {.kind = DiskEvent::Kind::Truncate,
               .file = {},
               .offset = static_cast<std::size_t>(size),
               .bytes = {}});
}
int io_sync(sqlite3_file* file, int flags) {
  if (const auto failure = mine(file).recorder->failure()) return *failure;
  return done(file, real(file)->pMethods->xSync(real(file), flags),
              {.kind = DiskEvent::Kind::Sync, .file = {}, .offset = 0, .bytes = {}});
}
int io_size(sqlite3_file* file, sqlite3_int64* size) {
  return real(file)->pMethods->xFileSize(real(file), size);
}
int io_lock(sqlite3_file* file, int kind) { return real(file)->pMethods->xLock(real(file), kind); }
int io_unlock(sqlite3_file* file, int kind) {
  return real(file)->pMethods->xUnlock(real(file), kind);
}
int io_is_reserved(sqlite3_file* file, int* is) {
  return real(file)->pMethods->xCheckReservedLock(real(file), is);
}
int io_control(sqlite3_file* file, int what, void* argument) {
  return real(file)->pMethods->xFileControl(real(file), what, argument);
}
int io_sector_size(sqlite3_file* file) { return real(file)->pMethods->xSectorSize(real(file)); }
/// No promises about the disk: SQLite must not count on whole or ordered writes.
int io_characteristics(sqlite3_file*) { return 0; }
int io_shm_map(sqlite3_file* file, int page, int size, int extend, void volatile** to) {
  return real(file)->pMethods->xShmMap(real(file), page, size, extend, to);
}
int io_shm_lock(sqlite3_file* file, int offset, int count, int flags) {
  return real(file)->pMethods->xShmLock(real(file), offset, count, flags);
}
void io_shm_barrier(sqlite3_file* file) { real(file)->pMethods->xShmBarrier(real(file)); }
int io_shm_unmap(sqlite3_file* file, int is_deleted) {
  return real(file)->pMethods->xShmUnmap(real(file), is_deleted);
}

sqlite3_io_methods make_methods() {
  sqlite3_io_methods methods{};
  methods.iVersion = 2;  // with shared memory, without mapped reads
  methods.xClose = io_close;
  methods.xRead = io_read;
  methods.xWrite = io_write;
  methods.xTruncate = io_truncate;
  methods.xSync = io_sync;
  methods.xFileSize = io_size;
  methods.xLock = io_lock;
  methods.xUnlock = io_unlock;
  methods.xCheckReservedLock = io_is_reserved;
  methods.xFileControl = io_control;
  methods.xSectorSize = io_sector_size;
  methods.xDeviceCharacteristics = io_characteristics;
  methods.xShmMap = io_shm_map;
  methods.xShmLock = io_shm_lock;
  methods.xShmBarrier = io_shm_barrier;
  methods.xShmUnmap = io_shm_unmap;
  return methods;
}
const sqlite3_io_methods kMethods = make_methods();

RecordingVfs& recorder_of(sqlite3_vfs* vfs) { return *static_cast<RecordingVfs*>(vfs->pAppData); }

int vfs_open(sqlite3_vfs* vfs, const char* name, sqlite3_file* file, int flags, int* out) {
  File& f = *new (file) File{};
  f.recorder = &recorder_of(vfs);
  f.is_recorded = (flags & (SQLITE_OPEN_MAIN_DB | SQLITE_OPEN_WAL | SQLITE_OPEN_MAIN_JOURNAL)) != 0;
  f.which = (flags & SQLITE_OPEN_WAL) != 0            ? DbFile::Wal
            : (flags & SQLITE_OPEN_MAIN_JOURNAL) != 0 ? DbFile::Journal
                                                      : DbFile::Database;
  const int code = system_vfs()->xOpen(system_vfs(), name, f.real(), flags, out);
  if (f.real()->pMethods != nullptr) f.base.pMethods = &kMethods;
  return code;
}

int vfs_delete(sqlite3_vfs* vfs, const char* name, int is_synced) {
  if (const auto failure = recorder_of(vfs).failure()) return *failure;
  const int code = system_vfs()->xDelete(system_vfs(), name, is_synced);
  const std::string path = name;
  for (const DbFile file : {DbFile::Wal, DbFile::Journal})
    if (code == SQLITE_OK && path.ends_with(kDbSuffix[static_cast<std::size_t>(file)]))
      recorder_of(vfs).record(
          {.kind = DiskEvent::Kind::Remove, .file = file, .offset = 0, .bytes = {}});
  return code;
}

}  // namespace

RecordingVfs::RecordingVfs(const std::string& name) : name_(name), vfs_(new sqlite3_vfs) {
  *vfs_ = *system_vfs();  // everything that is not about writing is the system's
  vfs_->szOsFile = static_cast<int>(sizeof(File)) + system_vfs()->szOsFile;
  vfs_->pNext = nullptr;
  vfs_->zName = name_.c_str();
  vfs_->pAppData = this;
  vfs_->xOpen = vfs_open;
  vfs_->xDelete = vfs_delete;
  vfs_->xAccess = [](sqlite3_vfs*, const char* path, int flags, int* out) {
    return system_vfs()->xAccess(system_vfs(), path, flags, out);
  };
  vfs_->xFullPathname = [](sqlite3_vfs*, const char* path, int size, char* out) {
    return system_vfs()->xFullPathname(system_vfs(), path, size, out);
  };
  BERTH_CHECK(sqlite3_vfs_register(vfs_, 0) == SQLITE_OK, "a VFS can be registered");
}

RecordingVfs::~RecordingVfs() {
  sqlite3_vfs_unregister(vfs_);
  delete vfs_;
}

void RecordingVfs::note(std::size_t number) {
  record({.kind = DiskEvent::Kind::Note, .file = {}, .offset = number, .bytes = {}});
}

void RecordingVfs::record(DiskEvent event) {
  const std::lock_guard lock(mutex_);
  events_.push_back(std::move(event));
}

void RecordingVfs::fail_after(std::int64_t operations, Fault fault) {
  fault_ = fault;
  fails_in_ = operations;
}

std::optional<int> RecordingVfs::failure() {
  if (fails_in_.load() == kNever || fails_in_.fetch_sub(1) > 0) return std::nullopt;
  return fault_ == Fault::Full ? SQLITE_FULL : SQLITE_IOERR_FSYNC;
}

void DbFiles::apply(const DiskEvent& event) {
  const auto i = static_cast<std::size_t>(event.file);
  switch (event.kind) {
    case DiskEvent::Kind::Write:
      exists[i] = true;
      files[i].write(event.offset, event.bytes);
      break;
    case DiskEvent::Kind::Truncate: files[i].truncate(event.offset); break;
    case DiskEvent::Kind::Sync: files[i].sync(); break;
    case DiskEvent::Kind::Remove:
      exists[i] = false;
      files[i] = {};
      break;
    case DiskEvent::Kind::Note: break;
  }
}

}  // namespace berth::test
