// A program of the build: reads the catalogue of models (YAML) and writes it as C++, so that a run
// need not parse it and a fault in it is a fault of the build.
//
//   berth_embed_profiles models.yaml built_in_table.cpp
#include <cstdio>
#include <string>

#include <fmt/format.h>

#include "base/file.h"
#include "perf/profile_file.h"

namespace berth {

namespace {

std::string text_literal(std::string_view text) {
  std::string result = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') result += '\\';
    result += c;
  }
  return result + '"';
}

/// Reads back as the very same number.
std::string number_literal(double value) { return fmt::format("{:#.17g}", value); }

std::string list_of(const auto& items, const auto& literal) {
  std::string all;
  for (const auto& item : items) all += fmt::format("{}{}", all.empty() ? "" : ", ", literal(item));
  return "{" + all + "}";
}

std::string source_literal(const PartSource& source) {
  return fmt::format("{{{}, static_cast<Provenance>({}), {}, {}, {}}}", text_literal(source.part),
                     static_cast<int>(source.provenance), text_literal(source.source),
                     number_literal(source.error), source.points);
}

std::string measured_literal(const MeasuredTime& time) {
  return fmt::format("{{{}, {}, static_cast<Level>({}), {}, {}}}", text_literal(time.device),
                     time.gpus, static_cast<int>(time.level), time.batch,
                     number_literal(time.seconds));
}

std::string curve_literal(const CpuCurve& cpu) {
  return fmt::format("{{{}, {}, {}, {}}}", number_literal(cpu.log_gain),
                     number_literal(cpu.linear_gain), number_literal(cpu.plateau), cpu.theta);
}

std::string profile_code(const Profile& profile) {
  const IterationParams& i = profile.iteration;
  const auto speed = [](const auto& entry) {
    return fmt::format("{{{}, {}}}", text_literal(entry.first), number_literal(entry.second));
  };
  std::string code = "  profile = Profile{};\n";
  const auto assign = [&](std::string_view member, const std::string& value) {
    code += fmt::format("  profile.{} = {};\n", member, value);
  };
  assign("name", text_literal(profile.name));
  assign("aliases", list_of(profile.aliases, text_literal));
  assign("batch", fmt::format("{}", profile.batch));
  assign("iteration",
         list_of(std::array{i.alpha, i.beta, i.gradient_bytes, i.overlap}, number_literal));
  assign("memory", list_of(std::array{profile.memory.fixed_mib, profile.memory.per_sample_mib},
                           number_literal));
  assign("cpu", curve_literal(profile.cpu));
  assign("validation",
         fmt::format("{{{}, {}, {}}}", number_literal(profile.validation.every_seconds),
                     number_literal(profile.validation.seconds),
                     curve_literal(profile.validation.cpu)));
  assign("data", list_of(std::array{profile.data.dataset_mib, profile.data.sample_mib,
                                    profile.data.storage_mib_per_second},
                         number_literal));
  assign("gpu_utilisation", number_literal(profile.gpu_utilisation));
  assign("memory_utilisation", number_literal(profile.memory_utilisation));
  assign("bus", number_literal(profile.bus));
  assign("stages", list_of(profile.stages, number_literal));
  assign("speeds", list_of(profile.speeds, speed));
  const LossCurve& loss = profile.loss;
  assign("loss",
         list_of(std::array{loss.b0, loss.b1, loss.b2, loss.epochs, loss.spread, loss.noise},
                 number_literal));
  assign("noise", list_of(profile.noise, [](const NoisePoint& point) {
           return list_of(std::array{point.progress, point.scale}, number_literal);
         }));
  assign("batch_limits",
         fmt::format("{{{}, {}, {}}}", profile.batch_limits.least_per_gpu,
                     profile.batch_limits.most_per_gpu, profile.batch_limits.most_total));
  assign("measured", list_of(profile.measured, measured_literal));
  assign("sources", list_of(profile.sources, source_literal));
  return code + "  set.add(profile);\n";
}

std::string pairs_code(const ProfileSet& set) {
  std::string code;
  for (std::uint32_t of = 0; of < set.size(); ++of) {
    for (std::uint32_t beside = 0; beside < set.size(); ++beside) {
      if (!set.has_pair(ProfileId{of}, ProfileId{beside})) continue;
      code += fmt::format("  set.set_slowdown(ProfileId{{{}}}, ProfileId{{{}}}, {});\n", of, beside,
                          number_literal(set.slowdown(ProfileId{of}, ProfileId{beside})));
    }
  }
  return code;
}

std::string table_code(const ProfileSet& set) {
  std::string code =
      "// Made from data/profiles/models.yaml by embed_profiles.cpp.\n"
      "#include \"perf/built_in_table.h\"\n\nnamespace berth {\n\n"
      "ProfileSet built_in_table() {\n  ProfileSet set;\n  Profile profile;\n";
  code += fmt::format("  set.set_default_slowdown({});\n", number_literal(set.default_slowdown()));
  for (std::uint32_t i = 1; i < set.size(); ++i) code += profile_code(set[ProfileId{i}]);
  return code + pairs_code(set) + "  return set;\n}\n\n}  // namespace berth\n";
}

Result<void> embed(const std::string& from, const std::string& to) {
  BERTH_TRY(const std::string text, read_file(from));
  BERTH_TRY(const ProfileSet set, parse_profiles(text, from, ProfileSet{}));
  return write_file(to, table_code(set));
}

}  // namespace

}  // namespace berth

int main(int argc, char** argv) {
  if (argc != 3) {
    fmt::print(stderr, "usage: {} models.yaml table.cpp\n", argc > 0 ? argv[0] : "embed_profiles");
    return 2;
  }
  const auto done = berth::embed(argv[1], argv[2]);
  if (!done) fmt::print(stderr, "{}\n", done.error().text());
  return done ? 0 : 1;
}
