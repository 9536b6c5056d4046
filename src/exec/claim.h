// Who has an attempt: the one who could give the claim its name, once and for ever. A shim that
// claims holds a lock on the file until it dies; the kernel gives it back however that happens. So
// "claimed and alive" is a question to the kernel, in which no process number can be mistaken for
// one that was used again. The file gets its name complete and locked: there is no moment at which
// a living shim looks like a dead one.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include <sys/types.h>

#include "base/result.h"
#include "exec/run_dir.h"

namespace berth {

enum class Claimant : std::uint8_t {
  Shim,
  Nobody,  // a tombstone: the scheduler has seen to it that no shim ever will
};

/// What a claim says; a damaged one says little.
struct Claim {
  Claimant by = Claimant::Shim;
  std::string boot_id;
  pid_t shim = 0;
  std::uint64_t shim_start = 0;  // in clock ticks since boot, as in /proc/PID/stat
  pid_t guard = 0;               // ends what a killed shim leaves behind; 0: there is none
  std::uint64_t guard_start = 0;
  pid_t job = 0;  // the first task, once it runs
};

/// Closed file: the attempt was taken already. As long as it is open, a shim's claim is locked; do
/// not open the claim again in the same process (closing any descriptor of it gives up the lock).
[[nodiscard]] Result<Fd> try_claim(const RunDir& directory, AttemptId attempt, Claimant by);
/// Notes in a claim of ours that the program runs.
void note_job(const Fd& claim, pid_t job) noexcept;

[[nodiscard]] Result<std::optional<Claim>> read_claim(const RunDir& directory, AttemptId attempt);
/// The living shim that holds the claim; nothing if there is none.
[[nodiscard]] std::optional<pid_t> holder_of(const RunDir& directory, AttemptId attempt);

}  // namespace berth
