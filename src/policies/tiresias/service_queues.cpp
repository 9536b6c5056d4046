#include "policies/tiresias/service_queues.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace berth::tiresias {

ServiceQueues::ServiceQueues(const std::vector<double>& thresholds,
                             const std::optional<GittinsOptions>& gittins)
    : thresholds_(thresholds),
      gittins_(gittins),
      table_(gittins.value_or(GittinsOptions{}).history),
      queues_(thresholds.size() + 1) {
  for (const double threshold : thresholds)
    limits_.push_back(static_cast<std::int64_t>(std::llround(threshold * 1e6)));
  if (!gittins) return;
  for (const double sample : gittins->samples) table_.add(sample);
}

void ServiceQueues::begin(const View& view) {
  rows_.resize(view.jobs.size());
  runners_.resize(queues_.size(), view.jobs.size());
  for (Queue& queue : queues_) queue.used.assign(view.cluster.pools(), 0);
  firm_used_.assign(view.cluster.pools(), 0);
}

// --- order

Int128 ServiceQueues::service(const View& view, JobId job) const {
  return Int128{(view.jobs.attained(job, view.now) - rows_[job].base).count()} * view.gpus(job);
}

std::optional<Int128> ServiceQueues::service_left(const View& view, JobId job) const {
  if (rows_[job].queue >= limits_.size()) return std::nullopt;
  return limits_[rows_[job].queue] - service(view, job);
}

/// Larger index first; the bits of a positive double are ordered like the double.
OrderKey ServiceQueues::index_key(const View& view, JobId job) const {
  const double attained = static_cast<double>(service(view, job)) * 1e-6;
  const double index = table_.index(attained, thresholds_[rows_[job].queue]);
  return {-Int128{std::bit_cast<std::int64_t>(index)}, job};
}

OrderKey ServiceQueues::key_of(const View& view, JobId job) const {
  return is_ranked(rows_[job].queue) ? index_key(view, job) : OrderKey{rows_[job].entry, job};
}

bool ServiceQueues::outranks(const View& view, JobId job, JobId runner) const {
  const std::size_t own = rows_[job].queue;
  const std::size_t other = rows_[runner].queue;
  if (own != other) return own < other;
  return is_ranked(own) && index_key(view, job) < index_key(view, runner);
}

void ServiceQueues::refresh_ranks(const View& view) {
  if (!gittins_) return;
  const bool changed = table_.refresh();
  const bool first = !ranked_ && table_.samples() >= gittins_->min_samples;
  if (!changed && !first) return;
  ranked_ = ranked_ || first;
  if (!ranked_) return;
  for (std::size_t q = 0; q + 1 < queues_.size(); ++q) {
    drained_.clear();
    queues_[q].waiting.drain(drained_);
    for (const JobId job : drained_) wait(view, job);
  }
}

// --- waiting

void ServiceQueues::wait(const View& view, JobId job) {
  const Row& row = rows_[job];
  Queue& queue = queue_of(job);
  const ShapeId shape = view.jobs.shape[job];
  if (!is_ranked(row.queue)) {
    queue.waiting.push(shape, {row.entry, job});
  } else if (service(view, job) == 0) {
    queue.unseen.push(shape, job);
  } else {
    queue.waiting.push(shape, index_key(view, job));
  }
}

void ServiceQueues::wait_ahead(const View& view, std::size_t queue, std::span<const JobId> jobs) {
  queues_[queue].front -= static_cast<std::int64_t>(jobs.size());
  std::int64_t entry = queues_[queue].front;
  for (const JobId job : jobs) {
    rows_[job].entry = entry++;
    wait(view, job);
  }
}

void ServiceQueues::stop_waiting(const View& view, JobId job) {
  queue_of(job).waiting.forget(view.jobs.shape[job], job);
  queue_of(job).unseen.forget(view.jobs.shape[job], job);
}

void ServiceQueues::arrive(const View& view, JobId job) {
  rows_[job].entry = queues_[0].tail++;
  wait(view, job);
}

void ServiceQueues::depart(const View& view, JobId job) {
  if (rows_[job].runs) {
    stop(view, job);
  } else {
    stop_waiting(view, job);
  }
  if (gittins_ && view.jobs.held[job] > Duration::zero()) table_.add(view.finished_service(job));
}

void ServiceQueues::sink(const View& view, JobId job) {
  stop(view, job);
  Row& row = rows_[job];
  const Int128 attained = service(view, job);
  while (row.queue < limits_.size() && attained >= limits_[row.queue]) ++row.queue;
  row.entry = queue_of(job).tail++;
}

void ServiceQueues::promote(const View& view, JobId job) {
  stop_waiting(view, job);
  Row& row = rows_[job];
  row.queue = 0;
  row.base = view.jobs.attained(job, view.now);
  row.entry = queues_[0].tail++;
  wait(view, job);
}

// --- running

void ServiceQueues::stop(const View& view, JobId job) {
  Row& row = rows_[job];
  row.runs = false;
  if (row.firm) {
    firm_used_[row.pool.value] -= view.gpus(job);
    return;
  }
  runners_.remove(row.queue, job);
  queue_of(job).used[row.pool.value] -= view.gpus(job);
}

void ServiceQueues::grant(const View& view, JobId job, PoolId pool, From from) {
  if (from == From::Queue) stop_waiting(view, job);
  Row& row = rows_[job];
  row.pool = pool;
  row.runs = true;
  row.firm = !view.request(job).preemptible;
  if (row.firm) {
    firm_used_[pool.value] += view.gpus(job);
  } else {
    runners_.push_back(row.queue, job);
    queue_of(job).used[pool.value] += view.gpus(job);
  }
}

void ServiceQueues::resume(const View& view, JobId job) {
  stop_waiting(view, job);
  Row& row = rows_[job];
  runners_.put_back(row.queue, job);  // where it was: everything since has been taken back
  row.runs = true;
  queue_of(job).used[row.pool.value] += view.gpus(job);
}

void ServiceQueues::forget_used(std::size_t queue) { std::ranges::fill(queues_[queue].used, 0); }

void ServiceQueues::add_used(JobId runner, std::int64_t gpus) {
  queue_of(runner).used[rows_[runner].pool.value] += gpus;
}

}  // namespace berth::tiresias
