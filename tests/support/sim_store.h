// A Store on a simulated disk: the journal is one append-only file of records, each with the
// checksum of the one before; recovery folds it up to the first byte that is not right. Fast and
// deterministic, for simulations of the whole scheduler. The disk outlives the store: a crash is
// disk.crash() between two stores.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "store/decayed_usage.h"
#include "store/store.h"
#include "support/sim_disk.h"

namespace berth::test {

class SimStore final : public Store {
 public:
  explicit SimStore(SimDisk& disk, std::string file = "journal");

  [[nodiscard]] Result<Ledger> recover() override;
  [[nodiscard]] Result<std::vector<LoggedPass>> engine() override { return tables_.engine; }
  [[nodiscard]] Result<void> append(const Record& record, const Ledger::Change& change) override;
  [[nodiscard]] Result<void> commit() override;
  [[nodiscard]] std::uint64_t space_left() const override { return space_left_; }
  void set_space_left(std::uint64_t bytes) { space_left_ = bytes; }

  [[nodiscard]] Result<std::optional<PastJob>> past(JobNumber job) override;
  [[nodiscard]] Result<std::vector<PastJob>> past_jobs(const PastQuery& query) override;
  [[nodiscard]] Result<std::size_t> count_past(const PastQuery& query) override;
  [[nodiscard]] Result<std::vector<AttemptRow>> attempts(JobNumber job) override;
  [[nodiscard]] Result<std::optional<JobNumber>> by_key(const std::string& user,
                                                        const std::string& key) override;
  [[nodiscard]] Result<std::vector<Usage>> usage(std::int64_t now_wall, double half_life) override;

  /// What the last recovery found behind the last good record, and cut off.
  [[nodiscard]] std::size_t dropped_bytes() const noexcept { return dropped_bytes_; }
  [[nodiscard]] std::uint64_t records() const noexcept { return sequence_; }
  /// Of the first so many records; equal ones mean equal records.
  [[nodiscard]] std::uint64_t checksum_of(std::uint64_t records) const { return chain_[records]; }
  /// Kind of the record that was appended last; empty: none yet.
  [[nodiscard]] std::string_view last_kind() const noexcept { return last_kind_; }

 private:
  /// What has become durable, as the tables of the real store would have it.
  struct Tables {
    std::map<JobNumber, PastJob> past;
    std::map<std::pair<std::int64_t, JobNumber>, JobNumber> by_end;
    std::map<JobNumber, std::map<AttemptId, AttemptRow>> attempts;
    std::map<std::pair<std::string, std::string>, JobNumber> keys;
    std::vector<std::pair<std::int64_t, Usage>> ended;
    std::vector<LoggedPass> engine;
    void add(const Record& record, const Ledger::Change& change);
  };
  [[nodiscard]] Result<void> usable() const;
  [[nodiscard]] tl::unexpected<Error> broken(const std::string& what);
  void reset();

  SimDisk& disk_;
  std::string file_;
  Tables tables_;
  std::vector<std::pair<Record, Ledger::Change>> batch_;
  std::uint64_t sequence_ = 0;
  std::uint64_t checksum_ = 0;
  std::vector<std::uint64_t> chain_;  // by number of records
  std::string_view last_kind_;
  std::size_t end_ = 0;  // of the file
  std::size_t dropped_bytes_ = 0;
  std::uint64_t space_left_ = std::uint64_t{1} << 40U;
  std::string broken_;
  std::string frame_;  // scratch
};

/// A record as the file holds it, and the checksum of the next one's chain.
void frame(const Record& record, std::uint64_t sequence, std::uint64_t& checksum, std::string& out);

}  // namespace berth::test
