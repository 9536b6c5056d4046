// berth-shim RUNDIR ATTEMPT: runs one attempt and outlives the scheduler that made it. Claims the
// attempt, reads its launch order, keeps its processes, and writes down how it ended before it
// goes. A program of its own, without the libraries of the scheduler, for there is one per running
// job.
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <ctime>
#include <string>

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/crash_point.h"
#include "exec/claim.h"
#include "exec/order_file.h"
#include "exec/run_dir.h"
#include "exec/shim/guard.h"
#include "exec/shim/keeper.h"
#include "exec/shim_protocol.h"

namespace {

using namespace berth;

void tell(const std::string& line) { static_cast<void>(write_all(kShimPipe, line + "\n")); }

/// Out of the scheduler's session and family, below a guard. Signals wait until they are asked for;
/// the ones that nobody asks for (terminals, a shutdown) do nothing: the shim goes when its job is
/// gone.
bool leave_home(char* name) {
  sigset_t all;
  sigfillset(&all);
  ::sigprocmask(SIG_SETMASK, &all, nullptr);
  const pid_t child = ::fork();
  if (child < 0) ::_exit(1);
  if (child > 0) ::_exit(0);
  ::setsid();
  if (!begin_guarded(name)) return false;
  return ::chdir("/") == 0 && ::prctl(PR_SET_CHILD_SUBREAPER, 1) == 0 &&
         ::fcntl(kShimPipe, F_SETFD, FD_CLOEXEC) == 0;
}

/// Space for the exit record, taken before the job can fill the disk.
void reserve_exit(const RunDir& directory, AttemptId attempt) {
  const Fd file(::open((directory.exit(attempt) + ".tmp").c_str(),
                       O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (file.is_open()) static_cast<void>(::fallocate(file.get(), 0, 0, 4096));
}

Result<void> try_write_exit(const RunDir& directory, const ExitRecord& record) {
  const std::string path = directory.exit(record.attempt);
  const std::string temporary = path + ".tmp";
  const std::string bytes = encode_exit(record);
  const Fd file(::open(temporary.c_str(), O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600));
  // Over the reserved bytes, then cut: emptying it first would give the space away.
  const bool is_written = file.is_open() && write_all(file.get(), bytes) &&
                          ::ftruncate(file.get(), static_cast<off_t>(bytes.size())) == 0 &&
                          ::fsync(file.get()) == 0;
  if (!is_written) return fail_with_errno(temporary, "write it");
  crash_point("shim.exit_written");
  if (::rename(temporary.c_str(), path.c_str()) != 0) return fail_with_errno(path, "name it");
  crash_point("shim.exit_renamed");
  return directory.sync();
}

/// Nobody can ever ask for the record: the place where run directories are made is gone, or the
/// attempt's name belongs to another claim, of a scheduler that began anew in the same place.
bool is_abandoned(const RunDir& directory, AttemptId attempt, const Fd& claim) {
  if (::mkdir(directory.path().c_str(), 0711) != 0 && (errno == ENOENT || errno == ENOTDIR))
    return true;
  struct stat ours {
  }, named{};
  return ::fstat(claim.get(), &ours) == 0 &&
         ::lstat(directory.claim(attempt).c_str(), &named) == 0 &&
         (ours.st_ino != named.st_ino || ours.st_dev != named.st_dev);
}

/// As long as it takes: an end that nobody knows is a job that runs again. A kill ends the waiting,
/// for then somebody has decided; so does a scheduler that is gone with all its files.
void write_exit(const RunDir& directory, const ExitRecord& record, const Fd& claim) {
  sigset_t commands;
  sigemptyset(&commands);
  sigaddset(&commands, shim_signal());
  while (!is_abandoned(directory, record.attempt, claim) && !try_write_exit(directory, record)) {
    static_cast<void>(directory.make());  // somebody may have removed it
    siginfo_t what{};
    const timespec second{1, 0};
    if (::sigtimedwait(&commands, &what, &second) == shim_signal() &&
        unpack(what.si_value.sival_int).action == ShimAction::Kill)
      return;
  }
}

ExitRecord not_started(AttemptId attempt, const std::string& why) {
  ExitRecord record;
  record.attempt = attempt;
  record.was_started = false;
  record.exit_code = 127;
  record.why = why;
  return record;
}

Result<ExitRecord> keep(const RunDir& directory, AttemptId attempt, const Fd& claim) {
  BERTH_TRY(auto bytes, get_file(directory.order(attempt)));
  if (!bytes) return fail("");
  auto shim = decode_order(*bytes);
  bytes.reset();
  if (!shim) return not_started(attempt, "the launch order cannot be read: " + shim.error().text());
  if (shim->order.attempt != attempt)
    return not_started(attempt, "the launch order is of another attempt");
  Keeper keeper(directory, std::move(*shim), [&](pid_t first) {
    note_job(claim, first);
    tell("started " + std::to_string(first));
  });
  return keeper.run();
}

int run(const RunDir& directory, AttemptId attempt) {
  const auto claim = try_claim(directory, attempt, Claimant::Shim);
  if (!claim) return 1;  // nothing was done in its name: whoever asks next finds it free
  if (!claim->is_open()) {
    tell("taken");
    return 0;
  }
  crash_point("shim.claimed");
  tell("claimed");
  reserve_exit(directory, attempt);
  const auto record = keep(directory, attempt, *claim);
  if (!record) {
    // No order: the attempt was given up and forgotten while we were on our way.
    ::unlink((directory.exit(attempt) + ".tmp").c_str());
    ::unlink(directory.claim(attempt).c_str());
    return 0;
  }
  write_exit(directory, *record, *claim);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const auto attempt = argc == 3 ? attempt_named(argv[2]) : std::nullopt;
  if (!attempt) {
    std::fputs("usage: berth-shim RUNDIR ATTEMPT (made by the scheduler, one per running job)\n",
               stderr);
    return 2;
  }
  if (!leave_home(argv[0])) return 1;
  ::signal(SIGXFSZ, SIG_IGN);  // a limit of files is a write that fails; the job has its default
  return run(RunDir(argv[1]), *attempt);
}
