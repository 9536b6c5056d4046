#include "training/progress.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include <fmt/format.h>

#include "training/steady_speed.h"

namespace berth {

namespace {

constexpr double kSpacing = 1;            // seconds between points
constexpr double kWindow = 60;            // seconds; older points do not count
constexpr std::size_t kFewestPoints = 4;  // three stretches: a median of fewer is anybody's guess
constexpr double kLongStretch = 10;       // seconds; one such stretch is enough
constexpr double kTorn = 0.2;             // mean and median differ by more: there were pauses

// What no training does.
constexpr double kMostPerSecond = 1e5;  // iterations
constexpr double kMostSaidEpochs = 1e7;
constexpr double kMostEpochsPerSecond = 1e3;
constexpr double kSlackSeconds = 2;  // clocks, and reports that came together

}  // namespace

void ProgressMeter::begin_attempt() { *this = {}; }

void ProgressMeter::reconnect() {
  last_.reset();
  connected_.reset();
  said_seconds_ = 0;
  epoch_.reset();
  points_.clear();
}

void ProgressMeter::conditions_changed() { points_.clear(); }

std::optional<std::string> ProgressMeter::fault_of(const Report& report, double now) const {
  if (report.epoch && *report.epoch > kMostSaidEpochs)
    return fmt::format("{:.3g} epochs", *report.epoch);
  if (!last_) return std::nullopt;
  const auto iterations = static_cast<double>(report.iteration);
  const double done = iterations - last_->iterations;
  const double elapsed = std::max(0.0, now - last_->at);
  if (done < 0)
    return fmt::format("iteration {:.0f} after {:.0f} without a new beginning", iterations,
                       last_->iterations);
  if (done > kMostPerSecond * (elapsed + kSlackSeconds))
    return fmt::format("{:.3g} iterations in {:.3g} s", done, elapsed);
  // Since the first report and not since the last: on a busy machine several are heard at once, and
  // tell of time that has passed while nobody listened.
  const double said = said_seconds_ + report.seconds.value_or(0);
  const double heard = std::max(0.0, now - connected_->at);
  if (said > 2 * heard + kSlackSeconds)
    return fmt::format("{:.3g} s of training in {:.3g} s", said, heard);
  if (report.seconds && *report.seconds > 0 && done / *report.seconds > kMostPerSecond)
    return fmt::format("{:.3g} iterations in {:.3g} s of training", done, *report.seconds);
  if (report.epoch && epoch_) {
    if (*report.epoch < *epoch_)
      return fmt::format("epoch {:.3g} after {:.3g} without a new beginning", *report.epoch,
                         *epoch_);
    if (*report.epoch - *epoch_ > kMostEpochsPerSecond * (elapsed + kSlackSeconds))
      return fmt::format("{:.3g} epochs in {:.3g} s", *report.epoch - *epoch_, elapsed);
  }
  return std::nullopt;
}

std::optional<std::string> ProgressMeter::add(const Report& report, double now) {
  if (!is_believed_) return std::nullopt;
  if (auto fault = fault_of(report, now)) {
    is_believed_ = false;
    points_.clear();
    return fault;
  }
  const Point point{now, static_cast<double>(report.iteration)};
  if (!reported_) first_at_ = now;
  if (report.batch) batch_ = static_cast<double>(*report.batch);
  if (connected_)
    said_seconds_ += report.seconds.value_or(0);
  else
    connected_ = point;
  last_ = reported_ = point;
  if (report.epoch) epoch_ = report.epoch;
  if (points_.empty() || now - points_.back().at >= kSpacing) points_.push_back(point);
  while (points_.size() > 2 && points_.front().at < now - kWindow) points_.pop_front();
  return std::nullopt;
}

double ProgressMeter::pace() const {
  if (points_.size() < 2) return 0;
  const double seconds = points_.back().at - points_.front().at;
  const double mean = (points_.back().iterations - points_.front().iterations) / seconds;
  if (points_.size() < kFewestPoints) return seconds >= kLongStretch ? mean : 0;
  std::vector<double> paces;
  for (std::size_t i = 1; i < points_.size(); ++i) {
    paces.push_back((points_[i].iterations - points_[i - 1].iterations) /
                    (points_[i].at - points_[i - 1].at));
  }
  const double middle = median(std::move(paces));
  return std::abs(mean - middle) <= kTorn * middle ? mean : middle;
}

std::optional<MeasuredProgress> ProgressMeter::measured(double now) const {
  if (!is_believed_ || !reported_) return std::nullopt;
  return MeasuredProgress{.iterations = reported_->iterations,
                          .seconds_ago = std::max(0.0, now - reported_->at),
                          .per_second = pace(),
                          .first_seconds_ago = std::max(0.0, now - first_at_),
                          .batch = batch_};
}

}  // namespace berth
