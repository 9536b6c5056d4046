// The job_submit.lua that `berth slurm setup` writes. Batch jobs enter the queue held and marked
// (slurm/mark.h) unless they are exempt or Berth gives no sign of life; users can hold their jobs,
// but neither release them nor change their nice. A script that the site had is called first and
// read again when it changes. Nothing that is wrong with Berth's part can refuse a job: it is
// logged, and Slurm does as it would without it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace berth::slurm {

struct LuaGate {
  std::string site_script{};  // full path; empty: the site has none
  std::string heartbeat{};    // full path; empty: Berth is always taken to be there
  std::int64_t patience_seconds = 600;
  /// Who may change priorities: root, SlurmUser and the operator that Berth runs as.
  std::vector<std::uint32_t> privileged_uids{};
  // What Berth leaves alone.
  std::vector<std::string> free_partitions{}, free_qos{};
  std::vector<std::uint32_t> free_uids{};
};

/// The name of a job by which setup finds out whether the script is in force, and what that job
/// then has in its admin comment.
inline constexpr const char* kProbeName = "berth-setup-probe";
[[nodiscard]] std::string probe_mark(const LuaGate& gate);

[[nodiscard]] std::string lua_script(const LuaGate& gate);

/// As Lua takes it between quotes, whatever bytes it has.
[[nodiscard]] std::string lua_quoted(std::string_view text);

}  // namespace berth::slurm
