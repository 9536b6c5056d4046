// What `berth slurm setup` did, in a small file beside slurm.conf (berth_setup.json): written before
// the first change and removed after the last one is undone, so that a run that was killed between
// two steps is found and undone by the next.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "slurm/setup_files.h"

namespace berth::slurm {

enum class Gate : std::uint8_t {
  Lua,  // job_submit.lua holds batch jobs
  Qos,  // no job starts in the QOS of users: srun and salloc wait as well
};
[[nodiscard]] std::string_view to_string(Gate gate) noexcept;
[[nodiscard]] std::optional<Gate> gate_from(std::string_view text) noexcept;

enum class SetupPhase : std::uint8_t {
  Applying,  // some of the changes may be made
  Active,    // all of them, and they were seen to work
  Undoing,   // some of them may be taken back
};

/// A QOS in which no job starts while the gate is shut.
struct GatedQos {
  std::string name;
  std::string group_jobs{};  // its GrpJobs before; empty: none
};

struct SetupState {
  SetupPhase phase = SetupPhase::Applying;
  Gate gate = Gate::Lua;
  std::string conf{};        // full path of slurm.conf
  std::string conf_added{};  // what was added to it
  /// Texts of berth.conf and of job_submit.lua, the newest first: while settings are changed the
  /// older one may still be there.
  std::vector<std::string> own_confs{}, scripts{};
  bool had_script = false;                        // the site's own is job_submit_site.lua now
  std::string site_plugins{}, site_parameters{};  // before, to notice that they changed
  std::string heartbeat{};
  std::int64_t patience_seconds = 0;
  std::vector<GatedQos> qos{};
  bool made_qos = false;     // the QOS in which Berth starts jobs was not there before
  bool handed_back = false;  // the QOS gate stands open until Berth is back
};

/// The QOS in which Berth starts jobs behind the QOS gate.
inline constexpr const char* kBerthQos = "berth";

// Beside slurm.conf.
[[nodiscard]] std::string state_path(const std::string& conf);
[[nodiscard]] std::string own_conf_path(const std::string& conf);
[[nodiscard]] std::string script_path(const std::string& conf);
[[nodiscard]] std::string site_script_path(const std::string& conf);

[[nodiscard]] std::string state_text(const SetupState& state);
[[nodiscard]] Result<SetupState> state_from(const std::string& text, const std::string& path);

/// Nothing: setup was not run, or was undone.
[[nodiscard]] Result<std::optional<SetupState>> load_state(const std::string& conf);
[[nodiscard]] Result<void> save_state(const SetupState& state, const Ownership& ownership);

}  // namespace berth::slurm
