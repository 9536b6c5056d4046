#include <algorithm>

#include <fcntl.h>
#include <sys/file.h>

#include <fmt/format.h>

#include "base/crash_point.h"
#include "base/split.h"
#include "slurm/setup.h"
#include "slurm/setup_lua.h"
#include "slurm/setup_parts.h"

namespace berth::slurm {

Result<std::vector<QosRow>> qos_rows(SlurmCommands& commands) {
  BERTH_TRY(const std::string text,
            output_of(commands, {"sacctmgr", "-n", "-P", "show", "qos", "format=Name,GrpJobs"}));
  std::vector<QosRow> rows;
  for (const std::string_view line : split(text, '\n')) {
    const std::size_t bar = line.find('|');
    if (bar == std::string_view::npos || bar == 0) continue;
    rows.push_back({std::string(line.substr(0, bar)), std::string(line.substr(bar + 1))});
  }
  return rows;
}

Result<void> set_group_jobs(SlurmCommands& commands, const std::string& qos,
                            const std::string& value) {
  // -1 is "no limit", which sacctmgr shows as nothing.
  BERTH_TRY_VOID(output_of(commands, {"sacctmgr", "-i", "modify", "qos", "where", "name=" + qos,
                                      "set", "GrpJobs=" + (value.empty() ? "-1" : value)}));
  return {};
}

Result<void> set_qos_gate(SlurmCommands& commands, SetupState& state, bool is_shut) {
  if (state.gate != Gate::Qos) return {};
  BERTH_TRY(const auto file, read_plain(state_path(state.conf)));
  const auto remember = [&](bool is_handed_back) -> Result<void> {
    if (!file || state.handed_back == is_handed_back) return {};
    state.handed_back = is_handed_back;
    return save_state(state, file->ownership);
  };
  // What is kept errs towards "open": a gate that is open and thought to be shut would stay open.
  if (!is_shut) BERTH_TRY_VOID(remember(true));
  BERTH_TRY(const auto rows, qos_rows(commands));
  for (const GatedQos& qos : state.qos) {
    const auto row = std::ranges::find(rows, qos.name, &QosRow::name);
    if (row == rows.end()) continue;
    if (is_shut && row->group_jobs != "0") BERTH_TRY_VOID(set_group_jobs(commands, qos.name, "0"));
    // Another number than ours is somebody's will.
    if (!is_shut && row->group_jobs == "0")
      BERTH_TRY_VOID(set_group_jobs(commands, qos.name, qos.group_jobs));
    crash_point("slurm.setup.qos");
  }
  return is_shut ? remember(false) : Result<void>{};
}

Result<Fd> lock_folder_of(const std::string& conf) {
  const std::string folder = conf.substr(0, conf.rfind('/') + 1);
  Fd opened(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!opened.is_open()) return fail_with_errno(folder, "open it");
  // Some network file systems cannot lock a folder; there people must not run it twice.
  if (::flock(opened.get(), LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK)
    return fail(fmt::format("{}: another `berth slurm setup` is at work", folder));
  return opened;
}

void cancel_probes(SlurmCommands& commands) {
  const auto ignored =
      commands.run({"scancel", "--me", "--state=PENDING", std::string("--name=") + kProbeName});
  static_cast<void>(ignored);
}

Result<std::string> find_conf(SlurmCommands& commands, const std::string& wished) {
  if (!wished.empty()) return wished;
  if (const auto site = ask_site(commands); site && !site->conf.empty()) return site->conf;
  // Undo must work when slurmctld does not.
  if (const char* conf = std::getenv("SLURM_CONF"); conf != nullptr && *conf != 0)
    return std::string(conf);
  for (const char* usual :
       {"/etc/slurm/slurm.conf", "/etc/slurm-llnl/slurm.conf", "/usr/local/etc/slurm.conf"}) {
    BERTH_TRY(const auto found, read_any(usual));
    if (found) return std::string(usual);
  }
  return fail("no slurm.conf was found, and slurmctld does not answer (name it with --conf)");
}

}  // namespace berth::slurm
