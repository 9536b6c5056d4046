#include "policies/gavel/water_fill.h"

#include <algorithm>
#include <limits>

#include "policies/gavel/level_program.h"

namespace berth::gavel {

namespace {

/// Who is frozen, how fast the others rise, how high everybody is.
struct Tide {
  explicit Tide(const Fluid& fluid, const FillRule& rule)
      : frozen(fluid.classes.size()), weight(rule.weight), level(fluid.classes.size()) {
    if (weight.empty()) weight.assign(fluid.classes.size(), 1);
    for (std::size_t i = 0; i < frozen.size(); ++i) frozen[i] = !fluid.classes[i].can_run();
    reweigh(rule);
  }
  void reweigh(const FillRule& rule) {
    if (rule.reweigh) rule.reweigh(frozen, weight);
    for (std::size_t i = 0; i < frozen.size(); ++i) {
      if (frozen[i]) weight[i] = 0;
    }
  }
  [[nodiscard]] bool rises() const {
    return std::ranges::any_of(weight, [](double w) { return w > 0; });
  }
  void raise(double by) {
    for (std::size_t i = 0; i < level.size(); ++i) level[i] += weight[i] * by;
  }

  std::vector<bool> frozen;
  std::vector<double> weight;
  std::vector<double> level;
};

/// The one type on which anybody can run, if there is only one and nobody shares.
std::optional<std::size_t> only_type(const Fluid& fluid) {
  if (!fluid.pairs.empty()) return std::nullopt;
  std::optional<std::size_t> only;
  for (const FluidClass& one : fluid.classes) {
    for (std::size_t type = 0; type < fluid.types(); ++type) {
      if (one.rates[type] <= 0 || only == type) continue;
      if (only) return std::nullopt;
      only = type;
    }
  }
  return only;
}

/// With one type a class's fraction is its level over what a whole device is worth to it.
class OneType {
 public:
  OneType(const Fluid& fluid, const FillRule& rule, std::size_t type) : left_(fluid.gpus[type]) {
    for (std::size_t i = 0; i < fluid.classes.size(); ++i) {
      const FluidClass& one = fluid.classes[i];
      top_.push_back(rule.value[i] * one.rates[type]);
      gpus_.push_back(one.count * one.gpus);
    }
  }
  [[nodiscard]] double fraction(const Tide& tide, std::size_t at) const {
    return top_[at] > 0 ? std::min(1.0, tide.level[at] / top_[at]) : 0;
  }
  void write(const Tide& tide, std::size_t type, Shares& shares) const {
    for (std::size_t i = 0; i < top_.size(); ++i) shares.of_class(i, type) = fraction(tide, i);
  }
  /// Until some class has all of its time, or the devices are used up; freezes those.
  void rise(Tide& tide) {
    double use = 0;  // devices per unit of level
    double step = std::numeric_limits<double>::infinity();
    for (std::size_t i = 0; i < top_.size(); ++i) {
      if (tide.weight[i] <= 0) continue;
      use += gpus_[i] * tide.weight[i] / top_[i];
      step = std::min(step, (top_[i] - tide.level[i]) / tide.weight[i]);
    }
    const bool full = step * use >= left_;
    if (full) step = left_ / use;
    step = std::max(step, 0.0);
    left_ = full ? 0 : left_ - step * use;
    tide.raise(step);
    for (std::size_t i = 0; i < top_.size(); ++i) {
      if (tide.weight[i] > 0 && (full || tide.level[i] >= top_[i] * (1 - 1e-12)))
        tide.frozen[i] = true;
    }
  }

 private:
  std::vector<double> top_;   // level of a job that always runs
  std::vector<double> gpus_;  // of all jobs of the class
  double left_;
};

Shares fill_one_type(const Fluid& fluid, const FillRule& rule, std::size_t type) {
  Tide tide{fluid, rule};
  OneType devices{fluid, rule, type};
  while (tide.rises()) {
    devices.rise(tide);
    tide.reweigh(rule);
  }
  Shares shares{fluid};
  devices.write(tide, type, shares);
  return shares;
}

/// Levels a hair below what was reached, so that rounding never makes the next program infeasible.
constexpr double kHair = 1 - 1e-9;

void set_program(LevelProgram& program, const Tide& tide) {
  for (std::size_t i = 0; i < tide.level.size(); ++i) {
    program.set_weight(i, tide.weight[i]);
    program.set_base(i, tide.level[i] * kHair);
  }
}

Shares fill_by_program(const Fluid& fluid, const FillRule& rule) {
  Tide tide{fluid, rule};
  LevelProgram program{fluid, rule.value};
  Shares shares = even_split(fluid);
  for (int count = 0; tide.rises(); ++count) {
    set_program(program, tide);
    // Each level is one program; far down the list levels differ by little.
    if (count == rule.max_levels) {
      if (auto rest = program.solve_sum()) shares = *std::move(rest);
      break;
    }
    auto level = program.solve();
    if (!level) break;  // what was reached so far stands
    shares = std::move(level->shares);
    tide.raise(level->z);
    // In theory some class always has a price. If rounding hid it, all are frozen: no endless loop.
    const bool any = std::ranges::find(level->is_bound, true) != level->is_bound.end();
    for (std::size_t i = 0; i < tide.frozen.size(); ++i)
      tide.frozen[i] = tide.frozen[i] || level->is_bound[i] || !any;
    tide.reweigh(rule);
  }
  return shares;
}

}  // namespace

std::optional<Shares> highest_level(const Fluid& fluid, const FillRule& rule) {
  const auto type = only_type(fluid);
  if (!type) return std::nullopt;
  Tide tide{fluid, rule};
  OneType devices{fluid, rule, *type};
  Shares shares{fluid};
  if (tide.rises()) devices.rise(tide);
  devices.write(tide, *type, shares);
  return shares;
}

Shares water_fill(const Fluid& fluid, const FillRule& rule) {
  if (const auto type = only_type(fluid)) return fill_one_type(fluid, rule, *type);
  Shares shares;
  if (fluid.pairs.empty() && everybody_fits(fluid, shares)) return shares;
  return fill_by_program(fluid, rule);
}

}  // namespace berth::gavel
