#include "apps/serve_advice.h"

#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <future>

#include <fmt/format.h>

#include "advise/advise_service.h"
#include "api/server.h"
#include "apps/serve_config.h"
#include "apps/serving.h"
#include "base/split.h"
#include "slurm/text_link.h"

namespace berth {

namespace {

namespace fs = std::filesystem;

std::int64_t unix_micros() {
  return std::chrono::duration_cast<std::chrono::microseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

/// Where a command would be found; empty: nowhere.
std::string path_of(const std::string& command, const std::string& folder) {
  const char* path = std::getenv("PATH");
  const std::string folders = !folder.empty() ? folder : path != nullptr ? path : "";
  for (const std::string_view each : split(folders, folder.empty() ? ':' : '\0')) {
    const std::string candidate = fmt::format("{}/{}", each.empty() ? "." : each, command);
    if (access(candidate.c_str(), X_OK) == 0) return candidate;
  }
  return {};
}

/// Berth answers to the names of Slurm's commands too: it would ask itself.
bool is_berth(const std::string& path) {
  std::error_code ignored;
  return fs::equivalent(path, "/proc/self/exe", ignored);
}

Result<void> check_commands(const std::string& folder) {
  const std::string where = folder.empty() ? "on PATH" : "in " + folder;
  constexpr const char* kRemedy =
      "name the folder of Slurm's commands with --slurm-commands DIR, or slurm: {commands: DIR}";
  for (const std::string command : {"squeue", "scontrol"}) {
    const std::string path = path_of(command, folder);
    if (path.empty())
      return fail(
          fmt::format("{}: there is no such command {} (install Slurm's client commands, on "
                      "Debian the package slurm-client; or {})",
                      command, where, kRemedy));
    if (is_berth(path))
      return fail(fmt::format("{}: is Berth itself under Slurm's name ({})", path, kRemedy));
  }
  return {};
}

void print_advice(const ServeConfig& config) {
  fmt::print("advises beside Slurm with policy {}, reads every {} s, socket {}, commands {}\n",
             config.scheduling.policy.policy, config.slurm.poll, config.socket,
             config.slurm.commands.empty() ? "on PATH" : "in " + config.slurm.commands);
}

/// Waits until somebody stops it, from whichever thread.
class Stop {
 public:
  void wait() { stopped_.get_future().wait(); }
  void set() {
    if (!is_set_.exchange(true)) stopped_.set_value();
  }

 private:
  std::promise<void> stopped_;
  std::atomic<bool> is_set_ = false;
};

}  // namespace

Result<void> serve_advice(const ServeOptions& options, const ServeConfig& config) {
  BERTH_TRY(CheckedServing checked, check_front(config));
  BERTH_TRY_VOID(check_commands(config.slurm.commands));
  if (options.check) {
    for (const std::string& warning : checked.warnings)
      fmt::print(stderr, "berth: warning: {}\n", warning);
    print_advice(config);
    return {};
  }
  Logger log{{.level = checked.level, .format = checked.format}};
  for (const std::string& warning : checked.warnings)
    BERTH_LOG(log, Warn, "serve", "unwise", {"what", warning});
  BERTH_TRY_VOID(make_directory(fs::path(config.socket).parent_path(), 0755));
  block_signals();
  checked.server.log = &log;
  // There are no tokens here. By TCP anybody may have the measurements, which name no users, and
  // nobody anything else.
  checked.server.api.open_metrics = true;
  BERTH_TRY(api::Listening listening, api::Listening::open(checked.server));
  const api::Bound bound = listening.bound();
  slurm::TextLink link{{.directory = config.slurm.commands}};
  advise::CommandBooks books{config.slurm.commands};
  advise::AdviseService service{{.link = link,
                                 .books = books,
                                 .log = log,
                                 .poll = {.poll = std::chrono::seconds{config.slurm.poll}},
                                 .options = {.version = BERTH_VERSION,
                                             .scheduling = config.scheduling,
                                             .admins = config.service.admins,
                                             .operators = config.service.operators},
                                 .wall = unix_micros}};
  service.start();
  BERTH_LOG(log, Info, "serve", "ready, and only advises", {"socket", bound.unix_path},
            {"host", bound.host}, {"port", bound.port}, {"policy", config.scheduling.policy.policy},
            {"poll_seconds", config.slurm.poll});
  Stop stop;
  auto ended = serve_until_stopped(
      std::move(listening), checked.server,
      {.service = service,
       .run = [&]() -> Result<void> {
         stop.wait();
         return {};
       },
       .stop = [&] { stop.set(); },
       .reload = [&] { BERTH_LOG(log, Warn, "serve", "advice is not reloaded: start it again"); }});
  service.stop();
  BERTH_LOG(log, Info, "serve", "stopped");
  return ended;
}

}  // namespace berth
