#include "daemon/live_rates.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/check.h"

namespace berth {

namespace {

constexpr double kStepsPerOctave = 128;  // 1, 1/2, 1/4 are steps
constexpr double kNear = 6;              // steps: noise
// An estimate that is off by more is nobody's estimate; the table needs some number.
constexpr double kSlowest = 1e-4;
constexpr double kFastest = 1e4;
constexpr double kSame = 1e-6;       // of a rate that was worked out another way
constexpr double kDrift = 0.02;      // of the whole: work that is off by more is set right
constexpr double kLeastDrift = 0.5;  // seconds

}  // namespace

double step_near(double ratio, double now) noexcept {
  const double step = std::log2(std::clamp(ratio, kSlowest, kFastest)) * kStepsPerOctave;
  if (std::abs(step - std::log2(now) * kStepsPerOctave) <= kNear) return now;
  return std::exp2(std::round(step) / kStepsPerOctave);
}

LiveRates::LiveRates(Parts parts)
    : parts_(std::move(parts)),
      neighbours_(parts_.slots, parts_.believed),
      rows_(parts_.slots.jobs.size()) {}

void LiveRates::enter(JobId job, PoolId pool, std::span<const Slice> slices, Attempt attempt) {
  leave(job);
  if (slices.empty()) return;
  Row& row = rows_[job.value];
  const Row before = row;
  row = Row{};
  row.is_here = true;
  row.known = before.known;
  row.has_reported = attempt == Attempt::SameOne && before.has_reported;
  neighbours_.enter(job, pool, slices);
  dirty_.insert(job);
  if (parts_.training != nullptr) parts_.training->conditions_changed(parts_.number(job));
}

void LiveRates::resume(JobId job, PoolId pool, std::span<const Slice> slices,
                       const JobTable& jobs) {
  if (slices.empty()) return;
  Row& row = rows_[job.value];
  row.is_here = true;
  row.believed = jobs.rate[job].value() / row.known.calibration;
  row.is_resumed = true;
  row.is_measured = jobs.basis[job] == RateBasis::Measured;
  neighbours_.enter(job, pool, slices);
  neighbours_.settle();
  neighbours_.company(job, row.company);
  for (const JobId other : row.company) {  // who was resumed before it has not seen it come
    std::vector<JobId>& theirs = rows_[other.value].company;
    theirs.insert(std::ranges::lower_bound(theirs, job), job);
  }
}

void LiveRates::recall(JobId job, const Known& known) { rows_[job.value].known = known; }

void LiveRates::leave(JobId job) {
  Row& row = rows_[job.value];
  if (!row.is_here) return;
  row.is_here = false;
  neighbours_.leave(job);
  dirty_.erase(job);
}

void LiveRates::touch(JobId job) {
  if (rows_[job.value].is_here) neighbours_.touch(job);
}

void LiveRates::update(JobId job) {
  if (rows_[job.value].is_here) dirty_.insert(job);
}

/// Of its code only what it says from now on tells how fast it is.
void LiveRates::change_conditions(JobId job) {
  Row& row = rows_[job.value];
  row.per_second = 0;
  row.is_measured = false;
  row.has_changed = true;
  if (parts_.training != nullptr) parts_.training->conditions_changed(parts_.number(job));
}

/// Another neighbour is another condition, also if nothing else is believed beside it.
void LiveRates::believe(JobId job, double rate, const JobTable& jobs) {
  Row& row = rows_[job.value];
  company_.clear();
  neighbours_.company(job, company_);
  const bool is_same_rate = std::abs(row.believed - rate) <= kSame * rate;
  if (is_same_rate && company_ == row.company) return;
  row.company = company_;
  // A job that is held back completely says nothing, and its calibration stays.
  if (!is_same_rate)
    row.believed = jobs.terms[job].throttle_milli == 0 ? 0 : std::max(rate, kSlowest);
  change_conditions(job);
}

RateBasis LiveRates::basis_of(const Row& row, bool speaks) const noexcept {
  if (row.is_measured) return RateBasis::Measured;
  return speaks ? RateBasis::Awaited : RateBasis::Believed;
}

double LiveRates::work_per_iteration(JobId job, const MeasuredProgress& progress) {
  Row& row = rows_[job.value];
  const TraceJob& slot = parts_.slots.jobs[job.value];
  if (slot.iterations > 0) {
    return to_seconds(parts_.whole(job)) / static_cast<double>(slot.iterations);
  }
  if (row.known.seconds_per_iteration > 0) return row.known.seconds_per_iteration;
  if (parts_.seconds_per_iteration) {
    // From now on it counts by this, whatever else its kind shows.
    if (const auto known = parts_.seconds_per_iteration(job))
      return row.known.seconds_per_iteration = *known;
  }
  if (progress.per_second > 0) row.known.seconds_per_iteration = row.believed / progress.per_second;
  return row.known.seconds_per_iteration;
}

void LiveRates::look_at(JobId job, Time now, const JobTable& jobs,
                        std::vector<RateChange>& changes) {
  Row& row = rows_[job.value];
  if (!row.is_here || !jobs.is_running(job)) return;
  std::optional<MeasuredProgress> progress;
  if (parts_.training != nullptr) progress = parts_.training->progress(parts_.number(job));
  std::optional<Duration> work;
  RateChange change{.job = job, .rate = jobs.rate[job]};
  const Known before = row.known;
  row.has_reported = false;
  if (!progress && !row.is_resumed) row.is_measured = false;  // it is not believed any more
  if (progress) {
    row.is_resumed = false;
    const double unit = work_per_iteration(job, *progress);
    if (progress->per_second > 0) {
      row.per_second = progress->per_second;
      row.is_measured = true;
      company_.clear();
      neighbours_.company(job, company_);
      if (company_.empty()) row.alone_seconds = 1 / row.per_second;
      if (unit > 0 && row.believed > 0) {
        row.known.calibration =
            step_near(row.per_second * unit / row.believed, row.known.calibration);
        row.known.is_measured = true;
      }
    }
    row.has_reported = unit > 0;
    if (unit > 0) {
      const double since = row.per_second * progress->seconds_ago;
      work = seconds_to_duration(std::min((progress->iterations + since) * unit, kMaxInputSeconds));
    }
  }
  // Before it has a pace of its own, jobs of its kind tell how far off its estimate is.
  const std::int64_t all = parts_.slots.jobs[job.value].iterations;
  if (!row.known.is_measured && all > 0 && parts_.seconds_per_iteration) {
    const double unit = to_seconds(parts_.whole(job)) / static_cast<double>(all);
    if (const auto known = parts_.seconds_per_iteration(job))
      row.known.calibration = step_near(unit / *known, row.known.calibration);
  }
  if (parts_.noted && row.known != before) parts_.noted(job, row.known);
  const double rate = row.known.calibration * row.believed;
  change.rate = rate <= 0 ? Rate{} : Rate::from(std::clamp(rate, kSlowest, kFastest));
  if (work) {
    const double whole = to_seconds(parts_.whole(job));
    const double off = std::abs(to_seconds(*work - jobs.work_done(job, now)));
    if (off > std::max(kLeastDrift, kDrift * whole)) change.work = work;
  }
  change.basis = basis_of(
      row, progress.has_value() || (row.is_resumed && jobs.basis[job] != RateBasis::Believed));
  const bool is_news = std::exchange(row.has_changed, false) || change.rate != jobs.rate[job] ||
                       change.work || change.basis != jobs.basis[job];
  if (is_news) changes.push_back(change);
  if (!parts_.shown) return;
  const TraceJob& slot = parts_.slots.jobs[job.value];
  const bool has_whole = slot.estimate > Duration::zero() || slot.iterations > 0;
  parts_.shown(job, {.rate = rate,
                     .work_seconds = to_seconds(work.value_or(jobs.work_done(job, now))),
                     .whole_seconds = has_whole ? to_seconds(parts_.whole(job)) : 0,
                     .at = std::max(now, jobs.work_from[job]),
                     .source = row.has_reported ? RateSource::Reports
                               : rate != 1.0    ? RateSource::Belief
                                                : RateSource::Request});
}

void LiveRates::rates(Time now, const JobTable& jobs, std::vector<RateChange>& changes) {
  by_belief_.clear();
  neighbours_.rates(now, jobs, by_belief_);
  for (const RateChange& change : by_belief_) {
    believe(change.job, change.rate.value(), jobs);
    dirty_.insert(change.job);
  }
  news(now, jobs, changes);
}

void LiveRates::news(Time now, const JobTable& jobs, std::vector<RateChange>& changes) {
  for (const JobId job : dirty_) look_at(job, now, jobs, changes);
  dirty_.clear();
}

std::optional<LiveRates::Measured> LiveRates::measured(JobId job) const {
  const Row& row = rows_[job.value];
  if (!row.is_here || row.per_second <= 0 || row.believed <= 0) return std::nullopt;
  Measured measured{.seconds_per_iteration = 1 / row.per_second, .believed = row.believed};
  if (row.alone_seconds > 0) measured.alone_seconds = row.alone_seconds;
  neighbours_.company(job, measured.company);
  return measured;
}

}  // namespace berth
