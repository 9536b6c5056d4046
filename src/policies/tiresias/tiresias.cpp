#include "policies/tiresias/tiresias.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace berth {

Tiresias::Tiresias(std::string name, const TiresiasOptions& options)
    : name_(std::move(name)), options_(options), table_(options.history) {
  for (const double threshold : options_.thresholds)
    limits_.push_back(static_cast<std::int64_t>(std::llround(threshold * 1e6)));
  for (const double sample : options_.samples) table_.add(sample);
  queues_.resize(limits_.size() + 1);
}

void Tiresias::begin(const View& view) {
  rows_.resize(view.jobs.size());
  runners_.resize(queues_.size(), view.jobs.size());
  for (Queue& queue : queues_) queue.used.assign(view.cluster.pools(), 0);
  firm_used_.assign(view.cluster.pools(), 0);
}

Int128 Tiresias::service(const View& view, JobId job) const {
  return Int128{(view.jobs.attained(job, view.now) - rows_[job.value].base).count()} *
         view.gpus(job);
}

/// Larger index first; the bits of a positive double are ordered like the double.
OrderKey Tiresias::index_key(const View& view, JobId job, std::size_t queue) const {
  const double attained = static_cast<double>(service(view, job)) * 1e-6;
  const double index = table_.index(attained, options_.thresholds[queue]);
  return {-Int128{std::bit_cast<std::int64_t>(index)}, job};
}

void Tiresias::enqueue(const View& view, JobId job) {
  const JobRow& row = rows_[job.value];
  Queue& queue = queues_[row.queue];
  const ShapeId shape = view.jobs.shape[job];
  if (!is_ranked(row.queue)) {
    queue.waiting.push(shape, {row.entry, job});
  } else if (service(view, job) == 0) {
    queue.unseen.push(shape, {0, job});
  } else {
    queue.waiting.push(shape, index_key(view, job, row.queue));
  }
}

void Tiresias::leave_queue(const View& view, JobId job) {
  Queue& queue = queues_[rows_[job.value].queue];
  queue.waiting.forget(view.jobs.shape[job], job);
  queue.unseen.forget(view.jobs.shape[job], job);
}

/// It is no runner of its queue any more, or no firm one.
void Tiresias::stop_running(const View& view, JobId job) {
  JobRow& row = rows_[job.value];
  row.runs = false;
  if (row.firm) {
    firm_used_[row.pool.value] -= view.gpus(job);
    return;
  }
  runners_.remove(row.queue, job);
  queues_[row.queue].used[row.pool.value] -= view.gpus(job);
}

void Tiresias::on_arrival(const View& view, JobId job) {
  rows_[job.value].entry = queues_[0].tail++;
  rows_[job.value].waits_since = view.now;
  enqueue(view, job);
}

void Tiresias::on_departure(const View& view, JobId job) {
  JobRow& row = rows_[job.value];
  ++row.timer;
  if (row.runs) {
    stop_running(view, job);
  } else {
    leave_queue(view, job);
  }
  if (options_.gittins && view.jobs.held[job] > Duration::zero())
    table_.add(view.finished_service(job));
}

void Tiresias::on_requeue(const View& view, JobId job) {
  JobRow& row = rows_[job.value];
  ++row.timer;
  stop_running(view, job);
  const Int128 attained = service(view, job);
  while (row.queue < limits_.size() && attained >= limits_[row.queue]) ++row.queue;
  row.waits_since = view.now;
  row.entry =
      queues_[row.queue].tail++;  // service was consumed and stays; the place in the queue is lost
  enqueue(view, job);
}

/// Its start may have taken effect at another moment than was said: its timer is set anew.
void Tiresias::on_rate(const View& view, JobId job) {
  if (rows_[job.value].runs && view.jobs.held_from[job] <= view.now) fresh_.push_back(job);
}

/// New samples change the index of jobs that have run; the first switch to ranking touches all.
void Tiresias::refresh_ranks(const View& view) {
  if (!options_.gittins) return;
  const bool changed = table_.refresh();
  const bool first = !ranked_ && table_.samples() >= options_.min_samples;
  if (!changed && !first) return;
  ranked_ = ranked_ || first;
  if (!ranked_) return;
  for (std::size_t q = 0; q + 1 < queues_.size(); ++q) {
    due_.clear();
    queues_[q].waiting.drain(due_);
    for (const JobId job : due_) enqueue(view, job);
  }
}

void Tiresias::collect_due(std::vector<Timer>& timers, Time now) {
  due_.clear();
  while (!timers.empty() && (timers.front().at <= now ||
                             timers.front().generation != rows_[timers.front().job.value].timer)) {
    if (timers.front().generation == rows_[timers.front().job.value].timer)
      due_.push_back(timers.front().job);
    std::ranges::pop_heap(timers, std::ranges::greater{});
    timers.pop_back();
  }
  std::ranges::sort(due_);  // inside one instant by submit, then id
  due_.erase(std::unique(due_.begin(), due_.end()), due_.end());  // one that moved has two
}

void Tiresias::fire_timers(const View& view) {
  collect_due(demotions_, view.now);
  for (const JobId job : due_) {
    // Its start took effect later than was said: it has not had all of it yet.
    const bool is_early = service(view, job) < limits_[rows_[job.value].queue];
    if (is_early) fresh_.push_back(job);
    if (!is_early) demote(view, job);
  }
  collect_due(promotions_, view.now);
  for (const JobId job : due_) promote(view, job);
}

void Tiresias::demote(const View& view, JobId job) {
  JobRow& row = rows_[job.value];
  ++row.timer;
  stop_running(view, job);
  const Int128 attained = service(view, job);
  while (row.queue < limits_.size() && attained >= limits_[row.queue]) ++row.queue;
  row.entry = queues_[row.queue].tail++;
  holders_.push_back(job);
}

void Tiresias::promote(const View& view, JobId job) {
  JobRow& row = rows_[job.value];
  ++row.timer;
  leave_queue(view, job);
  row.queue = 0;
  row.base = view.jobs.attained(job, view.now);
  row.waited = Duration::zero();
  row.waits_since = view.now;
  row.entry = queues_[0].tail++;
  enqueue(view, job);
}

/// When a start takes effect is known only after the pass, so timers are set here.
void Tiresias::set_timers(const View& view) {
  for (const JobId job : fresh_) {
    const JobRow& row = rows_[job.value];
    if (!row.runs || row.firm || row.queue >= limits_.size()) continue;
    const Int128 left = limits_[row.queue] - service(view, job);
    const std::int64_t gpus = view.gpus(job);
    const Time held = std::max(view.now, view.jobs.held_from[job]);
    const Time at = held + Duration{std::max<std::int64_t>(
                               1, static_cast<std::int64_t>((left + gpus - 1) / gpus))};
    demotions_.push_back({at, job, row.timer});
    std::ranges::push_heap(demotions_, std::ranges::greater{});
  }
  fresh_.clear();
  for (const JobId job : stopped_) {
    const JobRow& row = rows_[job.value];
    const Duration executed = view.jobs.attained(job, view.now) - row.base;
    if (row.runs || std::isinf(options_.promote_knob) || executed <= Duration::zero()) continue;
    const Duration patience{static_cast<std::int64_t>(
        std::ceil(options_.promote_knob * static_cast<double>(executed.count())))};
    const Time at = std::max(view.now + Duration{1}, row.waits_since + patience - row.waited);
    promotions_.push_back({at, job, row.timer});
    std::ranges::push_heap(promotions_, std::ranges::greater{});
  }
  stopped_.clear();
}

std::optional<Time> Tiresias::next_wakeup(const View& view) {
  set_timers(view);
  Time next = kNever;
  bool waiting = false;
  bool contended = false;  // somebody waits in a queue where running jobs may lose their rank
  for (std::size_t q = 0; q < queues_.size(); ++q) {
    const bool waits = !queues_[q].waiting.empty() || !queues_[q].unseen.empty();
    waiting = waiting || waits;
    contended = contended || (waits && is_ranked(q) && !runners_.empty(q));
  }
  if (contended) {
    const Duration since_zero = view.now.time_since_epoch();
    next = Time{(since_zero / options_.gittins_interval + 1) * options_.gittins_interval};
  }
  const auto valid_front = [&](std::vector<Timer>& timers) {
    while (!timers.empty() && timers.front().generation != rows_[timers.front().job.value].timer) {
      std::ranges::pop_heap(timers, std::ranges::greater{});
      timers.pop_back();
    }
    if (!timers.empty()) next = std::min(next, timers.front().at);
  };
  valid_front(demotions_);
  valid_front(promotions_);
  if (has_room_elsewhere_) next = view.now + Duration{1};
  if (last_pass_ && options_.min_interval > Duration::zero() && waiting) {
    next = std::max(next, *last_pass_ + options_.min_interval);
    if (*last_pass_ + options_.min_interval > view.now)
      next = std::min(next, *last_pass_ + options_.min_interval);
  }
  if (next == kNever) return std::nullopt;
  return std::max(next, view.now + Duration{1});
}

}  // namespace berth
