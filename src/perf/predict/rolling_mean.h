// What a user's earlier jobs say about the next one: jobs of similar name and the same number of
// GPUs first, the newest counting most; then the user's jobs of that size; then everybody's. The
// rolling half of Helios' prediction of run times.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <unordered_map>
#include <vector>

#include "base/names.h"
#include "perf/predict/similar_names.h"

namespace berth {

struct RollingRule {
  double decay = 0.5;  // weight of a job against the next newer one
  bool names_across_users = false;
};

class RollingMean {
 public:
  explicit RollingMean(const Names& names, const RollingRule& rule = {})
      : rule_(rule), similar_(names) {}

  /// A job is over after so many seconds.
  void add(NameId user, NameId name, std::int32_t gpus, double seconds);
  /// Nothing if no job is over yet.
  [[nodiscard]] std::optional<double> predict(NameId user, NameId name, std::int32_t gpus);

 private:
  static constexpr std::size_t kLast = 10;   // jobs of a name, and in one prediction
  static constexpr std::size_t kNames = 50;  // of a user, those used last
  struct Mean {
    double sum = 0;
    std::int64_t count = 0;
    void add(double value) {
      sum += value;
      ++count;
    }
    [[nodiscard]] double value() const { return sum / static_cast<double>(count); }
  };
  struct Means {
    Mean all;
    std::map<std::int32_t, Mean> by_gpus;
    void add(std::int32_t gpus, double seconds) {
      all.add(seconds);
      by_gpus[gpus].add(seconds);
    }
    [[nodiscard]] std::optional<double> of(std::int32_t gpus) const;
  };
  struct Past {
    std::uint64_t order = 0;
    std::int32_t gpus = 0;
    double seconds = 0;
  };
  struct Named {
    NameId name;
    std::uint64_t used = 0;  // order of its newest job
    std::array<Past, kLast> ring{};
    std::uint32_t count = 0;
  };
  struct User {
    Means means;
    std::vector<Named> names;
  };
  [[nodiscard]] std::optional<double> by_similar_names(const User& user, NameId name,
                                                       std::int32_t gpus);
  [[nodiscard]] std::optional<double> by_other_users(NameId name, std::int32_t gpus);

  RollingRule rule_;
  SimilarNames similar_;
  std::unordered_map<NameId, User> users_;  // lookup only
  User everybody_;                          // its names only if they count across users
  std::uint64_t order_ = 0;
};

}  // namespace berth
