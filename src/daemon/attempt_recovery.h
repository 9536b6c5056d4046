// What became of the attempts of an earlier life: each that has no end on record is put back on its
// devices, looked for on the machine, and either adopted or judged. Used once, before any engine
// runs.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "daemon/attempt_ends.h"
#include "daemon/attempt_table.h"
#include "daemon/decision_batch.h"
#include "exec/host.h"
#include "store/ledger.h"

namespace berth {

class AttemptRecovery {
 public:
  struct Parts {
    AttemptTable& attempts;
    DecisionBatch& batch;
    AttemptEnds& ends;
    Host& host;
    const LiveClock& clock;
    /// For people: a job on one node is bound to others than at its start; may be absent.
    const std::function<void(JobNumber, const std::vector<std::int32_t>&)>& show_cores;
    /// Ends an attempt that was found gone; answers the GPU seconds it took.
    std::function<double(JobNumber, const Verdict&, const ExitRecord*, std::optional<Time>)> end;
  };
  explicit AttemptRecovery(Parts parts) : parts_(std::move(parts)) {}

  struct Recovered {
    std::vector<AttemptEnd> ends;
    std::vector<JobNumber> running;
  };
  [[nodiscard]] Recovered run(const Ledger& ledger);

 private:
  void put_back(const LedgerJob& job);
  void adopt(const LedgerJob& job, const Finding& finding);
  [[nodiscard]] AttemptEnd end_found(const LedgerJob& job, const Finding& finding, Time oldest);

  Parts parts_;
  std::vector<Signal> wakes_;
};

}  // namespace berth
