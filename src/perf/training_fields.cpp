#include "perf/training_fields.h"

#include <array>

#include <fmt/format.h>

namespace berth {

namespace {

constexpr double kMostScale = 1e9;
constexpr double kMostBatch = 1e8;

bool is_mapping(YamlFields& yaml, const YAML::Node& node, std::span<const std::string> keys,
                std::string_view what, std::string_view example) {
  if (!node.IsDefined()) return false;
  if (node.IsMap()) {
    yaml.check_keys(node, keys, what);
    return true;
  }
  yaml.wrong(node.Mark(), fmt::format("{} is a mapping, as in {}", what, example));
  return false;
}

void read_loss(YamlFields& yaml, const YAML::Node& node, LossCurve& loss) {
  static const std::array<std::string, 6> kKeys{"b0", "b1", "b2", "epochs", "spread", "noise"};
  if (!is_mapping(yaml, node, kKeys, "loss", "{b0: 0.1, b1: 0.5, b2: 0.2, epochs: 17}")) return;
  loss.b0 = yaml.number(node, "b0", {0, 1e9}).value_or(loss.b0);
  loss.b1 = yaml.number(node, "b1", {1e-9, 1e9}).value_or(loss.b1);
  loss.b2 = yaml.number(node, "b2", {0, 1e9}).value_or(loss.b2);
  loss.epochs = yaml.number(node, "epochs", {1e-3, 1e9}).value_or(loss.epochs);
  loss.spread = yaml.number(node, "spread", {0, 10}).value_or(loss.spread);
  loss.noise = yaml.number(node, "noise", {0, 10}).value_or(loss.noise);
}

/// Pairs of [progress, scale], progress rising.
void read_noise(YamlFields& yaml, const YAML::Node& node, std::vector<NoisePoint>& points) {
  if (!node.IsDefined()) return;
  if (!node.IsSequence())
    return yaml.wrong(node.Mark(),
                      "noise is a list of [progress, scale], as in [[0, 300], [0.5, 2000]]");
  points.clear();
  for (const YAML::Node& pair : node) {
    if (!pair.IsSequence() || pair.size() != 2) {
      yaml.wrong(pair.Mark(), "a noise scale is [progress, scale], as in [0.5, 2000]");
      continue;
    }
    const auto progress = yaml.number_at(pair[0], "progress", {0, 1});
    const auto scale = yaml.number_at(pair[1], "a noise scale", {1e-9, kMostScale});
    if (!progress || !scale) continue;
    if (!points.empty() && *progress <= points.back().progress)
      yaml.wrong(pair.Mark(), "noise scales stand in the order of progress");
    points.push_back({*progress, *scale});
  }
}

void read_limits(YamlFields& yaml, const YAML::Node& node, BatchLimits& limits) {
  static const std::array<std::string, 3> kKeys{"least_per_gpu", "most_per_gpu", "most_total"};
  if (!is_mapping(yaml, node, kKeys, "batch_limits",
                  "{least_per_gpu: 32, most_per_gpu: 1024, most_total: 4096}"))
    return;
  limits.least_per_gpu =
      yaml.whole(node, "least_per_gpu", {1, kMostBatch}).value_or(limits.least_per_gpu);
  limits.most_per_gpu =
      yaml.whole(node, "most_per_gpu", {0, kMostBatch}).value_or(limits.most_per_gpu);
  limits.most_total = yaml.whole(node, "most_total", {0, kMostBatch}).value_or(limits.most_total);
  if (limits.most_per_gpu > 0 && limits.most_per_gpu < limits.least_per_gpu)
    yaml.wrong(node.Mark(), "most_per_gpu is below least_per_gpu: no batch would do");
}

}  // namespace

void read_training_fields(YamlFields& yaml, const YAML::Node& row, Profile& profile) {
  read_loss(yaml, YamlFields::child(row, "loss"), profile.loss);
  read_noise(yaml, YamlFields::child(row, "noise"), profile.noise);
  read_limits(yaml, YamlFields::child(row, "batch_limits"), profile.batch_limits);
}

}  // namespace berth
