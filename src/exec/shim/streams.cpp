#include "exec/shim/streams.h"

#include <cerrno>
#include <string>

#include <fcntl.h>
#include <linux/close_range.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "exec/run_dir.h"
#include "model/output_pattern.h"

namespace berth {

namespace {

/// Does not wait for the other end of a pipe; what is opened then waits as usual.
Result<Fd> open_patiently(const std::string& path, int flags, const char* attempted) {
  Fd file(::open(path.c_str(), flags | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, 0666));
  if (!file.is_open()) return fail_with_errno(path, attempted);
  const int now = ::fcntl(file.get(), F_GETFL);
  if (now < 0 || ::fcntl(file.get(), F_SETFL, now & ~O_NONBLOCK) != 0)
    return fail_with_errno(path, attempted);
  return file;
}

/// Always at the end: tasks that share a file do not write over each other. Only the first of them
/// empties it.
Result<Fd> open_output(const LaunchOrder& order, const std::string& pattern, std::int32_t task) {
  const bool empties = !order.append_output && (task == 0 || is_per_task(pattern));
  return open_patiently(path_of_task(pattern, task),
                        O_WRONLY | O_CREAT | O_APPEND | (empties ? O_TRUNC : 0),
                        "open the output file");
}

Result<void> put_at(const Fd& file, int number) {
  if (file.get() != number) {
    if (::dup2(file.get(), number) < 0) return fail_with_errno("descriptor", "duplicate it");
    return {};
  }
  if (::fcntl(number, F_SETFD, 0) != 0) return fail_with_errno("descriptor", "keep it");
  return {};
}

}  // namespace

Result<void> open_streams(const LaunchOrder& order, std::int32_t task) {
  const std::string nowhere = "/dev/null";
  const std::string from = order.input.empty() ? nowhere : path_of_task(order.input, task);
  const std::string& output = order.output.empty() ? nowhere : order.output;
  BERTH_TRY(const Fd in, open_patiently(from, O_RDONLY, "open the input file"));
  BERTH_TRY(const Fd out, open_output(order, output, task));
  Fd error;
  if (!order.error.empty() && order.error != output) {
    BERTH_TRY(error, open_output(order, order.error, task));
  }
  BERTH_TRY_VOID(put_at(in, 0));
  BERTH_TRY_VOID(put_at(out, 1));
  BERTH_TRY_VOID(put_at(error.is_open() ? error : out, 2));
  if (::syscall(SYS_close_range, 3U, ~0U, CLOSE_RANGE_CLOEXEC) != 0)
    for (int fd = 3; fd < 65536; ++fd) ::fcntl(fd, F_SETFD, FD_CLOEXEC);
  return {};
}

}  // namespace berth
