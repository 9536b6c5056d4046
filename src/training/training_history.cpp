#include "training/training_history.h"

#include <algorithm>
#include <cmath>

#include "training/steady_speed.h"

namespace berth {

namespace {

constexpr std::size_t kKeptSpeeds = 64;
constexpr double kSpeedSeconds = 60;  // older reports do not count while there are newer ones
constexpr std::size_t kMostEpochs = 100'000;
constexpr double kMostLoss = 1e15;   // beyond, a training has come apart and no curve fits it
constexpr double kMostNoise = 1e12;  // samples

}  // namespace

void TrainingHistory::reconnect() {
  last_counted_.reset();
  reported_at_.reset();
}

void TrainingHistory::begin_attempt() {
  reconnect();
  speeds_.clear();
}

std::optional<IterationSample> TrainingHistory::add(const Report& report, double now) {
  heard_at_ = now;
  if (report.batch) batch_ = static_cast<double>(*report.batch);
  sub_steps_ = std::max(1, report.sub_steps);
  if (report.noise_scale && *report.noise_scale <= kMostNoise) noise_scale_ = *report.noise_scale;
  keep_loss(report);
  iteration_ = report.iteration;

  std::optional<IterationSample> sample;
  if (last_counted_ && report.iteration > *last_counted_) {
    const std::int64_t done = report.iteration - *last_counted_;
    const double seconds = report.seconds.value_or(now - *reported_at_);
    if (seconds > 0) {
      const auto iterations = static_cast<double>(done);
      const double samples = report.samples.value_or(iterations * batch_);
      sample = {.seconds = seconds / iterations,
                .iterations = done,
                .batch = batch_,
                .sub_steps = sub_steps_};
      speeds_.push_back({sample->seconds, samples / seconds, now});
      if (speeds_.size() > kKeptSpeeds) speeds_.pop_front();
      while (speeds_.front().at < now - kSpeedSeconds) speeds_.pop_front();
    }
  }
  last_counted_ = report.iteration;
  reported_at_ = now;
  return sample;
}

void TrainingHistory::add(const Checkpointed& checkpointed, double now) {
  heard_at_ = now;
  checkpoint_iteration_ = static_cast<double>(checkpointed.iteration);
  reported_at_ = now;  // writing it was no training
}

/// The loss after a whole epoch is the first one heard from there on. A job that goes back to a
/// checkpoint does epochs again that are known already.
void TrainingHistory::keep_loss(const Report& report) {
  const bool has_loss = report.loss && std::abs(*report.loss) <= kMostLoss;
  if (has_loss) loss_ = report.loss;
  if (report.epoch) epoch_ = report.epoch;
  if (!has_loss || !report.epoch) return;
  const auto epochs =
      static_cast<std::size_t>(std::min(*report.epoch, static_cast<double>(kMostEpochs - 1)));
  while (epoch_losses_.size() <= epochs) epoch_losses_.push_back(*report.loss);
}

TrainingFigures TrainingHistory::figures(double now) const {
  TrainingFigures figures;
  figures.iterations = static_cast<double>(iteration_);
  std::vector<double> seconds, samples;
  for (const Speed& speed : speeds_) {
    seconds.push_back(speed.seconds);
    samples.push_back(speed.samples_per_second);
  }
  if (!speeds_.empty()) {
    figures.iterations_per_second = 1 / median(seconds);
    figures.samples_per_second = median(samples);
  }
  figures.loss = loss_;
  figures.sub_steps = sub_steps_;
  figures.last_heard_seconds_ago = heard_at_ ? std::max(0.0, now - *heard_at_) : 0;
  figures.checkpoint_iteration = checkpoint_iteration_;
  return figures;
}

std::optional<TrainingReport> TrainingHistory::report() const {
  if (!epoch_) return std::nullopt;
  const double loss = epoch_losses_.empty() ? loss_.value_or(0) : epoch_losses_.back();
  return TrainingReport{.epochs = *epoch_, .loss = loss, .noise_scale = noise_scale_};
}

void TrainingHistory::losses(std::int64_t first, std::vector<double>& losses) const {
  for (auto epoch = static_cast<std::size_t>(std::max<std::int64_t>(first, 0));
       epoch < epoch_losses_.size(); ++epoch)
    losses.push_back(epoch_losses_[epoch]);
}

}  // namespace berth
