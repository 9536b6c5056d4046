// How fast models run: iteration times, device types, locality, cores, batches.
#include <algorithm>
#include <cmath>

#include "lab/fit/profile_fitter.h"

namespace berth {

namespace {

constexpr std::int32_t kMostCores = 64;

std::string_view name_of(StepSource source) {
  switch (source) {
    case StepSource::Sia: return "sia";
    case StepSource::Gavel: return "gavel";
    case StepSource::ElasticFlow: return "elasticflow";
    case StepSource::Rubick: return "rubick";
    case StepSource::Muri: return "muri";
    case StepSource::Chronus: return "chronus";
    case StepSource::Lucid: return "lucid";
    case StepSource::Synergy: break;
  }
  return "synergy";
}

}  // namespace

Result<std::vector<StepPoint>> ProfileFitter::steps(const Recipe& recipe) const {
  switch (recipe.steps) {
    case StepSource::Sia: return sia_steps(directory_, recipe.sia);
    case StepSource::Gavel: return gavel_.steps(recipe.gavel);
    case StepSource::ElasticFlow: return elasticflow_steps(directory_, recipe.elasticflow);
    case StepSource::Rubick: return rubick_steps(directory_, recipe.rubick);
    case StepSource::Muri: {
      BERTH_TRY(MuriModel model, muri_model(directory_, recipe.muri));
      return std::move(model.steps);
    }
    case StepSource::Lucid: {
      BERTH_TRY(LucidModel model, lucid_model(directory_, recipe.lucid));
      return std::move(model.steps);
    }
    case StepSource::Synergy: {
      BERTH_TRY(const SynergyModel model, synergy_model(directory_, recipe.synergy));
      return std::vector<StepPoint>{
          {.device = "v100", .site = "synergy", .batch = model.batch, .seconds = model.seconds}};
    }
    case StepSource::Chronus: break;  // no times, see locality()
  }
  return std::vector<StepPoint>{};
}

// Known gradients leave the links to be fitted; otherwise the gradient is fitted at the usual
// links. Both at once cannot be told apart.
Result<void> ProfileFitter::iteration(const Recipe& recipe, Profile& profile) {
  if (recipe.steps == StepSource::Chronus) return {};
  BERTH_TRY(std::vector<StepPoint> points, steps(recipe));
  std::erase_if(points, [&](const StepPoint& p) { return p.device == recipe.leave_out; });
  const bool gangs = std::ranges::any_of(points, [](const StepPoint& p) { return p.gpus > 1; });
  // A handful of points cannot tell links, and sharded models send more than gradients.
  const bool knows_bytes = recipe.parameters > 0 && recipe.steps != StepSource::Rubick;
  IterationFitOptions options;
  if (knows_bytes) options.gradient_bytes = recipe.parameters * 1e6 * kBytesPerParameter;
  if (!knows_bytes && recipe.steps == StepSource::Sia) {
    // Several sites: first the gradient at the usual links, then the links of each.
    BERTH_TRY(const IterationFit first, fit_iteration(points, options));
    options.gradient_bytes = first.params.gradient_bytes;
  }
  BERTH_TRY(const IterationFit fit, fit_iteration(std::move(points), options));
  profile.iteration = fit.params;
  profile.speeds = fit.speeds;
  note(profile, "iteration", Provenance::Fitted, std::string(name_of(recipe.steps)), fit.error);
  if (knows_bytes)
    note(profile, "gradient", Provenance::Given,
         fmt::format("{:.4g} M parameters of 4 bytes", recipe.parameters));
  else if (!gangs)
    note(profile, "gradient", Provenance::Default, "no gang was measured");
  row(profile.name, "iteration", name_of(recipe.steps),
      fmt::format("alpha {} beta {} bytes {} overlap {}", brief(fit.params.alpha),
                  brief(fit.params.beta), brief(fit.params.gradient_bytes),
                  brief(fit.params.overlap)),
      fit.error);
  for (const LinkFit& link : fit.links) {
    row(profile.name, fmt::format("link {}/{}", link.site, to_string(link.level)),
        name_of(recipe.steps),
        fmt::format("{:.3g} GB/s {:.3g} ms", link.link.bandwidth / 1e9, link.link.latency * 1e3),
        {});
  }
  return {};
}

/// Speeds of device types that the source of the iteration time does not have.
Result<void> ProfileFitter::speeds_of_gavel(const Recipe& recipe, Profile& profile) {
  if (recipe.gavel.empty() || recipe.steps == StepSource::Gavel) return {};
  const std::vector<StepPoint> points = gavel_.steps(recipe.gavel);
  for (const std::string_view device : {"k80", "p100"}) {
    std::vector<double> ratios;
    for (const StepPoint& slow : points) {
      if (slow.device != device || slow.gpus != 1) continue;
      for (const StepPoint& fast : points) {
        if (fast.device == "v100" && fast.gpus == 1 && fast.batch == slow.batch)
          ratios.push_back(fast.seconds / slow.seconds);
      }
    }
    if (ratios.empty()) continue;
    const double speed = geometric_mean(ratios);
    ErrorMeter meter(ratios.size());
    for (const double ratio : ratios) meter.add(speed, ratio);
    profile.speeds.emplace_back(device, speed);
    note(profile, fmt::format("speed {}", device), Provenance::Fitted, "gavel", meter.result());
    row(profile.name, fmt::format("speed {}", device), "gavel", brief(speed), meter.result());
  }
  std::ranges::sort(profile.speeds);
  return {};
}

/// The bandwidth between Chronus's servers is not published: the one of a fine grid that explains
/// all its models best.
Result<void> ProfileFitter::find_chronus_rack() {
  double best = 0;
  for (int step = 0; step <= 80; ++step) {
    LocalityFitOptions options;
    // 0.1 to 10 GB/s in steps of 6 %: finer than the data can tell.
    options.links.rack = 0.1e9 * std::pow(100.0, step / 80.0);
    double error = 0;
    for (const Recipe& recipe : recipes()) {
      if (recipe.chronus.empty()) continue;
      options.gradient_bytes = recipe.parameters * 1e6 * kBytesPerParameter;
      BERTH_TRY(std::vector<LocalityPoint> points, chronus_locality(directory_, recipe.chronus));
      BERTH_TRY(const LocalityFit fit, fit_locality(std::move(points), options));
      error += fit.error.training;
    }
    if (step > 0 && error >= best) continue;
    best = error;
    chronus_rack_ = options.links.rack;
  }
  row("(all)", "link chronus/rack", "chronus", fmt::format("{:.3g} GB/s", chronus_rack_ / 1e9), {});
  return {};
}

/// Iteration times if nobody else has them, otherwise a check of the form alone: the batch of
/// this source is not known.
Result<void> ProfileFitter::locality(const Recipe& recipe, Profile& profile) {
  if (recipe.chronus.empty()) return {};
  BERTH_TRY(std::vector<LocalityPoint> points, chronus_locality(directory_, recipe.chronus));
  LocalityFitOptions options;
  options.links.rack = chronus_rack_;
  options.gradient_bytes = recipe.parameters * 1e6 * kBytesPerParameter;
  BERTH_TRY(const LocalityFit fit, fit_locality(std::move(points), options));
  row(profile.name, "locality", "chronus",
      fmt::format("compute {} overlap {}", brief(fit.compute), brief(fit.overlap)), fit.error);
  if (recipe.steps != StepSource::Chronus) return {};
  note(profile, "iteration", Provenance::Fitted, "chronus, from slowdowns alone", fit.error);
  profile.iteration = {.alpha = 0,
                       .beta = fit.compute / profile.batch,
                       .gradient_bytes = fit.gradient_bytes,
                       .overlap = fit.overlap};
  note(profile, "gradient", Provenance::Given,
       fmt::format("{:.4g} M parameters of 4 bytes", recipe.parameters));
  return {};
}

/// The source's speeds, scaled so that enough cores feed just what the GPU takes.
Result<void> ProfileFitter::cpu(const Recipe& recipe, Profile& profile) {
  if (recipe.synergy.empty()) return {};
  BERTH_TRY(SynergyModel model, synergy_model(directory_, recipe.synergy));
  // Which points are held back goes by their place, so the order must be fixed.
  std::ranges::sort(model.speeds, {}, &CpuPoint::cores);
  std::vector<CpuPoint> training;
  for (std::size_t i = 0; i < model.speeds.size(); ++i) {
    if (!is_held_back(i, model.speeds.size())) training.push_back(model.speeds[i]);
  }
  BERTH_TRY(const CpuFit fit, fit_cpu_curve(training, {.weights = FitWeights::Relative}));
  ErrorMeter meter(model.speeds.size());
  for (const CpuPoint& point : model.speeds) meter.add(fit.curve.speed(point.cores), point.speed);
  const double wanted =
      profile.batch / (profile.iteration.alpha + profile.iteration.beta * profile.batch);
  const double scale = wanted / fit.curve.plateau;
  profile.cpu = {.log_gain = fit.curve.log_gain * scale,
                 .linear_gain = fit.curve.linear_gain * scale,
                 .plateau = wanted,
                 .theta = fit.curve.theta};
  // A curve that jumps to its plateau would leave the GPU waiting at theta.
  while (profile.cpu.feed(profile.cpu.theta) < wanted * (1 - 1e-9) &&
         profile.cpu.theta < kMostCores)
    ++profile.cpu.theta;
  note(profile, "cpu", Provenance::Fitted, "synergy, scaled to the iteration time", meter.result());
  row(profile.name, "cpu", "synergy",
      fmt::format("log {} linear {} plateau {} theta {}", brief(fit.curve.log_gain),
                  brief(fit.curve.linear_gain), brief(fit.curve.plateau), profile.cpu.theta),
      meter.result());
  return {};
}

/// How much a sample is worth in a large batch, and how large batches may be.
Result<void> ProfileFitter::training(const Recipe& recipe, Profile& profile) {
  if (recipe.sia.empty()) return {};
  BERTH_TRY(SiaTraining training, sia_training(directory_, recipe.sia));
  BERTH_TRY(NoiseFit fit, fit_noise(std::move(training.noise),
                                    {.first = static_cast<double>(training.first_batch),
                                     .most = static_cast<double>(training.limits.most_total)}));
  profile.noise = std::move(fit.points);
  profile.batch_limits = training.limits;
  note(profile, "noise", Provenance::Fitted, "sia, all batch sizes", fit.error);
  note(profile, "batch limits", Provenance::Measured, "sia, batches that were run");
  row(profile.name, "noise", "sia",
      fmt::format("from {} to {}", brief(profile.noise.front().scale),
                  brief(profile.noise.back().scale)),
      fit.error);
  return {};
}

}  // namespace berth
