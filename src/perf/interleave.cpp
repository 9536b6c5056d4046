#include "perf/interleave.h"

#include <algorithm>

#include "perf/profile.h"

namespace berth {

namespace {

using Order = std::array<std::uint8_t, kMaxInterleaved>;

double time_in_order(std::span<const StageTimes> jobs, const Order& order) noexcept {
  double total = 0;
  for (std::size_t phase = 0; phase < kStages; ++phase) {
    double longest = 0;
    for (std::size_t position = 0; position < jobs.size(); ++position)
      // In each phase every job is in another stage; the phase lasts as long as the slowest of
      // them.
      longest = std::max(longest, jobs[order[position]][(phase + kStages - position) % kStages]);
    total += longest;
  }
  return total;
}

}  // namespace

StageTimes stages_of(const Profile& profile) noexcept {
  if (profile.has_stages()) return profile.stages;
  const double length = profile.iteration.alpha + profile.iteration.beta * profile.batch;
  const double on_gpu = length * std::clamp(profile.gpu_utilisation, 0.0, 1.0);
  const double rest = (length - on_gpu) / 2;
  return {rest, rest, on_gpu, 0};
}

double interleaved_time(std::span<const StageTimes> in_order) noexcept {
  return time_in_order(in_order, Order{0, 1, 2, 3});
}

Interleaving best_interleaving(std::span<const StageTimes> jobs) noexcept {
  Order order{0, 1, 2, 3};
  Interleaving best{.seconds = time_in_order(jobs, order),
                    .efficiency = 0,
                    .jobs = static_cast<std::uint8_t>(jobs.size()),
                    .order = order};
  // With all four positions taken turning the circle changes nothing: the first job may stay first.
  const auto first = order.begin() + (jobs.size() == kMaxInterleaved ? 1 : 0);
  const auto last = order.begin() + static_cast<std::ptrdiff_t>(jobs.size());
  while (std::next_permutation(first, last)) {
    const double seconds = time_in_order(jobs, order);
    if (seconds >= best.seconds) continue;
    best.seconds = seconds;
    best.order = order;
  }
  double busy = 0;
  for (const StageTimes& stages : jobs) busy += iteration_of(stages);
  if (best.seconds > 0) best.efficiency = busy / (static_cast<double>(kStages) * best.seconds);
  return best;
}

bool loses_throughput(std::span<const StageTimes> jobs, double seconds) noexcept {
  double shortest = iteration_of(jobs[0]);
  for (const StageTimes& stages : jobs) shortest = std::min(shortest, iteration_of(stages));
  return seconds > static_cast<double>(jobs.size()) * shortest;
}

double total_speed(std::span<const StageTimes> jobs, double seconds) noexcept {
  double speed = 0;
  for (const StageTimes& stages : jobs) speed += iteration_of(stages) / seconds;
  return speed;
}

}  // namespace berth
