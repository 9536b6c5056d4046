// Random lives of a scheduler: records that may follow one another, drawn from a seed. Covers every
// kind of record, arrays, keys, wishes at odd moments, several lives.
#pragma once

#include <cstdint>

#include "base/rng.h"
#include "store/ledger.h"

namespace berth::test {

class RandomHistory {
 public:
  explicit RandomHistory(std::uint64_t seed) : rng_(seed) {}
  /// A record that the ledger will take.
  [[nodiscard]] Record next(const Ledger& ledger);
  /// A record that it must refuse.
  [[nodiscard]] Record illegal(const Ledger& ledger);

 private:
  [[nodiscard]] Record stamped(RecordBody body);
  [[nodiscard]] RecordBody life(const Ledger& ledger);
  [[nodiscard]] RecordBody submit(const Ledger& ledger);
  [[nodiscard]] RecordBody intent(const LedgerJob& job, const Ledger& ledger);
  [[nodiscard]] RecordBody wish(const LedgerJob& job);
  RecordBody resize(const LedgerJob& job);
  [[nodiscard]] RecordBody change(const LedgerJob& job);
  [[nodiscard]] RecordBody end(const LedgerJob& job);
  [[nodiscard]] RecordBody setting();
  [[nodiscard]] RecordBody of_job(const LedgerJob& job, const Ledger& ledger);
  [[nodiscard]] const LedgerJob* any_job(const Ledger& ledger);
  [[nodiscard]] JobSpec spec(JobNumber number);

  Rng rng_;
  std::int64_t clock_ = 0;
  std::int64_t wall_ = 1'700'000'000'000'000;
};

}  // namespace berth::test
