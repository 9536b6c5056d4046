#include "daemon/power_config.h"

#include <pwd.h>
#include <unistd.h>

#include <fmt/format.h>

#include "model/job_spec.h"

namespace berth {

namespace {

constexpr double kMostRate = 1e6;

class PowerReader {
 public:
  explicit PowerReader(YamlFields& fields) : fields_(fields) {}

  void read(const YAML::Node& power, std::string& manager, PowerOptions& options) {
    if (power.IsScalar()) {  // just the manager, as on the command line
      manager = power.Scalar();
      return;
    }
    if (!power.IsMap())
      return fields_.wrong(power.Mark(), "power has suspend_program, resume_program and more");
    static const std::vector<std::string> known{"manager",
                                                "suspend_program",
                                                "resume_program",
                                                "resume_fail_program",
                                                "check_program",
                                                "user",
                                                "program_timeout",
                                                "suspend_timeout",
                                                "resume_timeout",
                                                "suspend_rate",
                                                "resume_rate",
                                                "suspend_exc_nodes",
                                                "nvml_library",
                                                "powercap",
                                                "nodes"};
    fields_.check_keys(power, known, "power");
    if (auto text = fields_.text(power, "manager")) manager = *std::move(text);
    read_programs(power, options.programs);
    read_user(power, options.user);
    read_time(power, "program_timeout", options.program_timeout);
    read_time(power, "suspend_timeout", options.suspend_timeout);
    read_time(power, "resume_timeout", options.resume_timeout);
    if (const auto rate = fields_.number(power, "suspend_rate", {0, kMostRate}))
      options.suspend_rate = *rate;
    if (const auto rate = fields_.number(power, "resume_rate", {0, kMostRate}))
      options.resume_rate = *rate;
    if (auto text = fields_.text(power, "nvml_library")) options.nvml_library = *std::move(text);
    if (auto text = fields_.text(power, "powercap")) options.powercap = *std::move(text);
    read_excluded(power, options);
    read_nodes(power, options);
  }

 private:
  void read_programs(const YAML::Node& map, NodePrograms& programs) {
    read_program(map, "suspend_program", programs.suspend);
    read_program(map, "resume_program", programs.resume);
    read_program(map, "resume_fail_program", programs.resume_fail);
    read_program(map, "check_program", programs.check);
    if (programs.suspend.empty() != programs.resume.empty())
      fields_.wrong(map.Mark(),
                    "suspend_program and resume_program are both needed: what goes off must come "
                    "back");
  }

  void read_program(const YAML::Node& map, const char* key, std::string& into) {
    auto text = fields_.text(map, key);
    if (!text) return;
    if (!text->starts_with('/'))
      return fields_.wrong(YamlFields::child(map, key).Mark(),
                           fmt::format("{} is the whole path of a program, without arguments, not "
                                       "'{}'",
                                       key, *text));
    into = *std::move(text);
  }

  void read_user(const YAML::Node& map, std::string& into) {
    auto text = fields_.text(map, "user");
    if (!text) return;
    const auto mark = YamlFields::child(map, "user").Mark();
    const passwd* entry = ::getpwnam(text->c_str());
    if (entry == nullptr) return fields_.wrong(mark, fmt::format("there is no user '{}'", *text));
    if (entry->pw_uid == ::geteuid()) return;  // we are that user
    if (::geteuid() != 0) return fields_.wrong(mark, "only root can run programs as another user");
    into = *std::move(text);
  }

  /// As Slurm's: a bare number is seconds.
  void read_time(const YAML::Node& map, const char* key, Duration& into) {
    const auto text = fields_.text(map, key);
    if (!text) return;
    const bool is_bare = text->find_first_not_of("0123456789") == std::string::npos;
    const auto seconds =
        *text == "0" ? Result<std::int64_t>{0} : parse_time_limit(is_bare ? *text + "s" : *text);
    if (!seconds || *text == "infinite")
      return fields_.wrong(YamlFields::child(map, key).Mark(),
                           fmt::format("{} is a time (60, 60s, 5m), not '{}'", key, *text));
    into = std::chrono::seconds{*seconds};
  }

  void read_excluded(const YAML::Node& map, PowerOptions& options) {
    const YAML::Node names = YamlFields::child(map, "suspend_exc_nodes");
    if (!names.IsDefined()) return;
    if (names.IsScalar()) {
      options.stay_on.insert(names.Scalar());
      return;
    }
    if (!names.IsSequence())
      return fields_.wrong(names.Mark(), "suspend_exc_nodes is a list of nodes");
    for (const auto& name : names) {
      if (name.IsScalar())
        options.stay_on.insert(name.Scalar());
      else
        fields_.wrong(name.Mark(), "a node is a name");
    }
  }

  void read_nodes(const YAML::Node& map, PowerOptions& options) {
    const YAML::Node nodes = YamlFields::child(map, "nodes");
    if (!nodes.IsDefined()) return;
    if (!nodes.IsMap()) return fields_.wrong(nodes.Mark(), "nodes has 'name: {programs}' lines");
    static const std::vector<std::string> known{"suspend_program", "resume_program",
                                                "resume_fail_program", "check_program"};
    for (const auto& entry : nodes) {
      if (!entry.first.IsScalar() || !entry.second.IsMap()) {
        fields_.wrong(entry.second.Mark(), "a node has programs");
        continue;
      }
      fields_.check_keys(entry.second, known, "a node");
      NodePrograms& programs = options.nodes[entry.first.Scalar()];
      read_program(entry.second, "suspend_program", programs.suspend);
      read_program(entry.second, "resume_program", programs.resume);
      read_program(entry.second, "resume_fail_program", programs.resume_fail);
      read_program(entry.second, "check_program", programs.check);
    }
  }

  YamlFields& fields_;
};

}  // namespace

void read_power(YamlFields& fields, const YAML::Node& power, std::string& manager,
                PowerOptions& options) {
  if (power.IsDefined()) PowerReader{fields}.read(power, manager, options);
}

}  // namespace berth
