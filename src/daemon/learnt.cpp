#include "daemon/learnt.h"

#include <algorithm>
#include <cmath>
#include <ranges>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "perf/cpu_fit.h"
#include "perf/profile_file.h"
#include "perf/rate_function.h"

namespace berth {

namespace {

using Json = nlohmann::json;

constexpr std::size_t kMostKinds = 1'000;
constexpr std::size_t kMostBeside = 16;
constexpr std::size_t kMostCorePoints = 64;
constexpr std::size_t kLongestPart = 100;
constexpr double kSameFigure = 0.05;
constexpr double kShortestIteration = 1e-5;  // seconds
constexpr double kLongestIteration = 1e6;
constexpr double kLongestSwitch = 86'400;
constexpr double kWorstSlowdown = 100;

bool differs(double known, double now) {
  if (known <= 0) return now > 0;
  return std::abs(now / known - 1) > kSameFigure;
}

bool is_within(double value, double low, double high) { return value >= low && value <= high; }

std::string part(std::string_view text) {
  std::string clean;
  for (const char c : text.substr(0, kLongestPart)) {
    if (c == '/')
      clean += "%2F";
    else if (c == '%')
      clean += "%25";
    else
      clean += c;
  }
  return clean;
}

/// The inverse.
std::string plain(std::string text) {
  for (std::size_t at = text.find('%'); at != std::string::npos; at = text.find('%', at + 1))
    text.replace(at, 3, text.compare(at, 3, "%2F") == 0 ? "/" : "%");
  return text;
}

/// What a file can hold without quotes; people may call a job anything.
std::string as_word(std::string text) {
  for (char& c : text) {
    const bool is_plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                          (c >= '0' && c <= '9') || c == '-' || c == '_' || c == '.';
    if (!is_plain) c = '-';
  }
  return text;
}

Json points_to_json(const CorePoints& all) {
  Json rows = Json::array();
  for (const auto& [shape, points] : all) {
    for (const auto& [cores, speed] : points) {
      if (rows.size() < kMostCorePoints)
        rows.push_back({shape.gpus, shape.batch, shape.sub_steps, cores, speed});
    }
  }
  return rows;
}

CorePoints points_from_json(const Json& rows) {
  CorePoints all;
  for (const Json& row : rows) {
    if (!row.is_array() || row.size() != 5) continue;
    const double cores = row[3].get<double>();
    const double speed = row[4].get<double>();
    if (!is_within(cores, 1e-3, 1e6) || !is_within(speed, 1e-9, 1e12)) continue;
    const RunShape shape{.gpus = row[0].get<std::int32_t>(),
                         .batch = row[1].get<std::int64_t>(),
                         .sub_steps = row[2].get<std::int32_t>()};
    all[shape][cores] = speed;
  }
  return all;
}

bool differ(const CorePoints& known, const CorePoints& now) {
  for (const auto& [shape, points] : now) {
    const auto mine = known.find(shape);
    if (mine == known.end() || mine->second.size() != points.size()) return true;
    for (const auto& [cores, speed] : points) {
      const auto point = mine->second.find(cores);
      if (point == mine->second.end() || differs(point->second, speed)) return true;
    }
  }
  return false;
}

/// Of the shape with most points.
std::optional<CpuCurve> curve_of(const CorePoints& all) {
  std::vector<CpuPoint> best;
  for (const auto& [shape, points] : all) {
    if (points.size() <= best.size()) continue;
    best.clear();
    for (const auto& [cores, speed] : points) best.push_back({cores, speed});
  }
  const auto fitted = fit_cpu_curve(best, {.weights = FitWeights::Relative});
  if (!fitted || !fitted->curve.is_known()) return std::nullopt;
  return fitted->curve;
}

}  // namespace

std::string kind_of(const JobSpec& spec) {
  return part(spec.user) + "/" + part(spec.name) + "/" + part(spec.model);
}

std::string LearntKind::key() const { return part(user) + "/" + part(name) + "/" + part(model); }

std::string to_json(const LearntKind& kind) {
  Json json{{"user", kind.user}, {"name", kind.name},       {"model", kind.model},
            {"at", kind.at},     {"version", kind.version}, {"gpus", kind.gpus}};
  const auto some = [&](const char* key, double value) {
    if (value > 0) json[key] = value;
  };
  some("seconds_per_iteration", kind.seconds_per_iteration);
  some("batch", kind.batch);
  some("start_seconds", kind.start_seconds);
  some("stop_seconds", kind.stop_seconds);
  if (!kind.cores.empty()) json["cores"] = points_to_json(kind.cores);
  if (!kind.beside.empty()) json["beside"] = kind.beside;
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::optional<LearntKind> learnt_from_json(const std::string& text) {
  try {
    const Json json = Json::parse(text);
    LearntKind kind;
    kind.user = json.at("user").get<std::string>();
    kind.name = json.at("name").get<std::string>();
    kind.model = json.at("model").get<std::string>();
    kind.at = json.value("at", std::int64_t{0});
    kind.version = json.value("version", 1U);
    kind.gpus = std::max(1, json.value("gpus", 1));
    const auto figure = [&](const char* key, double low, double high) {
      const double value = json.value(key, 0.0);
      return is_within(value, low, high) ? value : 0.0;
    };
    kind.seconds_per_iteration =
        figure("seconds_per_iteration", kShortestIteration, kLongestIteration);
    kind.batch = figure("batch", 1, 1e9);
    kind.start_seconds = figure("start_seconds", 0, kLongestSwitch);
    kind.stop_seconds = figure("stop_seconds", 0, kLongestSwitch);
    if (json.contains("cores")) kind.cores = points_from_json(json["cores"]);
    if (json.contains("beside")) {
      for (const auto& [other, slowdown] : json["beside"].items()) {
        const double times = slowdown.get<double>();
        if (is_within(times, 1, kWorstSlowdown)) kind.beside[other] = times;
      }
    }
    return kind;
  } catch (const Json::exception&) {
    return std::nullopt;
  }
}

LearntKinds::LearntKinds(const std::map<std::string, std::string>& settings) {
  for (auto at = settings.lower_bound(std::string{kLearntPrefix});
       at != settings.end() && at->first.starts_with(kLearntPrefix); ++at) {
    auto kind = learnt_from_json(at->second);
    if (kind && kind->key() == at->first.substr(kLearntPrefix.size()))
      kinds_[kind->key()] = *std::move(kind);
  }
}

const LearntKind* LearntKinds::find(const std::string& kind) const {
  const auto found = kinds_.find(kind);
  return found == kinds_.end() ? nullptr : &found->second;
}

LearntKind& LearntKinds::kind(const std::string& key, const JobSpec* spec) {
  const auto [entry, is_new] = kinds_.try_emplace(key);
  if (is_new && spec != nullptr) {
    entry->second.user = spec->user.substr(0, kLongestPart);
    entry->second.name = spec->name.substr(0, kLongestPart);
    entry->second.model = spec->model.substr(0, kLongestPart);
  }
  if (is_new && spec == nullptr) {
    const std::size_t first = key.find('/');
    const std::size_t second = key.find('/', first + 1);
    entry->second.user = plain(key.substr(0, first));
    entry->second.name = plain(key.substr(first + 1, second - first - 1));
    entry->second.model = plain(key.substr(second + 1));
  }
  if (is_new && kinds_.size() > kMostKinds) {
    auto oldest = kinds_.end();
    for (auto at = kinds_.begin(); at != kinds_.end(); ++at) {
      if (at != entry && (oldest == kinds_.end() || at->second.at < oldest->second.at)) oldest = at;
    }
    dirty_[oldest->first] = false;
    kinds_.erase(oldest);
  }
  return entry->second;
}

void LearntKinds::changed(LearntKind& kind, std::int64_t now) {
  ++kind.version;
  kind.at = now;
  dirty_[kind.key()] = true;
}

bool LearntKinds::says_of_speed(const LearntKind& kind) const {
  if (kind.seconds_per_iteration > 0 || !kind.cores.empty() || !kind.beside.empty()) return true;
  return std::ranges::any_of(
      kinds_, [key = kind.key()](const auto& other) { return other.second.beside.contains(key); });
}

void LearntKinds::learn_speed(const JobSpec& spec, double seconds, double batch, std::int64_t now) {
  if (!is_within(seconds, kShortestIteration, kLongestIteration)) return;
  LearntKind& known = kind(kind_of(spec), &spec);
  const bool same_size = known.gpus == std::max(1, spec.gpus);
  if (same_size && !differs(known.seconds_per_iteration, seconds)) return;
  known.seconds_per_iteration = seconds;
  known.gpus = std::max(1, spec.gpus);
  if (is_within(batch, 1, 1e9)) known.batch = batch;
  changed(known, now);
}

void LearntKinds::learn_start(const JobSpec& spec, double seconds, std::int64_t now) {
  if (!is_within(seconds, 0, kLongestSwitch)) return;
  LearntKind& known = kind(kind_of(spec), &spec);
  if (std::abs(seconds - known.start_seconds) < 1 || !differs(known.start_seconds, seconds)) return;
  known.start_seconds = seconds;
  changed(known, now);
}

void LearntKinds::learn_stop(const JobSpec& spec, double seconds, std::int64_t now) {
  if (!is_within(seconds, 0, kLongestSwitch)) return;
  LearntKind& known = kind(kind_of(spec), &spec);
  if (std::abs(seconds - known.stop_seconds) < 1 || !differs(known.stop_seconds, seconds)) return;
  known.stop_seconds = seconds;
  changed(known, now);
}

void LearntKinds::learn_cores(const std::string& key, const CorePoints& points, std::int64_t now) {
  LearntKind& known = kind(key, nullptr);
  if (!differ(known.cores, points)) return;
  known.cores = points;
  changed(known, now);
}

void LearntKinds::learn_beside(const JobSpec& spec, const std::string& other, double slowdown,
                               std::int64_t now) {
  if (!is_within(slowdown, 0.5, kWorstSlowdown)) return;
  // One that was never alone has shown nothing else; without it nobody would know the pair again.
  if (LearntKind& theirs = kind(other, nullptr); theirs.version == 0) changed(theirs, now);
  LearntKind& known = kind(kind_of(spec), &spec);
  const double times = std::max(1.0, slowdown);
  const auto entry = known.beside.find(other);
  if (entry != known.beside.end() && !differs(entry->second, times)) return;
  if (entry == known.beside.end() && known.beside.size() >= kMostBeside)
    known.beside.erase(known.beside.begin());
  known.beside[other] = times;
  changed(known, now);
}

void LearntKinds::take_records(std::vector<RecordBody>& records) {
  for (const auto& [key, is_there] : dirty_) {
    SettingRecord setting;
    setting.key = std::string{kLearntPrefix} + key;
    if (const auto found = kinds_.find(key); is_there && found != kinds_.end())
      setting.value = to_json(found->second);
    setting.by = kSchedulerName;
    records.emplace_back(std::move(setting));
  }
  dirty_.clear();
}

Profile profile_of(const LearntKind& kind, const ProfileSet& known) {
  Profile profile = known[known.find(kind.model).value_or(ProfileSet::fallback())];
  profile.name = as_word(kind.model.empty() ? kind.name : kind.model);
  profile.aliases.clear();
  const std::string source = fmt::format("jobs {} of {}", as_word(kind.name), as_word(kind.user));
  const auto came_from = [&](const char* what) {
    std::erase_if(profile.sources, [&](const PartSource& each) { return each.part == what; });
    profile.sources.push_back(
        {.part = what, .provenance = Provenance::Measured, .source = source, .error = 0});
  };
  if (kind.batch >= 1) profile.batch = static_cast<std::int32_t>(kind.batch);
  if (kind.seconds_per_iteration > 0) {
    // What a gang waits for its links is part of what was measured, and scales with it: how much
    // more devices bring stays as it was believed.
    const double believed =
        profile.iteration.alpha + profile.iteration.beta * static_cast<double>(profile.batch);
    const double times = std::clamp(kind.seconds_per_iteration / believed, 1e-6, 1e6);
    profile.iteration.alpha *= times;
    profile.iteration.beta *= times;
    profile.iteration.gradient_bytes *= times;
    for (double& stage : profile.stages) stage *= times;
    profile.measured.clear();
    came_from("iteration");
  }
  if (const auto curve = curve_of(kind.cores)) {
    profile.cpu = *curve;
    came_from("cpu");
  }
  return profile;
}

std::string learnt_yaml(const std::vector<LearntKind>& kinds) {
  std::map<std::string, const LearntKind*> newest;
  std::map<std::string, std::string> name_of;  // by kind
  for (const LearntKind& kind : kinds) {
    const std::string name = plain_model_name(kind.model.empty() ? kind.name : kind.model);
    if (name.empty() || name == "default") continue;
    name_of[kind.key()] = name;
    const LearntKind*& entry = newest[name];
    if (entry == nullptr || entry->at < kind.at) entry = &kind;
  }
  ProfileSet learnt;
  std::map<std::string, ProfileId> ids;
  std::string heading = "What jobs have shown of themselves, as berth profiles export wrote it.";
  for (const auto& [name, kind] : newest) {
    ids[name] = learnt.add(profile_of(*kind, built_in_profiles()));
    if (kind->start_seconds > 0 || kind->stop_seconds > 0) {
      heading += fmt::format("\n{}: a start takes {:.3g} s, leaving {:.3g} s.", name,
                             kind->start_seconds, kind->stop_seconds);
    }
  }
  for (const auto& [name, kind] : newest) {
    for (const auto& [other, times] : kind->beside) {
      const auto theirs = name_of.find(other);
      if (theirs != name_of.end()) learnt.set_slowdown(ids[name], ids[theirs->second], times);
    }
  }
  learnt.set_default_slowdown(built_in_profiles().default_slowdown());
  return profiles_to_yaml(learnt, heading);
}

}  // namespace berth
