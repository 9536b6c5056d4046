#include "apps/serve_config.h"

#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include <fmt/format.h>

#include "daemon/live_abilities.h"
#include "run/parts.h"

namespace berth {

namespace {

/// The parts of a scheduler are made as a simulated run makes them, and thrown away: every engine
/// of the daemon makes its own.
Result<void> check_scheduling(const SchedulerOptions& options) {
  BERTH_TRY_VOID(make_parts({.policy = options.policy.policy,
                             .settings = options.policy.settings,
                             .placement = options.placement,
                             .estimator = live_estimator(options.estimator, options.policy),
                             .cpu = options.cpu,
                             .power = options.power,
                             .seed = options.seed}));
  return {};
}

Result<api::ServerOptions> server_options(const ServeConfig& config) {
  api::ServerOptions options;
  options.unix_path = std::filesystem::absolute(config.socket).string();
  if (!config.listen.empty() && config.listen != "none") {
    const std::size_t colon = config.listen.rfind(':');
    const std::string host =
        colon == std::string::npos ? "127.0.0.1" : config.listen.substr(0, colon);
    const std::string port =
        colon == std::string::npos ? config.listen : config.listen.substr(colon + 1);
    char* end = nullptr;
    const long number = std::strtol(port.c_str(), &end, 10);
    if (port.empty() || *end != '\0' || number < 0 || number > 65535)
      return fail(fmt::format("listen: '{}' is not HOST:PORT", config.listen));
    options.tcp = api::TcpAddress{.host = host, .port = static_cast<std::uint16_t>(number)};
  }
  if (config.tls_certificate.empty() != config.tls_key.empty())
    return fail("tls: a certificate and its key are both needed");
  if (!config.tls_certificate.empty())
    options.tls =
        api::TlsFiles{.certificate_chain = config.tls_certificate, .private_key = config.tls_key};
  options.allow_plain_network = config.plain_network;
  options.api.requests_per_second = config.max_requests_per_second;
  options.api.burst = 2 * config.max_requests_per_second;
  return options;
}

Result<void> check_directory(const std::string& path) {
  std::filesystem::path there = path;
  std::error_code ignored;
  while (!std::filesystem::exists(there, ignored) && there.has_relative_path())
    there = there.parent_path();
  if (!std::filesystem::is_directory(there, ignored))
    return fail(fmt::format("{}: is no directory", there.string()));
  if (access(there.c_str(), W_OK | X_OK) != 0)
    return fail(fmt::format("{}: {}", there.string(), std::strerror(errno)));
  return {};
}

/// One machine or a Slurm: never both in one scheduler.
Result<void> check_engine(const ServeConfig& config) {
  if (config.engine != "machine" && config.engine != "slurm")
    return fail(fmt::format("engine: '{}' is neither machine nor slurm", config.engine));
  if (config.engine == "machine") {
    if (config.advise) return fail("advise: goes with engine: slurm (--engine slurm --advise)");
    return {};
  }
  const bool is_of_a_machine = !config.cluster.empty() || config.devices.has_value() ||
                               !config.power.programs.suspend.empty();
  if (is_of_a_machine)
    return fail(
        "engine: slurm goes with no cluster, devices or power programs of one machine: one "
        "scheduler serves a machine or a Slurm, not both");
  if (!config.advise && std::getenv("BERTH_SLURM_TRIAL") == nullptr)
    return fail(
        "engine: slurm needs --advise: that Berth decides for a Slurm is not released yet, it has "
        "passed only a part of its tests on a real one (BERTH_SLURM_TRIAL=1 in the environment "
        "tries it on a cluster of your own)");
  return {};
}

}  // namespace

Result<ServeConfig> configuration(const ServeOptions& options) {
  ServeConfig config;
  if (!options.config.empty()) {
    BERTH_TRY(config, load_serve_config(options.config));
  }
  const auto take = [](const std::optional<std::string>& said, std::string& into) {
    if (said) into = *said;
  };
  take(options.cluster, config.cluster);
  take(options.state_dir, config.state_dir);
  take(options.socket, config.socket);
  take(options.listen, config.listen);
  take(options.placement, config.scheduling.placement);
  take(options.estimator, config.scheduling.estimator);
  take(options.cpu, config.scheduling.cpu);
  take(options.power, config.scheduling.power);
  take(options.log_level, config.log_level);
  take(options.log_format, config.log_format);
  take(options.engine, config.engine);
  take(options.slurm_commands, config.slurm.commands);
  if (options.advise) config.advise = true;
  if (options.poll) config.slurm.poll = *options.poll;
  if (options.devices) config.devices = options.devices;
  // Slurm gives a job the same number of GPUs on each of its nodes.
  const bool decides_for_slurm = config.engine == "slurm" && !config.advise;
  if (decides_for_slurm && !options.placement && options.config.empty())
    config.scheduling.placement = "consolidated";
  if (options.policy) config.scheduling.policy = {.policy = *options.policy, .settings = {}};
  for (const auto& setting : options.settings) config.scheduling.policy.settings.push_back(setting);
  fill_defaults(config);
  for (std::string* path : {&config.state_dir, &config.run_dir, &config.socket})
    *path = std::filesystem::absolute(*path).lexically_normal().string();
  BERTH_TRY_VOID(check_engine(config));
  BERTH_TRY_VOID(check_scheduling(config.scheduling));
  if (config.scheduling.estimator.starts_with("oracle"))
    return fail("estimator: an oracle knows how long jobs run, and only a simulation has one");
  return config;
}

Result<CheckedServing> check_front(const ServeConfig& config) {
  CheckedServing checked;
  const auto level = log_level_from(config.log_level);
  const auto format = log_format_from(config.log_format);
  if (!level)
    return fail(
        fmt::format("log_level: '{}' is none of debug, info, warn, error, off", config.log_level));
  if (!format)
    return fail(fmt::format("log_format: '{}' is neither text nor json", config.log_format));
  checked.level = *level;
  checked.format = *format;
  BERTH_TRY(checked.server, server_options(config));
  BERTH_TRY(checked.warnings, api::check(checked.server));
  BERTH_TRY_VOID(check_directory(std::filesystem::path(config.socket).parent_path().string()));
  return checked;
}

Result<CheckedServing> check_serving(const ServeConfig& config, Cluster cluster) {
  BERTH_TRY(CheckedServing checked, check_front(config));
  BERTH_TRY(const auto policy,
            make_policy(config.scheduling.policy.policy, config.scheduling.policy.settings));
  keep_on(cluster, config.power);
  const bool switches = can_switch_any(cluster);
  for (std::string& warning : warnings_of(config.power, cluster))
    checked.warnings.push_back(std::move(warning));
  if (config.scheduling.power != "off" && !switches)
    checked.warnings.push_back(
        fmt::format("power: {} has nothing to switch: no node has a suspend_program and a "
                    "resume_program, so all stay on",
                    config.scheduling.power));
  for (const AbilityNote& note : live_notes(policy->traits().uses(), true, switches)) {
    if (note.is_lost)
      checked.warnings.push_back(fmt::format("policy {} loses '{}' here: {}", policy->name(),
                                             to_string(note.ability), note.text));
  }
  BERTH_TRY_VOID(check_directory(config.state_dir));
  BERTH_TRY_VOID(check_directory(std::filesystem::path(config.run_dir).parent_path().string()));
  return checked;
}

}  // namespace berth
