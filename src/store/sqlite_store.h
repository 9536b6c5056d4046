// The store of a real scheduler: one SQLite file with a write-ahead log in a directory of its own.
// commit() is one transaction, synced before it returns; it holds the journal's new rows and what
// they do to the tables, so recover() reads what is alive and never the history. Reading has a
// connection of its own and may come from any thread; append(), commit(), recover(), compact() and
// verify() belong to one. A second store on the same directory is refused.
#pragma once

#include <memory>
#include <set>
#include <string>

#include "store/store.h"

namespace berth {

class SqliteStore final : public Store {
 public:
  struct Options {
    std::string directory;
    std::uint64_t reserve_bytes = std::uint64_t{64} << 20U;  // for ends of jobs when it gets tight
    int checkpoint_pages = 1'000;  // of the log, before they are moved into the file
    std::string vfs{};             // of SQLite, for tests; empty: the system's files
  };
  [[nodiscard]] static Result<std::unique_ptr<SqliteStore>> open(const Options& options);
  ~SqliteStore() override;

  [[nodiscard]] Result<Ledger> recover() override;
  [[nodiscard]] Result<std::vector<LoggedPass>> engine() override;
  [[nodiscard]] Result<void> append(const Record& record, const Ledger::Change& change) override;
  [[nodiscard]] Result<void> commit() override;
  [[nodiscard]] std::uint64_t space_left() const override;

  [[nodiscard]] Result<std::optional<PastJob>> past(JobNumber job) override;
  [[nodiscard]] Result<std::vector<PastJob>> past_jobs(const PastQuery& query) override;
  [[nodiscard]] Result<std::size_t> count_past(const PastQuery& query) override;
  [[nodiscard]] Result<std::vector<AttemptRow>> attempts(JobNumber job) override;
  [[nodiscard]] Result<std::optional<JobNumber>> by_key(const std::string& user,
                                                        const std::string& key) override;
  /// The first question with a half life reads the attempts of the last 60 of them; later ones cost
  /// a multiplication per user.
  [[nodiscard]] Result<std::vector<Usage>> usage(std::int64_t now_wall, double half_life) override;

  /// Attempts whose programs were seen to run, by records of that time or later. Reads the whole
  /// journal: for a recovery that finds the files of an attempt gone.
  [[nodiscard]] Result<std::set<AttemptId>> started_since(Time since);

  /// Drops records that are older, the oldest first; answers how many. What they added up to is
  /// kept, so that verify() still can check the rest.
  [[nodiscard]] Result<std::size_t> compact(Time older_than, std::size_t at_most = 10'000);
  /// Folds the journal again and compares with the tables: the number of records that were folded,
  /// or what does not agree.
  [[nodiscard]] Result<std::size_t> verify();

 private:
  struct Parts;
  explicit SqliteStore(std::unique_ptr<Parts> parts);
  [[nodiscard]] Result<void> usable() const;
  [[nodiscard]] tl::unexpected<Error> broken(Error error);
  std::unique_ptr<Parts> parts_;
};

}  // namespace berth
