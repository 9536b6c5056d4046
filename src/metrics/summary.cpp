// The one list of metrics: tables, files, the report page and docs/metrics.md follow it.

#include "metrics/summary.h"

#include <algorithm>
#include <array>

namespace berth {

namespace {

constexpr auto kLower = Better::Lower;
constexpr auto kHigher = Better::Higher;
constexpr auto kNeither = Better::Neither;

using S = Summary;

// The order of the outward contract first, then more. docs/metrics.md has the formulas; a test
// checks that every name here is described there.
constexpr std::array kMetrics{
    Metric{"jobs", "jobs", kNeither, &S::jobs, "jobs in the trace"},
    Metric{"finished", "jobs", kNeither, &S::finished,
           "jobs that ran to an end: completed, failed or killed"},
    Metric{"avg_jct", "s", kLower, &S::avg_jct,
           "mean job completion time, from submission to the end"},
    Metric{"median_jct", "s", kLower, &S::median_jct, "half of the jobs complete within this time"},
    Metric{"p95_jct", "s", kLower, &S::p95_jct, "95 % of the jobs complete within this time"},
    Metric{"p99_jct", "s", kLower, &S::p99_jct, "99 % of the jobs complete within this time"},
    Metric{"avg_queue_time", "s", kLower, &S::avg_queue_time,
           "mean time without GPUs between submission and end"},
    Metric{"makespan", "s", kLower, &S::makespan, "from the first submission to the last end"},
    Metric{"gpu_utilization", "1", kHigher, &S::gpu_utilization,
           "useful GPU time over GPU time of the cluster"},
    Metric{"preemptions", "times", kLower, &S::preemptions,
           "times a running job had to give its GPUs back"},
    Metric{"migrations", "times", kLower, &S::migrations,
           "times a running job moved to other GPUs"},
    Metric{"events", "events", kNeither, &S::events, "events the engine absorbed"},
    Metric{"wall_seconds", "s", kNeither, &S::wall_seconds, "real time the run took"},

    Metric{"completed", "jobs", kNeither, &S::completed, "jobs that ended well"},
    Metric{"failed", "jobs", kNeither, &S::failed, "jobs that ended in failure, as the trace says"},
    Metric{"cancelled", "jobs", kNeither, &S::cancelled,
           "jobs killed or cancelled, running or waiting"},
    Metric{"rejected", "jobs", kLower, &S::rejected,
           "jobs refused on arrival: they never fit, or the policy says no"},
    Metric{"unfinished", "jobs", kLower, &S::unfinished,
           "jobs that were not over when the run stopped"},
    Metric{"max_jct", "s", kLower, &S::max_jct, "the longest job completion time"},
    Metric{"median_queue_time", "s", kLower, &S::median_queue_time,
           "half of the jobs wait no longer than this"},
    Metric{"p95_queue_time", "s", kLower, &S::p95_queue_time,
           "95 % of the jobs wait no longer than this"},
    Metric{"p99_queue_time", "s", kLower, &S::p99_queue_time,
           "99 % of the jobs wait no longer than this"},
    Metric{"max_queue_time", "s", kLower, &S::max_queue_time, "the longest wait"},
    Metric{"avg_run_time", "s", kNeither, &S::avg_run_time, "mean time of holding GPUs"},
    Metric{"avg_slowdown", "1", kLower, &S::avg_slowdown,
           "mean of JCT over the time the work takes alone"},
    Metric{"median_slowdown", "1", kLower, &S::median_slowdown,
           "median of JCT over the time the work takes alone"},
    Metric{"p95_slowdown", "1", kLower, &S::p95_slowdown,
           "95th percentile of JCT over the time the work takes alone"},
    Metric{"max_slowdown", "1", kLower, &S::max_slowdown, "the largest slowdown"},
    Metric{"avg_bounded_slowdown", "1", kLower, &S::avg_bounded_slowdown,
           "mean slowdown, short jobs counted as 10 s"},
    Metric{"median_bounded_slowdown", "1", kLower, &S::median_bounded_slowdown,
           "median slowdown, short jobs counted as 10 s"},
    Metric{"p95_bounded_slowdown", "1", kLower, &S::p95_bounded_slowdown,
           "95th percentile of slowdown, short jobs counted as 10 s"},
    Metric{"avg_ftf", "1", kLower, &S::avg_ftf,
           "mean finish-time fairness: JCT over the time on a 1/N slice of the cluster"},
    Metric{"p95_ftf", "1", kLower, &S::p95_ftf, "95th percentile of finish-time fairness"},
    Metric{"max_ftf", "1", kLower, &S::max_ftf, "the worst finish-time fairness"},
    Metric{"unfair_share", "1", kLower, &S::unfair_share,
           "share of jobs that would have been faster on a 1/N slice"},
    Metric{"avg_rho", "1", kLower, &S::avg_rho, "mean rho as Themis defines it: JCT over work x N"},
    Metric{"p95_rho", "1", kLower, &S::p95_rho, "95th percentile of Themis' rho"},
    Metric{"max_rho", "1", kLower, &S::max_rho, "the worst of Themis' rho"},
    Metric{"jain", "1", kHigher, &S::jain,
           "Jain's index over the jobs' speed of service (1 / slowdown)"},
    Metric{"jain_users", "1", kHigher, &S::jain_users,
           "Jain's index over the users' mean speed of service"},
    Metric{"gpu_allocation", "1", kHigher, &S::gpu_allocation,
           "GPU time held by jobs over GPU time of the cluster"},
    Metric{"goodput", "1", kHigher, &S::goodput,
           "useful GPU time of completed jobs over GPU time held"},
    Metric{"fragmentation", "1", kLower, &S::fragmentation,
           "share of free GPU time on nodes too full for the smallest waiting job"},
    Metric{"idle_while_queued", "1", kLower, &S::idle_while_queued,
           "share of GPU time free although a job waits"},
    Metric{"avg_queue_length", "jobs", kLower, &S::avg_queue_length,
           "time-average number of waiting jobs"},
    Metric{"max_queue_length", "jobs", kLower, &S::max_queue_length,
           "most jobs waiting at one time"},
    Metric{"avg_running", "jobs", kNeither, &S::avg_running, "time-average number of running jobs"},
    Metric{"deadline_jobs", "jobs", kNeither, &S::deadline_jobs, "jobs with a deadline"},
    Metric{"deadline_misses", "jobs", kLower, &S::deadline_misses,
           "of these, not at their end by the deadline"},
    Metric{"strict_deadline_misses", "jobs", kLower, &S::strict_deadline_misses,
           "missed deadlines after which a result is worth nothing"},
    Metric{"soft_deadline_misses", "jobs", kLower, &S::soft_deadline_misses,
           "missed deadlines that may be missed at a price"},
    Metric{"avg_tardiness", "s", kLower, &S::avg_tardiness,
           "mean time past the deadline of jobs with one that ran to an end; in time counts as 0"},
    Metric{"cost", "$", kLower, &S::cost,
           "GPU time held by jobs at the hourly prices of the device types"},
    Metric{"gpu_hours", "GPU h", kNeither, &S::gpu_hours, "GPU time held by jobs"},
    Metric{"overhead_gpu_hours", "GPU h", kLower, &S::overhead_gpu_hours,
           "GPU time held without progress: starts, saves, restarts"},
    Metric{"energy_kwh", "kWh", kLower, &S::energy_kwh, "energy of the cluster over the makespan"},
    Metric{"energy_busy_kwh", "kWh", kNeither, &S::energy_busy_kwh,
           "of it, drawn by devices that jobs held and by servers for them"},
    Metric{"energy_idle_kwh", "kWh", kLower, &S::energy_idle_kwh,
           "of it, drawn by devices and servers that were on and idle"},
    Metric{"energy_boot_kwh", "kWh", kLower, &S::energy_boot_kwh,
           "of it, drawn by servers while they booted"},
    Metric{"energy_saved_kwh", "kWh", kHigher, &S::energy_saved_kwh,
           "what servers that were switched off would have drawn idle"},
    Metric{"avg_nodes_off", "nodes", kNeither, &S::avg_nodes_off,
           "time-average number of nodes switched off"},
    Metric{"power_ons", "times", kLower, &S::power_ons, "times a node was switched on"},
    Metric{"node_utilization", "1", kHigher, &S::node_utilization,
           "share of the nodes with a job on them, over time"},
    Metric{"node_utilization_on", "1", kHigher, &S::node_utilization_on,
           "the same of the nodes that were not switched off"},
    Metric{"wake_ups_per_day", "1/d", kLower, &S::wake_ups_per_day,
           "moments in which nodes were switched on, per day"},
    Metric{"nodes_per_wake_up", "nodes", kNeither, &S::nodes_per_wake_up,
           "nodes switched on at such a moment"},
    Metric{"boot_delayed_jobs", "jobs", kLower, &S::boot_delayed_jobs,
           "jobs that first ran on a node that was not ready when they came"},
    Metric{"forecast_error", "1", kLower, &S::forecast_error,
           "2 mean(|p - y| / (|p| + |y|)) of node demand forecast one hour ahead"},
    Metric{"avg_estimate_error", "1", kLower, &S::avg_estimate_error,
           "mean |ln(estimate / truth)| where the policy asked for estimates"},
    Metric{"jobs_per_hour", "1/h", kHigher, &S::jobs_per_hour,
           "finished jobs per hour of makespan"},
    Metric{"suspensions", "times", kNeither, &S::suspensions,
           "times a running job was set aside for its turn to come again"},
    Metric{"avg_response_time", "s", kLower, &S::avg_response_time,
           "mean time from submission to the first GPUs"},
    Metric{"p95_response_time", "s", kLower, &S::p95_response_time,
           "95 % of the jobs hold their first GPUs within this time"},
    Metric{"without_profile", "jobs", kLower, &S::without_profile,
           "jobs of a model without a profile: they ran by the class default"},
    Metric{"lost_attempts", "times", kLower, &S::lost_attempts, "runs lost with a failing node"},
    Metric{"retries", "times", kNeither, &S::retries, "failed attempts that were tried again"},
    Metric{"wasted_gpu_hours", "GPU h", kLower, &S::wasted_gpu_hours,
           "GPU time held by attempts that failed"},
};

}  // namespace

std::span<const Metric> metrics() noexcept { return kMetrics; }

const Metric* find_metric(std::string_view name) noexcept {
  const auto found = std::ranges::find(kMetrics, name, &Metric::name);
  return found == kMetrics.end() ? nullptr : &*found;
}

}  // namespace berth
