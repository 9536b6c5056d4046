#include "apps/serve.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include <fmt/format.h>

#include "api/server.h"
#include "apps/commands.h"
#include "apps/serve_advice.h"
#include "apps/serve_config.h"
#include "apps/serve_slurm.h"
#include "apps/serving.h"
#include "daemon/daemon.h"
#include "exec/cgroup.h"

namespace berth {

namespace {

/// The journal knows everybody's secrets. A folder with other things in it may be anybody's, /tmp
/// for example: its mode is not ours to change. Where 0.1 let other users through to the socket and
/// the jobs inside, they still come through, and see nothing else.
Result<void> close_to_others(const ServeConfig& config) {
  namespace fs = std::filesystem;
  std::error_code ignored;
  const bool is_ours = fs::exists(config.state_dir + "/berth.db") || fs::is_empty(config.state_dir);
  if (!is_ours) return {};
  const std::string inside = config.state_dir + "/";
  const bool leads_on = config.socket.starts_with(inside) || config.run_dir.starts_with(inside);
  const auto mode = fs::status(config.state_dir, ignored).permissions();
  const bool others_pass = geteuid() == 0 && leads_on && !fs::is_empty(config.state_dir) &&
                           (mode & fs::perms::others_exec) != fs::perms::none;
  if (chmod(config.state_dir.c_str(), others_pass ? 0711 : 0700) == 0) return {};
  return fail(fmt::format("{}: {}", config.state_dir, std::strerror(errno)));
}

Result<void> make_directories(const ServeConfig& config) {
  BERTH_TRY_VOID(make_directory(config.state_dir, 0700));
  BERTH_TRY_VOID(close_to_others(config));
  BERTH_TRY_VOID(make_directory(std::filesystem::path(config.run_dir).parent_path(), 0755));
  return make_directory(std::filesystem::path(config.socket).parent_path(), 0755);
}

/// Root serves everybody, unless nobody gets there.
void warn_of_closed_places(const ServeConfig& config, Logger& log) {
  struct stat state {};
  if (geteuid() != 0 || stat(config.state_dir.c_str(), &state) != 0 ||
      (state.st_mode & S_IXOTH) != 0)
    return;
  const std::string closed = config.state_dir + "/";
  for (const std::string& path : {config.socket, config.run_dir}) {
    if (path.starts_with(closed))
      BERTH_LOG(log, Warn, "serve", "lies in state_dir, which only root can enter", {"path", path},
                {"remedy", "name socket and run_dir elsewhere in the configuration"});
  }
}

void reload(const ServeOptions& options, Daemon& daemon, Logger& log) {
  notify("RELOADING=1");
  const auto config = configuration(options);
  if (config) {
    if (const auto level = log_level_from(config->log_level)) log.set_level(*level);
    BERTH_LOG(log, Info, "serve", "configuration read again");
    daemon.set_options(config->scheduling);
  } else {
    BERTH_LOG(log, Error, "serve", "the configuration is wrong and was left as it is",
              {"why", config.error().text()});
  }
  notify("READY=1");
}

void print_cluster(const ServeConfig& config, const Cluster& cluster) {
  fmt::print("policy {}, state in {}, socket {}\n", config.scheduling.policy.policy,
             config.state_dir, config.socket);
  const BeliefOptions& beliefs = config.scheduling.beliefs;
  if (const auto effects = effects_of(beliefs, cluster, config.scheduling.cpu != "off")) {
    const std::size_t profiles =
        beliefs.profiles ? beliefs.profiles->size() : built_in_profiles().size();
    fmt::print("effects {}{}, {} profiles", to_string(*effects),
               beliefs.effects == "auto" ? " (auto)" : "", profiles - 1);  // without the default
    if (beliefs.profile_error > 0) fmt::print(", wrong by {}", beliefs.profile_error);
    const SwitchCosts& costs = beliefs.costs;
    fmt::print("; costs: start {} s, restart {} s, preempt {} s, migrate {} s\n",
               to_seconds(costs.start), to_seconds(costs.resume), to_seconds(costs.preempt),
               to_seconds(costs.migrate));
  }
  for (const Node& node : cluster.nodes) {
    fmt::print("{}: {} x {}, {} cores, {} MiB\n", node.name, node.gpus,
               cluster.pools[node.pool.value].name, node.cpus_milli / 1000, node.memory_mib);
  }
}

Result<void> serve(const ServeOptions& options, const ServeConfig& config, const Cluster& cluster) {
  BERTH_TRY(CheckedServing checked, check_serving(config, cluster));
  if (options.check) {
    for (const std::string& warning : checked.warnings)
      fmt::print(stderr, "berth: warning: {}\n", warning);
    print_cluster(config, cluster);
    return {};
  }
  Logger log{{.level = checked.level, .format = checked.format}};
  for (const std::string& warning : checked.warnings)
    BERTH_LOG(log, Warn, "serve", "unwise", {"what", warning});
  BERTH_TRY_VOID(make_directories(config));
  warn_of_closed_places(config, log);

  block_signals();
  // Before a new life begins: where somebody else listens there is nothing to begin.
  BERTH_TRY(api::Listening listening, api::Listening::open(checked.server));
  const api::Bound bound = listening.bound();
  DaemonOptions parts;
  parts.cluster = cluster;
  parts.state_dir = config.state_dir;
  parts.run_dir = config.run_dir;
  parts.training_socket =
      (std::filesystem::absolute(config.run_dir).parent_path() / "training.sock").string();
  parts.cgroup_roots = find_cgroup_roots();
  parts.live = config.scheduling;
  parts.admission = config.admission;
  parts.service = config.service;
  parts.power = config.power;
  parts.containers = config.containers;
  parts.service.version = BERTH_VERSION;
  if (config.engine == "slurm") decide_for_slurm(config.slurm, parts);
  BERTH_TRY(const auto daemon, Daemon::open(std::move(parts), log));
  checked.server.log = &log;
  BERTH_LOG(log, Info, "serve", "ready", {"socket", bound.unix_path}, {"host", bound.host},
            {"port", bound.port}, {"policy", config.scheduling.policy.policy},
            {"gpus", cluster.total_gpus()});
  auto ended = serve_until_stopped(std::move(listening), checked.server,
                                   {.service = daemon->service(),
                                    .run = [&] { return daemon->run(); },
                                    .stop = [&] { daemon->stop(); },
                                    .reload = [&] { reload(options, *daemon, log); }});
  BERTH_LOG(log, Info, "serve", "stopped; running jobs go on");
  return ended;
}

}  // namespace

Exit execute(const ServeOptions& options) {
  const auto config = configuration(options);
  if (!config) return complain(Exit::Misuse, config.error());
  if (config->advise) {
    if (const auto served = serve_advice(options, *config); !served)
      return complain(Exit::Failure, served.error());
    return Exit::Success;
  }
  const auto cluster =
      config->engine == "slurm" ? cluster_of_slurm(config->slurm) : cluster_of(*config);
  if (!cluster) return complain(Exit::Misuse, cluster.error());
  if (const auto served = serve(options, *config, *cluster); !served)
    return complain(Exit::Failure, served.error());
  return Exit::Success;
}

}  // namespace berth
