// What becomes of trials: looked at when they should have reached their rung, promoted, paused,
// stopped; studies that are over; leaders that grow.
#include <algorithm>
#include <cmath>

#include "policies/hpo/hpo.h"
#include "policies/kit/training_reports.h"

namespace berth::hpo {

namespace {
constexpr Duration kLittleLater = std::chrono::milliseconds{1};
}

void Hpo::drop_check(JobId job) {
  JobRow& row = jobs_[job.value];
  checks_.erase({row.check, job});
  row.check = kNever;
}

/// When it should reach its rung, by how fast it has learnt so far; soon, if nothing is seen yet.
void Hpo::set_check(const View& view, JobId job) {
  drop_check(job);
  JobRow& row = jobs_[job.value];
  StudyRow& study = studies_[row.study];
  const std::size_t rung = study.study.target(row.trial);
  if (rung == study.study.rungs().last()) return;  // it ends by itself
  const auto report = sensible_report(view, job);
  const double work = to_seconds(view.jobs.work_done(job, view.now));
  const double rate = view.jobs.is_running(job) ? view.jobs.rate[job].value() : 0;
  row.check = view.now + options_.probe;
  if (report && report->epochs > 0 && work > 0) {
    const double per_epoch = work / report->epochs;  // seconds at the rate 1
    study.seconds_per_epoch = per_epoch;
    const double to_do = (study.study.rungs().epochs(rung) - report->epochs) * per_epoch;
    // A trial that was started in this very pass is not rated yet: taken to run as it asked.
    const Time from = std::max(view.now, rate > 0 ? view.jobs.work_from[job] : view.now);
    row.check = std::max(view.now + kLittleLater,
                         from + seconds_to_duration_up(to_do / (rate > 0 ? rate : 1)));
  }
  // A program learns as fast as it likes: it is not left alone until it was expected, or it could
  // be trained to its end meanwhile.
  if (view.sizes_are_agreed()) row.check = std::min(row.check, view.now + options_.probe);
  checks_.emplace(row.check, job);
}

void Hpo::on_rate(const View& view, JobId job) {
  if (jobs_[job.value].check != kNever) set_check(view, job);
}

void Hpo::judge_trials(const View& view, Plan& plan) {
  std::vector<JobId> due;
  while (!checks_.empty() && checks_.begin()->first <= view.now) {
    due.push_back(checks_.begin()->second);
    jobs_[due.back().value].check = kNever;
    checks_.erase(checks_.begin());
  }
  std::ranges::sort(due);
  for (const JobId job : due) judge(view, plan, job);
}

/// The last loss it reported, if it has kept none of that epoch.
double Hpo::loss_at(const View& view, JobId job, double epochs, double last) const {
  std::vector<double> losses;
  sensible_losses(view, job, static_cast<std::int64_t>(std::floor(epochs)), losses);
  return losses.empty() ? last : losses.front();
}

void Hpo::judge(const View& view, Plan& plan, JobId job) {
  const JobRow& row = jobs_[job.value];
  Study& study = studies_[row.study].study;
  const double wanted = study.rungs().epochs(study.target(row.trial));
  const auto report = sensible_report(view, job);
  if (!report || report->epochs < wanted) return set_check(view, job);
  switch (study.reach(row.trial, loss_at(view, job, wanted, report->loss))) {
    case Study::Verdict::GoOn: set_check(view, job); break;
    case Study::Verdict::Stop: stop_trial(plan, job, Reason::EarlyStop); break;
    case Study::Verdict::Wait:
      stopped_[job] = {plan.pool_of(job), {plan.slices(job).begin(), plan.slices(job).end()}};
      plan.preempt(job, Reason::EarlyStop);
      note_held(job, 0);
      break;
  }
}

/// For good; twice for a trial that is stopped: with the decision, and when it departs.
void Hpo::forget_trial(JobId job) {
  const JobRow& row = jobs_[job.value];
  StudyRow& study = studies_[row.study];
  if (study.study.is_over(row.trial)) return;
  drop_check(job);
  study.study.end(row.trial);
  if (--study.unfinished > 0) return;
  active_.erase(row.study);
  if (study.deadline) deadlines_.erase({*study.deadline, row.study});
}

void Hpo::stop_trial(Plan& plan, JobId job, Reason reason) {
  plan.kill(job, reason);
  note_held(job, 0);
  forget_trial(job);
}

Horizon Hpo::horizon(const View& view, const StudyRow& row) const {
  if (!row.deadline || row.seconds_per_epoch <= 0) return {};
  const double left = to_seconds(*row.deadline - view.now);
  const Rungs& rungs = row.study.rungs();
  Horizon horizon{.may_explore = may_explore(left, row.seconds_per_epoch,
                                             rungs.epochs(std::min<std::size_t>(1, rungs.last()))),
                  .highest_rung = 0};
  while (horizon.highest_rung < rungs.last() &&
         may_promote(left, row.seconds_per_epoch, rungs.cost(horizon.highest_rung + 1)))
    ++horizon.highest_rung;
  return horizon;
}

/// A study at its deadline is over, all trials at once.
void Hpo::end_overdue(const View& view, Plan& plan) {
  while (!deadlines_.empty() && deadlines_.begin()->first <= view.now) {
    const StudyId id = deadlines_.begin()->second;
    deadlines_.erase(deadlines_.begin());
    for (const JobId job : studies_[id].trials) {
      if (!studies_[id].study.is_over(jobs_[job.value].trial))
        stop_trial(plan, job, Reason::Deadline);
    }
  }
}

/// Nobody runs and nobody may go on: whoever still waits has lost.
void Hpo::end_settled(const View& view, Plan& plan) {
  for (const StudyId id : std::vector<StudyId>(active_.begin(), active_.end())) {
    StudyRow& row = studies_[id];
    if (!row.study.is_settled(horizon(view, row))) continue;
    for (const TrialId trial : row.study.waiting())
      stop_trial(plan, row.trials[trial], Reason::EarlyStop);
  }
}

/// Idle GPUs to the leader of a study with a deadline, twice as many while that pays.
void Hpo::grow_leaders(const View& view, Plan& plan) {
  for (const auto& [deadline, id] : deadlines_) {
    const StudyRow& row = studies_[id];
    const auto leader = row.study.leader();
    if (!leader || !row.study.is_running(*leader)) continue;
    const JobId job = row.trials[*leader];
    if (!view.jobs.is_running(job)) continue;  // started in this pass
    const std::int32_t most = elastic_range(view, job, options_.elastic).most;
    try_grow(view, plan, job, std::min(2 * plan.gpus_of(job), most));
  }
}

}  // namespace berth::hpo
