// From what was asked for and what was granted to a launch order: paths, identity, and the complete
// environment of the processes. Nothing of the scheduler's own environment goes in.
//
// What the user set wins over what we merely suggest (PATH, HOME, MASTER_PORT, OMP_NUM_THREADS);
// what we say about the job (BERTH_*, SLURM_*, visible devices, ranks) wins over the user. What the
// job's request said the Slurm way (SLURM_NTASKS, SLURM_CPUS_PER_TASK, SLURM_MEM_PER_CPU …) comes from
// its client as variables and is passed on, as Slurm does: it is there only if it was asked for.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "exec/account.h"
#include "exec/host.h"

namespace berth {

/// What the scheduler decided about one attempt on this machine.
struct AttemptFacts {
  JobNumber job = 0;
  JobNumber array = 0;  // number of the array's first job; 0: no array
  std::int32_t array_index = 0;
  AttemptId attempt;
  std::int32_t restarts = 0;    // attempts before this one
  HeldDevices where;            // of several nodes the names are joined by commas
  std::string gpu_type;         // of those devices
  std::int64_t time_limit = 0;  // seconds, after the queue's default; 0 = none
  std::int64_t now = 0;         // Unix seconds
  Account account;
  std::string cluster = "berth";
  std::uint16_t master_port = 0;                           // pick_master_port()
  std::vector<std::pair<std::string, std::string>> extra;  // ours too: sockets and the like
};

/// An error is for the job's user: a bad pattern or a variable that no process can carry.
[[nodiscard]] Result<LaunchOrder> make_order(const JobSpec& spec, const AttemptFacts& facts);

/// A port below the range from which the kernel takes its own, by the job's number, so that two
/// jobs ask for the same one only if they are 12,000 apart; the next free one if somebody has it.
inline constexpr std::uint16_t kFirstMasterPort = 20'000;
inline constexpr std::uint16_t kMasterPorts = 12'000;
[[nodiscard]] std::uint16_t pick_master_port(JobNumber job,
                                             const std::function<bool(std::uint16_t)>& is_free);
/// Nobody listens there on the loopback.
[[nodiscard]] bool is_port_free(std::uint16_t port);

}  // namespace berth
