// The writing half of perf/profile_file.h.
#include <array>

#include <fmt/format.h>

#include "perf/profile_file.h"

namespace berth {

namespace {

/// Always quoted: a name may look like a number or hold a colon.
std::string in_quotes(std::string_view text) {
  std::string result = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') result += '\\';
    result += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
  }
  return result + '"';
}

bool is_plain(std::string_view text) {
  if (text.empty() || text.front() < 'a' || text.front() > 'z') return false;
  for (const char c : text) {
    const bool good = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '_';
    if (!good) return false;
  }
  return text != "null" && text != "true" && text != "false" && text != "yes" && text != "no";
}

std::string word(std::string_view text) {
  return is_plain(text) ? std::string(text) : in_quotes(text);
}

std::string number(double value) { return fmt::format("{:.8g}", value); }

void write_sources(std::string& out, const Profile& profile) {
  if (profile.sources.empty()) return;
  out += "    sources:\n";
  for (const PartSource& source : profile.sources) {
    out += fmt::format("      - {{part: {}, provenance: {}", word(source.part),
                       to_string(source.provenance));
    if (source.error > 0) out += fmt::format(", error: {:.4g}", source.error);
    if (source.points > 0) out += fmt::format(", points: {}", source.points);
    if (!source.source.empty()) out += fmt::format(", source: {}", in_quotes(source.source));
    out += "}\n";
  }
}

void write_measured(std::string& out, const Profile& profile) {
  if (profile.measured.empty()) return;
  out += "    measured:\n";
  for (const MeasuredTime& time : profile.measured) {
    out += fmt::format("      - {{device: {}, gpus: {}, level: {}, batch: {}, seconds: {}}}\n",
                       word(time.device), time.gpus, to_string(time.level), time.batch,
                       number(time.seconds));
  }
}

void write_lists(std::string& out, const Profile& profile) {
  if (profile.has_stages()) {
    out += fmt::format("    stages: [{}, {}, {}, {}]\n", number(profile.stages[0]),
                       number(profile.stages[1]), number(profile.stages[2]),
                       number(profile.stages[3]));
  }
  if (profile.speeds.empty()) return;
  std::string all;
  for (const auto& [device, speed] : profile.speeds)
    all += fmt::format("{}{}: {}", all.empty() ? "" : ", ", word(device), number(speed));
  out += fmt::format("    speeds: {{{}}}\n", all);
}

std::string curve(const CpuCurve& cpu) {
  return fmt::format("log_gain: {}, linear_gain: {}, plateau: {}, theta: {}", number(cpu.log_gain),
                     number(cpu.linear_gain), number(cpu.plateau), cpu.theta);
}

std::array<double, 6> numbers_of(const LossCurve& loss) {
  return {loss.b0, loss.b1, loss.b2, loss.epochs, loss.spread, loss.noise};
}
std::array<std::int32_t, 3> numbers_of(const BatchLimits& limits) {
  return {limits.least_per_gpu, limits.most_per_gpu, limits.most_total};
}

/// Only what differs from the class default.
void write_training(std::string& out, const Profile& profile) {
  if (const LossCurve& loss = profile.loss; numbers_of(loss) != numbers_of(LossCurve{})) {
    out += fmt::format("    loss: {{b0: {}, b1: {}, b2: {}, epochs: {}, spread: {}, noise: {}}}\n",
                       number(loss.b0), number(loss.b1), number(loss.b2), number(loss.epochs),
                       number(loss.spread), number(loss.noise));
  }
  if (!profile.noise.empty()) {
    std::string all;
    for (const NoisePoint& point : profile.noise)
      all += fmt::format("{}[{}, {}]", all.empty() ? "" : ", ", number(point.progress),
                         number(point.scale));
    out += fmt::format("    noise: [{}]\n", all);
  }
  if (const BatchLimits& limits = profile.batch_limits;
      numbers_of(limits) != numbers_of(BatchLimits{})) {
    out +=
        fmt::format("    batch_limits: {{least_per_gpu: {}, most_per_gpu: {}, most_total: {}}}\n",
                    limits.least_per_gpu, limits.most_per_gpu, limits.most_total);
  }
}

void write_profile(std::string& out, const Profile& profile) {
  out += fmt::format("  - name: {}\n", word(profile.name));
  if (!profile.aliases.empty()) {
    std::string all;
    for (const std::string& alias : profile.aliases)
      all += fmt::format("{}{}", all.empty() ? "" : ", ", word(alias));
    out += fmt::format("    aliases: [{}]\n", all);
  }
  out += fmt::format("    batch: {}\n", profile.batch);
  const IterationParams& i = profile.iteration;
  out += fmt::format("    iteration: {{alpha: {}, beta: {}, gradient_bytes: {}, overlap: {}}}\n",
                     number(i.alpha), number(i.beta), number(i.gradient_bytes), number(i.overlap));
  out += fmt::format("    memory: {{fixed_mib: {}, per_sample_mib: {}}}\n",
                     number(profile.memory.fixed_mib), number(profile.memory.per_sample_mib));
  if (profile.cpu.is_known()) out += fmt::format("    cpu: {{{}}}\n", curve(profile.cpu));
  if (profile.validation.is_known()) {
    out += fmt::format("    validation: {{every_seconds: {}, seconds: {}, {}}}\n",
                       number(profile.validation.every_seconds), number(profile.validation.seconds),
                       curve(profile.validation.cpu));
  }
  if (profile.data.is_known()) {
    out +=
        fmt::format("    data: {{dataset_mib: {}, sample_mib: {}, storage_mib_per_second: {}}}\n",
                    number(profile.data.dataset_mib), number(profile.data.sample_mib),
                    number(profile.data.storage_mib_per_second));
  }
  out += fmt::format("    gpu_utilisation: {}\n    memory_utilisation: {}\n    bus: {}\n",
                     number(profile.gpu_utilisation), number(profile.memory_utilisation),
                     number(profile.bus));
  write_lists(out, profile);
  write_training(out, profile);
  write_measured(out, profile);
  write_sources(out, profile);
}

// By ids, so that the file is the same for the same set.
void write_pairs(std::string& out, const ProfileSet& profiles) {
  std::string all;
  for (std::uint32_t of = 0; of < profiles.size(); ++of) {
    for (std::uint32_t beside = 0; beside < profiles.size(); ++beside) {
      const ProfileId a{of};
      const ProfileId b{beside};
      if (!profiles.has_pair(a, b)) continue;
      all += fmt::format("  - [{}, {}, {:.6g}]\n", word(profiles[a].name), word(profiles[b].name),
                         profiles.slowdown(a, b));
    }
  }
  if (!all.empty()) out += "pairs:\n" + all;
}

}  // namespace

std::string_view to_string(Provenance provenance) noexcept {
  switch (provenance) {
    case Provenance::Default: return "default";
    case Provenance::Given: return "given";
    case Provenance::Fitted: return "fitted";
    case Provenance::Measured: break;
  }
  return "measured";
}

std::string profiles_to_yaml(const ProfileSet& profiles, std::string_view heading) {
  std::string out;
  for (std::size_t begin = 0; begin < heading.size();) {
    const std::size_t end = std::min(heading.find('\n', begin), heading.size());
    out += fmt::format("# {}\n", heading.substr(begin, end - begin));
    begin = end + 1;
  }
  out += fmt::format("defaults: {{slowdown: {}}}\n", number(profiles.default_slowdown()));
  if (profiles.size() > 1) out += "profiles:\n";
  for (std::uint32_t i = 1; i < profiles.size(); ++i) write_profile(out, profiles[ProfileId{i}]);
  write_pairs(out, profiles);
  return out;
}

}  // namespace berth
