// Who switches nodes off while nobody needs them and on before somebody does, beside any policy,
// knowing none of them. It decides after the policy, in the same plan: what the policy left idle it
// may switch off. It hears of arrivals and departures right after the policy.
#pragma once

#include <optional>
#include <string_view>

#include "core/plan.h"
#include "core/view.h"

namespace berth {

class PowerManager {
 public:
  virtual ~PowerManager() = default;
  [[nodiscard]] virtual std::string_view name() const noexcept = 0;
  virtual void begin(const View&) {}
  virtual void on_arrival(const View&, JobId) {}
  virtual void on_departure(const View&, JobId) {}
  /// At every instant at which the policy decides, after it and after the tuner.
  virtual void manage(const View& view, Plan& plan) = 0;
  [[nodiscard]] virtual std::optional<Time> next_wakeup(const View&) { return std::nullopt; }
  /// How far its forecasts of demand were off, if it makes any.
  [[nodiscard]] virtual std::optional<double> forecast_error() const noexcept {
    return std::nullopt;
  }
};

}  // namespace berth
