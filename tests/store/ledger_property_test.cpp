// Laws of the ledger over random histories: a fold, refusals without a trace, accounting (I7), one
// live attempt (I2), ends that stand (I4).
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <set>

#include "support/random_history.h"

namespace berth {
namespace {

using test::RandomHistory;

std::vector<Record> history_of(std::uint64_t seed, std::size_t length) {
  RandomHistory history(seed);
  Ledger ledger;
  std::vector<Record> records;
  for (std::size_t i = 0; i < length; ++i) {
    records.push_back(history.next(ledger));
    const auto change = ledger.apply(records.back());
    RC_ASSERT(change.has_value());
  }
  return records;
}

Ledger fold(std::span<const Record> records) {
  Ledger ledger;
  for (const Record& record : records) RC_ASSERT(ledger.apply(record).has_value());
  return ledger;
}

std::size_t some_length() { return *rc::gen::inRange<std::size_t>(0, 200); }

RC_GTEST_PROP(LedgerProperty, IsAFoldThroughTheCodec, (std::uint64_t seed)) {
  const auto records = history_of(seed, some_length());
  Ledger decoded;
  for (const Record& record : records) {
    const auto body = decode(kind_of(record.body), encode(record.body));
    RC_ASSERT(body.has_value());
    RC_ASSERT(decoded.apply({record.at, record.wall, *body}).has_value());
  }
  RC_ASSERT(decoded.digest() == fold(records).digest());
}

RC_GTEST_PROP(LedgerProperty, GoesOnFromAnyPrefix, (std::uint64_t seed)) {
  const auto records = history_of(seed, some_length());
  const std::size_t cut = *rc::gen::inRange<std::size_t>(0, records.size() + 1);
  const Ledger prefix = fold(std::span(records).first(cut));
  Ledger restored;
  restored.restore(prefix.jobs(), prefix.settings(), prefix.next_number(), prefix.generation(),
                   prefix.now(), prefix.last_attempt());
  RC_ASSERT(restored.digest() == prefix.digest());
  for (const Record& record : std::span(records).subspan(cut))
    RC_ASSERT(restored.apply(record).has_value());
  RC_ASSERT(restored.digest() == fold(records).digest());
}

RC_GTEST_PROP(LedgerProperty, ARefusedRecordLeavesNoTrace, (std::uint64_t seed)) {
  RandomHistory history(seed);
  Ledger ledger;
  for (std::size_t i = some_length(); i > 0; --i) {
    if (ledger.generation() > 0) {
      const std::string before = ledger.digest();
      RC_ASSERT(!ledger.apply(history.illegal(ledger)).has_value());
      RC_ASSERT(ledger.digest() == before);
    }
    RC_ASSERT(ledger.apply(history.next(ledger)).has_value());
  }
}

RC_GTEST_PROP(LedgerProperty, ChargesEachAttemptOnceAndEndsForGood, (std::uint64_t seed)) {
  RandomHistory history(seed);
  Ledger ledger;
  std::map<JobNumber, double> charged;
  std::map<JobNumber, std::int32_t> live, begun;
  std::set<JobNumber> over;
  for (std::size_t i = some_length(); i > 0; --i) {
    const Record record = history.next(ledger);
    const auto change = ledger.apply(record);
    RC_ASSERT(change.has_value());
    if (const auto* intent = std::get_if<IntentRecord>(&record.body)) {
      RC_ASSERT(++live[intent->job] == 1);  // I2
      ++begun[intent->job];
    }
    if (const auto* end = std::get_if<EndRecord>(&record.body)) {
      charged[end->job] += end->gpu_seconds;
      if (!end->attempt.is_none()) --live[end->job];
    }
    if (change->job != 0) RC_ASSERT(!over.contains(change->job));  // I4
    if (!change->past) continue;
    RC_ASSERT(over.insert(change->job).second);
    RC_ASSERT(change->past->job.gpu_seconds == charged[change->job]);  // I7
    RC_ASSERT(change->past->job.attempts == begun[change->job]);
    RC_ASSERT(ledger.find(change->job) == nullptr);
  }
  for (const auto& [number, job] : ledger.jobs())
    RC_ASSERT(job.attempt.has_value() == (live[number] == 1));  // I5
}

RC_GTEST_PROP(LedgerProperty, DifferentHistoriesHaveDifferentDigests, (std::uint64_t seed)) {
  const auto records = history_of(seed, 1 + some_length());
  std::set<std::string> digests;
  Ledger ledger;
  std::size_t hints = 0;  // records that change nothing but the clock, at the same instant
  for (const Record& record : records) {
    const Time before = ledger.now();
    RC_ASSERT(ledger.apply(record).has_value());
    if (ledger.now() == before) ++hints;
    digests.insert(ledger.digest());
  }
  RC_ASSERT(digests.size() + hints >= records.size());
}

}  // namespace
}  // namespace berth
