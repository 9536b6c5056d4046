// Sources of what sharing costs: Gavel's throughputs, Lucid's pairs, contention on one link.
#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "lab/fit/published.h"
#include "lab/fit/table.h"

namespace berth {

namespace {

constexpr std::string_view kSpread = "_unconsolidated";

using Names = std::span<const std::pair<std::string, std::string>>;

/// Our name of theirs; empty if we have none.
std::string our_name(Names names, std::string_view theirs) {
  const auto found = std::ranges::find(names, theirs, &std::pair<std::string, std::string>::first);
  return found == names.end() ? std::string() : found->second;
}

}  // namespace

/// "('ResNet-18 (batch size 16)', 2)" or "('A3C', 1)".
GavelThroughputs::JobType GavelThroughputs::parse_type(const std::string& key) {
  JobType type;
  const std::size_t open = key.find('\'');
  const std::size_t close = key.rfind('\'');
  if (open == std::string::npos || close <= open) return type;
  type.model = key.substr(open + 1, close - open - 1);
  const std::size_t comma = key.find(',', close);
  if (comma != std::string::npos) {
    const std::string count = key.substr(comma + 1);
    const std::size_t digit = count.find_first_of("0123456789");
    if (digit != std::string::npos)
      std::from_chars(count.data() + digit, count.data() + count.size(), type.gpus);
  }
  constexpr std::string_view kBatch = " (batch size ";
  if (const std::size_t at = type.model.find(kBatch); at != std::string::npos) {
    const std::string number = type.model.substr(at + kBatch.size());
    std::from_chars(number.data(), number.data() + number.size(), type.batch);
    type.model.resize(at);
  }
  return type;
}

Result<GavelThroughputs> GavelThroughputs::load(const std::string& directory) {
  const std::string path = directory + "/gavel/simulation_throughputs.json";
  BERTH_TRY(const std::string text, read_file(path));
  const auto json = nlohmann::json::parse(text, nullptr, false);
  if (!json.is_object()) return fail(fmt::format("{}: no JSON object", path));
  GavelThroughputs result;
  for (const auto& [where, types] : json.items()) {
    const bool spread = where.ends_with(kSpread);
    const std::string device = spread ? where.substr(0, where.size() - kSpread.size()) : where;
    for (const auto& [key, row] : types.items()) {
      const JobType type = parse_type(key);
      // "null" is the job beside nobody; a rate of zero means that it was not measured.
      const double alone = row.value("null", 0.0);
      if (alone <= 0) continue;
      result.alone_.push_back({device, spread, type, alone});
      if (spread || type.gpus != 1) continue;
      for (const auto& [other, both] : row.items()) {
        if (other == "null" || !both.is_array() || both.size() != 2) continue;
        result.beside_.push_back({device, type, parse_type(other), both[0].get<double>(), alone});
      }
    }
  }
  return result;
}

std::vector<StepPoint> GavelThroughputs::steps(std::string_view model) const {
  std::vector<StepPoint> points;
  for (const Alone& row : alone_) {
    const std::int32_t gpus = row.type.gpus;
    if (row.type.model != model || (row.spread && gpus == 1)) continue;
    // These exceed eight times one GPU, which no formula of ours can explain
    // (docs/performance-model.md).
    if (row.device == "v100" && gpus == 8 && !row.spread) continue;
    const Level level = gpus == 1 ? Level::Device : row.spread ? Level::Rack : Level::Server;
    points.push_back({.device = row.device,
                      .site = "gavel",
                      .gpus = gpus,
                      .level = level,
                      .batch = row.type.batch,
                      .seconds = gpus / row.steps_per_second});
  }
  return points;
}

std::vector<PairPoint> GavelThroughputs::pairs(Names names) const {
  std::vector<PairPoint> points;
  for (const Beside& row : beside_) {
    const std::string of = our_name(names, row.type.model);
    const std::string beside = our_name(names, row.other.model);
    if (row.device != "v100" || row.mine <= 0 || of.empty() || beside.empty()) continue;
    points.push_back({.of = of, .beside = beside, .slowdown = row.alone / row.mine});
  }
  return points;
}

std::vector<GavelThroughputs::Fitting> GavelThroughputs::fittings() const {
  std::vector<Fitting> all;
  for (const Beside& row : beside_) {
    all.push_back({.device = row.device,
                   .a = row.type.model,
                   .b = row.other.model,
                   .batch_a = row.type.batch,
                   .batch_b = row.other.batch,
                   // A throughput of zero means that the pair did not fit.
                   .fits = row.mine > 0});
  }
  return all;
}

Result<LucidModel> lucid_model(const std::string& directory, std::string_view model) {
  BERTH_TRY(const Table table, Table::load(directory + "/lucid/single_data.csv"));
  LucidModel result;
  double rows = 0;
  for (std::size_t row = 0; row < table.size(); ++row) {
    if (table.text(row, "model") != model || table.text(row, "amp") != "0") continue;
    const auto batch = table.number(row, "batchsize");
    const auto speed = table.number(row, "speed");
    const auto mib = table.number(row, "gmem");
    if (!batch || !speed || !mib || *speed <= 0) continue;
    // Which device it was is not said; nominally a V100.
    result.steps.push_back(
        {.device = "v100", .site = "lucid", .batch = *batch, .seconds = *batch / *speed});
    result.memory.push_back({*batch, *mib});
    result.gpu_utilisation += table.number(row, "gpu_util").value_or(0) / 100;
    result.memory_utilisation += table.number(row, "gmem_util").value_or(0) / 100;
    ++rows;
  }
  if (rows == 0) return fail(fmt::format("{}: nothing about '{}'", table.name(), model));
  result.gpu_utilisation /= rows;
  result.memory_utilisation /= rows;
  return result;
}

namespace {

struct Usage {
  double gpu = 0;
  double memory = 0;
};

/// Of a job alone, by model and batch size at full precision; zeros if it was not measured.
Usage usage_alone(const Table& single, std::string_view model, std::string_view batch) {
  for (std::size_t row = 0; row < single.size(); ++row) {
    if (single.text(row, "model") == model && single.text(row, "batchsize") == batch &&
        single.text(row, "amp") == "0") {
      return {single.number(row, "gpu_util").value_or(0) / 100,
              single.number(row, "gmem_util").value_or(0) / 100};
    }
  }
  return {};
}

}  // namespace

Result<std::vector<PairPoint>> lucid_pairs(const std::string& directory, Names names) {
  BERTH_TRY(const Table single, Table::load(directory + "/lucid/single_data.csv"));
  BERTH_TRY(const Table table, Table::load(directory + "/lucid/colocate_info.csv"));
  std::vector<PairPoint> points;
  for (std::size_t row = 0; row < table.size(); ++row) {
    if (table.text(row, "amp1") != "0" || table.text(row, "amp2") != "0") continue;
    const std::string first = our_name(names, table.text(row, "model1"));
    const std::string second = our_name(names, table.text(row, "model2"));
    const auto speed1 = table.number(row, "speed1");
    const auto speed2 = table.number(row, "speed2");
    if (first.empty() || second.empty() || !speed1 || !speed2 || *speed1 <= 0 || *speed2 <= 0)
      continue;
    const Usage one = usage_alone(single, table.text(row, "model1"), table.text(row, "batchsize1"));
    const Usage two = usage_alone(single, table.text(row, "model2"), table.text(row, "batchsize2"));
    points.push_back({first, second, 1 / *speed1, one.gpu, two.gpu, one.memory + two.memory});
    points.push_back({second, first, 1 / *speed2, two.gpu, one.gpu, one.memory + two.memory});
  }
  return points;
}

Result<std::vector<LinkPoint>> contention_points(const std::string& directory) {
  std::vector<LinkPoint> points;
  for (const std::string_view file : {"alpha-beta", "results_avg"}) {
    BERTH_TRY(const Table table,
              Table::load(fmt::format("{}/hkbu_network_contention/{}.csv", directory, file)));
    for (std::size_t row = 0; row < table.size(); ++row) {
      const auto jobs = table.number(row, "job_num");
      const auto bytes = table.number(row, "msg_size");
      const auto microseconds = table.number(row, "avg_latency");
      if (!jobs || !bytes || !microseconds) continue;
      points.push_back({static_cast<std::int32_t>(*jobs), *bytes, *microseconds * 1e-6});
    }
  }
  return points;
}

}  // namespace berth
