#include <algorithm>

#include <fmt/format.h>

#include "base/crash_point.h"
#include "slurm/setup.h"
#include "slurm/setup_conf.h"
#include "slurm/setup_parts.h"

namespace berth::slurm {

namespace {

/// Every step looks at what is there and does what is left to do, so that it can be cut off
/// anywhere and begun again, also in the middle of a setup.
class Undoing {
 public:
  Undoing(SlurmCommands& commands, const UndoWishes& wishes)
      : commands_(commands), wishes_(wishes) {}

  Result<Undone> run() {
    Fd lock;
    if (!wishes_.has_lock) {
      BERTH_TRY(lock, lock_folder_of(wishes_.conf));
    }
    BERTH_TRY(const auto state, load_state(wishes_.conf));
    if (!state) return fail(fmt::format("{}: is not set up for Berth", wishes_.conf));
    state_ = *state;
    BERTH_TRY(const auto state_file, read_plain(state_path(state_.conf)));
    ownership_ = state_file->ownership;
    if (state_.gate == Gate::Lua) {
      BERTH_TRY_VOID(look());
      BERTH_TRY_VOID(refuse_changed());
    }
    if (wishes_.is_rehearsal) return rehearse();
    state_.phase = SetupPhase::Undoing;
    BERTH_TRY_VOID(save_state(state_, ownership_));
    crash_point("slurm.undo.begun");
    BERTH_TRY_VOID(state_.gate == Gate::Lua ? undo_lua() : undo_qos());
    if (wishes_.releases_jobs) BERTH_TRY_VOID(release());
    BERTH_TRY_VOID(remove_plain(state_path(state_.conf)));
    crash_point("slurm.undo.done");
    return std::move(undone_);
  }

 private:
  /// What is there now.
  Result<void> look() {
    BERTH_TRY(conf_, read_plain(state_.conf));
    BERTH_TRY(own_conf_, read_plain(own_conf_path(state_.conf)));
    BERTH_TRY(script_, read_plain(script_path(state_.conf)));
    BERTH_TRY(site_script_, read_plain(site_script_path(state_.conf)));
    return {};
  }
  static bool is_ours(const std::optional<PlainFile>& file, const std::vector<std::string>& texts) {
    return file && std::ranges::find(texts, file->text) != texts.end();
  }
  [[nodiscard]] bool is_script_ours() const { return is_ours(script_, state_.scripts); }
  /// The site's script is where it was: setup did not come to replacing it, or undo has put it back.
  [[nodiscard]] bool is_script_the_sites() const {
    return state_.had_script && script_ && !is_script_ours() &&
           (!site_script_ || site_script_->text == script_->text);
  }

  /// Ours but not as we wrote it: somebody's work, which is not thrown away.
  Result<void> refuse_changed() {
    std::string diff;
    if (script_ && !is_script_ours() && !is_script_the_sites() && !state_.scripts.empty()) {
      diff += unified_diff(script_path(state_.conf), state_.scripts.front(), script_->text);
      changed_.push_back(script_path(state_.conf));
    }
    if (own_conf_ && !is_ours(own_conf_, state_.own_confs)) {
      diff += unified_diff(own_conf_path(state_.conf), state_.own_confs.front(), own_conf_->text);
      changed_.push_back(own_conf_path(state_.conf));
    }
    if (changed_.empty() || wishes_.is_forced) return {};
    Error error(fmt::format(
        "{} changed since setup wrote it, and nothing was undone (with --force it is set aside as "
        "NAME.changed):",
        fmt::join(changed_, " and ")));
    error.messages.push_back(diff);
    return tl::unexpected<Error>(std::move(error));
  }

  Result<Undone> rehearse() {
    if (state_.gate == Gate::Lua) {
      if (const auto left = without_addition(conf_ ? conf_->text : "", state_.conf_added))
        undone_.diff += unified_diff(state_.conf, conf_->text, *left);
      if (own_conf_)
        undone_.diff += unified_diff(own_conf_path(state_.conf), own_conf_->text, std::nullopt);
      if (is_script_ours())
        undone_.diff += unified_diff(script_path(state_.conf), script_->text, wanted_script());
      undone_.notes.emplace_back(
          "then: scontrol reconfigure, and every job that Berth holds is released");
    } else {
      for (const GatedQos& qos : state_.qos)
        undone_.notes.push_back(fmt::format("then: GrpJobs of QOS {} is {} again", qos.name,
                                            qos.group_jobs.empty() ? "-1" : qos.group_jobs));
    }
    if (wishes_.releases_jobs) {
      const auto released = release_all(commands_, {.is_for_good = true, .is_rehearsal = true});
      if (released)
        undone_.released = *released;
      else
        undone_.notes.push_back(released.error().text());
    }
    return std::move(undone_);
  }
  [[nodiscard]] std::optional<std::string> wanted_script() const {
    return state_.had_script && site_script_ ? std::optional(site_script_->text) : std::nullopt;
  }

  Result<void> undo_lua() {
    for (const std::string& path : changed_) {
      BERTH_TRY_VOID(move_plain(path, path + ".changed"));
      undone_.notes.push_back(fmt::format("{0} was changed since: it is {0}.changed now", path));
      crash_point("slurm.undo.aside");
    }
    BERTH_TRY_VOID(undo_conf());
    if (state_.had_script) BERTH_TRY_VOID(undo_site_script());
    BERTH_TRY_VOID(reconfigure());
    cancel_probes(commands_);
    const bool is_site_back = state_.had_script && site_script_;
    if (is_script_ours() && !is_site_back) BERTH_TRY_VOID(remove_plain(script_path(state_.conf)));
    crash_point("slurm.undo.script");
    if (is_ours(own_conf_, state_.own_confs))
      BERTH_TRY_VOID(remove_plain(own_conf_path(state_.conf)));
    crash_point("slurm.undo.own_conf");
    for (const auto& path : {state_.conf, own_conf_path(state_.conf), script_path(state_.conf),
                             site_script_path(state_.conf)})
      sweep_temporary(path);
    return {};
  }

  Result<void> undo_conf() {
    const auto left = conf_ ? without_addition(conf_->text, state_.conf_added) : std::nullopt;
    if (left) {
      undone_.diff += unified_diff(state_.conf, conf_->text, *left);
      BERTH_TRY_VOID(put_plain(state_.conf, *left, conf_->ownership));
    } else if (conf_ && conf_->text.find("berth.conf") != std::string::npos) {
      return fail(
          fmt::format("{}: the line that includes berth.conf is not as setup wrote it (remove it, "
                      "then undo again)",
                      state_.conf));
    }
    crash_point("slurm.undo.conf");
    return {};
  }

  Result<void> undo_site_script() {
    const std::string path = script_path(state_.conf), site_path = site_script_path(state_.conf);
    if (is_script_the_sites()) {
      // Setup was cut off before its own script stood there; the copy is too much.
      if (site_script_) BERTH_TRY_VOID(remove_plain(site_path));
    } else if (site_script_) {
      // Also what the site has changed in it since is back in its place.
      BERTH_TRY_VOID(move_plain(site_path, path));
    }
    crash_point("slurm.undo.site_script");
    return {};
  }

  Result<void> reconfigure() {
    const auto done = output_of(commands_, {"scontrol", "reconfigure"});
    if (!done && is_nothing_of_ours_live()) {
      undone_.notes.push_back(
          fmt::format("slurmctld does not read its files anew, for a reason that is not ours: {}",
                      done.error().text()));
      return {};
    }
    if (!done)
      return fail(
          fmt::format("the files are as they were, but slurmctld has not read them: {} (undo again "
                      "when it answers)",
                      done.error().text()));
    // It is away for a moment afterwards.
    for (int i = 0; i < kTries && !ask_site(commands_); ++i) commands_.pause(kBetweenTries);
    crash_point("slurm.undo.reconfigured");
    return {};
  }

  /// As when a setup is taken back that slurmctld refused: it runs on with what it had.
  bool is_nothing_of_ours_live() {
    const auto site = ask_site(commands_);
    return site && site->plugins == state_.site_plugins &&
           site->parameters == state_.site_parameters;
  }

  Result<void> undo_qos() {
    BERTH_TRY(const auto rows, qos_rows(commands_));
    for (const GatedQos& qos : state_.qos) {
      const auto row = std::ranges::find(rows, qos.name, &QosRow::name);
      if (row == rows.end() || row->group_jobs == qos.group_jobs) continue;
      if (row->group_jobs != "0") {
        undone_.notes.push_back(fmt::format("GrpJobs of QOS {} was changed since to '{}' and stays",
                                            qos.name, row->group_jobs));
        continue;
      }
      BERTH_TRY_VOID(set_group_jobs(commands_, qos.name, qos.group_jobs));
      crash_point("slurm.undo.qos");
    }
    const bool has_own =
        std::ranges::any_of(rows, [](const QosRow& row) { return row.name == kBerthQos; });
    return state_.made_qos && has_own ? remove_own_qos() : Result<void>{};
  }

  /// Slurm forgets the QOS of a job whose QOS is deleted: it stays as long as it is used.
  Result<void> remove_own_qos() {
    BERTH_TRY(const std::string users, output_of(commands_, {"squeue", "-h", "-o", "%i",
                                                             std::string("--qos=") + kBerthQos}));
    if (!users.empty()) {
      undone_.notes.push_back(fmt::format(
          "jobs still run in QOS {0}, so it stays (later: sacctmgr delete qos {0})", kBerthQos));
      return {};
    }
    BERTH_TRY_VOID(output_of(commands_, {"sacctmgr", "-i", "delete", "qos", kBerthQos}));
    crash_point("slurm.undo.own_qos");
    return {};
  }

  Result<void> release() {
    BERTH_TRY(undone_.released, release_all(commands_, {.is_for_good = true}));
    crash_point("slurm.undo.released");
    return {};
  }

  SlurmCommands& commands_;
  const UndoWishes& wishes_;
  SetupState state_;
  Ownership ownership_;
  std::optional<PlainFile> conf_, own_conf_, script_, site_script_;
  std::vector<std::string> changed_;
  Undone undone_;
};

}  // namespace

Result<Undone> undo_setup(SlurmCommands& commands, const UndoWishes& wishes) {
  return Undoing(commands, wishes).run();
}

}  // namespace berth::slurm
