// Sources of iteration times: Sia, ElasticFlow, Rubick, Chronus, Muri, Synergy.
#include <algorithm>
#include <array>
#include <compare>
#include <filesystem>
#include <map>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "lab/fit/published.h"
#include "lab/fit/table.h"

namespace berth {

namespace {

struct Site {
  std::string_view name;  // in the file names
  std::string_view device;
  std::string_view cluster;
  Level inside;  // of a gang in one server
};
// Two files of one cluster share its links.
constexpr std::array<Site, 6> kSites{{{"aws", "t4", "aws", Level::Server},
                                      {"azure", "v100", "azure", Level::Server},
                                      {"dgx", "a100", "dgx", Level::Nvlink},
                                      {"dgx-ext", "a100", "dgx", Level::Nvlink},
                                      {"quad", "rtx6000", "quad", Level::Server},
                                      {"rtx", "2080ti", "rtx", Level::Server}}};

Level level_of(std::int32_t gpus, std::int32_t nodes, Level inside) {
  if (gpus == 1) return Level::Device;
  return nodes > 1 ? Level::Rack : inside;
}

/// "224" is a gang on three nodes; nothing if it is not made of digits.
struct Gang {
  std::int32_t gpus = 0;
  std::int32_t nodes = 0;
};
std::optional<Gang> parse_placement(std::string_view digits) {
  Gang gang;
  for (const char c : digits) {
    if (c < '1' || c > '9') return std::nullopt;
    gang.gpus += c - '0';
    ++gang.nodes;
  }
  if (gang.nodes == 0) return std::nullopt;
  return gang;
}

Gang gang_of(const Table& table, std::size_t row) {
  if (table.column("placement"))
    return parse_placement(table.text(row, "placement")).value_or(Gang{});
  const auto gpus = table.number(row, "num_replicas");
  const auto nodes = table.number(row, "num_nodes");
  if (!gpus || !nodes) return {};
  return {static_cast<std::int32_t>(*gpus), static_cast<std::int32_t>(*nodes)};
}

void add_sia_rows(const Table& table, const Site& site, std::vector<StepPoint>& points) {
  for (std::size_t row = 0; row < table.size(); ++row) {
    const auto batch = table.number(row, "local_bsz");
    const auto seconds = table.number(row, "step_time");
    const Gang gang = gang_of(table, row);
    if (!batch || !seconds || *batch <= 0 || *seconds <= 0 || gang.gpus < 1) continue;
    points.push_back({.device = std::string(site.device),
                      .site = std::string(site.cluster),
                      .gpus = gang.gpus,
                      .level = level_of(gang.gpus, gang.nodes, site.inside),
                      .batch = *batch,
                      .seconds = *seconds});
  }
}

}  // namespace

Result<std::vector<StepPoint>> sia_steps(const std::string& directory, std::string_view model) {
  std::vector<StepPoint> points;
  for (const Site& site : kSites) {
    for (const std::string_view kind : {"placements", "scalability"}) {
      const std::string path =
          fmt::format("{}/sia/profiles/{}/{}-{}.csv", directory, model, kind, site.name);
      if (!std::filesystem::exists(path)) continue;  // not every model was run everywhere
      BERTH_TRY(const Table table, Table::load(path));
      add_sia_rows(table, site, points);
    }
  }
  if (points.empty())
    return fail(fmt::format("{}/sia/profiles/{}: no step times", directory, model));
  return points;
}

Result<std::vector<StepPoint>> elasticflow_steps(const std::string& directory,
                                                 std::string_view model) {
  constexpr std::int32_t kServer = 8;
  BERTH_TRY(const Table table,
            Table::load(fmt::format("{}/elasticflow/throughputs_A100/{}.csv", directory, model)));
  std::vector<StepPoint> points;
  for (std::size_t row = 0; row < table.size(); ++row) {
    const auto batch = table.number(row, "global_batch_size");
    for (const std::string& title : table.columns()) {
      const auto gpus = finite_number(title);
      const auto rate = gpus ? table.number(row, title) : std::nullopt;
      if (!batch || !rate || *rate <= 0) continue;
      const auto count = static_cast<std::int32_t>(*gpus);
      points.push_back({.device = "a100",
                        .site = "elasticflow",
                        .gpus = count,
                        .level = level_of(count, count > kServer ? 2 : 1, Level::Nvlink),
                        .batch = *batch / *gpus,
                        .seconds = 1 / *rate});
    }
  }
  return points;
}

namespace {

struct RubickPlan {
  bool is_sharded = false;    // "248": data, tensor and pipeline parallel degrees
  std::int32_t replicas = 1;  // of a sharded plan
};
/// Plans that keep state on the host are another thing and count as none.
std::optional<RubickPlan> parse_plan(std::string_view plan) {
  if (plan == "ga" || plan == "gc" || plan == "zero-dp") return RubickPlan{};
  const bool digits =
      plan.size() == 3 && std::ranges::all_of(plan, [](char c) { return c >= '1' && c <= '9'; });
  if (!digits) return std::nullopt;
  return RubickPlan{.is_sharded = true, .replicas = plan[0] - '0'};
}

}  // namespace

Result<std::vector<StepPoint>> rubick_steps(const std::string& directory, std::string_view model) {
  BERTH_TRY(const Table table,
            Table::load(fmt::format("{}/rubick/profiles/{}_placements.csv", directory, model)));
  struct Key {
    std::int32_t gpus, replicas;
    Level level;
    auto operator<=>(const Key&) const = default;
  };
  std::map<Key, double> best[2];  // data parallel, sharded
  for (std::size_t row = 0; row < table.size(); ++row) {
    const auto gang = parse_placement(table.text(row, "placement"));
    const auto plan = parse_plan(table.text(row, "exec_plan"));
    const auto seconds = table.number(row, "iter_time");
    if (!gang || !plan || !seconds || *seconds <= 0) continue;
    const Key key{gang->gpus, plan->replicas, level_of(gang->gpus, gang->nodes, Level::Nvlink)};
    const auto [entry, is_new] = best[plan->is_sharded ? 1 : 0].try_emplace(key, *seconds);
    // Several plans ran at one size: the best is what a scheduler would choose.
    if (!is_new) entry->second = std::min(entry->second, *seconds);
  }
  const bool sharded = best[0].empty();
  std::vector<StepPoint> points;
  for (const auto& [key, seconds] : best[sharded ? 1 : 0]) {
    const double samples = sharded ? kRubickReplicaBatch * key.replicas : kRubickGlobalBatch;
    points.push_back({.device = "a100",
                      .site = "rubick",
                      .gpus = key.gpus,
                      .level = key.level,
                      .batch = samples / key.gpus,
                      .seconds = seconds});
  }
  return points;
}

Result<std::vector<LocalityPoint>> chronus_locality(const std::string& directory,
                                                    std::string_view model) {
  const std::string path = directory + "/chronus/model_info.json";
  BERTH_TRY(const std::string text, read_file(path));
  const auto json = nlohmann::json::parse(text, nullptr, false);
  if (!json.is_object() || !json.contains(std::string(model)))
    return fail(fmt::format("{}: nothing about '{}'", path, model));
  std::vector<LocalityPoint> points;
  for (const auto& [gpus, by_nodes] : json[std::string(model)].items()) {
    for (const auto& [nodes, speed] : by_nodes.items()) {
      const auto count = finite_number(gpus);
      if (!count || nodes == "1" || !speed.is_number()) continue;
      points.push_back({.gpus = static_cast<std::int32_t>(*count),
                        .level = Level::Rack,
                        .relative_speed = speed.get<double>()});
    }
  }
  return points;
}

namespace {

struct MuriRow {
  double iteration = 0;
  std::array<double, 3> resources{};
};

// Stages are those of eight GPUs, where the network takes part.
MuriModel muri_from(const std::map<std::int32_t, MuriRow>& rows, double batch) {
  constexpr std::int32_t kServer = 8;
  MuriModel model;
  for (const auto& [gpus, row] : rows) {
    model.steps.push_back({.device = "v100",
                           .site = "muri",
                           .gpus = gpus,
                           .level = level_of(gpus, gpus > kServer ? 2 : 1, Level::Server),
                           .batch = batch,
                           .seconds = row.iteration});
  }
  if (const auto one = rows.find(1); one != rows.end())
    model.gpu_share = std::min(1.0, one->second.resources[1] / one->second.iteration);
  // The source does not tell storage from CPU: what the host does stands under CPU.
  if (const auto server = rows.find(kServer); server != rows.end()) {
    const auto& seconds = server->second.resources;
    model.stages = {0, seconds[0], seconds[1], seconds[2]};
  }
  return model;
}

}  // namespace

Result<MuriModel> muri_model(const std::string& directory, std::string_view model) {
  std::map<std::int32_t, MuriRow> rows;
  double batch = 1;
  for (const std::string_view file : {"trace1", "trace2", "trace3"}) {
    BERTH_TRY(const Table table,
              Table::load(fmt::format("{}/muri/simulator/{}.csv", directory, file)));
    for (std::size_t row = 0; row < table.size(); ++row) {
      if (table.text(row, "model_name") != model) continue;
      const auto gpus = table.number(row, "num_gpu");
      const auto iteration = table.number(row, "iteration_time");
      if (!gpus || !iteration || *iteration <= 0) continue;
      batch = table.number(row, "batch_size").value_or(1);
      MuriRow found{*iteration / 1000, {}};
      for (std::size_t i = 0; i < found.resources.size(); ++i)
        found.resources[i] =
            table.number(row, fmt::format("resource_time_{}", i)).value_or(0) / 1000;
      // Times belong to model and size: the first row of each is enough.
      rows.try_emplace(static_cast<std::int32_t>(*gpus), found);
    }
  }
  if (rows.empty())
    return fail(fmt::format("{}/muri/simulator: no jobs of '{}'", directory, model));
  return muri_from(rows, batch);
}

// Speeds are published relative to the fair share; its iteration time makes them absolute.
Result<SynergyModel> synergy_model(const std::string& directory, std::string_view model) {
  constexpr std::string_view kTable = "models";  // three cores and 62.5 GB are the fair share
  SynergyModel result;
  BERTH_TRY(const Table summary, Table::load(directory + "/synergy/model_summary.csv"));
  double fair = 0;
  for (std::size_t row = 0; row < summary.size(); ++row) {
    if (summary.text(row, "table") != kTable || summary.text(row, "model") != model ||
        summary.text(row, "gpus") != "1")
      continue;
    const auto batch = summary.number(row, "batch");
    const auto seconds = summary.number(row, "iter_time_s");
    if (!batch || !seconds || *seconds <= 0) continue;
    result.batch = *batch;
    fair = *batch / *seconds;
  }
  if (fair <= 0) return fail(fmt::format("{}: nothing about '{}'", summary.name(), model));
  BERTH_TRY(const Table matrix, Table::load(directory + "/synergy/cpu_mem_matrix.csv"));
  double most = 0;
  for (std::size_t row = 0; row < matrix.size(); ++row) {
    if (matrix.text(row, "table") != kTable || matrix.text(row, "model") != model ||
        // With all the memory there is, so that only cores limit.
        matrix.text(row, "gpus") != "1" || matrix.text(row, "mem_gb") != "250")
      continue;
    const auto cores = matrix.number(row, "cpus");
    const auto relative = matrix.number(row, "rel_tput");
    if (!cores || !relative || *relative <= 0) continue;
    result.speeds.push_back({*cores, *relative * fair});
    most = std::max(most, *relative * fair);
  }
  if (most <= 0) return fail(fmt::format("{}: nothing about '{}'", matrix.name(), model));
  result.seconds = result.batch / most;
  return result;
}

}  // namespace berth
