#include "policies/elasticflow/shares.h"

#include <algorithm>
#include <cmath>
#include <queue>
#include <tuple>

#include "base/check.h"

namespace berth::elasticflow {

namespace {
constexpr double kRounding = 1e-9;  // relative: sums of speeds and times are not exact
}  // namespace

FreeGpus::FreeGpus(std::vector<Stretch> steps) : steps_(std::move(steps)) {
  BERTH_CHECK(!steps_.empty(), "something is known of free GPUs");
  steps_.back().slots = kEndless;
}

bool FreeGpus::try_size(const Demand& demand, std::size_t size, double slot_seconds,
                        std::vector<Stretch>& stretches) const {
  stretches.clear();
  const SpeedCurve& curve = *demand.curve;
  double left = demand.work * (1 - kRounding);
  std::int64_t slots = demand.slots;
  for (const Stretch& step : steps_) {
    if (slots <= 0) return false;
    const std::size_t usable = std::min(size + 1, curve.sizes_within(step.gpus));
    const std::int64_t gpus = usable == 0 ? 0 : curve.gpus[usable - 1];
    const double per_slot = usable == 0 ? 0 : curve.speed[usable - 1] * slot_seconds;
    const std::int64_t here = std::min(step.slots, slots);
    if (per_slot * static_cast<double>(here) >= left) {
      stretches.push_back({static_cast<std::int64_t>(std::ceil(left / per_slot)), gpus});
      return true;
    }
    stretches.push_back({here, gpus});
    left -= per_slot * static_cast<double>(here);
    slots -= here;
  }
  return false;
}

std::optional<Share> FreeGpus::share(const Demand& demand, double slot_seconds) const {
  Share share;
  // Sizes too slow even with all slots are passed over without a look at what is free.
  const double seconds = slot_seconds * static_cast<double>(demand.slots);
  for (; share.size < demand.curve->sizes(); ++share.size) {
    if (demand.curve->speed[share.size] * seconds < demand.work * (1 - kRounding)) continue;
    if (try_size(demand, share.size, slot_seconds, share.stretches)) return share;
  }
  return std::nullopt;
}

Share Share::after(std::int64_t slots) const {
  Share rest{.size = size, .stretches = {}};
  for (const Stretch& one : stretches) {
    const std::int64_t gone = std::min(slots, one.slots);
    slots -= gone;
    if (gone < one.slots) rest.stretches.push_back({one.slots - gone, one.gpus});
  }
  return rest;
}

double Share::work(const SpeedCurve& curve, double slot_seconds) const noexcept {
  double sum = 0;
  for (const Stretch& one : stretches) {
    const std::size_t sizes = curve.sizes_within(one.gpus);
    if (sizes > 0) sum += curve.speed[sizes - 1] * slot_seconds * static_cast<double>(one.slots);
  }
  return sum * (1 + kRounding);
}

bool FreeGpus::try_take(const Share& share) {
  std::vector<Stretch> after;
  const auto add = [&](const Stretch& one) {
    if (!after.empty() && after.back().gpus == one.gpus) {
      after.back().slots = std::min(after.back().slots + one.slots, kEndless);
    } else {
      after.push_back(one);
    }
  };
  std::size_t at = 0;
  std::int64_t rest = steps_.front().slots;
  for (Stretch used : share.stretches) {
    while (used.slots > 0) {
      const std::int64_t both = std::min(used.slots, rest);
      if (used.gpus > steps_[at].gpus) return false;
      add({both, steps_[at].gpus - used.gpus});
      used.slots -= both;
      if (steps_[at].slots != kEndless) rest -= both;
      if (rest == 0) rest = steps_[++at].slots;
    }
  }
  add({rest, steps_[at].gpus});
  if (++at < steps_.size() && steps_[at].gpus == after.back().gpus) add(steps_[at++]);
  // What comes behind stays as it is: shares are short, and what is free is known far ahead.
  steps_.erase(steps_.begin(), steps_.begin() + static_cast<std::ptrdiff_t>(at));
  steps_.insert(steps_.begin(), after.begin(), after.end());
  steps_.back().slots = kEndless;
  return true;
}

/// Work done now by the added GPUs, in GPU time of the size its share would do it with later.
double gain_of_growth(const Grower& job) noexcept {
  const SpeedCurve& curve = *job.curve;
  const double now = job.size == 0 ? 0 : curve.speed[job.size - 1];
  const std::int32_t held = job.size == 0 ? 0 : curve.gpus[job.size - 1];
  return (curve.speed[job.size] - now) * curve.gpus[job.base] / curve.speed[job.base] /
         (curve.gpus[job.size] - held);
}

std::int64_t grow(std::span<Grower> jobs, std::int64_t left) {
  struct Wish {
    double gain;
    std::size_t size;
    std::size_t job;
    bool operator<(const Wish& other) const noexcept {  // the best is on top
      return std::tuple(gain, other.size, other.job) < std::tuple(other.gain, size, job);
    }
  };
  std::priority_queue<Wish> wishes;
  const auto wish = [&](std::size_t i) {
    if (jobs[i].size < jobs[i].curve->sizes())
      wishes.push({gain_of_growth(jobs[i]), jobs[i].size, i});
  };
  for (std::size_t i = 0; i < jobs.size(); ++i) wish(i);
  while (left > 0 && !wishes.empty()) {
    const std::size_t i = wishes.top().job;
    wishes.pop();
    Grower& job = jobs[i];
    const std::int32_t held = job.size == 0 ? 0 : job.curve->gpus[job.size - 1];
    const std::int32_t more = job.curve->gpus[job.size] - held;
    if (more > left) continue;  // and never again: what is left only falls
    left -= more;
    ++job.size;
    wish(i);
  }
  return left;
}

}  // namespace berth::elasticflow
