#include "policies/shockwave/shockwave.h"

#include <algorithm>
#include <tuple>

#include "base/portable_math.h"

namespace berth::shockwave {

namespace {
constexpr double kMostRho = 1e6;  // its power stays finite
constexpr std::size_t kPlannedPerRound = 250;
}  // namespace

void Shockwave::begin(const View& view) {
  shares_.begin(view);
  urgency_.resize(view.jobs.size());
}

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

WindowJob Shockwave::facts(const View& view, JobId job) const {
  const double round = to_seconds(options_.round);
  const double done = to_seconds(view.jobs.work_done(job, view.now));
  // A job that has outlived its estimate is taken to need one round more.
  const Duration known = view.estimated_left(job);
  const double left = known > Duration::zero() ? to_seconds(known) : round;
  const double rate = EqualShares::rate(view, job, active_.size());
  const double rho = predicted_rho(to_seconds(view.now - view.jobs.submitted[job]), left / rate,
                                   shares_.seconds(job));
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
    urgency_[job] =
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
  const auto most_urgent = [&](JobId job) { return std::tuple(-urgency_[job], job); };
  std::ranges::sort(active_, {}, most_urgent);
  for (auto& round : planned_) std::ranges::sort(round, {}, most_urgent);
  is_changed_ = false;
  rounds_kept_ = 0;
}

/// False: a gang found no place although there are devices enough in all.
bool Shockwave::place(Pass& pass, const std::vector<JobId>& chosen) const {
  bool all = true;
  for (const JobId job : chosen) {
    if (pass.plan.holds(job) || pass.view.gpus(job) > pass.plan.cluster().free_gpus()) continue;
    all = pass.plan.try_start(job, Reason::Round) && all;
  }
  return all;
}

void Shockwave::begin_round(Pass& pass) {
  const View& view = pass.view;
  Plan& plan = pass.plan;
  shares_.book(view, active_);
  if (is_stale()) plan_ahead(view);
  if (planned_.empty()) return;
  ++rounds_kept_;
  const std::vector<JobId> chosen = std::move(planned_.back());
  planned_.pop_back();
  // A job that still pays for its start continues: with a round shorter than that cost no job would
  // ever progress otherwise. A chosen job that runs keeps its devices unless that leaves no place
  // for another chosen one.
  std::vector<JobId> staying, stopped;
  for (const JobId job : active_) {
    if (!plan.holds(job) || view.jobs.work_from[job] >= view.now) continue;
    stopped.push_back(job);
    if (std::ranges::find(chosen, job) != chosen.end()) staying.push_back(job);
  }
  for (const JobId job : stopped) plan.preempt(job, Reason::Round);
  const bool all_placed = pass.attempt([&] {
    place(pass, staying);
    return place(pass, chosen);
  });
  if (!all_placed) place(pass, chosen);
}

void Shockwave::start_waiting(Plan& plan) {
  blocked_.clear();
  is_waiting_ = false;
  for (const JobId job : active_) {
    if (plan.holds(job)) continue;
    if (!try_start_unblocked(plan, blocked_, job, Reason::Backfill)) is_waiting_ = true;
  }
}

void Shockwave::decide(const View& view, Plan& plan, Rng& rng) {
  Pass pass{view, plan, rng};
  if (rounds_.is_due(view.now) && !active_.empty() && is_waiting_) {
    begin_round(pass);
    rounds_.hold(view.now);
  }
  start_waiting(plan);
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
  BERTH_TRY(options.round, params.positive_duration("round"));
  BERTH_TRY(options.window.rounds, params.whole<std::int32_t>("window", 1, 1000));
  BERTH_TRY(options.power, params.number("power", 0, 20));
  BERTH_TRY(options.window.makespan_weight, params.number("lambda", 0, 1e6));
  BERTH_TRY(options.window.swap_jobs, params.whole<std::size_t>("swap_jobs", 0, 1'000'000));
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
      .make = make,
      .test_settings = {{"round", "5"}, {"window", "4"}}};
}

}  // namespace berth
