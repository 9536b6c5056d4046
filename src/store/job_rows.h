// Jobs and ledgers as rows. `Side` chooses between what is now and what stood before the first
// record of the journal that is still kept (the base).
#pragma once

#include <map>
#include <memory>
#include <span>
#include <string_view>
#include <unordered_map>

#include "store/checksum.h"
#include "store/ledger.h"
#include "store/sqlite.h"

namespace berth {

enum class Side : std::uint8_t { Now, Base };

/// The one row of a side: everything that is not in a table of its own.
struct StateRow {
  JobNumber next_number = 1;
  std::uint64_t generation = 0;
  Time now;
  AttemptId last_attempt;
  std::uint64_t sequence = 0;  // of the last record
  std::uint64_t checksum = kFirstChecksum;
  friend bool operator==(const StateRow&, const StateRow&) = default;
};
[[nodiscard]] Result<StateRow> read_state(Database& database, Side side);
[[nodiscard]] Result<void> write_state(Database& database, Side side, const StateRow& state);
/// The state after one more record.
void advance(StateRow& state, const Record& record, const Ledger::Change& change);

/// Specs by row, each read once.
class SpecRows {
 public:
  [[nodiscard]] static Result<SpecRows> open(Database& database);
  [[nodiscard]] Result<std::shared_ptr<const JobSpec>> get(std::int64_t id);
  void forget() { known_.clear(); }

 private:
  Statement select_;
  std::unordered_map<std::int64_t, std::shared_ptr<const JobSpec>> known_;  // lookup only
};

/// "SELECT … FROM jobs …": what read_job() and read_past() take, without a WHERE.
[[nodiscard]] std::string job_query(Side side);
[[nodiscard]] std::string past_query();
[[nodiscard]] Result<LedgerJob> read_job(const Statement& row, SpecRows& specs);
[[nodiscard]] Result<PastJob> read_past(const Statement& row, SpecRows& specs);
[[nodiscard]] std::int64_t spec_of(const Statement& row);

/// "INSERT OR REPLACE INTO jobs (…) VALUES (…)" with as many parameters as bind_job() binds.
[[nodiscard]] std::string job_insert(Side side);
/// Without a spec (for an update) the row keeps the one it has.
void bind_job(Statement& statement, const LedgerJob& job, std::optional<std::int64_t> spec);

[[nodiscard]] Result<std::vector<HeldDevices>> read_held(std::string_view text);

/// All jobs that are not over on this side, or only these; and all settings.
[[nodiscard]] Result<Ledger> load_ledger(Database& database, Side side);
[[nodiscard]] Result<Ledger> load_ledger(Database& database, Side side,
                                         std::span<const JobNumber> only);

}  // namespace berth
