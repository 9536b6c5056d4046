// The one writer of the journal. It owns the tentative ledger and the store: it applies what is
// asked, in order, makes a batch durable, and only then tells anyone. What people are shown
// therefore never has to be taken back. A commit that failed is the end of the writer and of the
// scheduler. Others write through the interface Journal; JournalThread gathers what they ask.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "base/result.h"
#include "daemon/clock.h"
#include "store/store.h"

namespace berth {

/// A record that is durable now, and what it did.
struct Committed {
  Record record;
  Ledger::Change change;
};

/// Several records that stand or fall together, made by looking at the ledger as it will be when
/// they are applied: numbers are given here, not by who asks.
struct WriteOrder {
  /// Called by the journal writer; an error means that nothing is written, and is handed to `done`.
  std::function<Result<std::vector<RecordBody>>(const Ledger&)> make;
  /// After the commit; from the journal writer's thread.
  std::function<void(const Result<std::vector<Committed>>&)> done;
};

class JournalWriter {
 public:
  using Publisher = std::function<void(std::span<const Committed>)>;
  JournalWriter(Store& store, Ledger ledger, const LiveClock& clock, Publisher publish)
      : store_(&store), ledger_(std::move(ledger)), clock_(&clock), publish_(std::move(publish)) {}

  /// One batch: applied, committed, published, answered. An error is fatal; every order has heard
  /// of it, once.
  [[nodiscard]] Result<void> write(std::span<WriteOrder> orders);
  [[nodiscard]] Result<std::vector<Committed>> write(std::vector<RecordBody> bodies);
  [[nodiscard]] const Ledger& ledger() const noexcept { return ledger_; }

 private:
  [[nodiscard]] Result<std::vector<RecordBody>> ask(WriteOrder& order) const;
  [[nodiscard]] Result<std::vector<Committed>> apply(WriteOrder& order);
  static void refuse(std::span<WriteOrder> orders, const Error& error);
  Store* store_;
  Ledger ledger_;
  const LiveClock* clock_;
  Publisher publish_;
  Time last_{};
  bool is_broken_ = false;
};

/// How everybody else writes records. The scheduler has one with a thread of its own (below), the
/// tests one that commits in the caller's thread.
class Journal {
 public:
  virtual ~Journal() = default;
  /// Returns once durable.
  [[nodiscard]] virtual Result<std::vector<Committed>> write(std::vector<RecordBody> bodies) = 0;
  virtual void write_later(WriteOrder order) = 0;
};

/// Collects whatever has come while the last batch was made durable: group commit. Who waits for
/// write() goes before those who do not: the engine must not stand behind ten thousand cancels.
class JournalThread final : public Journal {
 public:
  /// `failed` is told, once, why nothing can be written any more.
  JournalThread(JournalWriter& writer, std::function<void(const Error&)> failed);
  ~JournalThread() override;
  JournalThread(const JournalThread&) = delete;
  JournalThread& operator=(const JournalThread&) = delete;
  [[nodiscard]] Result<std::vector<Committed>> write(std::vector<RecordBody> bodies) override;
  void write_later(WriteOrder order) override;
  /// Orders that wait for the next batch.
  [[nodiscard]] std::size_t in_line() const;
  /// Finishes what was asked for, takes nothing more.
  void stop();

 private:
  void work();
  [[nodiscard]] bool put(std::vector<WriteOrder>& line, WriteOrder& order);
  JournalWriter& writer_;
  std::function<void(const Error&)> failed_;
  mutable std::mutex mutex_;
  std::condition_variable wake_;
  std::vector<WriteOrder> urgent_, waiting_;
  bool is_stopping_ = false;
  bool has_failed_ = false;
  std::thread thread_;
};

}  // namespace berth
