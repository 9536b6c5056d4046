// Which jobs hold devices and which wait. Every job is in one place; the sets and queues in which
// passes look for jobs follow from it. Callers report every start and stop, and call refile() when
// a promise is made or broken.
#pragma once

#include <cstdint>
#include <set>
#include <utility>

#include "core/view.h"
#include "policies/chronus/options.h"
#include "policies/chronus/promises.h"
#include "policies/kit/job_timers.h"
#include "policies/kit/waiting_jobs.h"

namespace berth::chronus {

class Roster {
 public:
  Roster(const Options& options, const Promises& promises)
      : options_(options), promises_(promises) {}
  void begin(const View& view) { rows_.resize(view.jobs.size()); }

  /// It has come, or has lost its devices.
  void note_waits(const View& view, JobId job) { file(view, job, Place::Waiting); }
  void note_holds(const View& view, JobId job) { file(view, job, Place::BestEffort); }
  /// It was promised something, or its promise is gone.
  void refile(const View& view, JobId job);
  /// It is over; nothing happens if it was removed before.
  void remove(const View& view, JobId job);

  [[nodiscard]] bool holds(JobId job) const noexcept {
    return rows_[job].place == Place::Leased || rows_[job].place == Place::BestEffort;
  }
  /// Running without a promise, ascending.
  [[nodiscard]] const std::set<JobId>& best_effort() const noexcept { return best_effort_; }
  /// Promised and without devices, by the end of their promise.
  [[nodiscard]] const std::set<std::pair<Term, JobId>>& idle() const noexcept { return idle_; }
  /// Best-effort jobs that wait, and those that have waited too long, longest first. A job taken
  /// off a queue without starting must be put back.
  [[nodiscard]] WaitingByShape& waiting() noexcept { return waiting_; }
  [[nodiscard]] const WaitingByShape& waiting() const noexcept { return waiting_; }
  [[nodiscard]] WaitingByShape& starved() noexcept { return starved_; }
  [[nodiscard]] bool is_anybody_waiting() const noexcept {
    return !since_.empty() || !starved_.empty();
  }
  void put_back(const View& view, JobId job);
  [[nodiscard]] OrderKey key_of(const View& view, JobId job) const;
  /// Moves jobs that have waited too long to the starved ones, which go first.
  void note_starved(const View& view);

 private:
  enum class Place : std::uint8_t { Gone, Leased, Idle, BestEffort, Waiting, Starved };
  struct Row {
    Place place = Place::Gone;
    Term idle_end = 0;  // under which it is idle
    Time waits_since{};
  };
  void file(const View& view, JobId job, Place without_promise);
  void take_out(const View& view, JobId job);

  const Options& options_;
  const Promises& promises_;
  Column<JobId, Row> rows_;
  std::set<JobId> best_effort_;
  std::set<std::pair<Term, JobId>> idle_;
  WaitingByShape waiting_;
  WaitingByShape starved_;
  JobTimers since_;  // when jobs in waiting_ began to wait
};

}  // namespace berth::chronus
