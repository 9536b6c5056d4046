// `berth slurm setup`: makes a Slurm leave the start of its jobs to Berth, and takes that back. A
// plan says everything that will be changed before anything is; it is carried out in an order in
// which slurmctld always finds a configuration that works, and a step that fails (or a change that
// has no effect) takes back all of it. What was done is kept beside slurm.conf (setup_state.h): a
// run that was killed at any point is undone by the next one. One at a time per slurm.conf.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "slurm/commands.h"
#include "slurm/release_all.h"
#include "slurm/setup_lua.h"
#include "slurm/setup_state.h"
#include "slurm/site.h"

namespace berth::slurm {

struct SetupWishes {
  Gate gate = Gate::Lua;
  std::string conf{};        // empty: the one slurmctld reads
  std::string plugin_dir{};  // empty: as slurmctld says
  /// Set heartbeat, patience and exemptions here; the rest is filled in by the plan.
  LuaGate lua{};
  bool keeps_parameters = false;  // leave SchedulerParameters alone
};

/// One file before and after; nothing: it is not there.
struct FileChange {
  std::string path;
  std::optional<std::string> before{}, after{};
  Ownership ownership{};
};

struct SetupPlan {
  Site site;
  SetupState state;  // as it will be when done
  std::vector<FileChange> files{};
  std::vector<std::vector<std::string>> commands{};
  std::vector<std::string> notes{};
  std::string probe{};    // what a probe job must be marked with; empty: none
  Ownership ownership{};  // of new files
  bool is_done = false;   // all of it is so already
  /// Everything that will be changed, for people.
  [[nodiscard]] std::string text() const;
};

/// Changes nothing. A run that was killed must have been undone before.
[[nodiscard]] Result<SetupPlan> plan_setup(SlurmCommands& commands, const SetupWishes& wishes);

/// Notes for people; all of it was done.
[[nodiscard]] Result<std::vector<std::string>> apply_setup(SlurmCommands& commands,
                                                           const SetupPlan& plan);

struct UndoWishes {
  std::string conf{};
  bool is_rehearsal = false;
  bool is_forced = false;  // files that were changed since are set aside as NAME.changed
  bool releases_jobs = true;
  bool has_lock = false;  // its caller keeps others away
};
struct Undone {
  std::vector<std::string> notes{};
  std::string diff{};  // of what was, or would be, changed
  Released released{};
};
/// An error names what was changed since, or what Slurm refused; then nothing more was changed, and
/// another run goes on.
[[nodiscard]] Result<Undone> undo_setup(SlurmCommands& commands, const UndoWishes& wishes);

/// slurm.conf as wished, or as slurmctld says.
[[nodiscard]] Result<std::string> find_conf(SlurmCommands& commands, const std::string& wished);

/// Shuts the QOS gate again, or opens it, where setup has made one. Opened, it stays open until it
/// is shut: that is kept.
[[nodiscard]] Result<void> set_qos_gate(SlurmCommands& commands, SetupState& state, bool is_shut);

}  // namespace berth::slurm
