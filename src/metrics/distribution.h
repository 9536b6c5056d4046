// Small statistics with fixed definitions: quantiles (linear between neighbours, "type 7" as NumPy
// and R do by default), an empirical distribution thinned to a few hundred points, Jain's index,
// and the 95 % confidence interval of a mean over seeds. Sums run in index order, so results
// repeat.
#pragma once

#include <optional>
#include <span>
#include <vector>

namespace berth {

/// `sorted` ascending; nothing for no values. The value at position share x (n - 1), between
/// neighbours linearly.
[[nodiscard]] std::optional<double> quantile(std::span<const double> sorted, double share) noexcept;
[[nodiscard]] std::optional<double> mean(std::span<const double> values) noexcept;
/// (sum x)^2 / (n sum x^2): 1 when all are equal, 1/n when one has everything.
[[nodiscard]] std::optional<double> jain_index(std::span<const double> values) noexcept;

/// P(X <= x[i]) = p[i]; x ascending, p ends at 1.
struct Cdf {
  std::vector<double> x;
  std::vector<double> p;
};
inline constexpr std::size_t kMaxCdfPoints = 600;
/// All points if they are few; otherwise evenly spaced ranks, denser in both tails.
[[nodiscard]] Cdf cdf_of(std::span<const double> sorted);

struct MeanInterval {
  double mean = 0;
  double half_width = 0;
  [[nodiscard]] double low() const noexcept { return mean - half_width; }
  [[nodiscard]] double high() const noexcept { return mean + half_width; }
};
/// mean ± t(0.975, n-1) s / sqrt(n); nothing for fewer than two values.
[[nodiscard]] std::optional<MeanInterval> confidence_95(std::span<const double> values);
/// The 97.5 % point of Student's t with that many degrees of freedom (at least 1).
[[nodiscard]] double student_t_975(std::size_t degrees) noexcept;

}  // namespace berth
