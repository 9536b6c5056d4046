// The host of a session (`berth step-host`): a program on a pseudo-terminal or between pipes, and
// a socket where one client at a time attaches to it. The program begins with the first client, who
// knows the terminal; if none comes the session ends. A client that goes away detaches: the program
// runs on and its latest output is kept for the next one; after a grace it is hung up, then killed.
//
// One thread that sleeps in poll(). Runs as the user, inside the job: whatever happens to it, the
// job's shim ends what is left.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "base/result.h"
#include "step/hosted_program.h"

namespace berth::step {

/// The socket of a job's own session.
inline constexpr const char* kSessionSocket = "interactive.sock";
/// In the directory of steps: why the session ended the job, for its record.
inline constexpr const char* kReasonFile = "why";
/// In the directory of steps: where a program that listens is found, with its token.
inline constexpr const char* kLinkFile = "link";
inline constexpr std::size_t kKeptOutput = 64U << 10U;

struct SessionOptions {
  std::string directory;  // of the socket
  std::string socket = kSessionSocket;
  ProgramOrder program;
  std::int64_t first_wait_seconds = 60;  // for the first client
  std::int64_t grace_seconds = 300;      // without a client
  std::int64_t kill_seconds = 10;        // from hanging up to the kill
  std::int64_t idle_seconds = 0;         // 0: may be idle for ever
  bool needs_client = true;              // false: begins at once and runs whoever is there
  bool is_whole_job = true;              // its end is the job's: the reason goes on record
  std::function<bool()> are_gpus_busy{};
};

/// Until the program is over; its exit code. An error: there could be no session at all.
[[nodiscard]] Result<int> host_session(SessionOptions options);

}  // namespace berth::step
