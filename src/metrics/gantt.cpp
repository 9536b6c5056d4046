// From intervals of jobs to bars on lanes, one lane per device. The longest intervals are kept when
// there are too many for a page; jobs without known devices get lanes that were free at the time.

#include <algorithm>
#include <bit>
#include <functional>
#include <queue>
#include <tuple>
#include <unordered_map>

#include "metrics/derive.h"

namespace berth {

namespace {

/// The first lane of each node: devices numbered on over all nodes in order.
std::vector<std::uint32_t> first_lanes(const Cluster& cluster) {
  std::vector<std::uint32_t> first;
  std::uint32_t next = 0;
  for (const Node& node : cluster.nodes) {
    first.push_back(next);
    next += static_cast<std::uint32_t>(node.gpus);
  }
  return first;
}

/// The longest intervals whose bars stay within the limit, in their old order.
std::vector<const Interval*> most_visible(const IntervalLog& log, std::size_t max_bars) {
  std::vector<const Interval*> chosen;
  for (const Interval& interval : log.rows) chosen.push_back(&interval);
  std::size_t bars = 0;
  for (const Interval* interval : chosen) bars += static_cast<std::size_t>(interval->gpus);
  // Everything fits: nothing is left out and no order changes.
  if (bars <= max_bars) return chosen;
  std::ranges::stable_sort(chosen, std::ranges::greater{},
                           [](const Interval* i) { return i->end - i->start; });
  bars = 0;
  std::erase_if(chosen, [&](const Interval* interval) {
    const auto more = static_cast<std::size_t>(interval->gpus);
    if (bars + more > max_bars) return true;
    bars += more;
    return false;
  });
  std::ranges::sort(
      chosen, {}, [](const Interval* i) { return std::tuple(i->start, i->job, i->node, i->kind); });
  return chosen;
}

/// Lanes for jobs without known devices: the lowest free ones of the pool. A job that continues at
/// once (after its overhead) finds its own lanes free again and mostly keeps them.
class GreedyLanes {
 public:
  GreedyLanes(const Cluster& cluster, const std::vector<std::uint32_t>& first)
      : free_(cluster.pools.size()) {
    for (std::size_t n = 0; n < cluster.nodes.size(); ++n) {
      for (std::uint32_t d = 0; d < static_cast<std::uint32_t>(cluster.nodes[n].gpus); ++d) {
        free_[cluster.nodes[n].pool.value].push(first[n] + d);
      }
    }
  }
  /// Intervals come in the order of their start. A save may overlap with the grant of its successor:
  /// then fewer lanes are left.
  [[nodiscard]] std::vector<std::uint32_t> take(const Interval& interval) {
    while (!busy_.empty() && busy_.top().until <= interval.start) {
      free_[busy_.top().pool.value].push(busy_.top().lane);
      busy_.pop();
    }
    std::vector<std::uint32_t> lanes;
    auto& pool = free_[interval.pool.value];
    for (std::int32_t i = 0; i < interval.gpus && !pool.empty(); ++i) {
      lanes.push_back(pool.top());
      busy_.push({interval.end, interval.pool, pool.top()});
      pool.pop();
    }
    return lanes;
  }

 private:
  struct Busy {
    Time until;
    PoolId pool;
    std::uint32_t lane;
    auto operator<=>(const Busy&) const = default;
  };
  using Lowest = std::priority_queue<std::uint32_t, std::vector<std::uint32_t>, std::greater<>>;
  std::vector<Lowest> free_;
  std::priority_queue<Busy, std::vector<Busy>, std::greater<>> busy_;
};

std::vector<std::uint32_t> lanes_of_devices(const Interval& interval, std::uint32_t first) {
  std::vector<std::uint32_t> lanes;
  for (std::uint64_t rest = interval.devices; rest != 0; rest &= rest - 1) {
    lanes.push_back(first + static_cast<std::uint32_t>(std::countr_zero(rest)));
  }
  return lanes;
}

/// From rows of all jobs to rows of those that are shown, in the order in which they first appear.
void number_jobs(Gantt& gantt, const Outcomes& jobs) {
  std::unordered_map<std::uint32_t, std::uint32_t> row_of_job;  // lookup only
  for (GanttBar& bar : gantt.bars) {
    const auto [entry, is_new] =
        row_of_job.try_emplace(bar.job, static_cast<std::uint32_t>(gantt.jobs.size()));
    if (is_new) {
      const JobOutcome& job = jobs.rows[bar.job];
      gantt.jobs.push_back(
          {std::string(jobs.names.text(job.id)), job.gpus, std::string(jobs.names.text(job.user))});
    }
    bar.job = entry->second;
  }
}

}  // namespace

Gantt gantt_of(const IntervalLog& intervals, const Outcomes& jobs, const Cluster& cluster,
               std::size_t max_bars) {
  Gantt gantt;
  for (const Interval& interval : intervals.rows)
    gantt.total += static_cast<std::uint64_t>(interval.gpus);
  if (intervals.total > intervals.rows.size() &&
      !intervals.rows.empty()) {  // those forgotten were as wide on average
    const double width =
        static_cast<double>(gantt.total) / static_cast<double>(intervals.rows.size());
    gantt.total = static_cast<std::uint64_t>(width * static_cast<double>(intervals.total));
  }
  const auto first = first_lanes(cluster);
  GreedyLanes greedy{cluster, first};
  for (const Interval* interval : most_visible(intervals, max_bars)) {
    const auto lanes = interval->devices == 0
                           ? greedy.take(*interval)
                           : lanes_of_devices(*interval, first[interval->node.value]);
    for (const std::uint32_t lane : lanes) {
      gantt.bars.push_back(
          {lane, interval->job.value, interval->start, interval->end, interval->kind});
    }
  }
  std::ranges::sort(gantt.bars, {}, [](const GanttBar& bar) {
    return std::tuple(bar.lane, bar.start, bar.job, bar.kind);
  });
  number_jobs(gantt, jobs);
  return gantt;
}

}  // namespace berth
