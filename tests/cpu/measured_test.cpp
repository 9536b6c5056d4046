// `--cpu aware` where jobs say how fast they are: the tuner, the model that learns, and jobs whose
// speed nobody knew. The jobs are synthetic: their reports follow a curve of the test's own.
#include <gtest/gtest.h>

#include <cmath>

#include "base/rng.h"
#include "cpu/cpu_tuner.h"
#include "support/run.h"
#include "training/online_model.h"

namespace berth::test {
namespace {

/// Samples a second of a worker that is fed fast enough by `theta` cores.
double speed_of(double cores, int theta) {
  const auto shape = [](double c) { return std::log(c) + 0.2 * c; };
  return 160 * std::min(1.0, shape(cores) / shape(theta));
}

/// Every job that speaks has reported a hundred times whenever the tuner asks.
class Speakers final : public MeasuredSpeeds, public Observer {
 public:
  explicit Speakers(std::map<std::uint32_t, int> thetas) : thetas_(std::move(thetas)) {}

  void append(Time now, const Action& action) override {
    if (action.kind == ActionKind::Start) begun_.insert(action.job);
    if (action.kind == ActionKind::Start || action.kind == ActionKind::SetCores) {
      bound[action.job.value].push_back(action.terms.cores_milli / 1000);
      model_.set_cores(action.job.value, action.terms.cores_milli / 1000.0);
    }
    now_ = to_seconds(now);
  }
  void take_changed(std::vector<JobId>& jobs) override {
    for (const JobId job : begun_) {
      const auto theta = thetas_.find(job.value);
      if (theta == thetas_.end()) continue;
      const int cores = bound[job.value].back();
      for (int i = 0; i < 100; ++i) {
        const double noise = 1 + 0.03 * (rng_.uniform() - 0.5);
        model_.add(job.value,
                   {.seconds = noise * 32 / speed_of(cores, theta->second),
                    .iterations = 1,
                    .batch = 32,
                    .sub_steps = 1},
                   now_);
      }
    }
    for (const JobNumber job : model_.take_changed())
      jobs.push_back(JobId{static_cast<std::uint32_t>(job)});
  }
  bool speeds(JobId job, std::int32_t most, std::vector<double>& f) override {
    const auto curve = model_.curve(job.value);
    if (curve) f = normalised_speeds(*curve, most);
    return curve.has_value();
  }
  std::optional<std::int32_t> probe(JobId job, std::int32_t most) override {
    return model_.probe(job.value, most, now_);
  }

  std::map<std::uint32_t, std::vector<int>> bound;  // cores a job had, in turn

 private:
  const std::map<std::uint32_t, int> thetas_;
  std::set<JobId> begun_;
  OnlineModel model_;
  Rng rng_{5};
  double now_ = 0;
};

Scenario one_server(int jobs) {
  Scenario scenario;
  scenario.placement = "best-fit";
  scenario.node_cpus = 24;
  scenario.effects = {.sharing = false, .cpu = true};
  for (int i = 0; i < jobs; ++i) scenario.jobs.push_back({.duration = 2000});
  scenario.jobs.push_back({.submit = 10, .duration = 1});  // by then the others speak
  return scenario;
}

void run_measured(Scenario scenario, Speakers& speakers) {
  CpuTunerOptions options;
  options.measured = &speakers;
  auto tuner = make_cpu_tuner("aware", options);
  ASSERT_TRUE(tuner.has_value());
  scenario.tuner = tuner->get();
  static_cast<void>(run(scenario, &speakers));
}

TEST(CpuMeasured, AJobNobodyKnewFindsItsSweetPoint) {
  for (const int theta : {1, 3, 8, 13, 20}) {
    Speakers speakers{{{0, theta}}};
    run_measured(one_server(1), speakers);
    const std::vector<int>& cores = speakers.bound[0];
    EXPECT_GE(speed_of(cores.back(), theta), 0.95 * 160) << "theta " << theta;
    EXPECT_LE(cores.back(), theta + 2) << "theta " << theta;
    EXPECT_LE(cores.size(), 10U) << "theta " << theta;  // start, probes, and the sweet point
  }
}

TEST(CpuMeasured, WhoeverIsSilentHasItsShareAndKeepsIt) {
  Speakers speakers{{}};
  run_measured(one_server(3), speakers);
  for (const auto& [job, cores] : speakers.bound) {
    if (job >= 3) continue;
    EXPECT_EQ(cores, (std::vector<int>{6})) << "job " << job;  // 24 cores, 4 GPUs
  }
}

TEST(CpuMeasured, HungryAndModestJobsShareAServer) {
  Speakers speakers{{{0, 14}, {1, 1}, {2, 4}}};
  run_measured(one_server(3), speakers);
  EXPECT_GE(speed_of(speakers.bound[0].back(), 14), 0.95 * 160);
  EXPECT_EQ(speakers.bound[1].back(), 1);
  EXPECT_NEAR(speakers.bound[2].back(), 4, 1);
}

}  // namespace
}  // namespace berth::test
