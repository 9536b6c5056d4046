#include "policies/shockwave/shockwave.h"

#include <algorithm>
#include <tuple>

#include "base/portable_math.h"
#include "policies/themis/time_fractions.h"

namespace berth::shockwave {

namespace {
constexpr double kMostRho = 1e6;  // its power stays finite
constexpr std::size_t kPlannedPerRound = 250;
}  // namespace

/// A plan for many jobs is kept for several rounds, so that a round costs the same with any number.
bool Shockwave::is_stale() const noexcept {
  return planned_.empty() || (is_changed_ && rounds_kept_ >= active_.size() / kPlannedPerRound);
}

void Shockwave::on_arrival(const View&, JobId job) {
  active_.push_back(job);
  is_changed_ = is_waiting_ = true;
}

void Shockwave::on_departure(const View&, JobId job) {
  std::erase(active_, job);
  for (std::vector<JobId>& round : planned_) std::erase(round, job);
  is_changed_ = true;
}

/// Rate of a job that has its n-th part of the cluster to itself.
double Shockwave::equal_part(const View& view, JobId job) const {
  return themis::isolated_rate(std::max<std::int64_t>(1, view.cluster.usable_gpus()),
                               active_.size(), view.gpus(job));
}

void Shockwave::book(const View& view) {
  for (const JobId job : active_) {
    Row& row = rows_[job.value];
    const Duration done = view.jobs.work_done(job, view.now);
    row.ideal += to_seconds(done - row.booked) / equal_part(view, job);
    row.booked = done;
  }
}

WindowJob Shockwave::facts(const View& view, JobId job) const {
  const double round = to_seconds(options_.round);
  const double done = to_seconds(view.jobs.work_done(job, view.now));
  // Who has outlived its estimate is taken to need one round more.
  const Duration known = view.estimated_left(job);
  const double left = known > Duration::zero() ? to_seconds(known) : round;
  const double rho = predicted_rho(to_seconds(view.now - view.jobs.submitted[job]),
                                   left / equal_part(view, job), rows_[job.value].ideal);
  return {.gpus = std::max(1, view.gpus(job)),
          .progress = done / (done + left),
          .left_rounds = left / round,
          .weight = portable_pow(std::clamp(rho, 1e-6, kMostRho), options_.power)};
}

void Shockwave::plan_ahead(const View& view) {
  std::vector<WindowJob> jobs;
  std::ranges::sort(active_);
  std::int64_t wanted = 0;
  for (const JobId job : active_) {
    jobs.push_back(facts(view, job));
    const WindowJob& one = jobs.back();
    wanted += one.gpus;
    rows_[job.value].urgency =
        one.weight * portable_log(one.progress_after(1) / one.progress_after(0)) / one.gpus;
  }
  const std::int64_t gpus = view.cluster.usable_gpus();
  planned_.clear();
  if (wanted <= gpus) {
    planned_.assign(static_cast<std::size_t>(options_.window.rounds), active_);
  } else {
    const Window window = plan_window(jobs, gpus, options_.window);
    for (auto round = window.rounds.rbegin(); round != window.rounds.rend(); ++round) {
      auto& chosen = planned_.emplace_back();
      for (const std::uint32_t job : *round) chosen.push_back(active_[job]);
    }
  }
  const auto most_urgent = [&](JobId job) { return std::tuple(-rows_[job.value].urgency, job); };
  std::ranges::sort(active_, {}, most_urgent);
  for (auto& round : planned_) std::ranges::sort(round, {}, most_urgent);
  is_changed_ = false;
  rounds_kept_ = 0;
}

/// False: a gang found no place although there are devices enough in all.
bool Shockwave::place(const View& view, Plan& plan, const std::vector<JobId>& chosen) const {
  bool all = true;
  for (const JobId job : chosen) {
    if (plan.holds(job) || view.gpus(job) > plan.cluster().free_gpus()) continue;
    all = plan.try_start(job, Reason::Round) && all;
  }
  return all;
}

void Shockwave::begin_round(const View& view, Plan& plan) {
  book(view);
  if (is_stale()) plan_ahead(view);
  if (planned_.empty()) return;
  ++rounds_kept_;
  const std::vector<JobId> chosen = std::move(planned_.back());
  planned_.pop_back();
  // Who still pays for its start goes on: else a round below that cost would be the end of all
  // progress. Who stays keeps its devices, unless they are in the way of another.
  std::vector<JobId> staying, stopped;
  for (const JobId job : active_) {
    if (!plan.holds(job) || view.jobs.work_from[job] >= view.now) continue;
    stopped.push_back(job);
    if (std::ranges::find(chosen, job) != chosen.end()) staying.push_back(job);
  }
  for (const JobId job : stopped) plan.preempt(job, Reason::Round);
  const Plan::Mark empty = plan.mark();
  static_cast<void>(place(view, plan, staying));
  if (place(view, plan, chosen)) return;
  plan.rollback(empty);
  static_cast<void>(place(view, plan, chosen));
}

void Shockwave::start_waiting(const View& view, Plan& plan) {
  blocked_.assign(view.shapes.size(), false);
  is_waiting_ = false;
  for (const JobId job : active_) {
    const ShapeId shape = view.jobs.shape[job];
    if (plan.holds(job)) continue;
    if (blocked_[shape.value] || !plan.try_start(job, Reason::Backfill)) {
      blocked_[shape.value] = true;
      is_waiting_ = true;
    }
  }
}

void Shockwave::decide(const View& view, Plan& plan, Rng&) {
  if (rounds_.is_due(view.now) && !active_.empty() && is_waiting_) {
    begin_round(view, plan);
    rounds_.hold(view.now);
  }
  start_waiting(view, plan);
}

std::optional<Time> Shockwave::next_wakeup(const View& view) {
  if (!is_waiting_) return std::nullopt;
  return rounds_.wakeup(view.now);
}

}  // namespace berth::shockwave

namespace berth {

namespace {

Result<std::unique_ptr<Policy>> make(const PolicyEntry&, const Params& params) {
  shockwave::Options options;
  BERTH_TRY(options.round, params.duration("round"));
  if (options.round <= Duration::zero()) return params.wrong("round", "must be more than zero");
  BERTH_TRY(const std::int64_t rounds, params.integer("window", 1, 1000));
  options.window.rounds = static_cast<std::int32_t>(rounds);
  BERTH_TRY(options.power, params.number("power", 0, 20));
  BERTH_TRY(options.window.makespan_weight, params.number("lambda", 0, 1e6));
  BERTH_TRY(const std::int64_t swap, params.integer("swap_jobs", 0, 1'000'000));
  options.window.swap_jobs = static_cast<std::size_t>(swap);
  return std::make_unique<shockwave::Shockwave>(options);
}

}  // namespace

PolicyEntry shockwave_entry() {
  return {
      .name = "shockwave",
      .summary =
          "welfare of all jobs planned over a window of rounds, weighted by finish-time fairness",
      .params = {{"round", "120", "seconds of a round, aligned to time zero"},
                 {"window", "20", "rounds planned at once"},
                 {"power", "5", "of a job's predicted finish-time fairness in its weight"},
                 {"lambda", "5",
                  "weight of the makespan that remains after the window, in windows"},
                 {"swap_jobs", "100", "with more jobs rounds are dealt and not improved"}},
      .make = make};
}

}  // namespace berth
