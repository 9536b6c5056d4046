#include "support/naive_policies.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

namespace berth::test {

Int128 NaiveWalk::key_of(const View& view, JobId job) const {
  const bool by_work = key_ == Key::WorkLeft || key_ == Key::WorkLeftGpus;
  const Int128 key =
      (by_work ? view.estimated_left(job) : view.jobs.attained(job, view.now)).count();
  return key_ == Key::WorkLeftGpus || key_ == Key::AttainedGpus ? key * view.gpus(job) : key;
}

void NaiveWalk::decide(const View& view, Plan& plan, Rng&) {
  std::ranges::sort(active_, [&](JobId a, JobId b) {
    return std::tuple(key_of(view, a), a) < std::tuple(key_of(view, b), b);
  });
  std::int64_t free = view.cluster.usable_gpus(PoolId{0});
  std::vector<JobId> granted;
  for (const JobId job : active_) {
    if (view.gpus(job) <= free) {
      free -= view.gpus(job);
      granted.push_back(job);
    } else if (plan.holds(job)) {
      plan.preempt(job);
    }
  }
  for (const JobId job : granted) {
    if (!plan.holds(job)) BERTH_CHECK(plan.try_start(job), "counted grants fit");
  }
}

std::optional<Time> NaiveWalk::next_wakeup(const View& view) {
  if (quantum_ <= Duration::zero()) return std::nullopt;
  const bool someone_waits =
      std::ranges::any_of(active_, [&](JobId job) { return view.jobs.is_waiting(job); });
  if (!someone_waits) return std::nullopt;
  return Time{(view.now.time_since_epoch() / quantum_ + 1) * quantum_};
}

void NaiveEasy::run(Plan& plan, JobId job) {
  BERTH_CHECK(plan.try_start(job), "counted grants fit");
  running_.push_back(job);
}

void NaiveEasy::decide(const View& view, Plan& plan, Rng&) {
  const PoolId pool{0};
  while (!queue_.empty() && view.gpus(queue_.front()) <= view.cluster.free_gpus(pool)) {
    run(plan, queue_.front());
    queue_.erase(queue_.begin());
  }
  if (queue_.empty()) return;
  const JobId head = queue_.front();
  std::vector<std::pair<Time, JobId>> ends;
  for (const JobId job : running_) {
    const Duration left = view.estimated_left(job);
    const bool overdue = left <= Duration::zero();
    ends.emplace_back(view.now + (overdue ? Duration{std::chrono::seconds{1}} : left), job);
  }
  std::ranges::sort(ends);
  std::int64_t free = view.cluster.free_gpus(pool);
  Time shadow = kNever;
  for (const auto& [end, job] : ends) {
    if (shadow != kNever && end > shadow) break;
    free += view.gpus(job);
    if (free >= view.gpus(head)) shadow = end;
  }
  promises.push_back({head, shadow});
  std::int64_t extra = free - view.gpus(head);
  for (std::size_t i = 1; i < queue_.size();) {
    const JobId job = queue_[i];
    const bool fits = view.gpus(job) <= view.cluster.free_gpus(pool);
    const bool ends_in_time = view.now + view.estimated_left(job) <= shadow;
    if (!fits || (!ends_in_time && view.gpus(job) > extra)) {
      ++i;
      continue;
    }
    if (!ends_in_time) extra -= view.gpus(job);
    run(plan, job);
    queue_.erase(queue_.begin() + static_cast<std::ptrdiff_t>(i));
  }
}

double NaiveTiresias::service(const View& view, const Row& row) const {
  return to_seconds(view.jobs.attained(row.job, view.now) - row.base) * view.gpus(row.job);
}

void NaiveTiresias::on_arrival(const View& view, JobId job) {
  running_.resize(thresholds_.size() + 1);
  waiting_.resize(thresholds_.size() + 1);
  waiting_[0].push_back({.job = job, .since = view.now});
}

void NaiveTiresias::on_departure(const View&, JobId job) {
  for (auto& queue : running_) std::erase_if(queue, [&](const Row& row) { return row.job == job; });
  for (auto& queue : waiting_) std::erase_if(queue, [&](const Row& row) { return row.job == job; });
}

void NaiveTiresias::decide(const View& view, Plan& plan, Rng&) {
  const std::size_t queues = waiting_.size();
  std::vector<Row> moved;
  for (std::size_t q = 0; q + 1 < queues; ++q) {  // demotions
    for (const Row& row : running_[q]) {
      if (service(view, row) >= thresholds_[q] - 1e-9) moved.push_back(row);
    }
    std::erase_if(running_[q],
                  [&](const Row& row) { return service(view, row) >= thresholds_[q] - 1e-9; });
  }
  std::ranges::sort(moved, {}, &Row::job);
  for (Row row : moved) {
    while (row.queue + 1 < queues && service(view, row) >= thresholds_[row.queue] - 1e-9)
      ++row.queue;
    waiting_[row.queue].push_back(row);
  }
  moved.clear();
  for (auto& queue : waiting_) {  // promotions
    const auto is_due = [&](const Row& row) {
      return !plan.holds(row.job) && due(view, row, false) <= view.now;
    };
    for (const Row& row : queue) {
      if (is_due(row)) moved.push_back(row);
    }
    std::erase_if(queue, is_due);
  }
  std::ranges::sort(moved, {}, &Row::job);
  for (const Row& row : moved) {
    waiting_[0].push_back(
        {.job = row.job, .base = view.jobs.attained(row.job, view.now), .since = view.now});
  }
  std::int64_t free = view.cluster.usable_gpus(PoolId{0});
  std::vector<Row> starts;
  for (std::size_t q = 0; q < queues; ++q) {
    std::vector<Row> visited = running_[q];
    visited.insert(visited.end(), waiting_[q].begin(), waiting_[q].end());
    running_[q].clear();
    waiting_[q].clear();
    for (Row row : visited) {
      row.queue = q;
      const bool held = plan.holds(row.job);
      if (view.gpus(row.job) <= free) {
        free -= view.gpus(row.job);
        if (!held) {
          if (view.jobs.attained(row.job, view.now) > row.base) row.waited += view.now - row.since;
          starts.push_back(row);
        }
        running_[q].push_back(row);
      } else {
        if (held) {
          plan.preempt(row.job);
          row.since = view.now;
        }
        waiting_[q].push_back(row);
      }
    }
  }
  for (const Row& row : starts) BERTH_CHECK(plan.try_start(row.job), "counted grants fit");
}

/// When the next demotion (of a runner) or promotion (of a waiter) falls due.
Time NaiveTiresias::due(const View& view, const Row& row, bool runs) const {
  if (runs) {
    if (row.queue >= thresholds_.size()) return kNever;
    const double left = (thresholds_[row.queue] - service(view, row)) / view.gpus(row.job);
    return view.now + Duration{static_cast<std::int64_t>(std::ceil(left * 1e6 - 1e-3))};
  }
  const Duration executed = view.jobs.attained(row.job, view.now) - row.base;
  if (std::isinf(knob_) || executed <= Duration::zero()) return kNever;
  const Duration patience{
      static_cast<std::int64_t>(std::ceil(knob_ * static_cast<double>(executed.count())))};
  return row.since + patience - row.waited;
}

std::optional<Time> NaiveTiresias::next_wakeup(const View& view) {
  Time next = kNever;
  for (const auto& queue : running_) {
    for (const Row& row : queue) next = std::min(next, due(view, row, true));
  }
  for (const auto& queue : waiting_) {
    for (const Row& row : queue) next = std::min(next, due(view, row, false));
  }
  if (next == kNever) return std::nullopt;
  return std::max(next, view.now + Duration{1});
}

}  // namespace berth::test
