#include "policies/gavel/fluid.h"

#include <algorithm>

namespace berth::gavel {

namespace {

/// Rate of a job that holds `portion` of the devices of every type.
double rate_of_portion(const Fluid& fluid, const FluidClass& one, double portion) {
  double fractions = 0;
  double rate = 0;
  for (std::size_t type = 0; type < fluid.types(); ++type) {
    const double fraction = fluid.gpus[type] * portion;
    fractions += fraction;
    rate += fraction * one.rates[type];
  }
  return rate / std::max(1.0, fractions);
}

}  // namespace

double FluidClass::best_rate() const noexcept {
  return rates.empty() ? 0 : *std::ranges::max_element(rates);
}

std::vector<double> effective_rates(const Fluid& fluid, const Shares& shares) {
  std::vector<double> rates(fluid.classes.size());
  for (std::size_t type = 0; type < fluid.types(); ++type) {
    for (std::size_t turn = 0; turn < fluid.turns(); ++turn) {
      fluid.for_each_runner(turn, [&](std::size_t at, const std::vector<double>& own) {
        rates[at] += own[type] * shares.of_turn(turn, type);
      });
    }
  }
  return rates;
}

std::vector<double> equal_rates(const Fluid& fluid) {
  double jobs = 0;
  for (const FluidClass& one : fluid.classes) jobs += one.count;
  std::vector<double> rates;
  for (const FluidClass& one : fluid.classes)
    rates.push_back(rate_of_portion(fluid, one, 1 / jobs));
  return rates;
}

double isolated_rate(const Fluid& fluid, const FluidClass& one, double jobs) {
  return rate_of_portion(fluid, one, 1 / (jobs * one.gpus));
}

Shares even_split(const Fluid& fluid) {
  Shares shares{fluid};
  double wanted = 0;
  double gpus = 0;
  for (const FluidClass& one : fluid.classes) wanted += one.can_run() ? one.count * one.gpus : 0;
  for (const double devices : fluid.gpus) gpus += devices;
  const double scale = 1 / std::max({wanted, gpus, 1e-9});
  for (std::size_t i = 0; i < fluid.classes.size(); ++i) {
    for (std::size_t type = 0; type < fluid.types(); ++type) {
      if (fluid.classes[i].rates[type] > 0) shares.of_class(i, type) = fluid.gpus[type] * scale;
    }
  }
  return shares;
}

bool everybody_fits(const Fluid& fluid, Shares& shares) {
  shares = Shares{fluid};
  std::vector<double> left = fluid.gpus;
  for (std::size_t i = 0; i < fluid.classes.size(); ++i) {
    const FluidClass& one = fluid.classes[i];
    if (!one.can_run()) continue;
    const auto best =
        static_cast<std::size_t>(std::ranges::max_element(one.rates) - one.rates.begin());
    left[best] -= one.count * one.gpus;
    if (left[best] < 0) return false;
    shares.of_class(i, best) = 1;
  }
  return true;
}

}  // namespace berth::gavel
