// The reports of one job's training code, as figures. Rates are medians over recent reports, so
// that a checkpoint or a validation between two iterations does not show as a slow job. Bounded:
// however long a job trains, it takes a fixed number of bytes beyond one number per epoch (the
// first 100,000).
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "perf/training.h"
#include "training/message.h"

namespace berth {

struct TrainingFigures {
  double iterations = 0;
  double iterations_per_second = 0;
  double samples_per_second = 0;
  std::optional<double> loss{};
  std::int32_t sub_steps = 1;
  double last_heard_seconds_ago = 0;
  std::optional<double> checkpoint_iteration{};  // the last one that was saved
};

/// What one report says of the time between it and the one before.
struct IterationSample {
  double seconds = 0;  // per iteration
  std::int64_t iterations = 0;
  double batch = 0;  // samples per iteration and worker; 0 = not said
  std::int32_t sub_steps = 1;
};

class TrainingHistory {
 public:
  /// Another attempt begins to speak: what it does now says nothing about how fast the last one
  /// was.
  void begin_attempt();
  /// It speaks again: what it did in between was not told.
  void reconnect();
  /// Nothing: the report is the first of its attempt, or no iteration was done since the last.
  std::optional<IterationSample> add(const Report& report, double now);
  void add(const Checkpointed& checkpointed, double now);

  [[nodiscard]] bool has_spoken() const noexcept { return heard_at_.has_value(); }
  [[nodiscard]] TrainingFigures figures(double now) const;
  /// Nothing while it has not said how many epochs it has done.
  [[nodiscard]] std::optional<TrainingReport> report() const;
  void losses(std::int64_t first, std::vector<double>& losses) const;

 private:
  void keep_loss(const Report& report);

  struct Speed {
    double seconds = 0;  // per iteration
    double samples_per_second = 0;
    double at = 0;
  };
  std::optional<double> heard_at_;
  std::optional<double> reported_at_;         // in this attempt
  std::optional<std::int64_t> last_counted_;  // iteration of the last report of this attempt
  std::int64_t iteration_ = 0;
  std::deque<Speed> speeds_;
  double batch_ = 0;
  std::int32_t sub_steps_ = 1;
  std::optional<double> loss_;
  std::optional<double> epoch_;
  double noise_scale_ = 0;
  std::vector<double> epoch_losses_;  // [0]: untrained
  std::optional<double> checkpoint_iteration_;
};

}  // namespace berth
