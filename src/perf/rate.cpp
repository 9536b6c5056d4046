#include "perf/rate.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <string>
#include <utility>

namespace berth {

double model_skew(std::string_view model) noexcept {
  // Tensor sizes in MB from the public layer tables of the models: largest / total of the large
  // ones.
  static constexpr std::array<std::pair<std::string_view, double>, 9> kSkew{{
      {"vgg19", 392.0 / 547.1},
      {"vgg16", 392.0 / 526.8},
      {"vgg11", 392.0 / 506.5},
      {"alexnet", 144.0 / 235.8},
      {"resnet152", 9.0 / 149.6},
      {"resnet101", 9.0 / 119.7},
      {"resnet50", 9.0 / 80.6},
      {"inception4", 5.9 / 132.8},
      {"inception3", 7.8 / 56.6},
  }};
  std::string plain;  // "ResNet-50", "resnet_50" and "resnet50" are one model
  for (const char c : model) {
    if (std::isalnum(static_cast<unsigned char>(c)) != 0) {
      plain += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    }
  }
  const auto found = std::ranges::find(kSkew, plain, [](const auto& row) { return row.first; });
  return found == kSkew.end() ? 0.0 : found->second;
}

Rate spread_rate(SpreadCost cost, std::string_view model, const PlacementFacts& facts) noexcept {
  if (cost == SpreadCost::Ignored || facts.nodes <= facts.fewest_nodes) return Rate::one();
  return model_skew(model) > kSkewLimit ? Rate::from(0.6) : Rate::from(0.95);
}

}  // namespace berth
