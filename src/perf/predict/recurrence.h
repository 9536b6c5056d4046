// Run times of recurring jobs as the PAI study predicts them (`--estimator pai`): the mean over
// earlier jobs of the same user, name and number of GPUs; then user and name; user and GPUs; user;
// then the median of everybody's jobs of that size. How many of these levels are asked is a choice.
#pragma once

#include <array>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "perf/estimator.h"

namespace berth {

/// By user alone; by user and name; by user, name and GPUs.
enum class RecurrenceKey : std::uint8_t { User, Group, GroupGpus };

struct RecurrenceRule {
  static constexpr std::uint32_t kStable = 3;
  static constexpr double kMoving = 0.5;
  RecurrenceKey key = RecurrenceKey::GroupGpus;
  std::uint32_t least = 1;  // jobs before a level is believed
  double newest =
      0;  // weight of the newest job in a moving average; 0 = plain mean of the last ten
};

class RecurrenceEstimator final : public Estimator {
 public:
  explicit RecurrenceEstimator(const RecurrenceRule& rule = {}) : rule_(rule) {}
  [[nodiscard]] std::string_view name() const noexcept override { return "pai"; }
  [[nodiscard]] bool learns() const noexcept override { return true; }
  [[nodiscard]] Duration estimate(const TraceJob& job) override;
  void learn(const TraceJob& job, Duration work) override;

 private:
  struct Past {
    std::array<double, 10> ring{};
    std::uint32_t count = 0;
    double moving = 0;
  };
  struct Key {
    std::uint32_t user = 0, name = 0;
    std::int32_t gpus = 0;  // 0: of any size
    std::uint8_t level = 0;
    friend bool operator==(const Key&, const Key&) = default;
  };
  struct Hash {
    std::size_t operator()(const Key& key) const noexcept;
  };
  struct Sample {  // the newest of everybody's jobs, for a median
    std::vector<double> ring;
    std::uint64_t count = 0;
    void add(double seconds);
    [[nodiscard]] double median() const;
  };
  [[nodiscard]] std::array<Key, 4> levels(const TraceJob& job) const noexcept;

  RecurrenceRule rule_;
  std::unordered_map<Key, Past, Hash> past_;          // lookup only
  std::unordered_map<std::int32_t, Sample> of_size_;  // lookup only
  Sample everybody_;
};

}  // namespace berth
