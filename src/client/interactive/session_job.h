// What srun, salloc, sattach and `berth notebook` share: a job that hosts a session, from the draft
// to the end of the attachment.
#pragma once

#include <string>
#include <vector>

#include "base/fd.h"
#include "client/commands.h"
#include "client/draft.h"
#include "client/interactive/patient_wait.h"
#include "step/attachment.h"

namespace berth::client {

/// The scheduler of this machine: terminals reach no further.
[[nodiscard]] Result<Scheduler> local_scheduler(const std::string& server, const Console& console);

/// The draft's program becomes `berth step-host` with these words; it runs once, to its end, and
/// keeps no file.
void make_session(Draft& draft, std::vector<std::string> host_words);

/// Completes the draft, submits it and tells its notes. An error was told already: the exit code.
[[nodiscard]] tl::expected<JobNumber, int> submit_session(Scheduler& scheduler, Draft& draft,
                                                          Console& console);

/// Waits for the start. Otherwise everything was told and the job given up: the exit code.
[[nodiscard]] tl::expected<JobRow, int> await_session(Scheduler& scheduler, JobNumber job,
                                                      const StartWait& wait, Console& console);

/// The directory of steps of a running job.
[[nodiscard]] Result<std::string> steps_directory(Scheduler& scheduler, JobNumber job);
/// To a socket there, which may come a little later than the job's start.
[[nodiscard]] Result<Fd> open_session(Scheduler& scheduler, JobNumber job,
                                      const std::string& socket);

struct Attended {
  int code = 0;          // to exit with
  bool goes_on = false;  // the session is still there
};
/// Attaches and tells how that ended.
[[nodiscard]] Attended attend_session(Scheduler& scheduler, JobNumber job, Fd socket,
                                      const step::AttachOptions& options, Console& console);

/// --immediate and --quiet.
[[nodiscard]] Result<StartWait> start_wait(const Parsed& parsed);

}  // namespace berth::client
