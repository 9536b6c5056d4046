// The fluid form of a heterogeneous cluster: which fraction of its time each job spends on each
// device type. All of Gavel's policies are programs over these fractions (water_fill.h,
// programs.h); rounds.h turns fractions into turns.
//
// Jobs that are alike to a program form one class, so that a program grows with the number of kinds
// of jobs, not with the number of jobs. Every job of a class gets the same fractions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace berth::gavel {

struct FluidClass {
  std::vector<double> rates;  // by type: work per second of one job; 0 = cannot run there
  double gpus = 1;            // of one job
  double count = 1;           // jobs in the class

  /// The fastest type's.
  [[nodiscard]] double best_rate() const noexcept;
  [[nodiscard]] bool can_run() const noexcept { return best_rate() > 0; }
};

/// Two classes of one job each on the same devices; both have the same number of GPUs.
struct FluidPair {
  std::uint32_t first = 0;
  std::uint32_t second = 0;
  std::vector<double> first_rates;  // by type, beside the other; 0 = cannot share there
  std::vector<double> second_rates;
};

struct Fluid {
  std::vector<double> gpus;  // by type
  std::vector<FluidClass> classes;
  std::vector<FluidPair> pairs;

  [[nodiscard]] std::size_t types() const noexcept { return gpus.size(); }
  /// Turns are what time is given to: each class by itself, then each pair.
  [[nodiscard]] std::size_t turns() const noexcept { return classes.size() + pairs.size(); }
  /// Who runs in a turn: visit(class, its rates by type).
  template <class Visit>
  void for_each_runner(std::size_t turn, Visit&& visit) const {
    if (turn < classes.size()) return visit(turn, classes[turn].rates);
    const FluidPair& pair = pairs[turn - classes.size()];
    visit(pair.first, pair.first_rates);
    visit(pair.second, pair.second_rates);
  }
  /// That all jobs of a turn take together.
  [[nodiscard]] double devices(std::size_t turn) const noexcept {
    if (turn < classes.size()) return classes[turn].count * classes[turn].gpus;
    return classes[pairs[turn - classes.size()].first].gpus;
  }
};

/// Fractions of time by turn and type.
class Shares {
 public:
  Shares() = default;
  explicit Shares(const Fluid& fluid)
      : types_(fluid.types()), pairs_(fluid.classes.size()), fractions_(fluid.turns() * types_) {}

  [[nodiscard]] double& of_turn(std::size_t turn, std::size_t type) noexcept {
    return fractions_[turn * types_ + type];
  }
  [[nodiscard]] double of_turn(std::size_t turn, std::size_t type) const noexcept {
    return fractions_[turn * types_ + type];
  }
  [[nodiscard]] double& of_class(std::size_t at, std::size_t type) noexcept {
    return of_turn(at, type);
  }
  [[nodiscard]] double of_class(std::size_t at, std::size_t type) const noexcept {
    return of_turn(at, type);
  }
  [[nodiscard]] double of_pair(std::size_t at, std::size_t type) const noexcept {
    return of_turn(pairs_ + at, type);
  }

 private:
  std::size_t types_ = 0;
  std::size_t pairs_ = 0;  // the first turn of a pair
  std::vector<double> fractions_;
};

/// Work per second of each class's jobs under these shares.
[[nodiscard]] std::vector<double> effective_rates(const Fluid& fluid, const Shares& shares);

/// Work per second of a job that has an equal part of every type's devices: n/J of each type, one
/// device or gang counting as one; fractions above 1 in sum are scaled down to 1.
[[nodiscard]] std::vector<double> equal_rates(const Fluid& fluid);
/// Work per second of a job with 1/J of the cluster to itself: n/(J K) of each type, which is what a
/// gang of K gets of it.
[[nodiscard]] double isolated_rate(const Fluid& fluid, const FluidClass& one, double jobs);

/// A split that ignores how fast jobs are where: everybody the same fraction of each type. Always
/// feasible; the answer if a solver should fail.
[[nodiscard]] Shares even_split(const Fluid& fluid);

/// Everybody always on the fastest type, if there are devices enough: no program has a better
/// answer. False, and `shares` unspecified, otherwise.
[[nodiscard]] bool everybody_fits(const Fluid& fluid, Shares& shares);

}  // namespace berth::gavel
