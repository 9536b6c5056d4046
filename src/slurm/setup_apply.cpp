#include <fmt/format.h>

#include "base/crash_point.h"
#include "slurm/held_jobs.h"
#include "slurm/setup.h"
#include "slurm/setup_conf.h"
#include "slurm/setup_parts.h"

namespace berth::slurm {

namespace {

class Application {
 public:
  Application(SlurmCommands& commands, const SetupPlan& plan)
      : commands_(commands), plan_(plan), state_(plan.state) {}

  Result<std::vector<std::string>> run() {
    BERTH_TRY(const Fd lock, lock_folder_of(state_.conf));
    BERTH_TRY_VOID(check_untouched());
    BERTH_TRY(const auto earlier, load_state(state_.conf));
    state_.phase = SetupPhase::Applying;
    BERTH_TRY_VOID(save_state(state_, plan_.ownership));
    crash_point("slurm.setup.begun");
    auto done = change();
    if (!done) return tl::unexpected<Error>(taken_back(done.error(), earlier));
    state_.phase = SetupPhase::Active;
    // What was ours before is gone now.
    if (!state_.scripts.empty()) state_.scripts.resize(1);
    if (!state_.own_confs.empty()) state_.own_confs.resize(1);
    done = save_state(state_, plan_.ownership);
    if (!done) return tl::unexpected<Error>(taken_back(done.error(), earlier));
    crash_point("slurm.setup.done");
    return std::move(notes_);
  }

 private:
  /// Nobody changed a file between the question and the answer.
  Result<void> check_untouched() {
    for (const FileChange& change : plan_.files) {
      BERTH_TRY(const auto file, read_plain(change.path));
      const bool is_same = file ? change.before && file->text == *change.before : !change.before;
      if (!is_same)
        return fail(fmt::format("{}: was changed meanwhile (run setup again)", change.path));
    }
    return {};
  }

  Result<void> change() {
    for (const FileChange& change : plan_.files) {
      BERTH_TRY_VOID(put_plain(change.path, *change.after, change.ownership));
      crash_point("slurm.setup.file");
    }
    for (const auto& words : plan_.commands) {
      BERTH_TRY_VOID(output_of(commands_, words));
      crash_point("slurm.setup.command");
    }
    return state_.gate == Gate::Lua ? verify_lua() : verify_qos();
  }

  Result<void> verify_lua() {
    std::string answer = "slurmctld does not answer";
    for (int i = 0; i < kTries; ++i) {
      const auto site = ask_site(commands_);
      if (site && has_item(site->plugins, "lua")) return probe();
      if (site) answer = fmt::format("slurmctld runs with JobSubmitPlugins={}", site->plugins);
      commands_.pause(kBetweenTries);
    }
    return fail(fmt::format("the change has no effect: {}", answer));
  }

  /// A job that can never start: held by its own submit line.
  Result<void> probe() {
    cancel_probes(commands_);
    const auto sent = commands_.run({"sbatch", "--hold", "--parsable", "--output=/dev/null",
                                     std::string("--job-name=") + kProbeName, "--chdir=/",
                                     "--time=1", "--wrap=true"});
    crash_point("slurm.setup.probe");
    if (!sent || sent->exit != 0) {
      notes_.push_back(fmt::format("whether new jobs are held was not tried with a job: {}",
                                   sent ? sent->complaint() : sent.error().text()));
      return {};
    }
    auto judged = judge_probe(sent->out);
    cancel_probes(commands_);
    return judged;
  }

  Result<void> judge_probe(const std::string& answer) {
    const auto id = static_cast<std::uint32_t>(std::strtoul(answer.c_str(), nullptr, 10));
    const auto jobs = waiting_jobs(commands_);
    if (!jobs) {
      notes_.push_back(
          fmt::format("whether new jobs are held is not known: {}", jobs.error().text()));
      return {};
    }
    for (const WaitingJob& job : *jobs) {
      if (job.id != id || job.name != kProbeName) continue;
      if (job.admin_comment.find(plan_.probe) != std::string::npos) {
        notes_.push_back("a probe job met the script, and was cancelled");
        return {};
      }
      return fail(
          "the script has no effect: a probe job did not meet it (slurmctld's log says why)");
    }
    notes_.push_back("whether new jobs are held is not known: the probe job was not found");
    return {};
  }

  Result<void> verify_qos() {
    BERTH_TRY(const auto rows, qos_rows(commands_));
    for (const GatedQos& qos : state_.qos) {
      for (const QosRow& row : rows) {
        if (row.name == qos.name && row.group_jobs != "0")
          return fail(fmt::format("the change has no effect: GrpJobs of QOS {} is '{}'", row.name,
                                  row.group_jobs));
      }
    }
    return {};
  }

  /// A first setup is undone; a change of settings goes back to those before.
  Error taken_back(const Error& why, const std::optional<SetupState>& earlier) {
    Error error = why;
    if (earlier) {
      restore_files(*earlier, error);
      return error;
    }
    const auto undone =
        undo_setup(commands_, {.conf = state_.conf, .releases_jobs = false, .has_lock = true});
    if (undone) {
      error.messages.emplace_back("everything was taken back");
      error.messages.insert(error.messages.end(), undone->notes.begin(), undone->notes.end());
    } else
      error.messages.push_back(
          fmt::format("taking it back failed as well: {} (run `berth slurm setup --undo`)",
                      undone.error().text()));
    return error;
  }

  void restore_files(const SetupState& earlier, Error& error) {
    const auto keep = [&](const Result<void>& done) {
      if (!done) error.messages.push_back(done.error().text());
    };
    for (auto change = plan_.files.rbegin(); change != plan_.files.rend(); ++change)
      keep(change->before ? put_plain(change->path, *change->before, change->ownership)
                          : remove_plain(change->path));
    for (const auto& words : plan_.commands) {
      if (words.front() == "scontrol") keep(output_of(commands_, words).map([](const auto&) {}));
    }
    keep(save_state(earlier, plan_.ownership));
    error.messages.emplace_back("the settings of the last setup are back");
  }

  SlurmCommands& commands_;
  const SetupPlan& plan_;
  SetupState state_;
  std::vector<std::string> notes_;
};

}  // namespace

Result<std::vector<std::string>> apply_setup(SlurmCommands& commands, const SetupPlan& plan) {
  return Application(commands, plan).run();
}

}  // namespace berth::slurm
