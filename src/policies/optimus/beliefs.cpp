#include "policies/optimus/beliefs.h"

#include <algorithm>
#include <cmath>

#include "policies/kit/training_reports.h"

namespace berth::optimus {

namespace {

constexpr double kOverrunShare = 0.05;  // of the work done, left once a job outlives its estimate
constexpr double kSameSpeed = 0.01;     // a speed this close to the known one is nothing new

/// A fraction of a device stays one; a job does not grow beyond one sample per GPU.
ElasticRange range_of(const View& view, JobId job, const ElasticRule& rule, std::int32_t batch) {
  const std::int32_t gpus = view.gpus(job);
  if (view.shape(job).is_fraction()) return {gpus, gpus};
  ElasticRange range = elastic_range(view, job, rule);
  if (!range.is_fixed()) range.most = std::max(range.least, std::min(range.most, batch));
  return range;
}

std::int32_t split_batch(std::int32_t whole, std::int32_t gpus) noexcept {
  return std::max(1, (whole + gpus / 2) / gpus);
}

Standing standing_of(const View& view, JobId job, PoolId pool) {
  Standing standing{.profile = view.jobs.profile[job], .pool = pool};
  standing.reference = view.jobs.reference[job];
  standing.gpus = standing.wanted = view.gpus(job);
  standing.batch = view.jobs.batch[job];
  return standing;
}

}  // namespace

void Beliefs::add(const View& view, JobId job) {
  const Standing own = standing_of(view, job, PoolId{0});
  const std::int32_t whole =
      std::max(1, view.believed().batch_of(own) * std::max(1, view.gpus(job)));
  Trainee& trainee = trainees_.emplace(job, Trainee{whole}).first->second;
  trainee.range = range_of(view, job, options_.elastic, whole);
}

void Beliefs::remove(const View& view, JobId job) {
  if (view.jobs.state[job] == JobState::Completed) {
    if (const auto report = sensible_report(view, job)) {
      Mean& mean = usual_epochs_[view.jobs.profile[job]];
      mean.sum += report->epochs;
      ++mean.count;
    }
  }
  trainees_.erase(job);
}

std::int32_t Beliefs::batch_on(const View& view, JobId job, std::int32_t gpus) const {
  if (gpus == view.gpus(job)) return 0;
  return split_batch(of(job).whole_batch, gpus);
}

const std::vector<double>& Beliefs::rates(const View& view, JobId job, PoolId pool) {
  const Trainee& trainee = of(job);
  Standing standing = standing_of(view, job, pool);
  const Kind kind{standing.profile, pool,           standing.reference,
                  standing.wanted,  standing.batch, trainee.range.most};
  const auto [entry, is_new] = rates_.try_emplace(kind);
  if (!is_new) return entry->second;
  entry->second.push_back(0);
  for (std::int32_t gpus = 1; gpus <= trainee.range.most; ++gpus) {
    standing.gpus = gpus;
    standing.level = view.believed().best_level(pool, gpus);
    standing.terms.batch = batch_on(view, job, gpus);
    entry->second.push_back(view.believed().alone(standing));
  }
  return entry->second;
}

void Beliefs::assign(const View& view, JobId job, PoolId pool) {
  Trainee& trainee = trainees_.at(job);
  if (trainee.pool == pool) return;
  trainee.pool = pool;
  trainee.believed = &rates(view, job, pool);
  trainee.speeds = SpeedModel(SpeedForm::AllReduce, trainee.whole_batch);
  trainee.calibration = 1;
  if (options_.speed == SpeedSource::Fit) seed(trainee);
}

/// Sample runs before the first interval, with 1, 2, 4, ... GPUs: they show what is believed.
void Beliefs::seed(Trainee& trainee) const {
  for (std::int32_t gpus = 1; gpus <= trainee.range.most; gpus *= 2) {
    const double rate = (*trainee.believed)[static_cast<std::size_t>(gpus)];
    if (rate > 0) trainee.speeds.add({.workers = gpus}, rate);
  }
}

void Beliefs::observe(const View& view, JobId job) {
  Trainee& trainee = trainees_.at(job);
  const double rate = view.jobs.rate[job].value();
  const TaskCounts tasks{.workers = view.jobs.granted[job]};
  const auto known = trainee.speeds.measured(tasks);
  const bool is_news =
      rate > 0 && tasks.workers > 0 && (!known || std::abs(rate - *known) > kSameSpeed * *known);
  if (is_news && view.sizes_are_agreed()) {
    // The first rate at a size is what was believed of it; a measured one is a mean already.
    trainee.speeds.replace(tasks, rate);
    const auto held = static_cast<std::size_t>(tasks.workers);
    if (held < trainee.believed->size() && (*trainee.believed)[held] > 0)
      trainee.calibration = rate / (*trainee.believed)[held];
  } else if (is_news) {
    trainee.speeds.add(tasks, rate);
  }
  if (options_.work == WorkSource::Losses) take_losses(view, job, trainee);
}

void Beliefs::take_losses(const View& view, JobId job, Trainee& trainee) {
  new_losses_.clear();
  sensible_losses(view, job, trainee.next_epoch, new_losses_);
  if (new_losses_.empty()) return;
  for (const double loss : new_losses_)
    trainee.losses.push_back({static_cast<double>(trainee.next_epoch++), loss});
  if (trainee.losses.size() > 2 * options_.fit.max_points)
    trainee.losses = averaged(trainee.losses, options_.fit.max_points);
  trainee.curve = fit_losses(trainee.losses, options_.fit);
}

Forecast Beliefs::from_estimate(const View& view, JobId job) const {
  const double done = to_seconds(view.jobs.work_done(job, view.now));
  double left = to_seconds(view.estimated_left(job));
  if (left <= 0) left = std::max(1.0, kOverrunShare * done);
  return {.work_left = left, .is_young = done < options_.young_share * (done + left)};
}

Forecast Beliefs::forecast(const View& view, JobId job) const {
  if (options_.work == WorkSource::Estimate) return from_estimate(view, job);
  const auto report = sensible_report(view, job);
  const double done = to_seconds(view.jobs.work_done(job, view.now));
  if (!report || !(report->epochs > 0) || !(done > 0)) return from_estimate(view, job);
  const Trainee& trainee = of(job);
  TrainingLength known{.model = trainee.curve};
  if (!trainee.losses.empty()) known.first_loss = trainee.losses.front().loss;
  const auto usual = usual_epochs_.find(view.jobs.profile[job]);
  if (usual != usual_epochs_.end()) known.usual = usual->second.sum / usual->second.count;
  if (!known.model && !known.usual) return from_estimate(view, job);
  const double left = epochs_left(known, report->epochs, options_.convergence);
  return {.work_left = left * done / report->epochs,
          .is_young = report->epochs < options_.young_share * (report->epochs + left)};
}

double Beliefs::speed(const Trainee& trainee, std::int32_t gpus) const noexcept {
  const TaskCounts tasks{.workers = gpus};
  if (const auto measured = trainee.speeds.measured(tasks)) return *measured;
  if (options_.speed == SpeedSource::Fit && trainee.speeds.is_ready())
    return trainee.speeds.fitted(tasks);
  const auto at = static_cast<std::size_t>(gpus);
  return at < trainee.believed->size() ? trainee.calibration * (*trainee.believed)[at] : 0;
}

}  // namespace berth::optimus
