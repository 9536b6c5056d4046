#include "exec/shim_handle.h"

#include <csignal>

#include <sys/syscall.h>
#include <unistd.h>

#include "exec/claim.h"

namespace berth {

std::optional<ShimHandle> ShimHandle::open(const RunDir& directory, AttemptId attempt) {
  const auto holder = holder_of(directory, attempt);
  if (!holder) return std::nullopt;
  Fd process(static_cast<int>(::syscall(SYS_pidfd_open, *holder, 0U)));
  // If it died in between, the number may be somebody else's by now. Who holds the claim still is
  // the one we have a handle of.
  if (!process.is_open() || holder_of(directory, attempt) != holder) return std::nullopt;
  return ShimHandle(std::move(process));
}

bool ShimHandle::send(ShimCommand command) const noexcept {
  siginfo_t info{};
  info.si_signo = shim_signal();
  info.si_code = SI_QUEUE;
  info.si_pid = ::getpid();
  info.si_uid = ::getuid();
  info.si_value.sival_int = pack(command);
  return ::syscall(SYS_pidfd_send_signal, process_.get(), shim_signal(), &info, 0U) == 0;
}

}  // namespace berth
