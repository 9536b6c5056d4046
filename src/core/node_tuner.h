// What is decided per server beside every policy, knowing none of them: how many cores each job
// gets, and which of the servers that would do a job starts on.
#pragma once

#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "core/plan.h"
#include "core/view.h"

namespace berth {

class NodeTuner {
 public:
  virtual ~NodeTuner() = default;
  [[nodiscard]] virtual std::string_view name() const noexcept = 0;
  /// Once, before the first event. The rates are what is believed of how jobs run.
  virtual void begin(const View& view, const RateModel& believed) = 0;
  /// Before the policy's decide().
  virtual void begin_instant(Time) {}
  /// Inside decide(): the placement would start the job on `slices`. May choose other free devices
  /// of the pool instead, as many; false: not now.
  [[nodiscard]] virtual bool place(const Plan&, JobId, PoolId, std::vector<Slice>& /*slices*/) {
    return true;
  }
  /// After the policy's decide(), in the same plan. `changed`: nodes whose set of jobs changed or
  /// on which a job came to another phase since the last call, ascending, each once. Called at
  /// every instant at which the policy decides, also with none.
  virtual void tune(const View& view, std::span<const NodeId> changed, Plan& plan) = 0;
  [[nodiscard]] virtual std::optional<Time> next_wakeup(const View&) { return std::nullopt; }
};

}  // namespace berth
