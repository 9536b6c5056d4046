#include "policies/optimus/loss_fit.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "policies/optimus/row_triangle.h"

namespace berth::optimus {

namespace {

constexpr double kHorizon = 100;       // epochs beyond now that a forecast reaches at most
constexpr double kUnknownEpochs = 20;  // left for a job nobody knows anything about
constexpr int kGridPoints = 50;
constexpr double kNearlyAll = 1 - 1e-9;  // b2 stays below the least loss

struct Candidate {
  LossModel model;
  double error = std::numeric_limits<double>::infinity();
};

/// The best curve for a given b2; losses are at most 1.
class CurveSearch {
 public:
  CurveSearch(std::span<const LossPoint> points, bool favour_late)
      : points_(points), favour_late_(favour_late) {}

  [[nodiscard]] Candidate with_floor(double b2) const {
    RowTriangle rows(2);
    for (std::size_t i = 0; i < points_.size(); ++i) {
      const std::array<double, 2> row{points_[i].epoch, 1};
      rows.add(row, 1 / (points_[i].loss - b2), weight(i));
    }
    const RowTriangle::Values b = rows.nonnegative_solution();
    Candidate candidate{.model = {.b0 = b[0], .b1 = b[1], .b2 = b2}, .error = 0};
    for (std::size_t i = 0; i < points_.size(); ++i) {
      const double off = candidate.model.at(points_[i].epoch) - points_[i].loss;
      candidate.error += weight(i) * off * off;
    }
    // b0 = b1 = 0 divides by zero: no such curve.
    if (!std::isfinite(candidate.error)) candidate.error = std::numeric_limits<double>::infinity();
    return candidate;
  }

  /// Between two grid points around the best one.
  [[nodiscard]] Candidate refine(double low, double high, Candidate best) const {
    const double golden = (std::sqrt(5.0) - 1) / 2;
    double left = high - golden * (high - low);
    double right = low + golden * (high - low);
    Candidate at_left = with_floor(left);
    Candidate at_right = with_floor(right);
    while (high - low > 1e-13) {
      if (at_left.error <= at_right.error) {
        high = right;
        right = left;
        at_right = at_left;
        left = high - golden * (high - low);
        at_left = with_floor(left);
      } else {
        low = left;
        left = right;
        at_left = at_right;
        right = low + golden * (high - low);
        at_right = with_floor(right);
      }
    }
    const Candidate& middle = at_left.error <= at_right.error ? at_left : at_right;
    return middle.error < best.error ? middle : best;
  }

 private:
  [[nodiscard]] double weight(std::size_t i) const noexcept {
    constexpr std::array<double, 3> kThirds{1, 4, 16};
    return favour_late_ ? kThirds[3 * i / points_.size()] : 1;
  }

  std::span<const LossPoint> points_;
  bool favour_late_;
};

Candidate best_curve(const CurveSearch& search, double least) {
  Candidate best;
  int at = 0;
  for (int i = 0; i < kGridPoints; ++i) {
    const Candidate candidate = search.with_floor(least * i / kGridPoints);
    if (candidate.error >= best.error) continue;
    best = candidate;
    at = i;
  }
  if (std::isinf(best.error)) return best;
  const double low = least * std::max(0, at - 1) / kGridPoints;
  const double high = least * std::min((at + 1.0) / kGridPoints, kNearlyAll);
  return search.refine(low, high, best);
}

}  // namespace

std::vector<LossPoint> without_outliers(std::span<const LossPoint> points, std::size_t neighbours) {
  std::vector<LossPoint> clean(points.begin(), points.end());
  const std::size_t n = points.size();
  if (n < 2 || neighbours == 0) return clean;
  for (std::size_t i = 0; i < n; ++i) {
    const std::size_t from = i < neighbours ? 0 : i - neighbours;
    const auto before = points.subspan(from, i - from);
    const auto after = points.subspan(i + 1, std::min(neighbours, n - i - 1));
    const bool is_above = !before.empty() && std::ranges::all_of(before, [&](const LossPoint& p) {
      return p.loss < points[i].loss;
    });
    const bool is_below = !after.empty() && std::ranges::all_of(after, [&](const LossPoint& p) {
      return p.loss > points[i].loss;
    });
    if (!is_above && !is_below) continue;
    const double left = points[i == 0 ? 1 : i - 1].loss;
    const double right = points[i + 1 == n ? i - 1 : i + 1].loss;
    clean[i].loss = (left + right) / 2;
  }
  return clean;
}

std::vector<LossPoint> averaged(std::span<const LossPoint> points, std::size_t most) {
  if (points.size() <= most) return {points.begin(), points.end()};
  const std::size_t run = (points.size() + most - 1) / most;
  std::vector<LossPoint> means;
  for (std::size_t at = 0; at < points.size(); at += run) {
    const auto part = points.subspan(at, std::min(run, points.size() - at));
    LossPoint mean;
    for (const LossPoint& point : part) {
      mean.epoch += point.epoch;
      mean.loss += point.loss;
    }
    const auto count = static_cast<double>(part.size());
    means.push_back({mean.epoch / count, mean.loss / count});
  }
  return means;
}

std::optional<LossModel> fit_losses(std::span<const LossPoint> points,
                                    const LossFitOptions& options) {
  if (points.size() < 3) return std::nullopt;
  std::vector<LossPoint> clean =
      averaged(without_outliers(points, options.neighbours), options.max_points);
  const double scale = std::ranges::max_element(clean, {}, &LossPoint::loss)->loss;
  const double least = std::ranges::min_element(clean, {}, &LossPoint::loss)->loss / scale;
  if (!(scale > 0) || !(least > 0) || !std::isfinite(scale)) return std::nullopt;
  // Losses of at most 1: the bounds of the search for b2 do not depend on their unit.
  for (LossPoint& point : clean) point.loss /= scale;
  const Candidate best = best_curve(CurveSearch(clean, options.favour_late), least);
  if (std::isinf(best.error)) return std::nullopt;
  return LossModel{
      .b0 = best.model.b0 / scale, .b1 = best.model.b1 / scale, .b2 = best.model.b2 * scale};
}

/// The curve is convex, so what it falls by per epoch only shrinks: a bisection finds the epoch.
std::int64_t converged_epoch(const LossModel& model, double first_loss, const ConvergenceRule& rule,
                             std::int64_t limit) {
  const double start = model.b1 > 0 ? model.at(0) : first_loss;
  const auto is_settled = [&](std::int64_t epoch) {
    const auto k = static_cast<double>(epoch);
    return model.at(k - 1) - model.at(k) < rule.delta * start;
  };
  std::int64_t low = 1;
  std::int64_t high = std::max<std::int64_t>(limit, 1);
  while (low < high) {
    const std::int64_t middle = low + (high - low) / 2;
    if (is_settled(middle)) {
      high = middle;
    } else {
      low = middle + 1;
    }
  }
  return std::min(low + rule.patience - 1, std::max<std::int64_t>(limit, 1));
}

double epochs_left(const TrainingLength& known, double done, const ConvergenceRule& rule) {
  const auto past_end = [&](double left) { return left > 0 ? left : kOverrunShare * done; };
  if (known.declared) return std::max(past_end(*known.declared - done), 1.0);
  double left = kUnknownEpochs;
  if (known.model) {
    const auto limit = static_cast<std::int64_t>(std::ceil(done + kHorizon));
    left = static_cast<double>(converged_epoch(*known.model, known.first_loss, rule, limit)) - done;
  } else if (known.usual) {
    left = *known.usual - done;
  }
  return std::clamp(past_end(left), 1.0, kHorizon);
}

}  // namespace berth::optimus
