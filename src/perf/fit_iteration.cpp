// The iteration-time fit. Unknowns are logarithms, so that all stay positive; residuals are
// logarithms of predicted over measured, so that short iterations count as much as long ones.
#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

#include <fmt/format.h>

#include "model/catalogue.h"
#include "perf/fit.h"
#include "perf/fit_residual.h"
#include "perf/rate_function.h"
#include "solve/least_squares.h"

namespace berth {

namespace {

constexpr ParameterRange kOverlap{1, 8};
// Logarithms of what is at all possible.
constexpr ParameterRange kSeconds{-18, 9};    // 15 ns … 2 h
constexpr ParameterRange kSpeed{-7, 7};       // a thousandth … a thousand V100
constexpr ParameterRange kBytes{10, 30};      // 22 kB … 10 TB
constexpr ParameterRange kBandwidth{16, 27};  // 9 MB/s … 530 GB/s
constexpr ParameterRange kLatency{-16, 0};    // 0.1 us … 1 s

/// Where each unknown stands in the vector.
struct Layout {
  std::vector<std::string> devices;                  // the first one is the reference
  std::vector<std::pair<std::string, Level>> links;  // fitted ones
  double reference_speed = 1;
  bool fits_alpha = true;
  bool fits_bytes = false;
  bool has_gangs = false;

  static constexpr std::size_t kAlpha = 0;
  static constexpr std::size_t kBeta = 1;
  static constexpr std::size_t kGamma = 2;
  static constexpr std::size_t kBytes = 3;
  [[nodiscard]] std::size_t speed(std::size_t device) const { return 3 + device; }  // device >= 1
  [[nodiscard]] std::size_t bandwidth(std::size_t link) const {
    return 3 + devices.size() + 2 * link;
  }
  [[nodiscard]] std::size_t latency(std::size_t link) const { return bandwidth(link) + 1; }
  [[nodiscard]] std::size_t size() const { return 3 + devices.size() + 2 * links.size(); }
};

template <class T>
std::size_t place_of(const std::vector<T>& all, const T& one) {
  return static_cast<std::size_t>(std::ranges::find(all, one) - all.begin());
}

/// A point with its names looked up once.
struct Prepared {
  double batch;
  double seconds;
  std::int32_t gpus;
  std::size_t device;
  std::size_t link;  // of the fitted ones
  Link known;        // if none is fitted
};

class IterationFitter {
 public:
  IterationFitter(std::vector<StepPoint> points, const IterationFitOptions& options)
      : points_(std::move(points)), options_(options) {
    std::ranges::sort(points_, {}, [](const StepPoint& p) {
      return std::tie(p.device, p.site, p.level, p.gpus, p.batch, p.seconds);
    });
    choose_layout();
    for (const StepPoint& point : points_) prepared_.push_back(prepare(point));
  }

  IterationFit run() {
    CurveProblem problem;
    problem.start = start();
    problem.bounds = bounds(problem.start);
    std::vector<std::size_t> training;
    for (std::size_t i = 0; i < prepared_.size(); ++i) {
      if (!is_held_back(i, prepared_.size())) training.push_back(i);
    }
    problem.points = training.size();
    const std::vector<double> weights = balance(training);
    problem.residuals = [&](std::span<const double> x, std::span<double> out) {
      for (std::size_t i = 0; i < training.size(); ++i) {
        const Prepared& point = prepared_[training[i]];
        out[i] = weights[i] * tamed(std::log(predict(x, point) / point.seconds));
      }
    };
    return report(fit_curve(problem).parameters);
  }

 private:
  // Only what the points can tell becomes an unknown: without gangs there is no gradient to fit.
  void choose_layout() {
    for (const StepPoint& point : points_) {
      if (std::ranges::find(layout_.devices, point.device) == layout_.devices.end())
        layout_.devices.push_back(point.device);
      if (point.gpus < 2) continue;
      layout_.has_gangs = true;
      const std::pair link{point.site, point.level};
      if (options_.gradient_bytes && std::ranges::find(layout_.links, link) == layout_.links.end())
        layout_.links.push_back(link);
    }
    const auto v100 = std::ranges::find(layout_.devices, "v100");
    if (v100 != layout_.devices.end()) std::rotate(layout_.devices.begin(), v100, v100 + 1);
    const auto built_in = find_device(layout_.devices.front());
    layout_.reference_speed = built_in ? built_in->speed : 1;
    layout_.fits_bytes = layout_.has_gangs && !options_.gradient_bytes;
    layout_.fits_alpha = std::ranges::any_of(
        points_, [&](const StepPoint& p) { return p.batch != points_.front().batch; });
  }

  [[nodiscard]] Prepared prepare(const StepPoint& point) const {
    return {.batch = point.batch,
            .seconds = point.seconds,
            .gpus = point.gpus,
            .device = place_of(layout_.devices, point.device),
            .link = place_of(layout_.links, std::pair{point.site, point.level}),
            .known = options_.links.at(point.level)};
  }

  /// Every device type has the same weight at every level of one site, however often it was measured
  /// there: otherwise hundreds of gangs would dominate a dozen times of one GPU. Groups of fewer
  /// than eight points count by their points. Square roots, because residuals are squared.
  [[nodiscard]] std::vector<double> balance(std::span<const std::size_t> training) const {
    using Group = std::tuple<std::string, std::string, Level>;
    std::map<Group, double> sizes;
    const auto group = [&](std::size_t i) {
      return Group{points_[i].device, points_[i].site, points_[i].level};
    };
    for (const std::size_t i : training) ++sizes[group(i)];
    for (auto& [unused, size] : sizes) size = std::max(size, 8.0);
    const double fair = static_cast<double>(training.size()) / static_cast<double>(sizes.size());
    std::vector<double> weights;
    for (const std::size_t i : training) weights.push_back(std::sqrt(fair / sizes[group(i)]));
    return weights;
  }

  [[nodiscard]] double bytes(std::span<const double> x) const {
    return layout_.fits_bytes ? std::exp(x[Layout::kBytes])
                              : options_.gradient_bytes.value_or(IterationParams{}.gradient_bytes);
  }
  /// At the lower bound means none.
  static double seconds(double x) { return x <= kSeconds.low ? 0 : std::exp(x); }
  [[nodiscard]] double alpha(std::span<const double> x) const {
    return layout_.fits_alpha ? seconds(x[Layout::kAlpha]) : 0;
  }
  [[nodiscard]] double speed(std::span<const double> x, std::size_t device) const {
    return device == 0 ? layout_.reference_speed : std::exp(x[layout_.speed(device)]);
  }

  [[nodiscard]] double predict(std::span<const double> x, const Prepared& point) const {
    const double compute =
        (alpha(x) + seconds(x[Layout::kBeta]) * point.batch) / speed(x, point.device);
    Link link = point.known;
    if (point.link < layout_.links.size()) {
      link = {std::exp(x[layout_.bandwidth(point.link)]), std::exp(x[layout_.latency(point.link)])};
    }
    return overlapped(compute, sync_time(bytes(x), point.gpus, link), x[Layout::kGamma], 0);
  }

  /// A straight line through the smallest gangs of the reference device, by relative error.
  [[nodiscard]] std::vector<double> line() const {
    std::vector<const Prepared*> used;
    for (const Prepared& point : prepared_) {
      if (point.device == 0 && point.gpus == 1) used.push_back(&point);
    }
    if (used.empty()) {
      for (const Prepared& point : prepared_) used.push_back(&point);
    }
    Matrix a(used.size(), 2);
    const std::vector<double> ones(used.size(), 1.0);
    for (std::size_t i = 0; i < used.size(); ++i) {
      a(i, 0) = layout_.fits_alpha ? 1 / used[i]->seconds : 0;
      a(i, 1) = used[i]->batch / used[i]->seconds;
    }
    return nonnegative_least_squares(a, ones);
  }

  [[nodiscard]] std::vector<double> start() const {
    std::vector<double> x(layout_.size(), 0.0);
    const auto ab = line();
    x[Layout::kAlpha] = std::log(std::max(ab[0], 1e-6) * layout_.reference_speed);
    x[Layout::kBeta] = std::log(std::max(ab[1], 1e-9) * layout_.reference_speed);
    x[Layout::kGamma] = IterationParams{}.overlap;
    x[Layout::kBytes] = std::log(options_.gradient_bytes.value_or(1e8));
    for (std::size_t i = 1; i < layout_.devices.size(); ++i) {
      const auto known = find_device(layout_.devices[i]);
      x[layout_.speed(i)] = std::log(known ? known->speed : 1);
    }
    for (std::size_t i = 0; i < layout_.links.size(); ++i) {
      const Link link = options_.links.at(layout_.links[i].second);
      x[layout_.bandwidth(i)] = std::log(link.bandwidth);
      x[layout_.latency(i)] = std::log(link.latency);
    }
    return x;
  }

  /// Unknowns that the points say nothing about are held where they start.
  [[nodiscard]] std::vector<ParameterRange> bounds(std::span<const double> start) const {
    std::vector<ParameterRange> all(layout_.size(), kSeconds);
    const auto hold = [&](std::size_t i) { all[i] = {start[i], start[i]}; };
    all[Layout::kGamma] = kOverlap;
    all[Layout::kBytes] = kBytes;
    for (std::size_t i = 1; i < layout_.devices.size(); ++i) all[layout_.speed(i)] = kSpeed;
    for (std::size_t i = 0; i < layout_.links.size(); ++i) {
      all[layout_.bandwidth(i)] = kBandwidth;
      all[layout_.latency(i)] = kLatency;
    }
    if (!layout_.fits_alpha) hold(Layout::kAlpha);
    if (!layout_.has_gangs) hold(Layout::kGamma);
    if (!layout_.fits_bytes) hold(Layout::kBytes);
    return all;
  }

  // Errors are over all points, those that were held back counted apart.
  [[nodiscard]] IterationFit report(std::span<const double> x) const {
    IterationFit fit;
    fit.params = {.alpha = alpha(x),
                  .beta = seconds(x[Layout::kBeta]),
                  .gradient_bytes = bytes(x),
                  .overlap = x[Layout::kGamma]};
    fit.reference = layout_.devices.front();
    for (std::size_t i = 1; i < layout_.devices.size(); ++i)
      fit.speeds.emplace_back(layout_.devices[i], speed(x, i));
    for (std::size_t i = 0; i < layout_.links.size(); ++i) {
      fit.links.push_back({layout_.links[i].first,
                           layout_.links[i].second,
                           {std::exp(x[layout_.bandwidth(i)]), std::exp(x[layout_.latency(i)])}});
    }
    ErrorMeter all(prepared_.size());
    for (const Prepared& point : prepared_) all.add(predict(x, point), point.seconds);
    fit.error = all.result();
    return fit;
  }

  std::vector<StepPoint> points_;
  const IterationFitOptions& options_;
  Layout layout_;
  std::vector<Prepared> prepared_;
};

}  // namespace

Result<IterationFit> fit_iteration(std::vector<StepPoint> points,
                                   const IterationFitOptions& options) {
  if (points.empty()) return fail("no iteration was measured (give at least one)");
  for (const StepPoint& point : points) {
    const bool good = std::isfinite(point.seconds) && point.seconds > 0 &&
                      std::isfinite(point.batch) && point.batch > 0 && point.gpus >= 1;
    if (!good) {
      return fail(fmt::format("an iteration of {} s with batch {} on {} GPUs cannot be fitted",
                              point.seconds, point.batch, point.gpus));
    }
  }
  return IterationFitter(std::move(points), options).run();
}

}  // namespace berth
