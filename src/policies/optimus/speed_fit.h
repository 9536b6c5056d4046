// How fast a job trains with p parameter servers and w workers, learnt from the configurations it
// has run with. One step takes computing, data exchange, update and a cost per connection:
//   async       f = w / (t0 + t1 w/p + t2 w + t3 p)
//   sync        f = 1 / (t0 M/w + t1 + t2 w/p + t3 w + t4 p), M the batch of all workers
//   all-reduce  f = 1 / (t0 M/w + t1 + t2 w)
// All are linear in t after inversion, and t >= 0. A new point costs O(25) and a fit of five
// unknowns.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "policies/optimus/row_triangle.h"
#include "policies/optimus/tasks.h"

namespace berth::optimus {

enum class SpeedForm : std::uint8_t { Async, Sync, AllReduce };

class SpeedModel {
 public:
  /// `batch` of all workers; async jobs have none.
  explicit SpeedModel(SpeedForm form, double batch = 0);

  /// A measured speed, above zero. Measured again, the two are averaged.
  void add(TaskCounts tasks, double speed);
  /// Measured again, the new one counts alone; a fit keeps both.
  void replace(TaskCounts tasks, double speed);
  /// As many different configurations were measured as the form has unknowns.
  [[nodiscard]] bool is_ready() const noexcept { return measured_.size() >= unknowns(); }
  [[nodiscard]] std::optional<double> measured(TaskCounts tasks) const noexcept;
  /// By the form alone; zero if it is not ready or says nothing sensible.
  [[nodiscard]] double fitted(TaskCounts tasks) const noexcept;
  /// As measured, otherwise as fitted.
  [[nodiscard]] double speed(TaskCounts tasks) const noexcept {
    return measured(tasks).value_or(fitted(tasks));
  }
  /// t, once ready.
  [[nodiscard]] std::span<const double> coefficients() const noexcept {
    return std::span{t_}.first(unknowns());
  }

 private:
  struct Measured {
    TaskCounts tasks;
    double speed = 0;
  };
  void add(TaskCounts tasks, double speed, double newest);
  [[nodiscard]] std::size_t unknowns() const noexcept;
  [[nodiscard]] RowTriangle::Values row(TaskCounts tasks) const noexcept;
  /// What the row's product stands for is this over the speed.
  [[nodiscard]] double numerator(TaskCounts tasks) const noexcept {
    return form_ == SpeedForm::Async ? tasks.workers : 1;
  }

  SpeedForm form_;
  double batch_;
  RowTriangle rows_;
  RowTriangle::Values t_{};
  std::vector<Measured> measured_;  // few, by tasks
};

}  // namespace berth::optimus
