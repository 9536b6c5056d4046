// Device memory: from measured sizes, and from which pairs of jobs fitted on one device.
#include <algorithm>
#include <cmath>
#include <tuple>

#include <fmt/format.h>

#include "perf/fit.h"
#include "solve/least_squares.h"

namespace berth {

Result<MemoryFit> fit_memory(std::vector<MemoryPoint> points) {
  if (points.empty()) return fail("no memory was measured (give at least one point)");
  for (const MemoryPoint& point : points) {
    const bool good = std::isfinite(point.mib) && point.mib > 0 && point.batch > 0;
    if (!good)
      return fail(fmt::format("{} MiB for a batch of {} cannot be fitted", point.mib, point.batch));
  }
  std::ranges::sort(points, {}, [](const MemoryPoint& p) { return std::tie(p.batch, p.mib); });
  // A point that is held back keeps an empty row.
  Matrix a(points.size(), 2);
  std::vector<double> ones(points.size(), 0.0);
  for (std::size_t i = 0; i < points.size(); ++i) {
    if (is_held_back(i, points.size())) continue;
    a(i, 0) = 1 / points[i].mib;
    a(i, 1) = points[i].batch / points[i].mib;
    ones[i] = 1;
  }
  const std::vector<double> x = nonnegative_least_squares(a, ones);
  MemoryFit fit{.params = {.fixed_mib = x[0], .per_sample_mib = x[1]}, .error = {}};
  ErrorMeter meter(points.size());
  for (const MemoryPoint& point : points) meter.add(x[0] + x[1] * point.batch, point.mib);
  fit.error = meter.result();
  return fit;
}

namespace {

constexpr double kUsualMib = 3072;
constexpr double kMargin = 0.01;  // of the device, by which a pair should fit or not
constexpr double kPull = 0.01;    // towards the usual size: only decides what the pairs leave open

/// Unknowns: logarithms of the fixed memory and of the memory that grows with the batch, at the
/// model's largest batch.
class FittingFitter {
 public:
  FittingFitter(std::vector<FittingPoint> points, std::span<const NamedMemory> known)
      : points_(std::move(points)), known_(known) {
    std::ranges::sort(points_, {}, [](const FittingPoint& p) {
      return std::tie(p.a, p.b, p.batch_a, p.batch_b, p.device_mib, p.fits);
    });
    for (const FittingPoint& point : points_) {
      add(point.a, point.batch_a);
      add(point.b, point.batch_b);
    }
    std::ranges::sort(models_, {}, &Model::name);
    for (std::size_t i = 0; i < points_.size(); ++i) {
      if (!is_held_back(i, points_.size())) training_.push_back(i);
    }
  }

  FittingFit run() const {
    CurveProblem problem;
    problem.start.assign(2 * models_.size(), std::log(kUsualMib / 2));
    problem.bounds.assign(2 * models_.size(), ParameterRange{std::log(100.0), std::log(100'000.0)});
    problem.points = training_.size() + problem.start.size();
    problem.residuals = [&](std::span<const double> x, std::span<double> out) {
      for (std::size_t i = 0; i < training_.size(); ++i)
        out[i] = trespass(points_[training_[i]], x);
      for (std::size_t i = 0; i < x.size(); ++i)
        out[training_.size() + i] = kPull * (x[i] - problem.start[i]);
    };
    const std::vector<double> x = fit_curve(problem).parameters;
    FittingFit fit;
    for (std::size_t i = 0; i < models_.size(); ++i)
      fit.models.push_back({models_[i].name, params(i, x)});
    ErrorMeter meter(points_.size());
    for (const FittingPoint& point : points_)
      meter.add((need(point, x) <= point.device_mib) == point.fits ? 1 : 2, 1);
    fit.error = meter.result();
    return fit;
  }

 private:
  struct Model {
    std::string name;
    double batch = 1;  // largest
  };

  // Models whose memory is known are not unknowns.
  void add(const std::string& name, double batch) {
    if (std::ranges::find(known_, name, &NamedMemory::model) != known_.end()) return;
    const auto found = std::ranges::find(models_, name, &Model::name);
    if (found == models_.end())
      models_.push_back({name, batch});
    else
      found->batch = std::max(found->batch, batch);
  }

  [[nodiscard]] MemoryParams params(std::size_t model, std::span<const double> x) const {
    return {std::exp(x[2 * model]), std::exp(x[2 * model + 1]) / models_[model].batch};
  }

  [[nodiscard]] double need_of(const std::string& name, double batch,
                               std::span<const double> x) const {
    const auto given = std::ranges::find(known_, name, &NamedMemory::model);
    const MemoryParams memory =
        given != known_.end()
            ? given->params
            : params(
                  static_cast<std::size_t>(
                      std::ranges::lower_bound(models_, name, {}, &Model::name) - models_.begin()),
                  x);
    return memory.fixed_mib + memory.per_sample_mib * batch;
  }
  [[nodiscard]] double need(const FittingPoint& point, std::span<const double> x) const {
    return need_of(point.a, point.batch_a, x) + need_of(point.b, point.batch_b, x);
  }
  /// How far on the wrong side, in devices.
  [[nodiscard]] double trespass(const FittingPoint& point, std::span<const double> x) const {
    const double over = need(point, x) / point.device_mib - 1;
    return std::max(0.0, (point.fits ? over : -over) + kMargin);
  }

  std::vector<FittingPoint> points_;
  std::span<const NamedMemory> known_;
  std::vector<Model> models_;
  std::vector<std::size_t> training_;
};

}  // namespace

Result<FittingFit> fit_memory_by_fitting(std::vector<FittingPoint> points,
                                         std::span<const NamedMemory> known) {
  if (points.empty()) return fail("no pair was tried (give at least one)");
  for (const FittingPoint& point : points) {
    if (point.device_mib <= 0 || point.batch_a <= 0 || point.batch_b <= 0)
      return fail(fmt::format("'{}' beside '{}' on a device of {} MiB cannot be fitted", point.a,
                              point.b, point.device_mib));
  }
  return FittingFitter(std::move(points), known).run();
}

}  // namespace berth
