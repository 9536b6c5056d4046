#include "policies/rubick/allocation.h"

#include <algorithm>
#include <optional>
#include <queue>
#include <tuple>
#include <vector>

namespace berth::rubick {

double Demand::slope(std::size_t from) const noexcept {
  return (curve->speed[from + 1] - curve->speed[from]) /
         (wanted * (curve->gpus[from + 1] - curve->gpus[from]));
}

namespace {

/// A step of some job, ordered by what it is worth, then by arrival.
struct Step {
  double slope;
  std::size_t job;
};

class Allocation {
 public:
  Allocation(std::span<Demand> jobs, std::int64_t free) : jobs_(jobs), free_(free) {}

  void guarantee_all(Waiting waiting) {
    for (std::size_t i = 0; i < jobs_.size(); ++i) {
      if (jobs_[i].size == kNoSize && !guarantee(i) && waiting == Waiting::Strict) return;
    }
  }

  void grow() {
    const auto less = [](const Step& a, const Step& b) {
      return std::tuple(a.slope, b.job) < std::tuple(b.slope, a.job);
    };
    std::priority_queue<Step, std::vector<Step>, decltype(less)> steps(less);
    const auto add = [&](std::size_t i) {
      if (const auto gain = gain_of(jobs_[i])) steps.push({*gain, i});
    };
    for (std::size_t i = 0; i < jobs_.size(); ++i) add(i);
    while (!steps.empty() && free_ > 0) {
      const std::size_t i = steps.top().job;
      steps.pop();
      if (step_of(jobs_[i]) > free_) continue;  // nor will more be free later
      step_up(jobs_[i]);
      add(i);
    }
  }

  /// At most one step of each job up and as many down as that takes: the next pass goes on.
  void move() {
    std::vector<Step> gains;
    for (std::size_t i = 0; i < jobs_.size(); ++i)
      if (const auto gain = gain_of(jobs_[i])) gains.push_back({*gain, i});
    std::ranges::sort(gains, {}, [](const Step& s) { return std::tuple(-s.slope, s.job); });
    std::vector<bool> moved(jobs_.size());
    for (const Step& gain : gains) {
      if (moved[gain.job]) continue;
      if (!take_for(gain, moved)) break;  // who gains less will hardly find anybody
      moved[gain.job] = true;
    }
  }

  [[nodiscard]] std::int64_t free() const noexcept { return free_; }

 private:
  static std::int64_t step_of(const Demand& job) {
    return job.curve->gpus[job.size + 1] - job.curve->gpus[job.size];
  }
  /// Nothing if it cannot grow, or would lose more by the restart than it gains.
  static std::optional<double> gain_of(const Demand& job) {
    if (!job.can_grow()) return std::nullopt;
    if (job.curve->speed[job.size + 1] * job.restart <= job.curve->speed[job.size])
      return std::nullopt;
    return job.slope(job.size) * job.restart;
  }
  void step_up(Demand& job) {
    free_ -= step_of(job);
    ++job.size;
  }
  void step_down(Demand& job) {
    --job.size;
    free_ += step_of(job);
  }

  /// The job above its guarantee that loses least per GPU; nobody who `may_not`.
  template <class MayNot>
  [[nodiscard]] std::optional<Step> cheapest(MayNot may_not) const {
    std::optional<Step> best;
    for (std::size_t i = 0; i < jobs_.size(); ++i) {
      if (!jobs_[i].can_shrink() || may_not(i)) continue;
      const double loss = jobs_[i].slope(jobs_[i].size - 1);
      if (!best || loss < best->slope) best = Step{loss, i};
    }
    return best;
  }

  bool guarantee(std::size_t i) {
    Demand& job = jobs_[i];
    const std::size_t size = job.guarantee();
    const std::int32_t needed = job.curve->gpus[size];
    std::vector<std::size_t> shrunk;
    while (free_ < needed && job.within_quota) {
      const auto loser = cheapest([](std::size_t) { return false; });
      if (!loser) break;
      step_down(jobs_[loser->job]);
      shrunk.push_back(loser->job);
    }
    if (free_ < needed) {
      for (; !shrunk.empty(); shrunk.pop_back()) step_up(jobs_[shrunk.back()]);
      return false;
    }
    free_ -= needed;
    job.size = size;
    return true;
  }

  bool take_for(const Step& gain, std::vector<bool>& moved) {
    Demand& job = jobs_[gain.job];
    std::vector<std::size_t> shrunk;
    while (free_ < step_of(job)) {
      const auto loser = cheapest([&](std::size_t i) { return moved[i] || i == gain.job; });
      if (!loser || gain.slope <= kMoveGain * loser->slope) break;
      step_down(jobs_[loser->job]);
      shrunk.push_back(loser->job);
    }
    if (free_ < step_of(job)) {
      for (; !shrunk.empty(); shrunk.pop_back()) step_up(jobs_[shrunk.back()]);
      return false;
    }
    for (const std::size_t i : shrunk) moved[i] = true;
    step_up(job);
    return true;
  }

  std::span<Demand> jobs_;
  std::int64_t free_;
};

}  // namespace

std::int64_t allocate(std::span<Demand> jobs, std::int64_t free, Waiting waiting) {
  Allocation allocation{jobs, free};
  allocation.guarantee_all(waiting);
  allocation.grow();
  allocation.move();
  return allocation.free();
}

}  // namespace berth::rubick
