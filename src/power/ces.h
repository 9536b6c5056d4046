// Cluster energy saving beside any policy (`--power ces`): counts the nodes in demand every ten
// minutes, by device type, and switches idle nodes off and on by CesControl and DemandForecast.
// Between ticks a job that finds too few nodes on wakes them at once and waits while they boot.
// O(active jobs + nodes) per tick, O(device types) per event.
#pragma once

#include <optional>
#include <vector>

#include "core/power_manager.h"
#include "power/ces_control.h"
#include "power/demand_forecast.h"

namespace berth {

struct CesOptions {
  CesRule rule;
  double buffer_share = 0.01;  // of the nodes of a type, if that is more than the rule's buffer
  DemandForecast::Method forecast = DemandForecast::Method::Trees;
  Duration tick = std::chrono::minutes{10};
};

class Ces final : public PowerManager {
 public:
  explicit Ces(const CesOptions& options) : options_(options) {}
  [[nodiscard]] std::string_view name() const noexcept override { return "ces"; }
  void begin(const View& view) override;
  void on_arrival(const View& view, JobId job) override;
  void on_departure(const View& view, JobId job) override;
  void manage(const View& view, Plan& plan) override;
  [[nodiscard]] std::optional<Time> next_wakeup(const View& view) override;
  [[nodiscard]] std::optional<double> forecast_error() const noexcept override;

 private:
  struct Group {  // the nodes of one device type
    PoolId pool;
    std::vector<NodeId> nodes;
    std::int32_t largest = 1;  // devices of its largest node
    bool uniform = true;       // all its nodes have so many
    double peak = 0;           // most nodes in demand since the last tick
    CesControl control;
    DemandForecast forecast;
  };
  [[nodiscard]] std::int32_t occupied(const Group& group, const Plan& plan) const;
  [[nodiscard]] double demand(const Group& group, const View& view, const Plan& plan) const;
  void tick(const View& view, Plan& plan);
  void set_active(Group& group, std::int32_t active, Plan& plan);
  void note_idle(const View& view, const Plan& plan);
  [[nodiscard]] bool is_stuck(const Plan& plan) const;
  [[nodiscard]] bool is_quiet() const noexcept;  // it asks for no wake-up
  void forget_departed(const View& view);

  CesOptions options_;
  std::vector<Group> groups_;        // by pool
  std::vector<JobId> active_;        // arrived and not over; in order of arrival
  std::vector<JobId> newcomers_;     // arrived since the last call of manage()
  Column<NodeId, Time> idle_since_;  // kNever while it is not idle
  std::size_t departed_ = 0;         // of active_, not yet taken out
  Time next_tick_{};
  bool has_begun_ = false;
  std::int64_t quiet_ticks_ = 0;  // in a row without any job
};

}  // namespace berth
