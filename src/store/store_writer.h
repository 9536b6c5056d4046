// The writing side of the SQLite store: records gather in memory, commit() writes them, what they
// do to the tables and the new state in one transaction. Owned by one thread.
#pragma once

#include <string>
#include <vector>

#include "store/job_rows.h"
#include "store/sqlite.h"
#include "store/store.h"

namespace berth {

class StoreWriter {
 public:
  [[nodiscard]] static Result<StoreWriter> open(Database database);

  void append(const Record& record, const Ledger::Change& change);
  [[nodiscard]] Result<void> commit();
  [[nodiscard]] bool is_empty() const noexcept { return batch_.empty(); }

  /// An attempt that the last commit() ended, for the decaying sums.
  struct Ended {
    std::int64_t wall = 0;
    Store::Usage usage;
  };
  [[nodiscard]] const std::vector<Ended>& ended() const noexcept { return ended_; }
  [[nodiscard]] Database& database() noexcept { return database_; }

 private:
  struct Item {
    std::int64_t at = 0;
    std::int64_t wall = 0;
    std::string_view kind;
    std::string body;
    std::string spec;   // text of a new one
    RecordBody record;  // without the spec of a submit: it is in `change`
    Ledger::Change change;
  };
  struct TableWriter;  // what a record does to the tables, by kind

  [[nodiscard]] Result<void> prepare();
  [[nodiscard]] Result<void> check_generation();
  [[nodiscard]] Result<void> write_journal(const Item& item, StateRow& state);
  [[nodiscard]] Result<std::int64_t> write_spec(const Item& item);
  [[nodiscard]] Result<void> write_job(const LedgerJob& job, std::optional<std::int64_t> spec);
  [[nodiscard]] Result<void> write_past(const PastJob& past);

  Database database_;
  Statement begin_, commit_, generation_, journal_, spec_, insert_job_, update_job_, finish_job_,
      begin_attempt_, resize_attempt_, end_attempt_, set_, unset_, key_, usage_, state_,
      forget_passes_, pass_;
  StateRow committed_;
  StateRow next_;  // with the batch
  std::int64_t last_spec_ = 0;
  std::vector<Item> batch_;
  std::vector<Ended> ended_;
};

}  // namespace berth
