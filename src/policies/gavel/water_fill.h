// Water-filling: max-min fairness that does not stop at the first bottleneck. All levels rise
// together until some class cannot rise any more without lowering another; it is frozen there and
// the rest go on, until nobody can. The result is lexicographically fair and wastes nothing.
//
// A class's level is value * effective rate; `weight` is how fast it rises beside the others. With
// `reweigh` weights may depend on who is frozen, as in a hierarchy, where the part of a job that
// cannot use more goes to its siblings.
//
// One linear program per level (a class with a positive dual price is frozen: some always is); with
// one device type no program at all, O(classes) per level. After `max_levels` the rest is shared
// out for the largest sum.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "policies/gavel/fluid.h"

namespace berth::gavel {

/// Writes the weights of those not frozen; all zero: nobody else rises.
using Reweigh = std::function<void(const std::vector<bool>& frozen, std::vector<double>& weight)>;

struct FillRule {
  std::vector<double> value{};   // by class, above zero
  std::vector<double> weight{};  // by class; empty: 1 each
  Reweigh reweigh{};             // may be empty
  int max_levels = 32;
};

[[nodiscard]] Shares water_fill(const Fluid& fluid, const FillRule& rule);

/// Shares at which the lowest level is as high as it can be, and nobody is above it. Nothing if
/// there is more than one type to choose from: that takes a program.
[[nodiscard]] std::optional<Shares> highest_level(const Fluid& fluid, const FillRule& rule);

}  // namespace berth::gavel
