#include "apps/fit.h"

#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/format.h>

#include "base/file.h"
#include "base/suggest.h"
#include "base/text_table.h"
#include "lab/fit/catalogue.h"
#include "lab/fit/measurements.h"
#include "perf/profile_file.h"

namespace berth {

namespace {

/// What is known of the model so far, to be changed in one part.
Profile profile_named(const std::string& model) {
  if (const auto id = built_in_profiles().find(model)) return built_in_profiles()[*id];
  Profile profile;
  profile.name = model;
  return profile;
}

void set_source(Profile& profile, std::string_view part, const std::string& source,
                const FitError& error) {
  std::erase_if(profile.sources, [&](const PartSource& s) { return s.part == part; });
  profile.sources.push_back({.part = std::string(part),
                             .provenance = Provenance::Fitted,
                             .source = source,
                             .error = error.held_back_points > 0 ? error.held_back : error.training,
                             .points = error.held_back_points});
}

/// One profile per model, changed by `fit_one`, which answers what to print about it.
template <class Point, class FitOne>
Result<Catalogue> fit_models(const ByModel<Point>& models, FitOne fit_one) {
  Catalogue result;
  for (const auto& [model, points] : models) {
    Profile profile = profile_named(model);
    auto row = fit_one(points, profile);
    if (!row) return fail(fmt::format("{}: {}", model, row.error().text()));
    row->model = model;
    result.rows.push_back(std::move(*row));
    result.profiles.add(std::move(profile));
  }
  return result;
}

std::optional<double> known_bytes(const FitOptions& options) {
  if (options.gradient_bytes <= 0) return std::nullopt;
  return options.gradient_bytes;
}

Result<Catalogue> fit_iterations(const FitOptions& options, const Table& table) {
  BERTH_TRY(const auto models, read_steps(table));
  return fit_models(models, [&](const auto& points, Profile& profile) -> Result<FitRow> {
    IterationFitOptions wishes;
    wishes.gradient_bytes = known_bytes(options);
    BERTH_TRY(const IterationFit fit, fit_iteration(points, wishes));
    profile.iteration = fit.params;
    profile.batch = std::max(1, static_cast<std::int32_t>(std::llround(points.front().batch)));
    for (const auto& [device, speed] : fit.speeds) {
      std::erase_if(profile.speeds, [&](const auto& entry) { return entry.first == device; });
      profile.speeds.emplace_back(device, speed);
    }
    std::ranges::sort(profile.speeds);
    set_source(profile, "iteration", options.input, fit.error);
    return FitRow{.model = "",
                  .part = "iteration",
                  .source = "",
                  .parameters = fmt::format("alpha {:.4g} beta {:.4g} bytes {:.4g} overlap {:.4g}",
                                            fit.params.alpha, fit.params.beta,
                                            fit.params.gradient_bytes, fit.params.overlap),
                  .error = fit.error};
  });
}

Result<Catalogue> fit_localities(const FitOptions& options, const Table& table) {
  BERTH_TRY(const auto models, read_locality(table));
  return fit_models(models, [&](const auto& points, Profile& profile) -> Result<FitRow> {
    LocalityFitOptions wishes;
    wishes.gradient_bytes = known_bytes(options);
    wishes.compute = profile.iteration.alpha + profile.iteration.beta * profile.batch;
    BERTH_TRY(const LocalityFit fit, fit_locality(points, wishes));
    profile.iteration.gradient_bytes = fit.gradient_bytes;
    profile.iteration.overlap = fit.overlap;
    set_source(profile, "locality", options.input, fit.error);
    return FitRow{.model = "",
                  .part = "locality",
                  .source = "",
                  .parameters = fmt::format("compute {:.4g} bytes {:.4g} overlap {:.4g}",
                                            fit.compute, fit.gradient_bytes, fit.overlap),
                  .error = fit.error};
  });
}

Result<Catalogue> fit_cpus(const FitOptions& options, const Table& table) {
  BERTH_TRY(const auto models, read_cpu(table));
  return fit_models(models, [&](auto points, Profile& profile) -> Result<FitRow> {
    std::ranges::sort(points, {}, &CpuPoint::cores);
    std::vector<CpuPoint> training;
    for (std::size_t i = 0; i < points.size(); ++i) {
      if (!is_held_back(i, points.size())) training.push_back(points[i]);
    }
    BERTH_TRY(const CpuFit fit, fit_cpu_curve(training));
    ErrorMeter meter(points.size());
    for (const CpuPoint& point : points) meter.add(fit.curve.speed(point.cores), point.speed);
    profile.cpu = fit.curve;
    set_source(profile, "cpu", options.input, meter.result());
    return FitRow{.model = "",
                  .part = "cpu",
                  .source = "",
                  .parameters = fmt::format("log {:.4g} linear {:.4g} plateau {:.4g} theta {}",
                                            fit.curve.log_gain, fit.curve.linear_gain,
                                            fit.curve.plateau, fit.curve.theta),
                  .error = meter.result()};
  });
}

Result<Catalogue> fit_memories(const FitOptions& options, const Table& table) {
  BERTH_TRY(const auto models, read_memory(table));
  return fit_models(models, [&](const auto& points, Profile& profile) -> Result<FitRow> {
    BERTH_TRY(const MemoryFit fit, fit_memory(points));
    profile.memory = fit.params;
    set_source(profile, "memory", options.input, fit.error);
    return FitRow{.model = "",
                  .part = "memory",
                  .source = "",
                  .parameters = fmt::format("{:.4g} + {:.4g} MiB per sample", fit.params.fixed_mib,
                                            fit.params.per_sample_mib),
                  .error = fit.error};
  });
}

Result<Catalogue> fit_all_pairs(const FitOptions& options, const Table& table) {
  BERTH_TRY(std::vector<PairPoint> points, read_pairs(table));
  BERTH_TRY(const PairFit fit, fit_pairs(std::move(points)));
  Catalogue result;
  const auto id_of = [&](const std::string& model) {
    const auto known = result.profiles.find(model);
    return known ? *known : result.profiles.add(profile_named(model));
  };
  for (const PairRow& row : fit.rows) {
    const ProfileId of = id_of(row.of);
    const ProfileId beside = id_of(row.beside);
    result.profiles.set_slowdown(of, beside, row.slowdown);
    set_source(result.profiles.edit(of), "pairs", options.input, fit.error);
  }
  result.rows.push_back(
      {"(all)", "pairs", "",
       fmt::format("{} pairs, {} below 1 taken as 1", fit.rows.size(), fit.clipped), fit.error});
  if (fit.regression.training_points > 0) {
    result.rows.push_back({"(all)", "pairs by regression", "",
                           fmt::format("max(1, {:.4g} + {:.4g} (u1 + u2) + {:.4g} m)", fit.base,
                                       fit.compute, fit.memory),
                           fit.regression});
    result.rows.push_back({"(all)", "pairs by rule", "", "max(1, u1 + u2) / 0.95", fit.rule});
  }
  return result;
}

struct Kind {
  std::string_view name;
  Result<Catalogue> (*fit)(const FitOptions&, const Table&);
};
constexpr std::array<Kind, 5> kKinds{{{"iteration", fit_iterations},
                                      {"locality", fit_localities},
                                      {"pairs", fit_all_pairs},
                                      {"cpu", fit_cpus},
                                      {"memory", fit_memories}}};

Result<Catalogue> fit(const FitOptions& options) {
  if (options.kind == "catalogue") return fit_catalogue(options.input);
  const auto kind = std::ranges::find(kKinds, options.kind, &Kind::name);
  if (kind == kKinds.end()) {
    std::vector<std::string> known{"catalogue"};
    for (const Kind& one : kKinds) known.emplace_back(one.name);
    return fail(fmt::format("nothing to fit is called '{}'{}", options.kind,
                            suggestion(options.kind, known)));
  }
  BERTH_TRY(const Table table, Table::load(options.input));
  return kind->fit(options, table);
}

std::string percent(double error, std::int32_t points) {
  return points == 0 ? "" : fmt::format("{:.1f}", 100 * error);
}

std::string printed(const std::vector<FitRow>& rows) {
  TextTable table({{"model", Align::Left},
                   {"part", Align::Left},
                   {"source", Align::Left},
                   {"parameters", Align::Left},
                   {"points"},
                   {"error %"},
                   {"held back"},
                   {"error %"}});
  for (const FitRow& row : rows) {
    const FitError& e = row.error;
    table.add_row({row.model, row.part, row.source, row.parameters,
                   e.training_points > 0 ? fmt::format("{}", e.training_points) : "",
                   percent(e.training, e.training_points),
                   e.held_back_points > 0 ? fmt::format("{}", e.held_back_points) : "",
                   percent(e.held_back, e.held_back_points)});
  }
  return table.str();
}

std::string heading(const FitOptions& options) {
  if (options.kind != "catalogue") return fmt::format("Made by: berth fit {}", options.kind);
  return "The catalogue of models: our fits to published measurements.\n"
         "Made by: berth fit catalogue DATA -o data/profiles/models.yaml. Do not edit by hand.\n"
         "Seconds are those of a V100. error: mean absolute relative error on points held back, or "
         "on\n"
         "the fitted ones if they were too few; of iteration times with links fitted to each "
         "source.\n"
         "With other links gangs are further off: see docs/performance-model.md.";
}

}  // namespace

Exit execute(const FitOptions& options) {
  const auto result = fit(options);
  if (!result) return complain(Exit::Misuse, result.error());
  const std::string yaml = profiles_to_yaml(result->profiles, heading(options));
  if (options.out == "-") return write_stdout(yaml);
  if (!options.out.empty()) {
    if (const auto written = write_file(options.out, yaml); !written)
      return complain(Exit::Failure, written.error());
  }
  const Exit shown = write_stdout(printed(result->rows));
  if (shown == Exit::Success && !options.out.empty())
    print_note(fmt::format("wrote {} profiles to {}", result->profiles.size() - 1, options.out));
  return shown;
}

}  // namespace berth
