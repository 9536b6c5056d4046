#include "daemon/config.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>

#include <fmt/format.h>
#include <yaml-cpp/yaml.h>

#include "base/digest.h"
#include "base/file.h"
#include "daemon/container_config.h"
#include "daemon/power_config.h"
#include "exec/discover.h"
#include "model/yaml_fields.h"
#include "model/yaml_guard.h"
#include "perf/profile_file.h"

namespace berth {

namespace {

constexpr YamlKind kKind{.holds = "configuration", .example = "policy: easy"};
constexpr double kMost = 1e9;
constexpr double kMostProfileError = 10;      // beyond, a belief is off by factors of millions
constexpr std::int64_t kLongestPoll = 3'600;  // seconds
constexpr Duration kLongestCost = std::chrono::hours{24};

class ConfigReader {
 public:
  explicit ConfigReader(const std::string& file) : file_(file), fields_(file_) {}

  Result<ServeConfig> read(const YAML::Node& root) {
    if (!root.IsMap()) {
      fields_.wrong(root.Mark(), "a configuration is a list of 'key: value'");
      BERTH_TRY_VOID(fields_.verdict());
    }
    static const std::vector<std::string> known{"engine",
                                                "advise",
                                                "slurm",
                                                "state_dir",
                                                "run_dir",
                                                "socket",
                                                "listen",
                                                "tls",
                                                "plain_network",
                                                "cluster",
                                                "devices",
                                                "policy",
                                                "set",
                                                "placement",
                                                "estimator",
                                                "cpu",
                                                "effects",
                                                "profiles",
                                                "profile_error",
                                                "start_cost",
                                                "restart_cost",
                                                "preempt_cost",
                                                "migrate_cost",
                                                "power",
                                                "containers",
                                                "min_run",
                                                "training_answer",
                                                "queues",
                                                "admins",
                                                "operators",
                                                "groups",
                                                "users",
                                                "max_jobs",
                                                "max_jobs_per_user",
                                                "half_life",
                                                "log_level",
                                                "log_format",
                                                "max_user_priority",
                                                "max_requests_per_second"};
    fields_.check_keys(root, known, "the configuration");
    read_engine(root);
    read_places(root);
    read_scheduling(root);
    read_limits(root);
    BERTH_TRY_VOID(fields_.verdict());
    return config_;
  }

 private:
  void take(const YAML::Node& map, std::string_view key, std::string& into) {
    if (auto text = fields_.text(map, key)) into = *std::move(text);
  }
  template <class T>
  void take_whole(const YAML::Node& map, std::string_view key, T& into, double low = 0) {
    if (const auto number = fields_.number(map, key, {low, kMost})) into = static_cast<T>(*number);
  }

  void read_engine(const YAML::Node& root) {
    take(root, "engine", config_.engine);
    read_flag(root, "advise", config_.advise);
    const YAML::Node slurm = YamlFields::child(root, "slurm");
    if (!slurm.IsDefined()) return;
    if (!slurm.IsMap()) return fields_.wrong(slurm.Mark(), "slurm has commands and poll");
    static const std::vector<std::string> known{"commands", "poll"};
    fields_.check_keys(slurm, known, "slurm");
    take(slurm, "commands", config_.slurm.commands);
    read_span(slurm, "poll", config_.slurm.poll);
    if (config_.slurm.poll < 1 || config_.slurm.poll > kLongestPoll)
      fields_.wrong(slurm.Mark(), fmt::format("poll is from 1s to {}s", kLongestPoll));
  }

  void read_places(const YAML::Node& root) {
    take(root, "state_dir", config_.state_dir);
    take(root, "run_dir", config_.run_dir);
    take(root, "socket", config_.socket);
    take(root, "listen", config_.listen);
    take(root, "cluster", config_.cluster);
    take(root, "log_level", config_.log_level);
    take(root, "log_format", config_.log_format);
    if (const auto devices = fields_.whole(root, "devices", {1, kMaxGpusPerNode}))
      config_.devices = *devices;
    read_flag(root, "plain_network", config_.plain_network);
    const YAML::Node tls = YamlFields::child(root, "tls");
    if (!tls.IsDefined()) return;
    if (!tls.IsMap()) return fields_.wrong(tls.Mark(), "tls has a certificate and a key");
    static const std::vector<std::string> known{"certificate", "key"};
    fields_.check_keys(tls, known, "tls");
    take(tls, "certificate", config_.tls_certificate);
    take(tls, "key", config_.tls_key);
  }

  void read_flag(const YAML::Node& map, std::string_view key, bool& into) {
    const auto text = fields_.text(map, key);
    if (!text) return;
    if (*text != "true" && *text != "false")
      return fields_.wrong(YamlFields::child(map, key).Mark(),
                           fmt::format("{} is true or false", key));
    into = *text == "true";
  }

  void read_scheduling(const YAML::Node& root) {
    SchedulerOptions& options = config_.scheduling;
    take(root, "policy", options.policy.policy);
    take(root, "placement", options.placement);
    take(root, "estimator", options.estimator);
    take(root, "cpu", options.cpu);
    read_span(root, "min_run", options.min_run);
    read_span(root, "training_answer", options.training_answer);
    read_beliefs(root, options.beliefs);
    read_power(fields_, YamlFields::child(root, "power"), options.power, config_.power);
    read_containers(fields_, YamlFields::child(root, "containers"), config_.containers);
    const YAML::Node set = YamlFields::child(root, "set");
    if (!set.IsDefined()) return;
    if (!set.IsMap()) return fields_.wrong(set.Mark(), "set has 'parameter: value' lines");
    for (const auto& entry : set) {
      if (!entry.second.IsScalar()) {
        fields_.wrong(entry.second.Mark(), "a parameter has one value");
        continue;
      }
      options.policy.settings.emplace_back(entry.first.Scalar(), entry.second.Scalar());
    }
  }

  void read_beliefs(const YAML::Node& root, BeliefOptions& beliefs) {
    read_effects(root, beliefs.effects);
    read_profiles(root, beliefs);
    if (const auto error = fields_.number(root, "profile_error", {0, kMostProfileError}))
      beliefs.profile_error = *error;
    read_cost(root, "start_cost", beliefs.costs.start);
    read_cost(root, "restart_cost", beliefs.costs.resume);
    read_cost(root, "preempt_cost", beliefs.costs.preempt);
    beliefs.costs.migrate = beliefs.costs.resume;
    read_cost(root, "migrate_cost", beliefs.costs.migrate);
  }

  /// "sharing,device" or [sharing, device].
  void read_effects(const YAML::Node& root, std::string& into) {
    const YAML::Node node = YamlFields::child(root, "effects");
    if (!node.IsDefined()) return;
    std::string text;
    if (node.IsSequence()) {
      for (const auto& name : node) {
        if (!name.IsScalar()) return fields_.wrong(name.Mark(), "an effect is a name");
        text += (text.empty() ? "" : ",") + name.Scalar();
      }
      if (text.empty()) text = "none";
    } else if (node.IsScalar()) {
      text = node.Scalar();
    } else {
      return fields_.wrong(node.Mark(), "effects is auto, none, all, or a list of names");
    }
    if (text != "auto") {
      if (const auto effects = parse_effects(text); !effects)
        return fields_.wrong(node.Mark(), without_option(effects.error().text()));
    }
    into = std::move(text);
  }
  /// The message of the command line's option of the same name.
  static std::string without_option(std::string text) {
    return text.starts_with("--") ? text.substr(2) : text;
  }

  /// One file or a list; a later one replaces profiles of the same name. A relative path starts at
  /// the folder of the configuration.
  void read_profiles(const YAML::Node& root, BeliefOptions& into) {
    const YAML::Node node = YamlFields::child(root, "profiles");
    if (!node.IsDefined()) return;
    if (!node.IsScalar() && !node.IsSequence())
      return fields_.wrong(node.Mark(), "profiles is a file or a list of files");
    ProfileSet all = built_in_profiles();
    Digest digest;
    const auto take_file = [&](const YAML::Node& name) {
      if (!name.IsScalar() || name.Scalar().empty())
        return fields_.wrong(name.Mark(), "profiles is a file or a list of files");
      const std::string path =
          (std::filesystem::path(file_).parent_path() / name.Scalar()).string();
      const auto text = read_file(path);
      if (!text) return fields_.wrong(name.Mark(), text.error().text());
      digest.add(std::string_view{*text});
      auto more = parse_profiles(*text, path, all);
      if (!more) {
        for (const std::string& message : more.error().messages)
          fields_.wrong(name.Mark(), message);
        return;
      }
      all = *std::move(more);
    };
    if (node.IsScalar()) {
      take_file(node);
    } else {
      for (const auto& name : node) take_file(name);
    }
    into.profiles = std::make_shared<const ProfileSet>(std::move(all));
    into.profiles_digest = digest.hex();
  }

  /// Seconds, or a time with a unit, as the simulator's options take it.
  void read_cost(const YAML::Node& root, std::string_view key, Duration& into) {
    const auto text = fields_.text(root, key);
    if (!text) return;
    const auto time = parse_duration(*text);
    const YAML::Mark mark = YamlFields::child(root, key).Mark();
    if (!time) return fields_.wrong(mark, fmt::format("{}: {}", key, time.error().text()));
    if (*time > kLongestCost)
      return fields_.wrong(mark, fmt::format("{} is at most a day, got '{}'", key, *text));
    into = *time;
  }

  void read_limits(const YAML::Node& root) {
    take_whole(root, "max_jobs", config_.admission.max_jobs, 1);
    take_whole(root, "max_jobs_per_user", config_.admission.max_jobs_per_user, 1);
    take_whole(root, "max_requests_per_second", config_.max_requests_per_second);
    if (const auto priority = fields_.whole(root, "max_user_priority", {-kMost, kMost}))
      config_.admission.max_user_priority = *priority;
    take_whole(root, "half_life", config_.service.fair_share_half_life, 60);
    config_.scheduling.half_life = config_.service.fair_share_half_life;
    read_names(root, "admins", config_.service.admins);
    read_names(root, "operators", config_.service.operators);
    read_group_sources(root);
    read_users(root);
    const YAML::Node queues = YamlFields::child(root, "queues");
    if (!queues.IsDefined()) return;
    if (!queues.IsSequence() || queues.size() == 0)
      return fields_.wrong(queues.Mark(), "queues is a list; the first one is the default");
    config_.admission.queues.clear();
    for (const auto& node : queues) read_queue(node);
  }

  void read_queue(const YAML::Node& node) {
    if (!node.IsMap()) return fields_.wrong(node.Mark(), "a queue has a name and limits");
    static const std::vector<std::string> known{"name",     "default_time_limit", "max_time_limit",
                                                "max_gpus", "priority",           "idle_limit"};
    fields_.check_keys(node, known, "a queue");
    QueueOptions queue;
    if (const auto name = fields_.name(node, "name")) {
      queue.name = *name;
    } else {
      fields_.wrong(node.Mark(), "a queue has a name");
    }
    read_limit(node, "default_time_limit", queue.default_time_limit);
    read_limit(node, "max_time_limit", queue.max_time_limit);
    read_span(node, "idle_limit", queue.idle_limit);
    take_whole(node, "max_gpus", queue.max_gpus);
    if (const auto priority = fields_.whole(node, "priority", {-kMost, kMost}))
      queue.priority = *priority;
    config_.admission.queues.push_back(std::move(queue));
  }

  void read_limit(const YAML::Node& map, std::string_view key, std::int64_t& into) {
    const auto text = fields_.text(map, key);
    if (!text) return;
    const auto seconds = parse_time_limit(*text);
    if (!seconds) return fields_.wrong(YamlFields::child(map, key).Mark(), seconds.error().text());
    into = *seconds;
  }

  /// Where it is said who belongs to which group: [unix, table], [] or any.
  void read_group_sources(const YAML::Node& root) {
    const YAML::Node sources = YamlFields::child(root, "groups");
    if (!sources.IsDefined()) return;
    GroupRules& rules = config_.service.identity.groups;
    rules.from_unix = rules.from_table = false;
    const auto take_source = [&](const YAML::Node& source) {
      const std::string name = source.IsScalar() ? source.Scalar() : "";
      if (name == "unix") {
        rules.from_unix = true;
      } else if (name == "table") {
        rules.from_table = true;
      } else if (name == "any") {
        rules.any = true;
      } else {
        fields_.wrong(source.Mark(), "groups is a list of unix, table and any");
      }
    };
    if (!sources.IsSequence()) return take_source(sources);
    for (const auto& source : sources) take_source(source);
  }

  void read_users(const YAML::Node& root) {
    const YAML::Node users = YamlFields::child(root, "users");
    if (!users.IsDefined()) return;
    if (!users.IsMap())
      return fields_.wrong(users.Mark(), "users has 'name: {groups: [...]}' lines");
    static const std::vector<std::string> known{"groups"};
    for (const auto& entry : users) {
      if (!entry.first.IsScalar() || !entry.second.IsMap()) {
        fields_.wrong(entry.second.Mark(), "a user has groups: [...]");
        continue;
      }
      fields_.check_keys(entry.second, known, "a user");
      std::vector<std::string>& groups =
          config_.service.identity.groups.users[entry.first.Scalar()];
      const YAML::Node names = YamlFields::child(entry.second, "groups");
      if (!names.IsDefined()) continue;
      if (!names.IsSequence()) {
        fields_.wrong(names.Mark(), "groups is a list of names; the first is the default");
        continue;
      }
      for (const auto& name : names) {
        if (name.IsScalar() && !name.Scalar().empty()) {
          groups.push_back(name.Scalar());
        } else {
          fields_.wrong(name.Mark(), "a group is a name");
        }
      }
    }
  }

  /// A bare number would mean minutes in one place of this file and seconds in another.
  void read_span(const YAML::Node& root, const char* key, std::int64_t& into) {
    const auto text = fields_.text(root, key);
    if (!text) return;
    if (text->front() == '0' && text->find_first_of("123456789:") == std::string::npos) {
      into = 0;  // "0", "0s"
      return;
    }
    const bool has_unit = text->find_first_not_of("0123456789.") != std::string::npos;
    const auto seconds = parse_time_limit(*text);
    if (!has_unit || !seconds || *seconds == 0)
      return fields_.wrong(YamlFields::child(root, key).Mark(),
                           fmt::format("{} is a time with a unit (60s, 5m), or 0 for none, "
                                       "not '{}'",
                                       key, *text));
    into = *seconds;
  }

  void read_names(const YAML::Node& root, std::string_view key, std::set<std::string>& into) {
    const YAML::Node names = YamlFields::child(root, key);
    if (!names.IsDefined()) return;
    if (!names.IsSequence())
      return fields_.wrong(names.Mark(), fmt::format("{} is a list of users", key));
    for (const auto& name : names) {
      if (name.IsScalar()) {
        into.insert(name.Scalar());
      } else {
        fields_.wrong(name.Mark(), "a user is a name");
      }
    }
  }

  std::string file_;
  YamlFields fields_;
  ServeConfig config_;
};

std::string from_environment(const char* name, const std::string& otherwise) {
  const char* value = std::getenv(name);
  return value != nullptr && *value != '\0' ? value : otherwise;
}

/// The machine's cores as devices: a place for jobs where there is no GPU.
void make_cpu_devices(Cluster& cluster, std::optional<std::int32_t> devices) {
  Node& node = cluster.nodes.front();
  const auto cores = static_cast<std::int32_t>(std::max<std::int64_t>(1, node.cpus_milli / 1000));
  const std::int32_t count = devices.value_or(std::max(1, cores / 2));
  node.gpus = std::min(count, kMaxGpusPerNode);
  node.shape = NodeShape{};
  node.nvlink.reset();
  cluster.pools[node.pool.value] = device_type_for("cpu", 0);
  cluster.pools[node.pool.value].name = "cpu";
}

}  // namespace

Result<ServeConfig> parse_serve_config(std::string_view text, const std::string& name) {
  try {
    const std::string owned(text);
    ServeConfig empty;
    if (owned.find_first_not_of(" \t\r\n") == std::string::npos) return empty;
    BERTH_TRY_VOID(check_yaml_shape(owned, name, kKind));
    return ConfigReader(name).read(YAML::Load(owned));
  } catch (const YAML::Exception& problem) {
    return fail(fmt::format("{}: {} (YAML: keys are 'key: value', lists begin with '- ', no tabs)",
                            yaml_place(name, problem.mark), problem.msg));
  }
}

Result<ServeConfig> load_serve_config(const std::string& path) {
  BERTH_TRY(const std::string text, read_file(path));
  return parse_serve_config(text, path);
}

DefaultDirs default_dirs() {
  if (geteuid() == 0) return {"/var/lib/berth", "/run/berth/jobs", "/run/berth/berth.sock"};
  const std::string home = from_environment("HOME", "/tmp");
  const std::string run =
      from_environment("XDG_RUNTIME_DIR", fmt::format("/tmp/berth-{}", geteuid())) + "/berth";
  return {from_environment("XDG_STATE_HOME", home + "/.local/state") + "/berth", run + "/jobs",
          run + "/berth.sock"};
}

void fill_defaults(ServeConfig& config) {
  const DefaultDirs dirs = default_dirs();
  if (config.run_dir.empty())
    config.run_dir = config.state_dir.empty() ? dirs.run : config.state_dir + "/jobs";
  if (config.socket.empty())
    config.socket = config.state_dir.empty() ? dirs.socket : config.state_dir + "/berth.sock";
  if (config.state_dir.empty()) config.state_dir = dirs.state;
}

Result<Cluster> cluster_of(const ServeConfig& config) {
  if (!config.cluster.empty()) return load_cluster(config.cluster);
  BERTH_TRY(Cluster cluster, discover_cluster());
  if (cluster.total_gpus() == 0) make_cpu_devices(cluster, config.devices);
  return cluster;
}

}  // namespace berth
