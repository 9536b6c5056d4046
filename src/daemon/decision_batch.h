// What has been decided since the last commit: records for the journal, signals to processes, and
// passes of the engine. Everything is written in one batch, and nothing is sent before it is on
// record: a crash in between loses signals, which recovery repeats, never decisions.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <set>
#include <utility>
#include <vector>

#include "daemon/attempt.h"
#include "daemon/journal_writer.h"
#include "exec/host.h"
#include "training/training_channel.h"

namespace berth {

/// What a process, or the training code in it, is to be told.
struct Signal {
  enum class Kind : std::uint8_t {
    Stop,
    Suspend,
    Resume,
    Cores,
    Limit,
    Rate,
    Leave,
    Resize
  } kind{};
  AttemptId attempt;
  std::int64_t grace = 0;
  bool is_for_good = false;  // Stop: the job is over with it
  std::vector<std::int32_t> cores{};
  std::int64_t limit = 0;
  std::int32_t rate = 0;
  JobNumber job = 0;  // Leave, Resize
  ResizeAsk ask{};
};

class DecisionBatch {
 public:
  void record(RecordBody body) { records_.push_back(std::move(body)); }
  void signal(Signal signal) { signals_.push_back(std::move(signal)); }
  /// One that is longer than a shim can be told is not told: the one it has stands.
  void signal_limit(AttemptId attempt, std::int64_t seconds) {
    if (seconds <= kMaxLimitOfRunning)
      signal({.kind = Signal::Kind::Limit, .attempt = attempt, .cores = {}, .limit = seconds});
  }
  /// The host need not remember this attempt once its end is on record.
  void forget(AttemptId attempt) { forgotten_.push_back(attempt); }
  /// One of these records ends the job for good. False: one did already.
  bool end_job(JobNumber job) { return over_.insert(job).second; }
  [[nodiscard]] bool ends(JobNumber job) const { return over_.contains(job); }
  /// A pass of the engine, to be written with the next records, or soon after if there are none:
  /// nobody waits for it.
  void note_pass(EngineRecord pass);

  [[nodiscard]] bool has_records() const noexcept { return !records_.empty(); }
  [[nodiscard]] bool is_empty() const noexcept { return records_.empty() && signals_.empty(); }
  /// Passes first: half of a batch that ends with a pass would be starts that no engine has made.
  [[nodiscard]] Result<void> write(Journal& journal);
  /// What was ended is on record.
  void clear_ended() { over_.clear(); }
  [[nodiscard]] std::vector<AttemptId> take_forgotten() { return std::exchange(forgotten_, {}); }
  [[nodiscard]] std::vector<Signal> take_signals() { return std::exchange(signals_, {}); }
  /// Hands on passes that no record was written with.
  void write_passes_later(Journal& journal);

 private:
  /// Passes that are not written yet. Shared with orders that the journal has still to carry out:
  /// whoever comes first takes them all, so that they stay in order.
  struct Unwritten {
    std::mutex mutex;
    std::vector<RecordBody> passes;
    [[nodiscard]] std::vector<RecordBody> take() {
      const std::lock_guard lock{mutex};
      return std::exchange(passes, {});
    }
  };

  std::vector<RecordBody> records_;
  std::set<JobNumber> over_;
  std::vector<Signal> signals_;
  std::vector<AttemptId> forgotten_;
  std::shared_ptr<Unwritten> unwritten_ = std::make_shared<Unwritten>();
  bool has_passes_ = false;  // since the last were handed on
};

/// To an attempt of which an end is wanted.
[[nodiscard]] inline Signal stop_signal(const Attempt& attempt, std::int64_t grace) {
  return {.kind = Signal::Kind::Stop,
          .attempt = attempt.id,
          .grace = grace,
          .is_for_good = is_for_good(attempt.ending)};
}
/// Tells the host or, if there is one, the training code.
void send(const Signal& signal, Host& host, const SupervisorRules& rules);

}  // namespace berth
