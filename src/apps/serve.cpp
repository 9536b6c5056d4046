#include "apps/serve.h"

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <thread>

#include <fmt/format.h>

#include "api/server.h"
#include "apps/commands.h"
#include "apps/serve_config.h"
#include "apps/serve_slurm.h"
#include "daemon/daemon.h"
#include "exec/cgroup.h"

namespace berth {

namespace {

/// Made with this mode where it is missing. One that is there is somebody's, perhaps everybody's,
/// and stays as it is.
Result<void> make_directory(const std::filesystem::path& path, mode_t mode) {
  std::error_code error;
  std::filesystem::create_directories(path.parent_path(), error);
  if (error) return fail(fmt::format("{}: {}", path.parent_path().string(), error.message()));
  const bool is_made = mkdir(path.c_str(), mode) == 0;
  if (!is_made && errno != EEXIST)
    return fail(fmt::format("{}: {}", path.string(), std::strerror(errno)));
  if (is_made && chmod(path.c_str(), mode) != 0)  // whatever our mask takes away
    return fail(fmt::format("{}: {}", path.string(), std::strerror(errno)));
  return {};
}

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

/// One datagram for whoever started us, if it asked for it.
void notify(std::string_view text) {
  const char* path = std::getenv("NOTIFY_SOCKET");
  if (path == nullptr) return;
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::size_t length = std::strlen(path);
  if (length == 0 || length >= sizeof address.sun_path) return;
  std::memcpy(address.sun_path, path, length);
  if (path[0] == '@') address.sun_path[0] = '\0';
  const int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return;
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + length);
  static_cast<void>(sendto(fd, text.data(), text.size(), MSG_NOSIGNAL,
                           reinterpret_cast<const sockaddr*>(&address), size));
  close(fd);
}

/// Waits for signals in a thread of its own: nothing is done inside a handler.
class SignalThread {
 public:
  SignalThread(const sigset_t& signals, std::function<void(int)> heard)
      : thread_([signals, heard = std::move(heard)] {
          for (int number = 0; sigwait(&signals, &number) == 0;) {
            if (number == SIGUSR2) return;  // the end, from our destructor
            heard(number);
          }
        }) {}
  ~SignalThread() {
    pthread_kill(thread_.native_handle(), SIGUSR2);
    thread_.join();
  }
  SignalThread(const SignalThread&) = delete;
  SignalThread& operator=(const SignalThread&) = delete;

 private:
  std::thread thread_;
};

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

  sigset_t signals;
  sigemptyset(&signals);
  for (const int number : {SIGTERM, SIGINT, SIGHUP, SIGUSR2}) sigaddset(&signals, number);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  signal(SIGPIPE, SIG_IGN);
  signal(SIGXFSZ, SIG_IGN);  // a limit of files is a write that fails

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
  if (options.engine == "slurm") decide_for_slurm(options, parts);
  BERTH_TRY(const auto daemon, Daemon::open(std::move(parts), log));
  checked.server.log = &log;
  api::Server server{daemon->service(), checked.server};
  server.start(std::move(listening));
  BERTH_LOG(log, Info, "serve", "ready", {"socket", bound.unix_path}, {"host", bound.host},
            {"port", bound.port}, {"policy", config.scheduling.policy.policy},
            {"gpus", cluster.total_gpus()});
  const SignalThread listener{signals, [&](int number) {
                                if (number == SIGHUP) return reload(options, *daemon, log);
                                notify("STOPPING=1");
                                daemon->stop();
                              }};
  notify("READY=1");
  auto ended = daemon->run();
  server.stop();
  BERTH_LOG(log, Info, "serve", "stopped; running jobs go on");
  return ended;
}

}  // namespace

Exit execute(const ServeOptions& options) {
  const auto config = configuration(options);
  if (!config) return complain(Exit::Misuse, config.error());
  const auto cluster = options.engine == "slurm" ? cluster_of_slurm(options) : cluster_of(*config);
  if (!cluster) return complain(Exit::Misuse, cluster.error());
  if (const auto served = serve(options, *config, *cluster); !served)
    return complain(Exit::Failure, served.error());
  return Exit::Success;
}

}  // namespace berth
