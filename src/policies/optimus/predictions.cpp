#include "policies/optimus/predictions.h"

#include <algorithm>
#include <cmath>

#include "policies/kit/beliefs.h"
#include "policies/kit/training_reports.h"

namespace berth::optimus {

namespace {

constexpr double kSameSpeed = 0.01;  // a speed this close to the known one is nothing new

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

}  // namespace

void Predictions::add(const View& view, JobId job) {
  const Kind& kind = view.kind(job);
  const std::int32_t own =
      view.believed().batch_of(standing_of(view, view.jobs.kind[job], PoolId{0}, 1));
  const std::int32_t whole = std::max(1, own * std::max(1, kind.wanted));
  Trainee& trainee = trainees_.emplace(job, Trainee{whole}).first->second;
  trainee.range = range_of(view, job, options_.elastic, whole);
}

void Predictions::remove(const View& view, JobId job) {
  if (view.jobs.state[job] == JobState::Completed) {
    if (const auto report = sensible_report(view, job)) {
      Mean& mean = usual_epochs_[view.jobs.profile[job]];
      mean.sum += report->epochs;
      ++mean.count;
    }
  }
  trainees_.erase(job);
}

std::int32_t Predictions::batch_on(const View& view, JobId job, std::int32_t gpus) const {
  if (gpus == view.gpus(job)) return 0;
  return split_batch(of(job).whole_batch, gpus);
}

const std::vector<double>& Predictions::rates(const View& view, JobId job, PoolId pool) {
  const KindId kind = view.jobs.kind[job];
  return rates_.of(kind).of(pool, [&] {
    std::vector<double> rates{0.0};
    for (std::int32_t gpus = 1; gpus <= of(job).range.most; ++gpus) {
      Standing standing = standing_of(view, kind, pool, gpus);
      standing.terms.batch = batch_on(view, job, gpus);
      rates.push_back(view.believed().alone(standing));
    }
    return rates;
  });
}

void Predictions::assign(const View& view, JobId job, PoolId pool) {
  Trainee& trainee = trainees_.at(job);
  if (trainee.pool == pool) return;
  trainee.pool = pool;
  trainee.believed = &rates(view, job, pool);
  trainee.speeds = SpeedModel(SpeedForm::AllReduce, trainee.whole_batch);
  trainee.calibration = 1;
  if (options_.speed == SpeedSource::Fit) seed(trainee);
}

/// Sample runs before the first interval, with 1, 2, 4, ... GPUs: they show what is believed.
void Predictions::seed(Trainee& trainee) const {
  for (std::int32_t gpus = 1; gpus <= trainee.range.most; gpus *= 2) {
    const double rate = (*trainee.believed)[static_cast<std::size_t>(gpus)];
    if (rate > 0) trainee.speeds.add({.workers = gpus}, rate);
  }
}

void Predictions::observe(const View& view, JobId job) {
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

void Predictions::take_losses(const View& view, JobId job, Trainee& trainee) {
  new_losses_.clear();
  sensible_losses(view, job, trainee.next_epoch, new_losses_);
  if (new_losses_.empty()) return;
  for (const double loss : new_losses_)
    trainee.losses.push_back({static_cast<double>(trainee.next_epoch++), loss});
  // Averaged only when twice too many have come, so that it costs O(1) per epoch.
  if (trainee.losses.size() > 2 * options_.fit.max_points)
    trainee.losses = averaged(trainee.losses, options_.fit.max_points);
  trainee.curve = fit_losses(trainee.losses, options_.fit);
}

Forecast Predictions::from_estimate(const View& view, JobId job) const {
  const double done = to_seconds(view.jobs.work_done(job, view.now));
  double left = to_seconds(view.estimated_left(job));
  if (left <= 0) left = std::max(1.0, kOverrunShare * done);  // it outlived its estimate
  return {.work_left = left, .is_young = done < options_.young_share * (done + left)};
}

Forecast Predictions::forecast(const View& view, JobId job) const {
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
  // Epochs become reference seconds by what an epoch has taken so far.
  const double left = epochs_left(known, report->epochs, options_.convergence);
  return {.work_left = left * done / report->epochs,
          .is_young = report->epochs < options_.young_share * (report->epochs + left)};
}

double Predictions::speed(const Trainee& trainee, std::int32_t gpus) const noexcept {
  const TaskCounts tasks{.workers = gpus};
  if (const auto measured = trainee.speeds.measured(tasks)) return *measured;
  if (options_.speed == SpeedSource::Fit && trainee.speeds.is_ready())
    return trainee.speeds.fitted(tasks);
  const auto at = static_cast<std::size_t>(gpus);
  return at < trainee.believed->size() ? trainee.calibration * (*trainee.believed)[at] : 0;
}

}  // namespace berth::optimus
