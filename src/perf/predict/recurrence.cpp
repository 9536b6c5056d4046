#include "perf/predict/recurrence.h"

#include <algorithm>
#include <numeric>

#include "base/digest.h"

namespace berth {

namespace {
constexpr double kPrior = 3600;                           // seconds, where nothing is known
constexpr Duration kTooShort = std::chrono::seconds{60};  // a failed attempt says nothing
constexpr std::size_t kSample = 1001;
}  // namespace

std::size_t RecurrenceEstimator::Hash::operator()(const Key& key) const noexcept {
  Digest digest;
  digest.add((std::uint64_t{key.user} << 32U) | key.name);
  digest.add((std::uint64_t{static_cast<std::uint32_t>(key.gpus)} << 8U) | key.level);
  return digest.value();
}

void RecurrenceEstimator::Sample::add(double seconds) {
  if (ring.size() < kSample) {
    ring.push_back(seconds);
  } else {
    ring[count % kSample] = seconds;
  }
  ++count;
}

double RecurrenceEstimator::Sample::median() const {
  std::vector<double> values = ring;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::ranges::nth_element(values, middle);
  if (values.size() % 2 == 1) return *middle;
  return (*middle + *std::max_element(values.begin(), middle)) / 2;
}

/// From the closest to the widest.
std::array<RecurrenceEstimator::Key, 4> RecurrenceEstimator::levels(
    const TraceJob& job) const noexcept {
  return {Key{job.user.value, job.name.value, job.gpus, 0},
          Key{job.user.value, job.name.value, 0, 1}, Key{job.user.value, 0, job.gpus, 2},
          Key{job.user.value, 0, 0, 3}};
}

Duration RecurrenceEstimator::estimate(const TraceJob& job) {
  const auto asked = [&](std::uint8_t level) {
    switch (rule_.key) {
      case RecurrenceKey::User: return level == 3;
      case RecurrenceKey::Group: return level == 1 || level == 3;
      case RecurrenceKey::GroupGpus: break;
    }
    return true;
  };
  const auto seconds = [&] {
    for (const Key& key : levels(job)) {
      const auto found = asked(key.level) ? past_.find(key) : past_.end();
      if (found == past_.end() || found->second.count < rule_.least) continue;
      const Past& past = found->second;
      if (rule_.newest > 0) return past.moving;
      const auto used = std::min<std::size_t>(past.count, past.ring.size());
      return std::accumulate(past.ring.begin(),
                             past.ring.begin() + static_cast<std::ptrdiff_t>(used), 0.0) /
             static_cast<double>(used);
    }
    if (const auto found = of_size_.find(job.gpus); found != of_size_.end())
      return found->second.median();
    return everybody_.count > 0 ? everybody_.median() : kPrior;
  }();
  return std::max(Duration{1}, seconds_to_duration_up(std::min(seconds, kMaxInputSeconds)));
}

// Every level learns from every job, so that a wider one is ready when a closer one is not.
void RecurrenceEstimator::learn(const TraceJob& job, Duration work) {
  if (job.status == TraceStatus::Failed && work < kTooShort) return;
  const double seconds = to_seconds(work);
  for (const Key& key : levels(job)) {
    Past& past = past_[key];
    past.moving =
        past.count == 0 ? seconds : rule_.newest * seconds + (1 - rule_.newest) * past.moving;
    past.ring[past.count++ % past.ring.size()] = seconds;
  }
  of_size_[job.gpus].add(seconds);
  everybody_.add(seconds);
}

}  // namespace berth
