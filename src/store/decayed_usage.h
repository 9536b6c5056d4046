// GPU seconds by user and group, each halved every half life. A sum that decays is kept as of a
// moment: asking later scales it, adding an attempt weighs it by its age. So a question costs one
// multiplication per user, not a walk over the history. One sum per half life that was asked for.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "store/store.h"

namespace berth {

class DecayedUsage {
 public:
  /// Seconds; attempts that ended more than kSpan half lives ago weigh nothing any more.
  static constexpr double kSpan = 60;

  /// More half lives than a scheduler has settings for: old ones are forgotten.
  static constexpr std::size_t kMostSums = 8;

  [[nodiscard]] bool has(double half_life) const { return sums_.contains(half_life); }
  /// Begins a sum as of this moment.
  void open(double half_life, std::int64_t wall) {
    if (sums_.size() >= kMostSums) sums_.clear();
    sums_[half_life] = {wall, {}};
  }
  /// An attempt that ended: into one sum, or into all of them.
  void add(double half_life, std::int64_t ended_wall, const Store::Usage& attempt);
  void add(std::int64_t ended_wall, const Store::Usage& attempt);
  /// By user, then group.
  [[nodiscard]] std::vector<Store::Usage> at(double half_life, std::int64_t now_wall) const;

 private:
  struct Sum {
    std::int64_t wall = 0;  // the moment it is kept for
    std::map<std::pair<std::string, std::string>, double> by_user;
  };
  static void add(Sum& sum, double half_life, std::int64_t ended_wall, const Store::Usage& attempt);
  std::map<double, Sum> sums_;
};

}  // namespace berth
