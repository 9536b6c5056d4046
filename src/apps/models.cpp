#include <fmt/format.h>

#include "apps/commands.h"
#include "base/json_writer.h"
#include "base/suggest.h"
#include "base/text_table.h"
#include "perf/profile_file.h"
#include "perf/rate_function.h"

namespace berth {

namespace {

/// Seconds of one iteration of its own batch on one V100.
double alone(const Profile& profile) { return iteration_time(profile, Conditions{}).total; }

std::string percent(const PartSource& part) {
  if (part.points == 0) return "";
  return fmt::format("{:.1f} % on {} points", 100 * part.error, part.points);
}

std::string all_for_people(const ProfileSet& profiles) {
  TextTable table({{"model", Align::Left},
                   {"batch", Align::Right},
                   {"iteration s", Align::Right},
                   {"gradients MB", Align::Right},
                   {"memory MiB", Align::Right},
                   {"GPU use", Align::Right},
                   {"cores", Align::Right},
                   {"also called", Align::Left}});
  for (std::uint32_t i = 0; i < profiles.size(); ++i) {
    const Profile& profile = profiles[ProfileId{i}];
    table.add_row({profile.name, fmt::format("{}", profile.batch),
                   fmt::format("{:.4g}", alone(profile)),
                   fmt::format("{:.0f}", profile.iteration.gradient_bytes / 1e6),
                   fmt::format("{:.0f}", profile.memory_mib(profile.batch)),
                   fmt::format("{:.0f} %", 100 * profile.gpu_utilisation),
                   profile.cpu.is_known() ? fmt::format("{}", profile.cpu.theta) : "-",
                   fmt::format("{}", fmt::join(profile.aliases, ", "))});
  }
  return table.str() +
         "\nOn one V100 with its own batch. `berth models NAME` shows parameters, sources and "
         "errors.\n";
}

std::string training_for_people(const Profile& profile) {
  std::string text;
  if (!profile.noise.empty()) {
    text += "noise scale of the gradient by progress:";
    for (const NoisePoint& point : profile.noise)
      text += fmt::format(" {:.0f} % {:.4g}", 100 * point.progress, point.scale);
    text += "\n";
  }
  if (const BatchLimits& limits = profile.batch_limits; limits.most_total > 0) {
    text += fmt::format("batches a scheduler may choose: {} to {} per GPU, {} in all at most\n",
                        limits.least_per_gpu, limits.most_per_gpu, limits.most_total);
  }
  return text;
}

std::string one_for_people(const ProfileSet& profiles, ProfileId id) {
  const Profile& profile = profiles[id];
  const IterationParams& iteration = profile.iteration;
  std::string text = fmt::format("{}{}\n\n", profile.name,
                                 profile.aliases.empty()
                                     ? std::string{}
                                     : fmt::format(" (also {})", fmt::join(profile.aliases, ", ")));
  text += fmt::format(
      "iteration: alpha {:.6g} s, beta {:.6g} s per sample, batch {} per GPU, overlap {:.3g}, "
      "gradients {:.4g} bytes\n",
      iteration.alpha, iteration.beta, profile.batch, iteration.overlap, iteration.gradient_bytes);
  text += fmt::format("memory: {:.0f} MiB + {:.4g} MiB per sample\n", profile.memory.fixed_mib,
                      profile.memory.per_sample_mib);
  text += fmt::format(
      "alone it uses {:.0f} % of the GPU, {:.0f} % of its memory bandwidth, {:.0f} % "
      "of the server's bus\n",
      100 * profile.gpu_utilisation, 100 * profile.memory_utilisation, 100 * profile.bus);
  if (profile.cpu.is_known()) {
    text += fmt::format(
        "cores: {:.4g} ln C + {:.4g} C samples/s below {} cores, {:.4g} from there\n",
        profile.cpu.log_gain, profile.cpu.linear_gain, profile.cpu.theta, profile.cpu.plateau);
  }
  if (const ValidationParams& validation = profile.validation; validation.is_known()) {
    text += fmt::format(
        "validates for {:.4g} s after every {:.4g} s: {:.4g} ln C + {:.4g} C samples/s below {} "
        "cores\n",
        validation.seconds, validation.every_seconds, validation.cpu.log_gain,
        validation.cpu.linear_gain, validation.cpu.theta);
  }
  if (profile.data.is_known()) {
    text += fmt::format(
        "data set: {:.4g} MiB in samples of {:.4g} MiB, storage gives {:.4g} MiB/s\n",
        profile.data.dataset_mib, profile.data.sample_mib, profile.data.storage_mib_per_second);
  }
  text += training_for_people(profile);
  for (const auto& [device, speed] : profile.speeds)
    text += fmt::format("speed on {}: {:.3g}\n", device, speed);
  if (profile.sources.empty()) return text;
  TextTable table({{"part", Align::Left},
                   {"how", Align::Left},
                   {"error on points held back", Align::Left},
                   {"source", Align::Left}});
  for (const PartSource& part : profile.sources)
    table.add_row({part.part, std::string(to_string(part.provenance)), percent(part), part.source});
  return text + "\n" + table.str();
}

void put_json(JsonWriter& json, const Profile& profile) {
  json.begin_object().field("name", profile.name).field("batch", profile.batch);
  json.key("aliases").begin_array();
  for (const std::string& alias : profile.aliases) json.value(alias);
  json.end_array();
  json.field("alpha", profile.iteration.alpha)
      .field("beta", profile.iteration.beta)
      .field("gradient_bytes", profile.iteration.gradient_bytes)
      .field("overlap", profile.iteration.overlap)
      .field("memory_fixed_mib", profile.memory.fixed_mib)
      .field("memory_per_sample_mib", profile.memory.per_sample_mib)
      .field("gpu_utilisation", profile.gpu_utilisation)
      .field("memory_utilisation", profile.memory_utilisation)
      .field("bus", profile.bus);
  json.key("noise").begin_array();
  for (const NoisePoint& point : profile.noise) {
    json.begin_object().field("progress", point.progress).field("scale", point.scale).end_object();
  }
  json.end_array();
  json.key("batch_limits")
      .begin_object()
      .field("least_per_gpu", profile.batch_limits.least_per_gpu)
      .field("most_per_gpu", profile.batch_limits.most_per_gpu)
      .field("most_total", profile.batch_limits.most_total)
      .end_object();
  json.key("sources").begin_array();
  for (const PartSource& part : profile.sources) {
    json.begin_object()
        .field("part", part.part)
        .field("how", std::string(to_string(part.provenance)))
        .field("source", part.source)
        .field("error", part.error)
        .field("points", part.points)
        .end_object();
  }
  json.end_array().end_object();
}

}  // namespace

Exit execute(const ModelsOptions& options) {
  ProfileSet loaded;
  if (!options.profiles.empty()) {
    auto file = load_profiles(options.profiles);
    if (!file) return complain(Exit::Misuse, file.error());
    loaded = std::move(*file);
  }
  const ProfileSet& profiles = options.profiles.empty() ? built_in_profiles() : loaded;
  JsonWriter json;
  if (options.name.empty()) {
    if (!options.json) return write_stdout(all_for_people(profiles));
    json.begin_array();
    for (std::uint32_t i = 0; i < profiles.size(); ++i) put_json(json, profiles[ProfileId{i}]);
    json.end_array();
    return write_stdout(json.str() + "\n");
  }
  const auto id = profiles.find(options.name);
  if (!id) {
    std::vector<std::string> names;
    for (std::uint32_t i = 0; i < profiles.size(); ++i)
      names.push_back(profiles[ProfileId{i}].name);
    return complain(Exit::Misuse, fmt::format("no profile is called '{}'{}", options.name,
                                              suggestion(options.name, names)));
  }
  if (!options.json) return write_stdout(one_for_people(profiles, *id));
  put_json(json, profiles[*id]);
  return write_stdout(json.str() + "\n");
}

}  // namespace berth
