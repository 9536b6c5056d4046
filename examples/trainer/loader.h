// Batches prepared ahead by worker threads and handed out in order. A sample depends on its index
// and the seed alone, so the workers' number and speed change nothing but time.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <map>
#include <mutex>
#include <numeric>
#include <thread>
#include <utility>
#include <vector>

#include "network.h"

namespace trainer {

struct DataOptions {
  std::uint64_t seed = 1;
  std::int64_t samples = 4096;
  std::int64_t batch = 32;
  std::int64_t work = 0;  // rounds of arithmetic a sample costs: decoding, cropping
  int workers = 2;
};

inline Sample make_sample(const DataOptions& options, std::int64_t index) {
  const auto at = static_cast<std::uint64_t>(index);
  Sample sample{};
  double target = 0;
  for (std::size_t i = 0; i < kInputs; ++i) {
    sample.input[i] = 2 * unit(options.seed * 1000003 + at * kInputs + i) - 1;
    target += (i % 2 == 0 ? 1 : -1) * sample.input[i] * sample.input[(i + 1) % kInputs];
  }
  sample.target = target;
  std::uint64_t busy = at;
  for (std::int64_t round = 0; round < options.work; ++round) busy = mix(busy);
  if (busy == 42) sample.target += 1e-300;  // so that nobody optimises the work away
  return sample;
}

/// Every epoch has its own order.
inline std::vector<std::int64_t> order_of_epoch(const DataOptions& options, std::int64_t epoch) {
  std::vector<std::int64_t> order(static_cast<std::size_t>(options.samples));
  std::iota(order.begin(), order.end(), 0);
  for (std::size_t i = order.size() - 1; i > 0; --i) {
    const std::uint64_t draw =
        mix(options.seed * 31 + static_cast<std::uint64_t>(epoch) * 65537 + i);
    std::swap(order[i], order[draw % (i + 1)]);
  }
  return order;
}

class Loader {
 public:
  Loader(const DataOptions& options, std::int64_t first, std::int64_t end)
      : options_(options), next_(first), wanted_(first), end_(end) {
    for (int i = 0; i < options.workers; ++i) threads_.emplace_back([this] { prepare(); });
  }
  ~Loader() {
    {
      const std::lock_guard lock{mutex_};
      is_over_ = true;
    }
    changed_.notify_all();
    for (std::thread& thread : threads_) thread.join();
  }
  Loader(const Loader&) = delete;
  Loader& operator=(const Loader&) = delete;

  /// The batch of the next iteration.
  std::vector<Sample> take() {
    std::unique_lock lock{mutex_};
    changed_.wait(lock, [&] { return ready_.contains(wanted_); });
    std::vector<Sample> batch = std::move(ready_.at(wanted_));
    ready_.erase(wanted_++);
    changed_.notify_all();
    return batch;
  }

 private:
  void prepare() {
    std::int64_t epoch = -1;
    std::vector<std::int64_t> order;
    const std::int64_t per_epoch = options_.samples / options_.batch;
    for (;;) {
      std::int64_t iteration = 0;
      {
        std::unique_lock lock{mutex_};
        changed_.wait(lock, [&] {
          return is_over_ || next_ == end_ || next_ < wanted_ + 2 * options_.workers;
        });
        if (is_over_ || next_ == end_) return;
        iteration = next_++;
      }
      if (iteration / per_epoch != epoch) {
        epoch = iteration / per_epoch;
        order = order_of_epoch(options_, epoch);
      }
      std::vector<Sample> batch;
      const std::int64_t begin = iteration % per_epoch * options_.batch;
      for (std::int64_t i = begin; i < begin + options_.batch; ++i)
        batch.push_back(make_sample(options_, order[static_cast<std::size_t>(i)]));
      const std::lock_guard lock{mutex_};
      ready_.emplace(iteration, std::move(batch));
      changed_.notify_all();
    }
  }

  const DataOptions options_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::int64_t, std::vector<Sample>> ready_;
  std::int64_t next_;    // to be prepared
  std::int64_t wanted_;  // to be handed out
  const std::int64_t end_;
  bool is_over_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace trainer
