#include "slurm/setup_status.h"

#include <algorithm>

#include <fmt/format.h>

#include "slurm/heartbeat.h"
#include "slurm/held_jobs.h"
#include "slurm/setup_conf.h"
#include "slurm/setup_files.h"
#include "slurm/setup_parts.h"

namespace berth::slurm {

namespace {

bool is_among(const std::optional<PlainFile>& file, const std::vector<std::string>& texts) {
  return file && std::ranges::find(texts, file->text) != texts.end();
}

/// The files of the lua gate against what setup wrote.
Result<void> compare_files(SetupStatus& status) {
  const SetupState& state = *status.state;
  BERTH_TRY(const auto conf, read_plain(state.conf));
  if (!conf || !without_addition(conf->text, state.conf_added))
    status.problems.push_back(
        fmt::format("{} does not include berth.conf any more (run setup again)", state.conf));
  BERTH_TRY(const auto script, read_plain(script_path(state.conf)));
  if (!is_among(script, state.scripts))
    status.problems.push_back(fmt::format(
        "{} is not as setup wrote it (--undo --force, then setup again)", script_path(state.conf)));
  BERTH_TRY(const auto own_conf, read_plain(own_conf_path(state.conf)));
  if (!is_among(own_conf, state.own_confs))
    status.problems.push_back(
        fmt::format("{} is not as setup wrote it (--undo --force, then setup again)",
                    own_conf_path(state.conf)));
  const ConfReader read = [](const std::string& path) { return read_any(path); };
  BERTH_TRY(const auto values, read_conf(state.conf, read, own_conf_path(state.conf)));
  if (values.value("JobSubmitPlugins").value_or("") != state.site_plugins ||
      values.value("SchedulerParameters").value_or("") != state.site_parameters)
    status.problems.emplace_back(
        "JobSubmitPlugins or SchedulerParameters of slurm.conf were changed since: Berth's lines "
        "override that (run "
        "setup again to merge)");
  return {};
}

void compare_qos(SlurmCommands& commands, SetupStatus& status) {
  const auto rows = qos_rows(commands);
  if (!rows) return status.problems.push_back(rows.error().text());
  for (const QosRow& row : *rows) {
    if (row.name == kBerthQos) continue;
    const bool is_gated = std::ranges::any_of(
        status.state->qos, [&](const GatedQos& qos) { return qos.name == row.name; });
    if (!is_gated)
      status.problems.push_back(fmt::format(
          "QOS {} is not behind the gate (run setup again if users may choose it)", row.name));
    else if (row.group_jobs != "0" && !status.state->handed_back)
      status.problems.push_back(
          fmt::format("the gate of QOS {} stands open (run setup again to shut it)", row.name));
  }
}

void ask_slurm(SlurmCommands& commands, SetupStatus& status) {
  const auto site = ask_site(commands);
  if (!site) return status.problems.push_back(site.error().text());
  status.version = site->version;
  if (status.state && status.state->gate == Gate::Lua && !has_item(site->plugins, "lua"))
    status.problems.emplace_back("slurmctld runs without the lua plugin (scontrol reconfigure)");
  const auto jobs = waiting_jobs(commands);
  if (!jobs) return status.problems.push_back(jobs.error().text());
  status.waiting = jobs->size();
  for (const WaitingJob& job : *jobs) {
    switch (holder_of(job)) {
      case Holder::Berth: ++status.held_by_berth; break;
      case Holder::User: ++status.held_by_users; break;
      case Holder::Admin: ++status.held_by_admins; break;
      case Holder::Nobody: break;
    }
  }
}

}  // namespace

Result<SetupStatus> setup_status(SlurmCommands& commands, const std::string& conf,
                                 std::int64_t now) {
  SetupStatus status;
  status.conf = conf;
  BERTH_TRY(status.state, load_state(conf));
  if (status.state) {
    const SetupState& state = *status.state;
    if (state.phase != SetupPhase::Active)
      status.problems.emplace_back("a setup or undo was interrupted (run either again)");
    if (state.gate == Gate::Lua && state.phase == SetupPhase::Active) {
      if (const auto compared = compare_files(status); !compared)
        status.problems.push_back(compared.error().text());
    }
    if (state.gate == Gate::Qos) compare_qos(commands, status);
    if (const auto beat = last_beat(state.heartbeat)) status.heartbeat_age = now - *beat;
  }
  ask_slurm(commands, status);
  return status;
}

}  // namespace berth::slurm
