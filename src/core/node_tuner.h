// What is decided per server after the policy has decided who runs where: how many cores each job
// gets. Beside every policy, knowing none of them.
#pragma once

#include <optional>
#include <span>
#include <string_view>

#include "core/plan.h"
#include "core/view.h"

namespace berth {

class NodeTuner {
 public:
  virtual ~NodeTuner() = default;
  [[nodiscard]] virtual std::string_view name() const noexcept = 0;
  /// Once, before the first event. The rates are what is believed of how jobs run.
  virtual void begin(const View& view, const RateModel& believed) = 0;
  /// After the policy's decide(), in the same plan. `changed`: nodes whose set of jobs changed
  /// since the last call, ascending, each once. Called at every instant, also with none.
  virtual void tune(const View& view, std::span<const NodeId> changed, Plan& plan) = 0;
  [[nodiscard]] virtual std::optional<Time> next_wakeup(const View&) { return std::nullopt; }
};

}  // namespace berth
