// The scheduler's answers, read. Reading is tolerant: keys that are missing have their defaults and
// unknown ones are passed over, so that client and scheduler may differ in age.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "model/step.h"
#include "wire/views.h"
#include "wire/why.h"

namespace berth::client {

/// Our names and Slurm's, long or short, in any case: "pending", "PD", "TIMEOUT". Slurm's PENDING
/// is several of ours.
[[nodiscard]] std::vector<LiveState> states_from(std::string_view text);
[[nodiscard]] std::string_view slurm_code(LiveState state) noexcept;  // PD, R, CG …
[[nodiscard]] std::string_view slurm_name(LiveState state) noexcept;  // PENDING, RUNNING …

/// A job as it was told; it always has a spec.
struct JobRow : JobView {
  JobRow();
  std::string json;  // as it came, if that was asked for

  [[nodiscard]] std::string node_list() const;  // "n1,n2"
  /// "12", or "12_3" for a job of an array.
  [[nodiscard]] std::string slurm_id() const;
};

/// Slurm's word for why it waits or how it ended: Resources, JobHeldUser, TimeLimit; None.
[[nodiscard]] std::string slurm_reason(const JobRow& job);

/// A page of jobs, live or past, or several of them.
struct JobRows {
  std::vector<JobRow> jobs;
  std::string next;  // to go on from; empty: this was the last
  std::uint64_t total = 0;
};

/// With whatever role a newer scheduler knows.
struct TokenRow {
  std::string name, user, role;
  std::int64_t created = 0, expires = 0;  // Unix seconds
};

[[nodiscard]] Result<JobRow> job_from(std::string_view body);
/// Of each row its JSON is kept too, or not: that of ten thousand rows takes time.
enum class KeepJson : bool { No, Yes };
[[nodiscard]] Result<JobRows> jobs_from(std::string_view body, KeepJson keep = KeepJson::No);
[[nodiscard]] Result<std::vector<AttemptView>> attempts_from(std::string_view body);
[[nodiscard]] Result<std::vector<JobSteps>> steps_from(std::string_view body);
/// The user of /whoami.
[[nodiscard]] Result<std::string> caller_from(std::string_view body);
[[nodiscard]] Result<Foreseen> foreseen_from(std::string_view body);
[[nodiscard]] Result<Submitted> submit_from(std::string_view body);
[[nodiscard]] Result<std::vector<VerbResult>> results_from(std::string_view body);
[[nodiscard]] Result<std::vector<NodeView>> nodes_from(std::string_view body);
[[nodiscard]] Result<ClusterView> cluster_from(std::string_view body);
[[nodiscard]] Result<std::vector<ShareView>> shares_from(std::string_view body);
[[nodiscard]] Result<std::vector<TokenRow>> tokens_from(std::string_view body);
[[nodiscard]] Result<std::string> new_token_from(std::string_view body);
[[nodiscard]] Result<std::string> profiles_from(std::string_view body);
[[nodiscard]] Result<Why> why_from(std::string_view body);
/// Messages of {"error":{"messages":[…]}}; empty if it is none.
[[nodiscard]] std::vector<std::string> error_messages(std::string_view body);

}  // namespace berth::client
