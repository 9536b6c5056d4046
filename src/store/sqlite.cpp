// A thin layer over SQLite: statements that reset themselves, errors with what a person can do
// about them. Connections are opened without SQLite's own mutex, because each has one user at a
// time.

#include "store/sqlite.h"

#include <cstring>

#include <fmt/format.h>

namespace berth {

namespace {

std::string_view meaning_of(int code) {
  switch (code & 0xff) {
    case SQLITE_FULL: return "no space left on the disk (make room, then start again)";
    case SQLITE_READONLY: return "cannot be written (check owner, mode and mount)";
    case SQLITE_CANTOPEN:
      return "cannot be opened (check that the directory is there and writable)";
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB: return "is damaged or no database (restore it from a copy)";
    case SQLITE_BUSY:
    case SQLITE_LOCKED: return "is locked by another program";
    case SQLITE_IOERR: return "the disk reports an error (check it, then start again)";
    case SQLITE_PERM:
    case SQLITE_AUTH: return "access is denied";
    default: return "the database reports an error";
  }
}

// File, meaning, SQLite's own words and the system's error: enough to act without a debugger.
tl::unexpected<Error> failed(sqlite3* connection) {
  const int code = sqlite3_extended_errcode(connection);
  const char* file = sqlite3_db_filename(connection, "main");
  const int system = sqlite3_system_errno(connection);
  const bool is_disk = (code & 0xff) == SQLITE_IOERR || (code & 0xff) == SQLITE_CANTOPEN ||
                       (code & 0xff) == SQLITE_FULL;
  return fail(
      fmt::format("{}: {}: {} [{}{}]", file != nullptr ? file : "database", meaning_of(code),
                  sqlite3_errmsg(connection), code,
                  is_disk && system != 0 ? fmt::format(", {}", std::strerror(system)) : ""));
}

}  // namespace

Result<bool> Statement::step() {
  const int code = sqlite3_step(statement_.get());
  if (code == SQLITE_ROW) return true;
  if (code == SQLITE_DONE) return false;
  auto error = failed(sqlite3_db_handle(statement_.get()));
  // An open statement would keep its locks.
  sqlite3_reset(statement_.get());
  return error;
}

// Runs to the end and resets: a statement that stays open would hold a read lock.
Result<void> Statement::finish() {
  for (;;) {
    BERTH_TRY(const bool has_row, step());
    if (!has_row) break;
  }
  reset();
  return {};
}

std::string_view Statement::text(int column) const {
  const auto* bytes = sqlite3_column_text(statement_.get(), column);
  if (bytes == nullptr) return {};
  return {reinterpret_cast<const char*>(bytes),
          static_cast<std::size_t>(sqlite3_column_bytes(statement_.get(), column))};
}

std::string_view Statement::blob(int column) const {
  const void* bytes = sqlite3_column_blob(statement_.get(), column);
  if (bytes == nullptr) return {};
  return {static_cast<const char*>(bytes),
          static_cast<std::size_t>(sqlite3_column_bytes(statement_.get(), column))};
}

Result<Database> Database::open(const std::string& path, Access access, const std::string& vfs) {
  const int how = access == Access::ReadOnly ? SQLITE_OPEN_READONLY
                                             : SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE;
  sqlite3* connection = nullptr;
  const int code = sqlite3_open_v2(path.c_str(), &connection, how | SQLITE_OPEN_NOMUTEX,
                                   vfs.empty() ? nullptr : vfs.c_str());
  Database database;
  database.connection_.reset(connection);
  if (code != SQLITE_OK)
    return fail(fmt::format("{}: {}: {}", path, meaning_of(code), sqlite3_errstr(code)));
  sqlite3_extended_result_codes(connection, 1);
  sqlite3_busy_timeout(connection, 5'000);  // a backup or the sqlite3 program may be looking
  return database;
}

Result<void> Database::run(const std::string& sql) {
  if (sqlite3_exec(connection_.get(), sql.c_str(), nullptr, nullptr, nullptr) != SQLITE_OK)
    return failed(connection_.get());
  return {};
}

Result<Statement> Database::prepare(std::string_view sql) {
  sqlite3_stmt* statement = nullptr;
  if (sqlite3_prepare_v3(connection_.get(), sql.data(), static_cast<int>(sql.size()),
                         SQLITE_PREPARE_PERSISTENT, &statement, nullptr) != SQLITE_OK)
    return failed(connection_.get());
  return Statement(statement);
}

Result<std::int64_t> Database::number(std::string_view sql) {
  BERTH_TRY(Statement statement, prepare(sql));
  BERTH_TRY(const bool has_row, statement.step());
  if (!has_row) return fail(fmt::format("no row: {}", sql));
  return statement.integer(0);
}

Result<std::string> Database::text(std::string_view sql) {
  BERTH_TRY(Statement statement, prepare(sql));
  BERTH_TRY(const bool has_row, statement.step());
  if (!has_row) return fail(fmt::format("no row: {}", sql));
  return std::string(statement.text(0));
}

}  // namespace berth
