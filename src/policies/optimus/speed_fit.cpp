#include "policies/optimus/speed_fit.h"

#include <algorithm>

#include "base/check.h"

namespace berth::optimus {

namespace {

constexpr double kNewest = 0.5;  // share of the newest measurement in the average

std::size_t unknowns_of(SpeedForm form) noexcept {
  switch (form) {
    case SpeedForm::Async: return 4;
    case SpeedForm::Sync: return 5;
    case SpeedForm::AllReduce: break;
  }
  return 3;
}

}  // namespace

SpeedModel::SpeedModel(SpeedForm form, double batch)
    : form_(form), batch_(batch), rows_(unknowns_of(form)) {}

std::size_t SpeedModel::unknowns() const noexcept { return unknowns_of(form_); }

RowTriangle::Values SpeedModel::row(TaskCounts tasks) const noexcept {
  const double w = tasks.workers;
  const double p = tasks.ps;
  switch (form_) {
    case SpeedForm::Async: return {1, w / p, w, p, 0};
    case SpeedForm::Sync: return {batch_ / w, 1, w / p, w, p};
    case SpeedForm::AllReduce: break;
  }
  return {batch_ / w, 1, w, 0, 0};
}

void SpeedModel::add(TaskCounts tasks, double speed) { add(tasks, speed, kNewest); }
void SpeedModel::replace(TaskCounts tasks, double speed) { add(tasks, speed, 1); }

void SpeedModel::add(TaskCounts tasks, double speed, double newest) {
  BERTH_CHECK(speed > 0 && tasks.workers > 0 && (form_ == SpeedForm::AllReduce || tasks.ps > 0),
              "a speed is measured while the job runs");
  const auto at = std::ranges::lower_bound(measured_, tasks, {}, &Measured::tasks);
  if (at != measured_.end() && at->tasks == tasks) {
    at->speed += newest * (speed - at->speed);
  } else {
    measured_.insert(at, {tasks, speed});
  }
  const RowTriangle::Values values = row(tasks);
  rows_.add(std::span{values}.first(unknowns()), numerator(tasks) / speed);
  if (is_ready()) t_ = rows_.nonnegative_solution();
}

std::optional<double> SpeedModel::measured(TaskCounts tasks) const noexcept {
  const auto at = std::ranges::lower_bound(measured_, tasks, {}, &Measured::tasks);
  if (at == measured_.end() || at->tasks != tasks) return std::nullopt;
  return at->speed;
}

double SpeedModel::fitted(TaskCounts tasks) const noexcept {
  if (!is_ready()) return 0;
  const RowTriangle::Values values = row(tasks);
  double inverse = 0;
  for (std::size_t i = 0; i < unknowns(); ++i) inverse += values[i] * t_[i];
  return inverse > 0 ? numerator(tasks) / inverse : 0;
}

}  // namespace berth::optimus
