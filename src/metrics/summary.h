// The numbers of one run, and the one list that names them: JSON, tables, CSV, pages and documents
// are all made from metrics(). A metric that does not apply (nothing finished, no deadlines, not
// recorded) is absent, never zero. Definitions with formulas: docs/metrics.md.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace berth {

struct Summary {
  using Value = std::optional<double>;

  std::string policy;
  std::string label;  // how people call the run; the policy's name unless two runs share it
  std::string placement;
  std::string estimator;
  std::string digest;
  std::uint64_t seed = 1;
  bool is_recorded = false;  // what really happened, by the trace's own record: no simulation

  Value jobs, finished;
  Value avg_jct, median_jct, p95_jct, p99_jct, max_jct;
  Value avg_queue_time, median_queue_time, p95_queue_time, p99_queue_time, max_queue_time;
  Value avg_run_time, makespan, gpu_utilization, gpu_allocation, goodput;
  Value preemptions, migrations, suspensions, lost_attempts, retries;
  Value completed, failed, cancelled, rejected, unfinished;
  Value avg_slowdown, median_slowdown, p95_slowdown, max_slowdown;
  Value avg_bounded_slowdown, median_bounded_slowdown, p95_bounded_slowdown;
  Value avg_ftf, p95_ftf, max_ftf, unfair_share, avg_rho, p95_rho, max_rho;
  Value jain, jain_users;
  Value fragmentation, idle_while_queued, avg_queue_length, max_queue_length, avg_running;
  Value deadline_jobs, deadline_misses, strict_deadline_misses, soft_deadline_misses, avg_tardiness;
  Value cost, gpu_hours, overhead_gpu_hours, wasted_gpu_hours, energy_kwh, avg_estimate_error,
      jobs_per_hour;
  Value energy_busy_kwh, energy_idle_kwh, energy_boot_kwh, energy_saved_kwh, avg_nodes_off,
      power_ons, forecast_error;
  Value node_utilization, node_utilization_on, wake_ups_per_day, nodes_per_wake_up,
      boot_delayed_jobs;
  Value avg_response_time, p95_response_time, without_profile;
  Value events, wall_seconds;
};

enum class Better : std::uint8_t { Neither, Lower, Higher };

struct Metric {
  std::string_view name;
  std::string_view unit;  // "s", "1" (a share or ratio), "jobs", "kWh", "GPU h" …
  Better better = Better::Neither;
  Summary::Value Summary::*field = nullptr;
  std::string_view description;  // one line for people
};

/// Every numeric metric, in the order in which files list them.
[[nodiscard]] std::span<const Metric> metrics() noexcept;
[[nodiscard]] const Metric* find_metric(std::string_view name) noexcept;

}  // namespace berth
