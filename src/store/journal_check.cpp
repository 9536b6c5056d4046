// The journal is a chain: each record's checksum covers the one before it, so that a lost, changed
// or swapped record is noticed. Checking folds the chain from the base and compares with the
// tables; dropping moves the base forward and removes what it now contains.

#include "store/journal_check.h"

#include <set>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "store/job_rows.h"
#include "store/journal_json.h"

namespace berth {

namespace {

/// The journal in order, each record checked against the chain.
class JournalRows {
 public:
  [[nodiscard]] static Result<JournalRows> open(Database& database, StateRow base) {
    JournalRows rows;
    rows.state_ = base;
    BERTH_TRY(rows.select_,
              database.prepare("SELECT sequence, at, wall, kind, body, checksum, spec "
                               "FROM journal WHERE sequence > ? ORDER BY sequence"));
    rows.select_.bind(base.sequence);
    return rows;
  }
  /// False after the last one.
  [[nodiscard]] Result<bool> next(Record& record) {
    BERTH_TRY(const bool has_row, select_.step());
    if (!has_row) return false;
    const JournalEntry entry{.sequence = select_.natural(0),
                             .at = select_.integer(1),
                             .wall = select_.integer(2),
                             .kind = select_.text(3),
                             .body = select_.text(4)};
    const std::uint64_t checksum = chained(state_.checksum, entry);
    // A gap is as bad as damage: what is missing may have been acknowledged.
    if (entry.sequence != state_.sequence + 1 || checksum != select_.natural(5))
      return fail(fmt::format("journal: record {} is damaged or not the one after {}",
                              entry.sequence, state_.sequence));
    BERTH_TRY(record.body, decode(entry.kind, entry.body));
    record.at = Time{Duration{entry.at}};
    record.wall = entry.wall;
    state_.sequence = entry.sequence;
    state_.checksum = checksum;
    return true;
  }
  [[nodiscard]] std::int64_t spec() const { return select_.integer(6); }
  /// Where the chain stands.
  [[nodiscard]] const StateRow& state() const noexcept { return state_; }

 private:
  Statement select_;
  StateRow state_;
};

/// Whatever happens in between, the transaction ends.
/// An early return must not leave a transaction open: the next BEGIN would fail.
class Transaction {
 public:
  [[nodiscard]] static Result<Transaction> begin(Database& database, const char* sql) {
    BERTH_TRY_VOID(database.run(sql));
    return Transaction(database);
  }
  Transaction(Transaction&& other) noexcept : database_(std::exchange(other.database_, nullptr)) {}
  Transaction& operator=(Transaction&&) = delete;
  ~Transaction() {
    if (database_ != nullptr) static_cast<void>(database_->run("ROLLBACK"));
  }
  [[nodiscard]] Result<void> commit() {
    BERTH_TRY_VOID(database_->run("COMMIT"));
    database_ = nullptr;
    return {};
  }

 private:
  explicit Transaction(Database& database) : database_(&database) {}
  Database* database_;
};

/// Everything that is said of a job that is over, as one fingerprint.
/// Reuses the digest of the ledger, so that no field can be forgotten in one of two lists.
std::string digest_of(const PastJob& past) {
  Ledger ledger;
  ledger.restore({{past.job.number, past.job}},
                 {{"past", fmt::format("{} {} {} {} {} {} {}", to_string(past.outcome),
                                       past.exit_code, past.signal, past.ended_wall, past.why,
                                       dump(to_json(past.where)), past.job.attempt.has_value())}},
                 past.job.number + 1, 1, past.ended);
  return ledger.digest();
}

Result<void> check_past(Statement& select, SpecRows& specs, const PastJob& folded) {
  select.bind(folded.job.number);
  BERTH_TRY(const bool has_row, select.step());
  if (!has_row) return fail(fmt::format("job {}: over, but not in the table", folded.job.number));
  BERTH_TRY(const PastJob kept, read_past(select, specs));
  select.reset();
  specs.forget();
  if (digest_of(kept) != digest_of(folded))
    return fail(fmt::format("job {}: the table and the journal differ", folded.job.number));
  return {};
}

/// The number of a job that a record is about; 0: none.
JobNumber job_of(const RecordBody& body) {
  return std::visit(
      []<class Body>(const Body& record) -> JobNumber {
        if constexpr (std::is_same_v<Body, SubmitRecord>)
          return record.first;
        else if constexpr (std::is_same_v<Body, LifeRecord> ||
                           std::is_same_v<Body, SettingRecord> ||
                           std::is_same_v<Body, EngineRecord>)
          return 0;
        else
          return record.job;
      },
      body);
}

/// The oldest records and the jobs that they touch, with the row of each job's spec.
struct Oldest {
  std::vector<std::pair<Record, std::int64_t>> records;
  std::set<JobNumber> known;  // jobs that the base may hold
  StateRow chain;
};

Result<Oldest> read_oldest(Database& database, const StateRow& base, Time older_than,
                           std::size_t at_most) {
  Oldest oldest;
  BERTH_TRY(JournalRows rows, JournalRows::open(database, base));
  oldest.chain = base;
  while (oldest.records.size() < at_most) {
    Record record;
    BERTH_TRY(const bool has_record, rows.next(record));
    if (!has_record || record.at >= older_than) break;
    // Jobs that these records submit themselves are not in the base yet.
    if (const JobNumber job = job_of(record.body); job != 0 && job < base.next_number)
      oldest.known.insert(job);
    oldest.records.emplace_back(std::move(record), rows.spec());
    oldest.chain = rows.state();
  }
  return oldest;
}

/// Writes what the base becomes by these records.
/// Only jobs that the dropped records touch are loaded: the base may hold many more.
class BaseMove {
 public:
  explicit BaseMove(Database& database) : database_(database) {}

  [[nodiscard]] Result<void> run(const Oldest& oldest, const StateRow& base) {
    const std::vector<JobNumber> known(oldest.known.begin(), oldest.known.end());
    BERTH_TRY(Ledger ledger, load_ledger(database_, Side::Base, known));
    BERTH_TRY_VOID(read_specs(known));
    StateRow state = base;
    for (const auto& [record, spec] : oldest.records) {
      BERTH_TRY(const auto change, ledger.replay(record));
      advance(state, record, change);
      note(record, change, spec);
      BERTH_TRY_VOID(write_setting(record));
    }
    // The chain goes on from here: the next record still proves that nothing before it was changed.
    state.sequence = oldest.chain.sequence;
    state.checksum = oldest.chain.checksum;
    BERTH_TRY_VOID(write_jobs(ledger));
    BERTH_TRY(Statement drop, database_.prepare("DELETE FROM journal WHERE sequence <= ?"));
    BERTH_TRY_VOID(drop.run(state.sequence));
    return write_state(database_, Side::Base, state);
  }

 private:
  Result<void> read_specs(const std::vector<JobNumber>& known) {
    BERTH_TRY(Statement select, database_.prepare("SELECT spec FROM base_jobs WHERE number = ?"));
    for (const JobNumber job : known) {
      select.bind(job);
      BERTH_TRY(const bool has_row, select.step());
      if (has_row) specs_[job] = select.integer(0);
    }
    return {};
  }
  void note(const Record& record, const Ledger::Change& change, std::int64_t spec) {
    if (std::holds_alternative<SubmitRecord>(record.body)) {
      for (std::int32_t i = 0; i < change.count; ++i)
        specs_[change.job + static_cast<JobNumber>(i)] = spec;
    } else if (std::holds_alternative<ChangeRecord>(record.body)) {
      specs_[change.job] = spec;
    }
  }
  Result<void> write_setting(const Record& record) {
    const auto* setting = std::get_if<SettingRecord>(&record.body);
    if (setting == nullptr) return {};
    BERTH_TRY(Statement write,
              database_.prepare(setting->value.empty()
                                    ? "DELETE FROM base_settings WHERE key = ?"
                                    : "INSERT OR REPLACE INTO base_settings VALUES (?, ?)"));
    const std::string_view key = setting->key, value = setting->value;
    return value.empty() ? write.run(key) : write.run(key, value);
  }
  Result<void> write_jobs(const Ledger& ledger) {
    BERTH_TRY(Statement insert, database_.prepare(job_insert(Side::Base)));
    BERTH_TRY(Statement remove, database_.prepare("DELETE FROM base_jobs WHERE number = ?"));
    for (const auto& [number, spec] : specs_) {
      const LedgerJob* job = ledger.find(number);
      if (job == nullptr) {
        BERTH_TRY_VOID(remove.run(number));
        continue;
      }
      bind_job(insert, *job, spec);
      BERTH_TRY_VOID(insert.finish());
    }
    return {};
  }

  Database& database_;
  std::map<JobNumber, std::int64_t> specs_;  // of every job that is touched
};

}  // namespace

Result<std::size_t> check_journal(Database& database) {
  // One transaction, so that tables and journal are of the same moment while others write.
  BERTH_TRY(Transaction reading, Transaction::begin(database, "BEGIN"));
  BERTH_TRY(const StateRow base, read_state(database, Side::Base));
  BERTH_TRY(Ledger folded, load_ledger(database, Side::Base));
  BERTH_TRY(JournalRows rows, JournalRows::open(database, base));
  BERTH_TRY(SpecRows specs, SpecRows::open(database));
  BERTH_TRY(Statement past,
            database.prepare(past_query() + "WHERE j.number = ? AND j.outcome IS NOT NULL"));
  std::size_t count = 0;
  for (Record record;; ++count) {
    BERTH_TRY(const bool has_record, rows.next(record));
    if (!has_record) break;
    BERTH_TRY(const auto change, folded.replay(record));
    if (change.past) BERTH_TRY_VOID(check_past(past, specs, *change.past));
  }
  BERTH_TRY(const StateRow state, read_state(database, Side::Now));
  if (state.sequence != rows.state().sequence || state.checksum != rows.state().checksum)
    return fail(fmt::format("journal: ends at record {}, the tables at {}", rows.state().sequence,
                            state.sequence));
  BERTH_TRY(const Ledger kept, load_ledger(database, Side::Now));
  if (kept.digest() != folded.digest())
    return fail(fmt::format("the tables ({}) are not what the journal adds up to ({})",
                            kept.digest(), folded.digest()));
  return count;
}

Result<std::size_t> drop_records(Database& database, Time older_than, std::size_t at_most) {
  BERTH_TRY(Transaction writing, Transaction::begin(database, "BEGIN IMMEDIATE"));
  BERTH_TRY(const StateRow base, read_state(database, Side::Base));
  BERTH_TRY(const Oldest oldest, read_oldest(database, base, older_than, at_most));
  // The transaction is rolled back by its destructor.
  if (oldest.records.empty()) return 0;
  BERTH_TRY_VOID(BaseMove(database).run(oldest, base));
  BERTH_TRY_VOID(writing.commit());
  return oldest.records.size();
}

}  // namespace berth
