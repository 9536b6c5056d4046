// Which core counts to measure so that a curve is known best. The criterion is exact; the search
// tries all designs while these are few, and improves an even spread by exchanges beyond that.

#include "perf/cpu_design.h"

#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/format.h>

#include "base/portable_math.h"

namespace berth {
namespace {

constexpr double kEps = 1e-3;
constexpr std::size_t kMostPoints = 5;
constexpr double kMostDesigns = 2e6;

/// Sums over points of ln^2 C, C ln C and C^2.
struct Information {
  double log_log = 0;
  double log_cores = 0;
  double cores_cores = 0;

  void add(double log_of_cores, double cores) noexcept {
    log_log += log_of_cores * log_of_cores;
    log_cores += log_of_cores * cores;
    cores_cores += cores * cores;
  }
  [[nodiscard]] double determinant(double ridge) const noexcept {
    return (log_log + ridge) * (cores_cores + ridge) - log_cores * log_cores;
  }
};

enum class Criterion : std::uint8_t { D, Bayesian };

/// Both criteria are sums over prefixes of the ascending points: thetas between two neighbouring
/// points see the same points below them. A depth-first walk shares the prefixes.
class Search {
 public:
  Search(Criterion criterion, std::size_t points, std::int32_t max_cores)
      : criterion_(criterion), points_(points), max_cores_(max_cores) {
    logs_.resize(static_cast<std::size_t>(max_cores) + 1);
    for (std::int32_t c = 1; c <= max_cores; ++c) logs_[index(c)] = portable_log(c);
    for (std::size_t above = 0; above <= points; ++above)
      log_above_[above] = portable_log(static_cast<double>(above) + kEps);
  }

  Design best() {
    double designs = 1;
    for (std::size_t i = 0; i < points_; ++i)
      designs *= static_cast<double>(max_cores_ - static_cast<std::int32_t>(i)) /
                 static_cast<double>(i + 1);
    if (designs <= kMostDesigns) {
      walk(0, {}, 0);
    } else {
      exchange();
    }
    return {{best_.begin(), best_.begin() + static_cast<std::ptrdiff_t>(points_)}, best_value_};
  }

  [[nodiscard]] double value_of(std::span<const std::int32_t> cores) const noexcept {
    Information information;
    double sum = 0;
    std::int32_t before = 1;
    for (std::size_t i = 0; i < cores.size(); ++i) {
      sum += gap(information, i, before, cores[i]);
      information.add(logs_[index(cores[i])], cores[i]);
      before = cores[i];
    }
    return total(information, sum, before);
  }

 private:
  static std::size_t index(std::int32_t cores) noexcept { return static_cast<std::size_t>(cores); }

  /// What the thetas in (before, next] add when `below` points lie below them.
  [[nodiscard]] double gap(const Information& information, std::size_t below, std::int32_t before,
                           std::int32_t next) const noexcept {
    if (criterion_ == Criterion::D || next == before) return 0;
    return static_cast<double>(next - before) *
           (portable_log(information.determinant(kEps)) + log_above_[points_ - below]);
  }
  [[nodiscard]] double total(const Information& information, double sum,
                             std::int32_t before) const noexcept {
    if (criterion_ == Criterion::D) return information.determinant(0);
    sum += gap(information, points_, before, max_cores_);
    return max_cores_ > 1 ? sum / (max_cores_ - 1) : sum;
  }

  void offer(double value) noexcept {
    if (has_best_ && value <= best_value_) return;
    has_best_ = true;
    best_value_ = value;
    best_ = chosen_;
  }

  void walk(std::size_t depth, const Information& information, double sum) {
    const std::int32_t before = depth == 0 ? 1 : chosen_[depth - 1];
    if (depth == points_) return offer(total(information, sum, before));
    const double per_theta = gap(information, depth, 0, 1);
    const auto last = max_cores_ - static_cast<std::int32_t>(points_ - depth - 1);
    for (std::int32_t c = depth == 0 ? 1 : before + 1; c <= last; ++c) {
      chosen_[depth] = c;
      Information extended = information;
      extended.add(logs_[index(c)], c);
      walk(depth + 1, extended, sum + per_theta * (c - before));
    }
  }

  /// From evenly spread points: the best move of one point between its neighbours, until none
  /// helps.
  void exchange() {
    const auto k = static_cast<std::int32_t>(points_);
    for (std::int32_t i = 0; i < k; ++i)
      chosen_[static_cast<std::size_t>(i)] = 1 + i * (max_cores_ - 1) / (k - 1);
    const std::span<const std::int32_t> design{chosen_.data(), points_};
    offer(value_of(design));
    // Ends: the value rises strictly in every round, and there are finitely many designs.
    for (double before = -HUGE_VAL; before < best_value_;) {
      before = best_value_;
      for (std::size_t i = 0; i < points_; ++i) {
        const std::int32_t low = i == 0 ? 1 : chosen_[i - 1] + 1;
        const std::int32_t high = i + 1 == points_ ? max_cores_ : chosen_[i + 1] - 1;
        for (chosen_[i] = low; chosen_[i] <= high; ++chosen_[i]) offer(value_of(design));
        chosen_ = best_;
      }
    }
  }

  Criterion criterion_;
  std::size_t points_;
  std::int32_t max_cores_;
  std::vector<double> logs_;
  std::array<double, kMostPoints + 1> log_above_{};
  std::array<std::int32_t, kMostPoints> chosen_{};
  std::array<std::int32_t, kMostPoints> best_{};
  double best_value_ = 0;
  bool has_best_ = false;
};

Result<Design> search(Criterion criterion, std::int32_t points, std::int32_t max_cores) {
  if (points < 2 || points > static_cast<std::int32_t>(kMostPoints))
    return fail(fmt::format("a design has 2 to {} points, got {}", kMostPoints, points));
  if (max_cores < points || max_cores > 4096) {
    return fail(
        fmt::format("a design of {0} points needs {0} to 4096 cores, got {1}", points, max_cores));
  }
  return Search{criterion, static_cast<std::size_t>(points), max_cores}.best();
}

}  // namespace

double d_criterion(std::span<const std::int32_t> cores) noexcept {
  Information information;
  for (const std::int32_t c : cores) information.add(portable_log(c), c);
  return information.determinant(0);
}

double bayesian_criterion(std::span<const std::int32_t> cores, std::int32_t max_cores) noexcept {
  if (cores.empty() || cores.size() > kMostPoints) return -HUGE_VAL;
  return Search{Criterion::Bayesian, cores.size(), max_cores}.value_of(cores);
}

Result<Design> d_optimal_design(std::int32_t points, std::int32_t max_cores) {
  return search(Criterion::D, points, max_cores);
}

Result<Design> bayesian_design(std::int32_t points, std::int32_t max_cores) {
  return search(Criterion::Bayesian, points, max_cores);
}

Result<std::span<const std::int32_t>> DesignTable::design(std::int32_t points,
                                                          std::int32_t max_cores) {
  const auto key = std::pair(points, max_cores);
  auto known = designs_.find(key);
  if (known == designs_.end()) {
    BERTH_TRY(Design made, bayesian_design(points, max_cores));
    known = designs_.emplace(key, std::move(made)).first;
  }
  return std::span<const std::int32_t>{known->second.cores};
}

CpuProfiler::CpuProfiler(std::span<const std::int32_t> design, const CpuFitOptions& options)
    : options_(options), to_measure_(design.begin(), design.end()) {
  std::ranges::sort(to_measure_);
}

std::optional<std::int32_t> CpuProfiler::next() const {
  if (to_measure_.empty()) return std::nullopt;
  return to_measure_.back();
}

Result<void> CpuProfiler::measured(double speed) {
  if (to_measure_.empty()) return fail("nothing was to be measured: the CPU curve is settled");
  if (!std::isfinite(speed) || speed <= 0) {
    return fail(fmt::format("speed at {} cores must be a positive number, got {}",
                            to_measure_.back(), speed));
  }
  points_.push_back({static_cast<double>(to_measure_.back()), speed});
  to_measure_.pop_back();
  if (to_measure_.empty()) ask_for_the_sweet_point();
  return {};
}

void CpuProfiler::ask_for_the_sweet_point() {
  if (extensions_left_ == 0) return;
  const auto settled = fit();
  if (!settled || settled->gap.high - settled->gap.low <= 2) return;
  const std::int32_t theta = settled->curve.theta;
  if (std::ranges::find(points_, static_cast<double>(theta), &CpuPoint::cores) != points_.end())
    return;  // measured already: asking again would say nothing new
  --extensions_left_;
  to_measure_.push_back(theta);
}

}  // namespace berth
