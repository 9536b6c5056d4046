#include "policies/chronus/roster.h"

namespace berth::chronus {

void Roster::take_out(const View& view, JobId job) {
  Row& row = rows_[job];
  switch (row.place) {
    case Place::Idle: idle_.erase({row.idle_end, job}); break;
    case Place::BestEffort: best_effort_.erase(job); break;
    case Place::Waiting:
      waiting_.forget(view.jobs.shape[job], job);
      since_.drop(job);
      break;
    case Place::Starved: starved_.forget(view.jobs.shape[job], job); break;
    case Place::Gone:
    case Place::Leased: break;
  }
  row.place = Place::Gone;
}

/// Where it belongs now, given where it would be without a promise.
void Roster::file(const View& view, JobId job, Place without_promise) {
  take_out(view, job);
  Row& row = rows_[job];
  row.place = without_promise;
  const bool waits = without_promise == Place::Waiting;
  if (waits) row.waits_since = view.now;
  if (promises_.has(job)) {
    row.place = waits ? Place::Idle : Place::Leased;
    row.idle_end = promises_.end_of(job);
    if (waits) idle_.insert({row.idle_end, job});
  } else if (waits) {
    waiting_.push(view.jobs.shape[job], key_of(view, job));
    since_.set(job, row.waits_since);
  } else {
    best_effort_.insert(job);
  }
}

void Roster::refile(const View& view, JobId job) {
  file(view, job, holds(job) ? Place::BestEffort : Place::Waiting);
}

void Roster::remove(const View& view, JobId job) { take_out(view, job); }

OrderKey Roster::key_of(const View& view, JobId job) const {
  const Duration key = options_.key == BestEffortKey::Remaining
                           ? view.estimated_left(job)
                           : view.jobs.attained(job, view.now) * view.gpus(job);
  return {key.count(), job};
}

void Roster::put_back(const View& view, JobId job) {
  const Row& row = rows_[job];
  if (row.place == Place::Starved) {
    starved_.push(view.jobs.shape[job], {row.waits_since.time_since_epoch().count(), job});
  } else {
    waiting_.push(view.jobs.shape[job], key_of(view, job));
  }
}

void Roster::note_starved(const View& view) {
  const Duration patience = options_.lease * options_.starve_leases;
  while (!since_.empty() && view.now - since_.next() > patience) {
    const JobId job = since_.first();
    take_out(view, job);
    rows_[job].place = Place::Starved;
    put_back(view, job);
  }
}

}  // namespace berth::chronus
