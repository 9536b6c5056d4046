// SQLite, thin: a connection, a prepared statement, and error messages that say what to do. Not
// safe to share between threads; each owner has its own connection.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include <sqlite3.h>

#include "base/result.h"

namespace berth {

/// Bytes that are no text.
struct Blob {
  std::string_view bytes;
};

class Statement {
 public:
  Statement() = default;
  explicit Statement(sqlite3_stmt* statement) : statement_(statement) {}

  /// Binds, runs to the end, and is ready to be run again.
  template <class... Values>
  [[nodiscard]] Result<void> run(const Values&... values) {
    bind(values...);
    auto done = finish();
    return done;
  }
  /// Binds from the first parameter on. Texts are copied.
  template <class... Values>
  void bind(const Values&... values) {
    sqlite3_reset(statement_.get());
    int at = 0;
    (put(++at, values), ...);
  }
  void put(int at, std::int64_t value) { sqlite3_bind_int64(statement_.get(), at, value); }
  void put(int at, std::uint64_t value) { put(at, static_cast<std::int64_t>(value)); }
  void put(int at, std::int32_t value) { put(at, std::int64_t{value}); }
  void put(int at, bool value) { put(at, std::int64_t{value}); }
  void put(int at, double value) { sqlite3_bind_double(statement_.get(), at, value); }
  void put(int at, std::nullopt_t) { sqlite3_bind_null(statement_.get(), at); }
  void put(int at, std::string_view value) {
    sqlite3_bind_text64(statement_.get(), at, value.data(), value.size(), SQLITE_TRANSIENT,
                        SQLITE_UTF8);
  }
  void put(int at, Blob value) {
    sqlite3_bind_blob64(statement_.get(), at, value.bytes.data(), value.bytes.size(),
                        SQLITE_TRANSIENT);
  }
  template <class T>
  void put(int at, const std::optional<T>& value) {
    if (value)
      put(at, *value);
    else
      put(at, std::nullopt);
  }

  /// The next row, if there is one.
  [[nodiscard]] Result<bool> step();
  [[nodiscard]] Result<void> finish();
  void reset() { sqlite3_reset(statement_.get()); }

  [[nodiscard]] bool is_null(int column) const {
    return sqlite3_column_type(statement_.get(), column) == SQLITE_NULL;
  }
  [[nodiscard]] std::int64_t integer(int column) const {
    return sqlite3_column_int64(statement_.get(), column);
  }
  [[nodiscard]] std::int32_t small(int column) const {
    return static_cast<std::int32_t>(integer(column));
  }
  [[nodiscard]] std::uint64_t natural(int column) const {
    return static_cast<std::uint64_t>(integer(column));
  }
  [[nodiscard]] double real(int column) const {
    return sqlite3_column_double(statement_.get(), column);
  }
  /// Valid until the next step.
  [[nodiscard]] std::string_view text(int column) const;
  [[nodiscard]] std::string_view blob(int column) const;

 private:
  struct Finalise {
    void operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }
  };
  std::unique_ptr<sqlite3_stmt, Finalise> statement_;
};

class Database {
 public:
  enum class Access : std::uint8_t { ReadWrite, ReadOnly };
  /// `vfs`: name of an SQLite VFS; empty: the system's files.
  [[nodiscard]] static Result<Database> open(const std::string& path, Access access,
                                             const std::string& vfs);

  [[nodiscard]] Result<void> run(const std::string& sql);
  [[nodiscard]] Result<Statement> prepare(std::string_view sql);
  /// One row, one whole number.
  [[nodiscard]] Result<std::int64_t> number(std::string_view sql);
  [[nodiscard]] Result<std::string> text(std::string_view sql);

 private:
  struct Close {
    void operator()(sqlite3* connection) const { sqlite3_close_v2(connection); }
  };
  std::unique_ptr<sqlite3, Close> connection_;
};

}  // namespace berth
