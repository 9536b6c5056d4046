// What trainings said of themselves: Sia's runs of each application with several batch sizes.
#include <algorithm>
#include <array>
#include <filesystem>

#include <fmt/format.h>

#include "lab/fit/published.h"
#include "lab/fit/table.h"

namespace berth {

namespace {

constexpr double kMostScale = 1e9;  // beyond, any batch is as good as any other

/// One run: gradients' variance, at the first batch, over their squared norm. Late in training the
/// estimate of the norm may come out negative: such rows say nothing.
void add_noise(const Table& run, double first_batch, std::vector<NoisePoint>& points) {
  if (run.size() == 0) return;
  const auto whole = run.number(run.size() - 1, "progress");
  if (!whole || *whole <= 0) return;
  double before = 0;
  for (std::size_t row = 0; row < run.size(); ++row) {
    const auto progress = run.number(row, "progress");
    const auto squared = run.number(row, "grad_sqr");
    const auto variance = run.number(row, "grad_var");
    if (!progress) continue;
    if (squared && variance && *squared > 0 && *variance > 0) {
      points.push_back(
          {(before + *progress) / 2 / *whole,  // measured over what was done since the last row
           std::min(kMostScale, first_batch * *variance / *squared)});
    }
    before = *progress;
  }
}

/// Smallest and largest batch per GPU of the step times on one site; nothing if it has none.
std::optional<std::pair<double, double>> batches_of(const Table& steps) {
  std::optional<std::pair<double, double>> range;
  for (std::size_t row = 0; row < steps.size(); ++row) {
    const auto batch = steps.number(row, "local_bsz");
    if (!batch || *batch < 1) continue;
    if (!range) range = {*batch, *batch};
    range = {std::min(range->first, *batch), std::max(range->second, *batch)};
  }
  return range;
}

/// There is a run per batch size, "validation-128.csv"; ascending.
std::vector<std::int32_t> recorded_batches(const std::string& folder) {
  constexpr std::string_view kBegin = "validation-";
  std::vector<std::int32_t> batches;
  std::error_code nothing_there;
  for (const auto& entry : std::filesystem::directory_iterator(folder, nothing_there)) {
    const std::string name = entry.path().stem().string();
    if (!name.starts_with(kBegin)) continue;
    const auto batch = finite_number(std::string_view(name).substr(kBegin.size()));
    if (batch && *batch >= 1 && *batch <= 1e8) batches.push_back(static_cast<std::int32_t>(*batch));
  }
  std::ranges::sort(batches);
  return batches;
}

Result<void> read_limits(const std::string& folder, BatchLimits& limits) {
  for (const std::string_view site : {"aws", "azure", "dgx", "dgx-ext", "quad", "rtx"}) {
    const std::string path = fmt::format("{}/placements-{}.csv", folder, site);
    if (!std::filesystem::exists(path)) continue;
    BERTH_TRY(const Table steps, Table::load(path));
    const auto range = batches_of(steps);
    if (!range) continue;
    const auto least = static_cast<std::int32_t>(range->first);
    const auto most = static_cast<std::int32_t>(range->second);
    limits.least_per_gpu = std::max(limits.least_per_gpu, least);
    limits.most_per_gpu = limits.most_per_gpu == 0 ? most : std::min(limits.most_per_gpu, most);
  }
  return {};
}

}  // namespace

Result<SiaTraining> sia_training(const std::string& directory, std::string_view model) {
  const std::string folder = fmt::format("{}/sia/profiles/{}", directory, model);
  SiaTraining training;
  const std::vector<std::int32_t> batches = recorded_batches(folder);
  for (const std::int32_t batch : batches) {
    BERTH_TRY(const Table run, Table::load(fmt::format("{}/validation-{}.csv", folder, batch)));
    add_noise(run, batches.front(), training.noise);
  }
  if (training.noise.empty()) return fail(fmt::format("{}: no training was recorded", folder));
  training.first_batch = batches.front();
  training.limits.most_total = batches.back();
  BERTH_TRY_VOID(read_limits(folder, training.limits));
  return training;
}

}  // namespace berth
