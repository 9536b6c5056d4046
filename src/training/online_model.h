// How fast a job trains with how many cores, learned while it trains. For each shape of a job
// (GPUs, batch, sub-batches) the steady speed at each number of cores it was bound to is a point of
// its CPU curve (perf/cpu_fit.h). While points are missing the model asks for the next one: the
// design of perf/cpu_design.h, most cores first, then the sweet point itself while it is known only
// within a wide gap. A job that trains otherwise than its curve says, by 15 % for as long as the
// moving median reaches, has its curve scaled and a neighbouring number of cores measured again.
//
// Points are remembered by the name of the model for a week: the next job of that name need not be
// profiled. Cores below the sweet point feed every shape alike, so those points serve the others.
//
// No clock and no lock of its own: times are seconds of the caller's clock.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "model/job_spec.h"
#include "perf/cpu_design.h"
#include "training/steady_speed.h"
#include "training/training_history.h"

namespace berth {

struct RunShape {
  std::int32_t gpus = 1;
  std::int64_t batch = 0;  // samples per iteration and worker
  std::int32_t sub_steps = 1;
  friend auto operator<=>(const RunShape&, const RunShape&) = default;
};

/// Samples per second of one worker, by shape and cores.
using CorePoints = std::map<RunShape, std::map<double, double>>;

class OnlineModel {
 public:
  /// A new attempt speaks. `model` may be empty: then nothing is remembered beyond the job.
  void begin(JobNumber job, const std::string& model, std::int32_t gpus, double now);
  /// Cores per worker it is bound to from now on; 0: any, and nothing is learned.
  void set_cores(JobNumber job, double cores);
  void add(JobNumber job, const IterationSample& sample, double now);
  void forget(JobNumber job);

  /// What is remembered by model, for a life after this one: names of which more is known than when
  /// last asked.
  void take_remembered(std::vector<std::pair<std::string, CorePoints>>& models);
  /// From a life before.
  void recall(const std::string& model, CorePoints points, double now);

  /// Jobs about which more is known than when last asked.
  [[nodiscard]] std::vector<JobNumber> take_changed();
  /// Grows with everything that is learned.
  [[nodiscard]] std::uint64_t revision() const noexcept { return revision_; }

  /// Cores per worker at which it should be measured next, of at most `most`; nothing: it has said
  /// too little, or there is nothing left to learn.
  [[nodiscard]] std::optional<std::int32_t> probe(JobNumber job, std::int32_t most, double now);
  /// Once there is nothing left to learn.
  [[nodiscard]] std::optional<CpuCurve> curve(JobNumber job);
  /// Believed of the shape it has now.
  [[nodiscard]] std::optional<double> seconds_per_iteration(JobNumber job, double cores);

 private:
  using Points = std::map<double, double>;  // by cores: samples per second of one worker
  struct Known {
    Points points;
    std::set<std::int32_t> given_up;        // core counts at which it never got to a steady speed
    std::optional<std::int32_t> neighbour;  // to be measured again
    std::int32_t probes = 0;                // points measured so far
    std::size_t contradictions = 0;         // reports in a row that deny the point
    std::int32_t first_most = 0;            // cores the design is made for
    std::int32_t most = 0;                  // the most that were within reach
    std::set<std::int32_t> extensions;      // sweet points asked for
    std::int32_t reach = 0;                 // cores it could have when last asked
  };
  struct Job {
    std::string model;
    std::int32_t gpus = 1;
    double cores = 0;
    std::optional<RunShape> shape{};
    SteadySpeed steady{};
    std::map<RunShape, Known> known{};
    std::optional<std::int32_t> asked{};  // the probe under way
    double asked_at = 0;
  };
  struct Memory {
    std::map<RunShape, Points> points;
    double at = 0;
  };
  void has_changed(JobNumber job);
  void take_point(JobNumber number, Job& job, Known& known, double speed, double now);
  void deny_curve(Job& job, Known& known, double speed) const;
  void remember(const Job& job, double now);
  [[nodiscard]] std::optional<CpuFit> fit(const Job& job, const Known& known) const;
  [[nodiscard]] std::optional<std::int32_t> next_probe(const Job& job, Known& known);
  [[nodiscard]] Known* known_of(JobNumber job);

  std::map<JobNumber, Job> jobs_;
  std::map<std::string, Memory> memory_;
  std::set<std::string> remembered_;  // since last asked
  std::set<JobNumber> changed_;
  std::uint64_t revision_ = 0;
  DesignTable designs_;
};

}  // namespace berth
