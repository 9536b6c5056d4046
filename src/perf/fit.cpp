// Fits to measurements of other parts than the iteration. All work on sorted points, so that which
// ones are held back, and every sum, is the same for the same data in any order.

#include "perf/fit.h"

#include <algorithm>
#include <cmath>
#include <tuple>

#include <fmt/format.h>

#include "perf/fit_residual.h"
#include "perf/rate_function.h"
#include "solve/least_squares.h"

namespace berth {

void ErrorMeter::add(double predicted, double measured) noexcept {
  const double error = std::abs(predicted / measured - 1);
  if (is_held_back(next_++, count_)) {
    held_back_ += error;
    ++held_back_points_;
  } else {
    training_ += error;
  }
}

FitError ErrorMeter::result() const noexcept {
  FitError error;
  error.held_back_points = held_back_points_;
  error.training_points = static_cast<std::int32_t>(next_) - held_back_points_;
  if (error.training_points > 0) error.training = training_ / error.training_points;
  if (error.held_back_points > 0) error.held_back = held_back_ / error.held_back_points;
  return error;
}

double geometric_mean(std::span<const double> values) {
  double sum = 0;
  for (const double value : values) sum += std::log(value);
  return values.empty() ? 0 : std::exp(sum / static_cast<double>(values.size()));
}

namespace {

/// Unknowns: logarithms of seconds and bytes, overlap.
double gang_time(const Links& links, std::int32_t gpus, Level level, std::span<const double> x) {
  return overlapped(std::exp(x[0]), sync_time(std::exp(x[1]), gpus, links.at(level)), x[2], 0);
}

// Relative to the gang in one server, as the sources publish it.
double spread_slowdown(const Links& links, const LocalityPoint& point, std::span<const double> x) {
  return gang_time(links, point.gpus, point.level, x) /
         gang_time(links, point.gpus, Level::Server, x);
}

/// The places of the points to fit, in order.
std::vector<std::size_t> training_places(std::size_t count) {
  std::vector<std::size_t> places;
  for (std::size_t i = 0; i < count; ++i) {
    if (!is_held_back(i, count)) places.push_back(i);
  }
  return places;
}

CurveProblem locality_problem(const LocalityFitOptions& options) {
  const bool fits_bytes = !options.gradient_bytes;
  const bool fits_compute = !fits_bytes && !options.compute;
  CurveProblem problem;
  problem.start = {std::log(options.compute.value_or(0.1)),
                   std::log(options.gradient_bytes.value_or(1e8)), 2};
  const auto range = [&](bool fitted, std::size_t i, ParameterRange bounds) {
    problem.bounds.push_back(fitted ? bounds : ParameterRange{problem.start[i], problem.start[i]});
  };
  range(fits_compute, 0, {-12, 6});
  range(fits_bytes, 1, {0, 30});
  range(true, 2, {1, 8});
  return problem;
}

}  // namespace

Result<LocalityFit> fit_locality(std::vector<LocalityPoint> points,
                                 const LocalityFitOptions& options) {
  if (points.empty()) return fail("no spread gang was measured (give at least one)");
  for (const LocalityPoint& point : points) {
    if (!std::isfinite(point.relative_speed) || point.relative_speed <= 0 || point.gpus < 2)
      return fail(fmt::format("a gang of {} GPUs at relative speed {} cannot be fitted", point.gpus,
                              point.relative_speed));
  }
  std::ranges::sort(points, {}, [](const LocalityPoint& p) {
    return std::tie(p.gpus, p.level, p.relative_speed);
  });
  const std::vector<std::size_t> training = training_places(points.size());
  CurveProblem problem = locality_problem(options);
  problem.points = training.size();
  problem.residuals = [&](std::span<const double> x, std::span<double> out) {
    for (std::size_t i = 0; i < training.size(); ++i) {
      const LocalityPoint& point = points[training[i]];
      // Logarithms: twice too fast and twice too slow are equally wrong.
      out[i] = tamed(std::log(spread_slowdown(options.links, point, x) * point.relative_speed));
    }
  };
  const std::vector<double> x = fit_curve(problem).parameters;
  ErrorMeter meter(points.size());
  for (const LocalityPoint& point : points)
    meter.add(spread_slowdown(options.links, point, x), 1 / point.relative_speed);
  return LocalityFit{.compute = std::exp(x[0]),
                     .gradient_bytes = std::exp(x[1]),
                     .overlap = x[2],
                     .error = meter.result()};
}

// Latency and bandwidth from the transfers alone on the link; the others only test "1/k each".
Result<LinkSharing> check_link_sharing(std::vector<LinkPoint> points) {
  std::ranges::sort(points, {},
                    [](const LinkPoint& p) { return std::tie(p.bytes, p.jobs, p.seconds); });
  const auto several = std::stable_partition(points.begin(), points.end(),
                                             [](const LinkPoint& p) { return p.jobs == 1; });
  const std::span<const LinkPoint> alone(points.begin(), several);
  const std::span<const LinkPoint> shared(several, points.end());
  if (alone.empty() || shared.empty())
    return fail("a link must be measured both with one job and with several");
  Matrix a(alone.size(), 2);
  const std::vector<double> ones(alone.size(), 1.0);
  for (std::size_t i = 0; i < alone.size(); ++i) {
    // Each equation divided by its time: relative errors count, not seconds.
    a(i, 0) = 1 / alone[i].seconds;
    a(i, 1) = alone[i].bytes / alone[i].seconds;
  }
  const std::vector<double> x = nonnegative_least_squares(a, ones);
  if (x[1] <= 0) return fail("times do not grow with the bytes (measure larger messages)");
  ErrorMeter meter(shared.size());
  for (const LinkPoint& point : shared)
    meter.add(x[0] + x[1] * point.bytes * point.jobs, point.seconds);
  return LinkSharing{.bandwidth = 1 / x[1], .latency = x[0], .error = meter.result()};
}

namespace {

bool same_pair(const PairPoint& a, const PairPoint& b) {
  return a.of == b.of && a.beside == b.beside;
}

/// Means of the training points of each pair; points lie in order, so the rows do too.
std::vector<PairRow> pair_table(std::span<const PairPoint> points) {
  std::vector<PairRow> rows;
  for (std::size_t begin = 0; begin < points.size();) {
    std::size_t end = begin;
    std::vector<double> used;
    for (; end < points.size() && same_pair(points[begin], points[end]); ++end) {
      if (is_held_back(end, points.size()) && end > begin) continue;  // the first always counts
      used.push_back(points[end].slowdown);
    }
    rows.push_back({points[begin].of, points[begin].beside, geometric_mean(used),
                    static_cast<std::int32_t>(used.size())});
    begin = end;
  }
  return rows;
}

void fit_regression(std::span<const PairPoint> points, PairFit& fit) {
  const std::vector<std::size_t> training = training_places(points.size());
  Matrix a(training.size(), 3);
  std::vector<double> b;
  for (std::size_t i = 0; i < training.size(); ++i) {
    const PairPoint& point = points[training[i]];
    a(i, 0) = 1;
    a(i, 1) = point.of_utilisation + point.beside_utilisation;
    a(i, 2) = point.memory_utilisation;
    b.push_back(point.slowdown);
  }
  const std::vector<double> x = nonnegative_least_squares(a, b);
  fit.base = x[0];
  fit.compute = x[1];
  fit.memory = x[2];
  ErrorMeter regression(points.size());
  ErrorMeter rule(points.size());
  for (const PairPoint& point : points) {
    const double both = point.of_utilisation + point.beside_utilisation;
    regression.add(std::max(1.0, x[0] + x[1] * both + x[2] * point.memory_utilisation),
                   point.slowdown);
    rule.add(std::max(1.0, both) / 0.95, point.slowdown);
  }
  fit.regression = regression.result();
  fit.rule = rule.result();
}

}  // namespace

Result<PairFit> fit_pairs(std::vector<PairPoint> points) {
  if (points.empty()) return fail("no pair was measured (give at least one)");
  PairFit fit;
  for (PairPoint& point : points) {
    if (!std::isfinite(point.slowdown) || point.slowdown <= 0) {
      return fail(fmt::format("'{}' beside '{}': a slowdown of {} cannot be fitted", point.of,
                              point.beside, point.slowdown));
    }
    if (point.slowdown < 1) ++fit.clipped;
    point.slowdown = std::max(1.0, point.slowdown);
  }
  std::ranges::sort(points, {}, [](const PairPoint& p) {
    return std::tie(p.of, p.beside, p.of_utilisation, p.beside_utilisation, p.memory_utilisation,
                    p.slowdown);
  });
  fit.rows = pair_table(points);
  ErrorMeter meter(points.size());
  std::size_t row = 0;
  for (std::size_t i = 0; i < points.size(); ++i) {
    if (i > 0 && !same_pair(points[i - 1], points[i])) ++row;
    meter.add(fit.rows[row].slowdown, points[i].slowdown);
  }
  fit.error = meter.result();
  std::erase_if(points, [](const PairPoint& point) {
    return point.of_utilisation <= 0 || point.beside_utilisation <= 0;
  });
  if (!points.empty()) fit_regression(points, fit);
  return fit;
}

}  // namespace berth
