// What Optimus predicts of the active jobs: how much work is left, and how fast each goes with how
// many GPUs. Work left comes from the losses a job reports, otherwise from its estimated run time;
// speed from what was measured where it ran, otherwise from its profile or from a curve fitted to a
// few sample runs. All in reference seconds, the unit of traced durations. A program that really
// runs has an estimate that may be off by any factor, and so are its rates: what is believed of
// sizes it has not run with is scaled by what it does with the size it has.
//
// A job is fitted anew only when it reports new epochs. Jobs keep the batch of the whole gang: on
// w GPUs each takes a w-th of it.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "core/view.h"
#include "policies/common/elastic.h"
#include "policies/kit/memo.h"
#include "policies/optimus/loss_fit.h"
#include "policies/optimus/speed_fit.h"

namespace berth::optimus {

enum class WorkSource : std::uint8_t { Losses, Estimate };
enum class SpeedSource : std::uint8_t { Profile, Fit };

struct PredictionOptions {
  ElasticRule elastic;
  WorkSource work = WorkSource::Losses;
  SpeedSource speed = SpeedSource::Profile;
  ConvergenceRule convergence;
  LossFitOptions fit;
  double young_share = 0.1;  // of its training: until then a job is young
};

struct Forecast {
  double work_left = 0;   // reference seconds, above zero
  bool is_young = false;  // predictions of it are poor yet
};

/// A job while it is active.
struct Trainee {
  explicit Trainee(std::int32_t batch)
      : whole_batch(batch), speeds(SpeedForm::AllReduce, whole_batch) {}
  ElasticRange range;
  std::int32_t whole_batch;                       // of all its workers
  PoolId pool = kNoPool;                          // what the next two are about
  SpeedModel speeds;                              // measured there
  const std::vector<double>* believed = nullptr;  // there, by GPUs
  double calibration = 1;                         // what it does over what is believed
  std::int64_t next_epoch = 0;                    // the first it has not reported yet
  std::vector<LossPoint> losses;
  std::optional<LossModel> curve;
};

class Predictions {
 public:
  explicit Predictions(const PredictionOptions& options) : options_(options) {}

  void add(const View& view, JobId job);
  /// A job that trained to its end tells how long those of its model train.
  void remove(const View& view, JobId job);
  [[nodiscard]] const Trainee& of(JobId job) const { return trainees_.at(job); }

  /// The job runs in this pool, or is meant to.
  void assign(const View& view, JobId job, PoolId pool);
  /// Takes in what a running job has shown since the last time.
  void observe(const View& view, JobId job);
  [[nodiscard]] Forecast forecast(const View& view, JobId job) const;
  /// In its pool.
  [[nodiscard]] double speed(const Trainee& trainee, std::int32_t gpus) const noexcept;
  /// Believed rates in any pool, by GPUs.
  [[nodiscard]] const std::vector<double>& rates(const View& view, JobId job, PoolId pool);
  /// Samples per GPU on so many; 0 = the job's own.
  [[nodiscard]] std::int32_t batch_on(const View& view, JobId job, std::int32_t gpus) const;

 private:
  struct Mean {
    double sum = 0;
    double count = 0;
  };
  [[nodiscard]] Forecast from_estimate(const View& view, JobId job) const;
  void take_losses(const View& view, JobId job, Trainee& trainee);
  void seed(Trainee& trainee) const;

  PredictionOptions options_;
  std::map<JobId, Trainee> trainees_;
  Memo<KindId, Memo<PoolId, std::vector<double>>> rates_;  // by GPUs; addresses stay
  std::map<ProfileId, Mean> usual_epochs_;                 // of finished jobs
  std::vector<double> new_losses_;                         // scratch
};

}  // namespace berth::optimus
