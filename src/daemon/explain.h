// Questions to the policy about one job, answered in a forked copy of the process: why it waits,
// and whether it would be refused. What needs a lock is looked up by the caller, before the copy is
// made. Between two passes, in the engine's thread only.
#pragma once

#include <optional>
#include <string>

#include "core/engine.h"
#include "daemon/clock.h"
#include "daemon/live_executor.h"
#include "model/trace.h"
#include "store/ledger.h"
#include "why/explainer.h"

namespace berth {

/// The scheduler to be copied.
struct CopiedScheduler {
  Engine& engine;
  Trace& slots;
  LiveExecutor& executor;
  const LiveClock& clock;
};

/// `record`: of a job that does not compete, how it would; nothing: it does, or no engine could
/// bear it.
[[nodiscard]] Why explain_in_a_copy(const CopiedScheduler& scheduler, const AskedJob& asked,
                                    const std::optional<LedgerJob>& record);
/// What the policy would say if this job came now; nothing: it would take it, or could not be
/// asked.
[[nodiscard]] std::optional<std::string> refusal_in_a_copy(const CopiedScheduler& scheduler,
                                                           const LedgerJob& job);

}  // namespace berth
