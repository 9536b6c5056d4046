// Slurm's words for why a job waits, explained. Slurm has about a hundred; a hundred limits of
// associations and QOS are named by a rule (Assoc|QOS, Grp|Max|Min, what, per whom), the others
// stand in a table. A word that nobody here knows is explained as that.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "wire/views.h"

namespace berth::advise {

enum class ReasonFamily : std::uint8_t {
  None,  // Slurm has not looked at it yet
  Priority,
  Resources,
  Reservation,
  Limit,  // of an association or a QOS
  Dependency,
  Begin,
  Hold,
  Nodes,      // nodes that it names or needs are not there
  Partition,  // its state or its limits
  Constraints,
  Array,
  Licenses,
  Account,  // it names an account or QOS that it may not use
  Burst,    // burst buffers
  System,   // something Slurm does by itself
  Other,
};
[[nodiscard]] std::string_view to_string(ReasonFamily family) noexcept;  // kind of a WhyReason

struct ReasonWord {
  ReasonFamily family = ReasonFamily::Other;
  WaitCode code = WaitCode::Resources;
  std::string_view text{};  // a sentence; of a limit empty: see limit_of()
  std::string_view who = "nobody";
  std::string_view fix{};  // "scontrol release {job}"; empty: only time helps
  bool is_never = false;   // no state of the cluster can satisfy it as it is
};
/// Of "Resources", "QOSMaxGRESPerUser", "ReqNodeNotAvail, UnavailableNodes:n1".
[[nodiscard]] ReasonWord explain_word(std::string_view reason) noexcept;

enum class LimitOwner : std::uint8_t { Association, Qos };
/// What a limit's word says.
struct Limit {
  LimitOwner owner{};
  std::string what{};  // "cpu", "mem", "node", "gres", "billing", "jobs", "submit", "wall", …
  /// Where `scontrol show assoc_mgr` has it: "GrpTRES", "MaxTRESPU", "MaxJobs".
  std::string key{};
  std::string scope{};  // for people: "in all", "per user", "per job"
  bool is_least = false;
};
[[nodiscard]] std::optional<Limit> limit_of(std::string_view word);

}  // namespace berth::advise
