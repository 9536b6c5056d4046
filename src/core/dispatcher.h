// Takes actions, one after the other: writes each down (digest and observer) before the executor
// carries it out, and books what that means for the job. Decides nothing and tells no policy;
// devices have changed hands in the plan already.
#pragma once

#include <string>

#include "base/digest.h"
#include "base/time.h"
#include "core/action.h"
#include "core/executor.h"
#include "core/job_accounts.h"
#include "core/job_table.h"

namespace berth {

class Dispatcher {
 public:
  /// `observer` may be absent.
  Dispatcher(Executor& executor, JobTable& jobs, JobAccounts& accounts, RunObserver* observer)
      : executor_(&executor), jobs_(&jobs), accounts_(&accounts), observer_(observer) {}

  /// Only writes it down: for what happened to a job without a decision.
  void write(Time now, const Action& action);
  /// Writes it down and carries it out.
  void take(Time now, const Action& action);
  /// Of everything written so far.
  [[nodiscard]] std::string digest() const { return digest_.hex(); }

 private:
  void carry_out(Time now, const Action& action);
  void stop(Time now, const Action& action);
  void start(Time now, const Action& action);

  Executor* executor_;
  JobTable* jobs_;
  JobAccounts* accounts_;
  RunObserver* observer_;
  Digest digest_;
};

}  // namespace berth
