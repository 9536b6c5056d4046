// Reads the YAML of profiles. Every number has a range, every key is known, and all faults of a
// file are collected; what passes cannot lead to a speed of zero or an endless iteration.

#include "perf/profile_file.h"

#include <algorithm>
#include <array>
#include <cctype>

#include <fmt/format.h>

#include "base/suggest.h"
#include "model/catalogue.h"
#include "model/yaml_fields.h"
#include "model/yaml_guard.h"
#include "perf/training_fields.h"

namespace berth {

namespace {

constexpr std::size_t kMaxFileBytes = std::size_t{16} << 20U;
constexpr std::size_t kMaxText = 200;
constexpr std::string_view kExample =
    "begin with\n  profiles:\n    - {name: my-model, iteration: {alpha: 0.02, beta: 0.005}}";

constexpr YamlKind kKind{.holds = "set of profiles", .example = kExample};

std::string lower(std::string_view text) {
  std::string result(text);
  for (char& c : result) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return result;
}

class ProfileReader {
 public:
  ProfileReader(const std::string& file, ProfileSet base)
      : file_(file), yaml_(file), set_(std::move(base)) {
    for (const DeviceType& device : built_in_devices()) devices_.push_back(device.name);
  }

  Result<ProfileSet> read(const YAML::Node& root) {
    static const std::array<std::string, 4> kKeys{"defaults", "devices", "profiles", "pairs"};
    if (!root.IsMap())
      return fail(fmt::format("{}: a profile file is a mapping ({})",
                              yaml_place(file_, root.Mark()), kExample));
    yaml_.check_keys(root, kKeys, "the file");
    read_defaults(YamlFields::child(root, "defaults"));
    read_devices(YamlFields::child(root, "devices"));
    const YAML::Node profiles = YamlFields::child(root, "profiles");
    const YAML::Node pairs = YamlFields::child(root, "pairs");
    if (!profiles.IsDefined() && !pairs.IsDefined())
      yaml_.wrong(root.Mark(), fmt::format("neither profiles nor pairs ({})", kExample));
    read_list(profiles, "profiles", [&](const YAML::Node& row) { read_profile(row); });
    read_list(pairs, "pairs", [&](const YAML::Node& row) { read_pair(row); });
    BERTH_TRY_VOID(yaml_.verdict());
    return std::move(set_);
  }

 private:
  template <class Read>
  void read_list(const YAML::Node& rows, std::string_view what, Read read) {
    if (!rows.IsDefined()) return;
    if (!rows.IsSequence())
      return yaml_.wrong(rows.Mark(),
                         fmt::format("{} must be a list (start each entry with '- ')", what));
    for (const YAML::Node& row : rows) read(row);
  }

  /// False, and said so, unless it is a mapping with these keys alone.
  bool is_mapping(const YAML::Node& node, std::span<const std::string> keys, std::string_view what,
                  std::string_view example) {
    if (!node.IsDefined()) return false;
    if (!node.IsMap()) {
      yaml_.wrong(node.Mark(), fmt::format("{} is a mapping, as in {}", what, example));
      return false;
    }
    yaml_.check_keys(node, keys, what);
    return true;
  }

  std::optional<std::string> text_at(const YAML::Node& node, std::string_view what) {
    if (node.IsScalar() && !node.Scalar().empty() && node.Scalar().size() <= kMaxText)
      return node.Scalar();
    yaml_.wrong(node.Mark(), fmt::format("{} must be a short text", what));
    return std::nullopt;
  }
  std::optional<std::string> text(const YAML::Node& map, std::string_view key) {
    const YAML::Node node = YamlFields::child(map, key);
    if (!node.IsDefined()) return std::nullopt;
    return text_at(node, key);
  }

  // Parts are whole or absent: half a curve has no meaning.
  void need(const YAML::Node& map, std::string_view key, std::string_view what) {
    if (!YamlFields::child(map, key).IsDefined())
      yaml_.wrong(map.Mark(), fmt::format("{} needs {}", what, key));
  }

  void read_defaults(const YAML::Node& node) {
    static const std::array<std::string, 2> kKeys{"slowdown", "pairs_from_utilisation"};
    if (!is_mapping(node, kKeys, "defaults", "{slowdown: 1.5}")) return;
    if (const auto times = yaml_.number(node, "slowdown", {1, 1000}))
      set_.set_default_slowdown(*times);
    const auto word = text(node, "pairs_from_utilisation");
    if (word && *word != "true" && *word != "false")
      yaml_.wrong(
          YamlFields::child(node, "pairs_from_utilisation").Mark(),
          fmt::format("pairs_from_utilisation must be true or false, got '{}'", shown(*word)));
    else if (word)
      set_.set_pairs_from_utilisation(*word == "true");
  }

  void read_devices(const YAML::Node& rows) {
    read_list(rows, "devices", [&](const YAML::Node& row) {
      if (const auto name = text_at(row, "a device")) devices_.push_back(lower(*name));
    });
  }

  std::optional<std::string> device(const YAML::Node& node) {
    const auto word = text_at(node, "a device");
    if (!word) return std::nullopt;
    const std::string name = lower(*word);
    if (std::ranges::find(devices_, name) != devices_.end()) return name;
    yaml_.wrong(node.Mark(),
                fmt::format("no device type is called '{}'{}; a new one is named under devices",
                            shown(name), suggestion(shown(name), devices_)));
    return std::nullopt;
  }

  std::optional<ProfileId> model(const YAML::Node& node) {
    const auto word = text_at(node, "a model");
    if (!word) return std::nullopt;
    if (const auto id = set_.find(*word)) return id;
    std::vector<std::string> known;
    for (std::uint32_t i = 0; i < set_.size(); ++i) known.push_back(set_[ProfileId{i}].name);
    yaml_.wrong(node.Mark(), fmt::format("no profile is called '{}'{}", shown(*word),
                                         suggestion(shown(*word), known)));
    return std::nullopt;
  }

  void read_iteration(const YAML::Node& node, IterationParams& params) {
    static const std::array<std::string, 4> kKeys{"alpha", "beta", "gradient_bytes", "overlap"};
    if (!is_mapping(node, kKeys, "iteration", "{alpha: 0.02, beta: 0.005, gradient_bytes: 1e8}"))
      return;
    need(node, "alpha", "iteration");
    need(node, "beta", "iteration");
    params.alpha = yaml_.number(node, "alpha", {0, 1e5}).value_or(params.alpha);
    params.beta = yaml_.number(node, "beta", {0, 1e5}).value_or(params.beta);
    params.gradient_bytes =
        yaml_.number(node, "gradient_bytes", {0, 1e14}).value_or(params.gradient_bytes);
    params.overlap = yaml_.number(node, "overlap", {1, 1000}).value_or(params.overlap);
    if (params.alpha + params.beta <= 0)
      yaml_.wrong(node.Mark(),
                  "alpha and beta are both zero: an iteration would take no time (give the seconds "
                  "of one iteration)");
  }

  void read_memory(const YAML::Node& node, MemoryParams& memory) {
    static const std::array<std::string, 2> kKeys{"fixed_mib", "per_sample_mib"};
    if (!is_mapping(node, kKeys, "memory", "{fixed_mib: 3000, per_sample_mib: 64}")) return;
    memory.fixed_mib = yaml_.number(node, "fixed_mib", {0, 1e8}).value_or(memory.fixed_mib);
    memory.per_sample_mib =
        yaml_.number(node, "per_sample_mib", {0, 1e8}).value_or(memory.per_sample_mib);
  }

  void read_cpu(const YAML::Node& node, CpuCurve& cpu) {
    static const std::array<std::string, 4> kKeys{"log_gain", "linear_gain", "plateau", "theta"};
    if (!is_mapping(node, kKeys, "cpu", "{log_gain: 40, linear_gain: 5, plateau: 160, theta: 12}"))
      return;
    for (const std::string& key : kKeys) need(node, key, "cpu");
    read_curve(node, cpu);
  }

  void read_curve(const YAML::Node& node, CpuCurve& cpu) {
    const auto log_gain = yaml_.number(node, "log_gain", {-1e9, 1e9});
    const auto linear_gain = yaml_.number(node, "linear_gain", {-1e9, 1e9});
    const auto plateau = yaml_.number(node, "plateau", {1e-9, 1e12});
    const auto theta = yaml_.whole(node, "theta", {1, 4096});
    if (!log_gain || !linear_gain || !plateau || !theta) return;
    cpu = {
        .log_gain = *log_gain, .linear_gain = *linear_gain, .plateau = *plateau, .theta = *theta};
    // Checked at every count that can be granted below the sweet point: a job must get on with any
    // of them.
    for (std::int32_t cores = 1; cores <= cpu.theta; ++cores) {
      if (cpu.feed(cores) > 0) continue;
      return yaml_.wrong(node.Mark(), fmt::format("{} cores would feed nothing: the curve is not "
                                                  "above zero there (fit it again)",
                                                  cores));
    }
  }

  /// The plateau says how fast the GPU is: iterations of the class default, which may be faster or
  /// slower, would move the sweet point away from where the curve has it.
  static void follow_plateau(Profile& profile) {
    if (!profile.cpu.is_known()) return;
    IterationParams& iteration = profile.iteration;
    const double now = iteration.alpha + iteration.beta * profile.batch;
    const double scale = profile.batch / profile.cpu.plateau / now;
    iteration.alpha *= scale;
    iteration.beta *= scale;
  }

  /// The curve lies beside the times, so that it reads like `cpu`.
  void read_validation(const YAML::Node& node, ValidationParams& validation) {
    static const std::array<std::string, 6> kKeys{"every_seconds", "seconds", "log_gain",
                                                  "linear_gain",   "plateau", "theta"};
    if (!is_mapping(node, kKeys, "validation",
                    "{every_seconds: 1800, seconds: 120, log_gain: 40, linear_gain: 5, plateau: "
                    "160, theta: 20}"))
      return;
    for (const std::string& key : kKeys) need(node, key, "validation");
    validation.every_seconds = yaml_.number(node, "every_seconds", {1, 1e9}).value_or(1);
    validation.seconds = yaml_.number(node, "seconds", {1, 1e9}).value_or(1);
    read_curve(node, validation.cpu);
  }

  void read_data(const YAML::Node& node, DataCache& data) {
    static const std::array<std::string, 3> kKeys{"dataset_mib", "sample_mib",
                                                  "storage_mib_per_second"};
    if (!is_mapping(node, kKeys, "data",
                    "{dataset_mib: 150000, sample_mib: 0.11, storage_mib_per_second: 60}"))
      return;
    for (const std::string& key : kKeys) need(node, key, "data");
    data.dataset_mib = yaml_.number(node, "dataset_mib", {1e-3, 1e12}).value_or(1);
    data.sample_mib = yaml_.number(node, "sample_mib", {1e-9, 1e9}).value_or(1);
    data.storage_mib_per_second =
        yaml_.number(node, "storage_mib_per_second", {1e-3, 1e9}).value_or(1);
  }

  void read_stages(const YAML::Node& node, std::array<double, 4>& stages) {
    if (!node.IsDefined()) return;
    if (!node.IsSequence() || node.size() != stages.size())
      return yaml_.wrong(node.Mark(),
                         "stages are the seconds on storage, CPU, GPU and network: four numbers");
    double sum = 0;
    for (std::size_t i = 0; i < stages.size(); ++i) {
      stages[i] = yaml_.number_at(node[i], "a stage", {0, 1e6}).value_or(1);
      sum += stages[i];
    }
    if (sum <= 0) yaml_.wrong(node.Mark(), "all stages are zero (leave them out if unknown)");
  }

  void read_speeds(const YAML::Node& node, Profile& profile) {
    if (!node.IsDefined()) return;
    if (!node.IsMap())
      return yaml_.wrong(node.Mark(),
                         "speeds is a mapping, as in {k80: 0.2, a100: 2} with V100 = 1");
    profile.speeds.clear();
    for (const auto& entry : node) {
      const auto type = device(entry.first);
      const auto speed = yaml_.number_at(entry.second, "a speed", {1e-4, 1e4});
      if (!type || !speed) continue;
      if (std::ranges::find(profile.speeds, *type, &std::pair<std::string, double>::first) !=
          profile.speeds.end())
        yaml_.wrong(entry.first.Mark(), fmt::format("the speed on '{}' is given twice", *type));
      profile.speeds.emplace_back(*type, *speed);
    }
  }

  std::optional<Level> level(const YAML::Node& map) {
    const auto word = text(map, "level");
    if (!word) return std::nullopt;
    std::vector<std::string> known;
    for (const Level one : kAllLevels) {
      known.emplace_back(to_string(one));
      if (known.back() == *word) return one;
    }
    yaml_.wrong(
        YamlFields::child(map, "level").Mark(),
        fmt::format("no level is called '{}'{}", shown(*word), suggestion(shown(*word), known)));
    return std::nullopt;
  }

  void read_measured(const YAML::Node& row, Profile& profile) {
    static const std::array<std::string, 5> kKeys{"device", "gpus", "level", "batch", "seconds"};
    if (!row.IsMap())
      return yaml_.wrong(row.Mark(),
                         "a measured time is a mapping, as in {device: v100, gpus: 4, level: "
                         "server, batch: 32, seconds: 0.21}");
    yaml_.check_keys(row, kKeys, "a measured time");
    for (const std::string& key : kKeys) need(row, key, "a measured time");
    MeasuredTime time;
    if (const YAML::Node type = YamlFields::child(row, "device"); type.IsDefined())
      time.device = device(type).value_or("");
    time.gpus = yaml_.whole(row, "gpus", {1, 1'000'000}).value_or(1);
    time.level = level(row).value_or(Level::Device);
    time.batch = yaml_.whole(row, "batch", {1, 100'000'000}).value_or(1);
    time.seconds = yaml_.number(row, "seconds", {1e-9, 1e6}).value_or(1);
    profile.measured.push_back(std::move(time));
  }

  void read_source(const YAML::Node& row, Profile& profile) {
    static const std::array<std::string, 5> kKeys{"part", "provenance", "source", "error",
                                                  "points"};
    if (!row.IsMap())
      return yaml_.wrong(row.Mark(),
                         "a source is a mapping, as in {part: iteration, source: our cluster}");
    yaml_.check_keys(row, kKeys, "a source");
    PartSource source;
    source.part = text(row, "part").value_or("everything");
    source.source = text(row, "source").value_or("");
    source.error = yaml_.number(row, "error", {0, 1e6}).value_or(0);
    source.points = yaml_.whole(row, "points", {0, 1'000'000'000}).value_or(0);
    if (const auto word = text(row, "provenance")) {
      const std::array all{Provenance::Default, Provenance::Given, Provenance::Fitted,
                           Provenance::Measured};
      const auto found =
          std::ranges::find_if(all, [&](Provenance one) { return to_string(one) == *word; });
      if (found == all.end())
        yaml_.wrong(YamlFields::child(row, "provenance").Mark(),
                    "provenance must be default, given, fitted or measured");
      else
        source.provenance = *found;
    }
    profile.sources.push_back(std::move(source));
  }

  void read_profile(const YAML::Node& row) {
    static const std::vector<std::string> kKeys{"name",
                                                "like",
                                                "aliases",
                                                "batch",
                                                "iteration",
                                                "memory",
                                                "cpu",
                                                "validation",
                                                "data",
                                                "gpu_utilisation",
                                                "memory_utilisation",
                                                "bus",
                                                "stages",
                                                "speeds",
                                                "measured",
                                                "sources",
                                                "loss",
                                                "noise",
                                                "batch_limits"};
    if (!row.IsMap())
      return yaml_.wrong(row.Mark(), "a profile is a mapping, as in {name: my-model, batch: 32}");
    yaml_.check_keys(row, kKeys, "a profile");
    need(row, "name", "a profile");
    Profile profile;
    if (const YAML::Node like = YamlFields::child(row, "like"); like.IsDefined()) {
      if (const auto id = model(like)) profile = set_[*id];
      profile.aliases.clear();
    }
    profile.name = text(row, "name").value_or("");
    check_name(row, profile.name);
    read_list(YamlFields::child(row, "aliases"), "aliases", [&](const YAML::Node& alias) {
      if (auto word = text_at(alias, "an alias")) profile.aliases.push_back(*word);
    });
    profile.batch = yaml_.whole(row, "batch", {1, 100'000'000}).value_or(profile.batch);
    read_iteration(YamlFields::child(row, "iteration"), profile.iteration);
    read_memory(YamlFields::child(row, "memory"), profile.memory);
    read_cpu(YamlFields::child(row, "cpu"), profile.cpu);
    read_validation(YamlFields::child(row, "validation"), profile.validation);
    // What a file says counts; what `like` or the default brought along does not.
    const auto is_said = [&](const char* key) { return YamlFields::child(row, key).IsDefined(); };
    if (is_said("cpu") && !is_said("iteration") && !is_said("like")) follow_plateau(profile);
    read_data(YamlFields::child(row, "data"), profile.data);
    const auto share = [&](std::string_view key, double& value) {
      value = yaml_.number(row, key, {0, 1}).value_or(value);
    };
    share("gpu_utilisation", profile.gpu_utilisation);
    share("memory_utilisation", profile.memory_utilisation);
    share("bus", profile.bus);
    read_training_fields(yaml_, row, profile);
    read_stages(YamlFields::child(row, "stages"), profile.stages);
    read_speeds(YamlFields::child(row, "speeds"), profile);
    read_list(YamlFields::child(row, "measured"), "measured",
              [&](const YAML::Node& one) { read_measured(one, profile); });
    read_list(YamlFields::child(row, "sources"), "sources",
              [&](const YAML::Node& one) { read_source(one, profile); });
    if (!profile.name.empty()) set_.add(std::move(profile));
  }

  void check_name(const YAML::Node& row, const std::string& name) {
    if (name.empty()) return;
    const std::string plain = plain_model_name(name);
    const YAML::Mark mark = YamlFields::child(row, "name").Mark();
    if (plain.empty())
      yaml_.wrong(mark, "a name needs a letter or digit");
    else if (std::ranges::find(names_, plain) != names_.end())
      yaml_.wrong(mark, fmt::format("'{}' is described twice (keep one)", shown(name)));
    names_.push_back(plain);
  }

  // Pairs come after all profiles, so that they may name any of them.
  void read_pair(const YAML::Node& row) {
    if (!row.IsSequence() || row.size() != 3)
      return yaml_.wrong(row.Mark(),
                         "a pair is [of, beside, slowdown], as in [lm, resnet-50, 2.4]");
    const auto of = model(row[0]);
    const auto beside = model(row[1]);
    const auto times = yaml_.number_at(row[2], "a slowdown", {1, 1000});
    if (of && beside && times) set_.set_slowdown(*of, *beside, *times);
  }

  const std::string& file_;
  YamlFields yaml_;
  ProfileSet set_;
  std::vector<std::string> devices_;
  std::vector<std::string> names_;  // of this file, plain
};

}  // namespace

Result<ProfileSet> parse_profiles(const std::string& text, const std::string& name,
                                  ProfileSet base) {
  // Before the parser sees it.
  if (text.size() > kMaxFileBytes)
    return fail(fmt::format("{}: {} MB is too large for a profile file (16 MB at most)", name,
                            text.size() >> 20U));
  try {
    BERTH_TRY_VOID(check_yaml_shape(text, name, kKind));
    return ProfileReader(name, std::move(base)).read(YAML::Load(text));
  } catch (const YAML::Exception& problem) {
    return fail(fmt::format("{}: not YAML: {}", yaml_place(name, problem.mark), problem.msg));
  }
}

}  // namespace berth
