// Which slot of the engine's trace is which job. An engine knows as many slots as it was made with,
// each used once: a job that comes again takes a new one. Owns the mapping and fills slots in from
// requests. Engine's thread only.
#pragma once

#include <cstdint>
#include <optional>
#include <unordered_map>
#include <vector>

#include "core/job_table.h"
#include "daemon/clock.h"
#include "daemon/kind_beliefs.h"
#include "model/trace.h"
#include "store/ledger.h"

namespace berth {

class SlotTable {
 public:
  struct Parts {
    Trace& slots;  // as many as the engine will ever see; empty ones
    const LiveClock& clock;
    KindBeliefs& beliefs;
  };
  explicit SlotTable(Parts parts) : parts_(parts), numbers_(parts_.slots.jobs.size(), 0) {}

  [[nodiscard]] std::optional<JobId> slot_of(JobNumber job) const;
  [[nodiscard]] JobNumber number_of(JobId slot) const noexcept { return numbers_[slot.value]; }
  [[nodiscard]] bool contains(JobNumber job) const { return slots_.contains(job); }
  /// Jobs that the engine knows and that are not over.
  [[nodiscard]] const std::unordered_map<JobNumber, JobId>& all() const noexcept { return slots_; }
  /// A slot that no job has yet.
  [[nodiscard]] std::optional<JobId> spare() const;

  /// There is a spare one. `now` is the engine's time, by which deadlines are counted.
  JobId take(const LedgerJob& job, Time now);
  /// In a copy that asks what if: as it would be in a slot of its own.
  [[nodiscard]] std::optional<JobId> suppose(const LedgerJob& job, Time now);
  /// The engine has forgotten the job, or is told that it is over.
  void release(JobNumber job) { slots_.erase(job); }
  /// After a replay: slots are filled in order; a job that came again is in its last one.
  void recall(const JobTable& table);
  /// Its user has changed what the engine goes by, and the engine has not heard of it.
  [[nodiscard]] bool is_changed(JobId slot, const LedgerJob& job, Time now);

 private:
  void fill(TraceJob& slot, const LedgerJob& job, Time now);

  Parts parts_;
  std::vector<JobNumber> numbers_;  // by slot
  std::unordered_map<JobNumber, JobId> slots_;
  std::uint32_t next_ = 0;
};

}  // namespace berth
