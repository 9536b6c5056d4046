#include "policies/hpo/trials.h"

#include <algorithm>
#include <cmath>

#include "policies/hpo/rules.h"
#include "policies/kit/training_reports.h"

namespace berth::hpo {

namespace {

constexpr Duration kLittleLater = std::chrono::milliseconds{1};

/// The last loss it reported, if it has kept none of that epoch.
double loss_at(const View& view, JobId job, double epochs, double last) {
  std::vector<double> losses;
  sensible_losses(view, job, static_cast<std::int64_t>(std::floor(epochs)), losses);
  return losses.empty() ? last : losses.front();
}

}  // namespace

StudyId Trials::study_named(const View& view, JobId job) {
  const auto fresh = StudyId{static_cast<std::uint32_t>(rows_.size())};
  const auto [entry, is_new] = id_of_name_.try_emplace(view.request(job).study, fresh);
  if (is_new) {
    StudyRules rules = rules_;
    if (rules.whole <= 0)
      rules.whole = std::max(1.0, view.believed().profile(view.jobs.profile[job]).loss.epochs);
    rows_.push_back({.study = Study{rules},
                     .jobs = {},
                     .weight = std::max(1e-6, static_cast<double>(view.request(job).weight)),
                     .deadline = {}});
  }
  return entry->second;
}

void Trials::add(const View& view, JobId job) {
  const StudyId id = study_named(view, job);
  Row& row = rows_[id];
  member_[job] = {id, row.study.add()};
  row.jobs.push_back(job);
  ++row.unfinished;
  active_.insert(id);
  const auto deadline = view.deadline(job);
  if (!deadline || view.deadline_is_soft(job)) return;
  if (row.deadline) deadlines_.erase({*row.deadline, id});
  row.deadline = row.deadline ? std::min(*row.deadline, *deadline) : *deadline;
  deadlines_.emplace(*row.deadline, id);
}

void Trials::start(const View& view, StudyId id, const Promotion& promotion) {
  rows_[id].study.start(promotion);
  set_look(view, rows_[id].jobs[promotion.trial]);
}

void Trials::interrupt(JobId job) {
  looks_.drop(job);
  rows_[study_of(job)].study.interrupt(member_[job].trial);
}

void Trials::complete(const View& view, JobId job) {
  Study& study = rows_[study_of(job)].study;
  const TrialId trial = member_[job].trial;
  if (!study.is_running(trial)) return;
  if (const auto report = sensible_report(view, job))
    static_cast<void>(study.reach(trial, report->loss));
}

void Trials::end(JobId job) {
  if (is_over(job)) return;  // stopped by us, and now it departs
  const StudyId id = study_of(job);
  Row& row = rows_[id];
  looks_.drop(job);
  row.study.end(member_[job].trial);
  if (--row.unfinished > 0) return;
  active_.erase(id);
  if (row.deadline) deadlines_.erase({*row.deadline, id});
}

std::optional<StudyId> Trials::pop_overdue(Time now) {
  if (deadlines_.empty() || deadlines_.begin()->first > now) return std::nullopt;
  return deadlines_.extract(deadlines_.begin()).value().second;
}

std::vector<JobId> Trials::pop_due(Time now) {
  std::vector<JobId> jobs = looks_.due(now);
  for (const JobId job : jobs) looks_.drop(job);
  std::ranges::sort(jobs);
  return jobs;
}

std::optional<Study::Verdict> Trials::judge(const View& view, JobId job) {
  Study& study = rows_[study_of(job)].study;
  const TrialId trial = member_[job].trial;
  const double wanted = study.rungs().epochs(study.target(trial));
  const auto report = sensible_report(view, job);
  std::optional<Study::Verdict> verdict;
  if (report && report->epochs >= wanted)
    verdict = study.reach(trial, loss_at(view, job, wanted, report->loss));
  if (!verdict || *verdict == Study::Verdict::GoOn) set_look(view, job);
  return verdict;
}

void Trials::set_look(const View& view, JobId job) {
  looks_.drop(job);
  Row& row = rows_[study_of(job)];
  const std::size_t rung = row.study.target(member_[job].trial);
  if (rung == row.study.rungs().last()) return;  // it ends by itself
  const auto report = sensible_report(view, job);
  const double work = to_seconds(view.jobs.work_done(job, view.now));
  const double rate = view.jobs.is_running(job) ? view.jobs.rate[job].value() : 0;
  Time look = view.now + probe_;
  if (report && report->epochs > 0 && work > 0) {
    const double per_epoch = work / report->epochs;  // seconds at the rate 1
    row.seconds_per_epoch = per_epoch;
    const double to_do = (row.study.rungs().epochs(rung) - report->epochs) * per_epoch;
    // A trial that was started in this very pass is not rated yet: taken to run as it asked.
    const Time from = std::max(view.now, rate > 0 ? view.jobs.work_from[job] : view.now);
    look = std::max(view.now + kLittleLater,
                    from + seconds_to_duration_up(to_do / (rate > 0 ? rate : 1)));
  }
  // A program learns as fast as it likes: it is not left alone until it was expected, or it could
  // be trained to its end meanwhile.
  if (view.sizes_are_agreed()) look = std::min(look, view.now + probe_);
  looks_.set(job, look);
}

double Trials::epochs_left(const View& view, JobId job) const {
  const Study& study = rows_[study_of(job)].study;
  const auto report = sensible_report(view, job);
  const double done = report ? report->epochs : 0;
  std::size_t rung = study.target(member_[job].trial);
  while (rung < study.rungs().last() && study.rungs().epochs(rung) <= done) ++rung;
  return std::max(1e-3, study.rungs().epochs(rung) - done);
}

Horizon Trials::horizon(const View& view, const Row& row) const {
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

}  // namespace berth::hpo
