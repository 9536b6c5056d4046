#include "policies/pollux/water_fill.h"

#include <algorithm>
#include <cmath>
#include <queue>
#include <tuple>

#include "policies/pollux/fitness.h"

namespace berth::pollux {

namespace {

/// From one size of a job to a larger one.
struct Step {
  double gain = 0;  // per GPU
  std::uint32_t job = 0;
  std::uint32_t to = 0;  // index of the size, counted from 1
  std::int32_t gpus = 0;
};
struct Later {
  bool operator()(const Step& a, const Step& b) const noexcept {
    return std::tuple(a.gain, b.gpus, b.job) < std::tuple(b.gain, a.gpus, a.job);
  }
};

class Filling {
 public:
  Filling(std::span<const FillJob> jobs, double p) : jobs_(jobs), p_(p), at_(jobs.size(), 0) {}

  std::vector<std::int32_t> run(std::int64_t free) {
    for (std::uint32_t job = 0; job < jobs_.size(); ++job) push_best(job, free);
    while (!steps_.empty()) {
      const Step step = steps_.top();
      steps_.pop();
      if (step.gpus <= free) {
        at_[step.job] = step.to;
        free -= step.gpus;
      }
      push_best(step.job, free);  // if it did not fit, a smaller step may
    }
    std::vector<std::int32_t> result;
    for (std::uint32_t job = 0; job < jobs_.size(); ++job) result.push_back(size_at(job, at_[job]));
    return result;
  }

 private:
  [[nodiscard]] std::int32_t size_at(std::uint32_t job, std::uint32_t index) const {
    return index == 0 ? 0 : jobs_[job].sizes[index - 1];
  }
  /// The larger the better, whatever the sign of p.
  [[nodiscard]] double worth_at(std::uint32_t job, std::uint32_t index) const {
    const double utility = index == 0 ? 0 : jobs_[job].utility[index - 1];
    return p_ < 0 ? -powered(utility, p_) : powered(utility, p_);
  }

  /// The step with the largest gain per GPU among those that fit.
  void push_best(std::uint32_t job, std::int64_t free) {
    const std::uint32_t from = at_[job];
    const double worth = worth_at(job, from);
    Step best;
    for (auto to = from + 1; to <= jobs_[job].sizes.size(); ++to) {
      const std::int32_t gpus = size_at(job, to) - size_at(job, from);
      if (gpus > free) break;
      const double gain = (worth_at(job, to) - worth) / gpus;
      if (gain > best.gain) best = {gain, job, to, gpus};
    }
    if (best.gpus > 0) steps_.push(best);
  }

  std::span<const FillJob> jobs_;
  double p_;
  std::vector<std::uint32_t> at_;
  std::priority_queue<Step, std::vector<Step>, Later> steps_;
};

}  // namespace

std::vector<std::int32_t> water_fill(std::span<const FillJob> jobs, std::int64_t gpus, double p) {
  return Filling(jobs, p).run(gpus);
}

}  // namespace berth::pollux
