// Projected BFGS: a quasi-Newton step, clamped to the bounds, with backtracking. The estimate of
// the curvature is thrown away when a step fails; if plain descent fails too, this is the minimum.

#include "solve/bounded_minimum.h"

#include <algorithm>
#include <cmath>

namespace berth {

namespace {

using Vector = std::vector<double>;

double dot(const Vector& a, const Vector& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

class Descent {
 public:
  explicit Descent(const BoundedProblem& problem) : problem_(problem), size_(problem.start.size()) {
    here_.at = problem.start;
    project(here_.at);
    here_.value = problem.value(here_.at);
    gradient_ = gradient(here_.at);
    reset();
  }

  BoundedMinimum run() {
    for (int step = 0; step < problem_.max_steps; ++step) {
      if (try_step()) continue;
      if (is_plain_) break;  // not even straight downhill
      reset();
    }
    return here_;
  }

 private:
  void project(Vector& x) const {
    for (std::size_t i = 0; i < size_; ++i)
      x[i] = std::clamp(x[i], problem_.low[i], problem_.high[i]);
  }

  /// Central differences; one-sided at a bound.
  Vector gradient(const Vector& x) const {
    constexpr double kStep = 1e-6;
    Vector result(size_);
    Vector probe = x;
    for (std::size_t i = 0; i < size_; ++i) {
      const double above = std::min(x[i] + kStep, problem_.high[i]);
      const double below = std::max(x[i] - kStep, problem_.low[i]);
      if (above <= below) continue;
      probe[i] = above;
      const double high = problem_.value(probe);
      probe[i] = below;
      result[i] = (high - problem_.value(probe)) / (above - below);
      probe[i] = x[i];
    }
    return result;
  }

  void reset() {
    inverse_.assign(size_ * size_, 0);
    for (std::size_t i = 0; i < size_; ++i) inverse_[i * size_ + i] = 1;
    is_plain_ = true;
  }

  /// A variable at a bound that wants to leave it stays there.
  bool is_stuck(std::size_t i) const {
    return (here_.at[i] <= problem_.low[i] && gradient_[i] > 0) ||
           (here_.at[i] >= problem_.high[i] && gradient_[i] < 0);
  }

  // Only among variables that may move: a step into a bound would be projected away and stall the
  // rest.
  Vector direction() const {
    Vector result(size_);
    for (std::size_t i = 0; i < size_; ++i) {
      if (is_stuck(i)) continue;
      for (std::size_t k = 0; k < size_; ++k) {
        if (!is_stuck(k)) result[i] -= inverse_[i * size_ + k] * gradient_[k];
      }
    }
    return result;
  }

  /// Backtracks along the projected direction; false if nothing is won.
  bool try_step() {
    // Armijo's condition: a step counts if it wins at least this part of what the slope promises.
    constexpr double kEnough = 1e-4;
    constexpr double kNothing = 1e-12;
    const Vector way = direction();
    if (dot(way, gradient_) >= 0) return false;
    for (double length = 1; length > 1e-10; length /= 2) {
      Vector next = here_.at;
      for (std::size_t i = 0; i < size_; ++i) next[i] += length * way[i];
      project(next);
      Vector moved(size_);
      for (std::size_t i = 0; i < size_; ++i) moved[i] = next[i] - here_.at[i];
      const double value = problem_.value(next);
      if (!(value <= here_.value + kEnough * dot(moved, gradient_))) continue;
      const bool is_worth_it = here_.value - value > kNothing * (1 + std::abs(here_.value));
      accept(std::move(next), value, moved);
      return is_worth_it;
    }
    return false;
  }

  // Both gradients are needed: their difference tells the curvature along the step.
  void accept(Vector next, double value, const Vector& moved) {
    Vector after = gradient(next);
    Vector turned(size_);
    for (std::size_t i = 0; i < size_; ++i) turned[i] = after[i] - gradient_[i];
    here_.at = std::move(next);
    here_.value = value;
    gradient_ = std::move(after);
    update(moved, turned);
  }

  /// The BFGS update of the inverse curvature; left out where the function does not curve upwards.
  void update(const Vector& moved, const Vector& turned) {
    const double curvature = dot(moved, turned);
    if (curvature <= 1e-14) return;
    is_plain_ = false;
    Vector mapped(size_);
    for (std::size_t i = 0; i < size_; ++i) {
      for (std::size_t k = 0; k < size_; ++k) mapped[i] += inverse_[i * size_ + k] * turned[k];
    }
    const double scale = (1 + dot(turned, mapped) / curvature) / curvature;
    for (std::size_t i = 0; i < size_; ++i) {
      for (std::size_t k = 0; k < size_; ++k) {
        inverse_[i * size_ + k] +=
            scale * moved[i] * moved[k] - (mapped[i] * moved[k] + moved[i] * mapped[k]) / curvature;
      }
    }
  }

  const BoundedProblem& problem_;
  std::size_t size_;
  BoundedMinimum here_;
  Vector gradient_;
  Vector inverse_;
  bool is_plain_ = true;
};

}  // namespace

BoundedMinimum minimise(const BoundedProblem& problem) { return Descent(problem).run(); }

}  // namespace berth
