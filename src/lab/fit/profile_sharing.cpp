// What models use of a device, and what it costs to share one.
#include <algorithm>

#include "lab/fit/profile_fitter.h"
#include "model/catalogue.h"

namespace berth {

namespace {

constexpr double kStateBytesPerParameter = 16;  // weights, gradients, two moments
constexpr double kRuntimeMib = 1500;            // what the runtime itself takes of a device
constexpr double kShardedMib = 32768;           // of models that are cut to fill an A100
constexpr double kLargestWhole = 2000;          // millions of parameters that run in one piece

/// Nothing measured: the state of the optimiser, and the class default's memory per iteration.
void memory_by_rule(const Recipe& recipe, Profile& profile) {
  const MemoryParams usual;
  const double samples_mib = usual.per_sample_mib * Profile{}.batch;
  // Sharded models are cut until they fit: their parameters say nothing about one device.
  if (recipe.steps == StepSource::Rubick &&
      (recipe.parameters == 0 || recipe.parameters > kLargestWhole))
    profile.memory.fixed_mib = kShardedMib;
  else if (recipe.parameters > 0)
    profile.memory.fixed_mib =
        kRuntimeMib + recipe.parameters * 1e6 * kStateBytesPerParameter / 1048576;
  profile.memory.per_sample_mib = samples_mib / profile.batch;
}

}  // namespace

Result<void> ProfileFitter::usage(const Recipe& recipe, Profile& profile) {
  memory_by_rule(recipe, profile);
  if (recipe.lucid.empty()) {
    note(profile, "memory", Provenance::Default, "runtime, optimiser state, usual samples");
    return {};
  }
  BERTH_TRY(LucidModel model, lucid_model(directory_, recipe.lucid));
  profile.gpu_utilisation = std::min(1.0, model.gpu_utilisation);
  profile.memory_utilisation = std::min(1.0, model.memory_utilisation);
  note(profile, "utilisation", Provenance::Measured, "lucid");
  if (recipe.steps == StepSource::Gavel) return {};  // see memory_of_gavel()
  if (model.memory.size() < 2) {                     // one size: the rule says what is fixed
    const MemoryPoint& only = model.memory.front();
    profile.memory.per_sample_mib = std::max(0.0, only.mib - profile.memory.fixed_mib) / only.batch;
    note(profile, "memory", Provenance::Measured, "lucid, one batch size");
    return {};
  }
  BERTH_TRY(const MemoryFit fit, fit_memory(std::move(model.memory)));
  profile.memory = fit.params;
  note(profile, "memory", Provenance::Fitted, "lucid", fit.error);
  row(profile.name, "memory", "lucid",
      fmt::format("{} + {} MiB per sample", brief(fit.params.fixed_mib),
                  brief(fit.params.per_sample_mib)),
      fit.error);
  return {};
}

Result<void> ProfileFitter::stages(const Recipe& recipe, Profile& profile) {
  if (recipe.muri.empty()) return {};
  BERTH_TRY(const MuriModel model, muri_model(directory_, recipe.muri));
  profile.stages = model.stages;
  note(profile, "stages", Provenance::Measured, "muri, eight GPUs of one server");
  if (!recipe.lucid.empty()) return {};
  profile.gpu_utilisation = model.gpu_share;
  note(profile, "utilisation", Provenance::Measured, "muri, GPU stage over iteration");
  return {};
}

/// Gavel's pairs say how much memory its jobs take, if what others take is known.
Result<void> ProfileFitter::memory_of_gavel() {
  std::vector<NamedMemory> known;
  std::vector<std::pair<std::string, std::string>> wanted;
  for (const Recipe& recipe : recipes()) {
    if (recipe.gavel.empty()) continue;
    if (recipe.steps == StepSource::Gavel)
      wanted.emplace_back(recipe.gavel, recipe.name);
    else
      known.push_back({std::string(recipe.gavel), fitted(recipe.name).memory});
  }
  std::vector<FittingPoint> points;
  for (const GavelThroughputs::Fitting& one : gavel_.fittings()) {
    const auto device = find_device(one.device);
    if (!device) continue;
    points.push_back({.a = one.a,
                      .b = one.b,
                      .batch_a = one.batch_a,
                      .batch_b = one.batch_b,
                      .device_mib = static_cast<double>(device->memory_mib),
                      .fits = one.fits});
  }
  BERTH_TRY(const FittingFit fit, fit_memory_by_fitting(std::move(points), known));
  for (const auto& [theirs, ours] : wanted) {
    Profile& profile = fitted(ours);
    const auto found = std::ranges::find(fit.models, theirs, &NamedMemory::model);
    if (found == fit.models.end()) continue;
    profile.memory = found->params;
    std::erase_if(profile.sources, [](const PartSource& s) { return s.part == "memory"; });
    note(profile, "memory", Provenance::Fitted, "gavel, which pairs fitted", fit.error);
    row(profile.name, "memory", "gavel",
        fmt::format("{} + {} MiB per sample", brief(found->params.fixed_mib),
                    brief(found->params.per_sample_mib)),
        fit.error);
  }
  return {};
}

void ProfileFitter::add_pairs(const PairFit& fit, std::string_view source) {
  ProfileSet& set = result_.profiles;
  std::int32_t used = 0;
  for (const PairRow& pair : fit.rows) {
    const ProfileId of = *set.find(pair.of);
    const ProfileId beside = *set.find(pair.beside);
    if (set.has_pair(of, beside)) continue;  // the first source is preferred
    set.set_slowdown(of, beside, pair.slowdown);
    ++used;
    auto& sources = set.edit(of).sources;
    if (std::ranges::none_of(
            sources, [&](const PartSource& s) { return s.part == "pairs" && s.source == source; }))
      note(set.edit(of), "pairs", Provenance::Measured, std::string(source), fit.error);
  }
  row("(all)", "pairs", source,
      fmt::format("{} pairs, {} used, {} measurements below 1 taken as 1", fit.rows.size(), used,
                  fit.clipped),
      fit.error);
  if (fit.regression.training_points == 0) return;
  row("(all)", "pairs by regression", source,
      fmt::format("max(1, {} + {} (u1 + u2) + {} m)", brief(fit.base), brief(fit.compute),
                  brief(fit.memory)),
      fit.regression);
  row("(all)", "pairs by rule", source, "max(1, u1 + u2) / 0.95", fit.rule);
}

// Gavel's pairs were measured on V100 with several batches; Lucid's fill what is missing.
Result<void> ProfileFitter::pairs() {
  std::vector<std::pair<std::string, std::string>> gavel_names;
  std::vector<std::pair<std::string, std::string>> lucid_names;
  for (const Recipe& recipe : recipes()) {
    if (!recipe.gavel.empty()) gavel_names.emplace_back(recipe.gavel, recipe.name);
    if (!recipe.lucid.empty()) lucid_names.emplace_back(recipe.lucid, recipe.name);
  }
  BERTH_TRY(const PairFit first, fit_pairs(gavel_.pairs(gavel_names)));
  add_pairs(first, "gavel");
  BERTH_TRY(std::vector<PairPoint> points, lucid_pairs(directory_, lucid_names));
  BERTH_TRY(const PairFit second, fit_pairs(std::move(points)));
  add_pairs(second, "lucid");
  return {};
}

Result<void> ProfileFitter::links() {
  BERTH_TRY(std::vector<LinkPoint> points, contention_points(directory_));
  BERTH_TRY(const LinkSharing fit, check_link_sharing(std::move(points)));
  row("(all)", "link sharing", "hkbu",
      fmt::format("bandwidth {:.3g} GB/s / jobs", fit.bandwidth / 1e9), fit.error);
  return {};
}

}  // namespace berth
