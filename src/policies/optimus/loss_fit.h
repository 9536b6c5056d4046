// How many epochs a job still trains, from the losses it has measured: l(k) = 1/(b0 k + b1) + b2
// with b >= 0 is fitted to them, and the job is done where the curve falls by less than a share of
// its first loss per epoch.
//
// For a given b2 the fit is linear in 1/(l - b2); b2 itself is searched on a grid and then by
// golden section, compared by the squared error of l: errors of the inverted problem shrink as b2
// falls. Cost of a fit: some 110 passes over at most `max_points` points.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace berth::optimus {

/// Part of what is done that is taken to be left once a job is past its predicted end.
inline constexpr double kOverrunShare = 0.05;

struct LossPoint {
  double epoch = 0;
  double loss = 0;
};

struct LossModel {
  double b0 = 0;
  double b1 = 0;
  double b2 = 0;
  [[nodiscard]] double at(double epoch) const noexcept { return 1 / (b0 * epoch + b1) + b2; }
};

struct LossFitOptions {
  std::size_t neighbours = 5;    // on each side, for telling outliers
  std::size_t max_points = 500;  // more are averaged
  bool favour_late = true;       // the thirds of the history weigh 1, 4, 16
};

/// A point above the `neighbours` before it or below those after it becomes the mean of the two
/// beside it (the one beside it at an end). A side without neighbours is not tested.
[[nodiscard]] std::vector<LossPoint> without_outliers(std::span<const LossPoint> points,
                                                      std::size_t neighbours);
/// Means of runs of consecutive points, all but the last of one length, at most `most` of them.
[[nodiscard]] std::vector<LossPoint> averaged(std::span<const LossPoint> points, std::size_t most);

/// Nothing: fewer than three points, or no such curve goes through them.
[[nodiscard]] std::optional<LossModel> fit_losses(std::span<const LossPoint> points,
                                                  const LossFitOptions& options = {});

struct ConvergenceRule {
  double delta = 0.01;        // of the first loss, per epoch
  std::int64_t patience = 1;  // so many epochs in a row
};
/// The first epoch by which the curve has fallen by less than that, `limit` at most. `first_loss`
/// stands for the loss before training where the curve has none (b1 = 0).
[[nodiscard]] std::int64_t converged_epoch(const LossModel& model, double first_loss,
                                           const ConvergenceRule& rule, std::int64_t limit);

/// What is known of how long a job trains.
struct TrainingLength {
  std::optional<double> declared = std::nullopt;  // epochs in all, said by the job: goes first
  std::optional<LossModel> model = std::nullopt;
  double first_loss = 0;
  std::optional<double> usual = std::nullopt;  // mean epochs of finished jobs of its type
};
/// Epochs still to train after `done`: at least one, and at most 100 unless the job declares them.
/// Without a model or a usual number it is 20; past its predicted end 5 % of what is done.
[[nodiscard]] double epochs_left(const TrainingLength& known, double done,
                                 const ConvergenceRule& rule);

}  // namespace berth::optimus
