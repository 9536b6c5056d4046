#include "support/naive_policies.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

#include "policies/common/make_way.h"

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

Int128 NaiveRankWalk::key_of(const View& view, JobId job) const {
  if (key_ == Key::Deadline) return view.deadline(job).value_or(kNever).time_since_epoch().count();
  const bool by_work = key_ == Key::WorkLeft || key_ == Key::WorkLeftGpus;
  const Int128 key =
      (by_work ? view.estimated_left(job) : view.jobs.attained(job, view.now)).count();
  return key_ == Key::WorkLeftGpus || key_ == Key::AttainedGpus ? key * view.gpus(job) : key;
}

/// Who is to be placed, in order; running jobs that have no room are out.
std::vector<JobId> NaiveRankWalk::walk_by_count(const View& view, Plan& plan) const {
  const auto is_firm = [&](JobId job) { return plan.holds(job) && !view.request(job).preemptible; };
  std::int64_t free = view.cluster.usable_gpus(PoolId{0});
  for (const JobId job : active_) free -= is_firm(job) ? view.gpus(job) : 0;
  std::vector<JobId> todo;
  std::set<ShapeId> closed;
  for (const JobId job : active_) {
    if (is_firm(job)) continue;
    if (blocked_.contains(job)) closed.insert(view.jobs.shape[job]);
    const bool may = plan.holds(job) || !closed.contains(view.jobs.shape[job]);
    if (may && view.gpus(job) <= free) {
      free -= view.gpus(job);
      if (!plan.holds(job)) todo.push_back(job);
    } else if (plan.holds(job)) {
      plan.preempt(job);
    }
  }
  return todo;
}

bool NaiveRankWalk::place(const View& view, Plan& plan, std::vector<JobId>& todo, std::size_t at) {
  const JobId job = todo[at];
  if (plan.try_start(job)) return true;
  WayMaker way;
  const auto own = std::ranges::find(active_, job);
  for (auto other = own + 1; other != active_.end(); ++other) {
    if (plan.holds(*other) && view.request(*other).preemptible) way.add(view, *other);
  }
  if (!way.try_start(plan, PoolId{0}, job, Reason::Priority)) return false;
  for (const JobId other : way.displaced()) {
    made_way_.insert(other);
    todo.push_back(other);
  }
  const auto place_in_order = [&](JobId each) { return std::ranges::find(active_, each); };
  std::ranges::sort(todo, {}, place_in_order);
  return true;
}

void NaiveRankWalk::decide(const View& view, Plan& plan, Rng&) {
  std::ranges::sort(active_, [&](JobId a, JobId b) {
    return std::tuple(key_of(view, a), a) < std::tuple(key_of(view, b), b);
  });
  blocked_.clear();
  bool has_placed = false;
  for (bool again = true; again;) {
    again = false;
    made_way_.clear();
    const Plan::Mark mark = plan.mark();
    std::vector<JobId> todo = walk_by_count(view, plan);
    bool has_failed = false;
    for (std::size_t i = 0; i < todo.size() && !has_failed; ++i) {
      if (place(view, plan, todo, i)) continue;
      again = true;
      if (made_way_.contains(todo[i])) continue;
      blocked_.insert(todo[i]);
      plan.rollback(mark);
      has_failed = true;
    }
    has_placed = has_placed || (!has_failed && !todo.empty());
    if (again || !has_placed || blocked_.empty()) continue;
    has_placed = false;
    blocked_.clear();  // where the others are now, there may be a place
    again = true;
  }
}

std::optional<Time> NaiveRankWalk::next_wakeup(const View& view) {
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

void NaiveTiresias::demote_and_promote(const View& view, const Plan& plan) {
  const std::size_t queues = waiting_.size();
  std::vector<Row> moved;
  for (std::size_t q = 0; q + 1 < queues; ++q) {  // demotions
    const auto falls = [&](const Row& row) {
      return view.request(row.job).preemptible && service(view, row) >= thresholds_[q] - 1e-9;
    };
    for (const Row& row : running_[q]) {
      if (falls(row)) moved.push_back(row);
    }
    std::erase_if(running_[q], falls);
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
}

/// Down the queues; who is to be placed, in order.
std::vector<NaiveTiresias::Row> NaiveTiresias::walk_by_count(const View& view, Plan& plan) {
  const auto is_firm = [&](const Row& row) {
    return plan.holds(row.job) && !view.request(row.job).preemptible;
  };
  std::int64_t free = view.cluster.usable_gpus(PoolId{0});
  for (const auto& queue : running_) {
    for (const Row& row : queue) free -= is_firm(row) ? view.gpus(row.job) : 0;
  }
  std::vector<Row> starts;
  std::set<ShapeId> closed;
  for (std::size_t q = 0; q < waiting_.size(); ++q) {
    std::vector<Row> visited = running_[q];
    visited.insert(visited.end(), waiting_[q].begin(), waiting_[q].end());
    running_[q].clear();
    waiting_[q].clear();
    for (Row row : visited) {
      row.queue = q;
      const bool held = plan.holds(row.job);
      if (blocked_.contains(row.job)) closed.insert(view.jobs.shape[row.job]);
      const bool may = held || !closed.contains(view.jobs.shape[row.job]);
      if (is_firm(row)) {
        running_[q].push_back(row);
      } else if (may && view.gpus(row.job) <= free) {
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
  return starts;
}

bool NaiveTiresias::place(const View& view, Plan& plan, JobId job, std::size_t queue) {
  if (plan.try_start(job)) return true;
  WayMaker way;
  for (std::size_t q = queue + 1; q < running_.size(); ++q) {
    for (const Row& row : running_[q]) {
      if (plan.holds(row.job) && view.request(row.job).preemptible) way.add(view, row.job);
    }
  }
  if (!way.try_start(plan, PoolId{0}, job, Reason::Locality)) return false;
  // Highest queue first; of those that make way together, whoever loses most.
  const auto others = way.displaced();
  for (auto other = others.rbegin(); other != others.rend(); ++other) {
    for (const auto& runners : running_) {
      const auto row = std::ranges::find(runners, *other, &Row::job);
      if (row != runners.end()) displaced_.push_back(*row);
    }
  }
  std::ranges::stable_sort(displaced_, {}, &Row::queue);
  return true;
}

void NaiveTiresias::place_displaced(const View& view, Plan& plan, std::size_t up_to) {
  while (!displaced_.empty() && displaced_.front().queue <= up_to) {
    Row row = displaced_.front();
    displaced_.erase(displaced_.begin());
    if (place(view, plan, row.job, row.queue)) continue;
    std::erase_if(running_[row.queue], [&](const Row& each) { return each.job == row.job; });
    row.since = view.now;
    waiting_[row.queue].insert(waiting_[row.queue].begin(), row);
    has_left_ = true;
  }
}

bool NaiveTiresias::place_all(const View& view, Plan& plan, const std::vector<Row>& starts) {
  displaced_.clear();
  has_left_ = false;
  for (const Row& row : starts) {
    place_displaced(view, plan, row.queue);
    if (place(view, plan, row.job, row.queue)) continue;
    blocked_.insert(row.job);
    return false;
  }
  place_displaced(view, plan, waiting_.size());
  return true;
}

void NaiveTiresias::decide(const View& view, Plan& plan, Rng&) {
  demote_and_promote(view, plan);
  blocked_.clear();
  bool has_placed = false;
  for (bool again = true; again;) {
    const Plan::Mark mark = plan.mark();
    const Queues running = running_;
    const Queues waiting = waiting_;
    const std::vector<Row> starts = walk_by_count(view, plan);
    if (place_all(view, plan, starts)) {
      has_placed = has_placed || !starts.empty();
      again = has_left_ || (has_placed && !blocked_.empty());
      if (!has_left_) {  // where the others are now, there may be a place
        has_placed = false;
        blocked_.clear();
      }
    } else {
      plan.rollback(mark);
      running_ = running;
      waiting_ = waiting;
    }
  }
}

/// When the next demotion (of a runner) or promotion (of a waiter) falls due.
Time NaiveTiresias::due(const View& view, const Row& row, bool runs) const {
  if (runs) {
    if (row.queue >= thresholds_.size() || !view.request(row.job).preemptible) return kNever;
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
