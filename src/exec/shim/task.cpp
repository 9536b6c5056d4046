#include "exec/shim/task.h"

#include <cerrno>
#include <csignal>
#include <cstring>
#include <vector>

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "exec/cgroup.h"
#include "exec/process_table.h"
#include "exec/run_dir.h"
#include "exec/shim/identity.h"
#include "exec/shim/ordinary.h"
#include "exec/shim/program.h"
#include "exec/shim/streams.h"
#include "exec/shim_protocol.h"
#include "model/step.h"

namespace berth {

namespace {

/// By the kernel's own call: the C library does not let us at the two signals that it keeps for
/// itself, and leaves them ignored in what it spawned.
void reset_signals() {
  struct {
    void (*handler)(int) = SIG_DFL;
    unsigned long flags = 0;
    void (*restorer)() = nullptr;
    std::uint64_t mask = 0;
  } plain;
  for (int number = 1; number < NSIG; ++number)
    ::syscall(SYS_rt_sigaction, number, &plain, nullptr, sizeof plain.mask);
  sigset_t none;
  sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
}

using Variables = std::vector<std::pair<std::string, std::string>>;

/// Somebody who names another place than everybody's means it.
bool names_own_tmp(const LaunchOrder& order) {
  for (const auto& [name, value] : order.env)
    if (name == "TMPDIR") return !value.empty() && value != "/tmp" && value != "/var/tmp";
  return false;
}

/// What only the process itself, or the shim, knows.
Variables own_variables(const LaunchOrder& order, const TaskPlace& place) {
  const std::string rank = std::to_string(place.rank);
  Variables own{{"SLURM_PROCID", rank},
                {"SLURM_LOCALID", rank},
                {"BERTH_TASK", rank},
                {"SLURM_TASK_PID", std::to_string(::getpid())},
                {kClaimVariable, place.claim},
                {kStepsVariable, place.steps},
                {kShimVariable, std::to_string(::getppid())}};
  std::string all = "0";
  for (std::int32_t i = 1; i < order.tasks; ++i) all += "," + std::to_string(i);
  own.emplace_back("SLURM_GTIDS", all);
  if (order.ranks) own.insert(own.end(), {{"RANK", rank}, {"LOCAL_RANK", rank}});
  if (!place.tmp.empty()) {
    own.insert(own.end(), {{"SLURM_TMPDIR", place.tmp}, {"BERTH_TMPDIR", place.tmp}});
    if (!names_own_tmp(order)) own.emplace_back("TMPDIR", place.tmp);
  }
  return own;
}

std::vector<std::string> environment_of(const ShimOrder& shim, const TaskPlace& place) {
  std::vector<std::string> entries;
  const Variables own = own_variables(shim.order, place);
  for (const auto& [name, value] : shim.order.env) {
    bool is_ours = false;
    for (const auto& [our_name, unused] : own) is_ours = is_ours || name == our_name;
    if (!is_ours) entries.push_back(name + "=" + value);
  }
  for (const auto& [name, value] : own) entries.push_back(name + "=" + value);
  return entries;
}

/// A name of a program may be a megabyte long; a reason is for a line.
std::string brief(std::string text) {
  constexpr std::size_t kMost = 2000;
  if (text.size() <= kMost) return text;
  std::size_t end = kMost;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xc0U) == 0x80) --end;  // UTF-8
  return text.substr(0, end) + "…";
}

/// In the child. Comes back only with an error.
Result<void> become_task(const ShimOrder& shim, const TaskPlace& place, pid_t parent) {
  const LaunchOrder& order = shim.order;
  ::setsid();
  if (!AttemptCgroups(shim.cgroups).join()) return fail("cannot enter the job's control group");
  if (!order.cores.empty() && !bind_process(::getpid(), order.cores))
    return fail("cannot run on cores " + cores_text(order.cores) + ": " + std::strerror(errno));
  ::umask(static_cast<mode_t>(order.umask));
  become_ordinary(order);
  const ScriptFile script = open_script(place.program);
  BERTH_TRY_VOID(become_user({.uid = order.uid, .gid = order.gid, .groups = order.groups}));
  // Dies with the shim: an attempt that nobody watches must not go on. After the change of user,
  // which would have cleared it.
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) return fail("the shim is gone");
  if (::chdir(order.workdir.c_str()) != 0)
    return fail_with_errno(order.workdir, "enter the working directory");
  BERTH_TRY_VOID(open_streams(order, place.rank));
  reset_signals();
  const auto refused = run_program(order, script, environment_of(shim, place));
  // Whoever looks into the output finds the reason as well.
  const std::string why = brief(refused.error().text());
  static_cast<void>(write_all(2, "berth: " + why + "\n"));
  return fail(why);
}

std::string read_to_end(int fd) {
  std::string text;
  char part[512];
  for (;;) {
    const ssize_t got = ::read(fd, part, sizeof part);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return text;
    text.append(part, static_cast<std::size_t>(got));
  }
}

}  // namespace

Result<pid_t> start_task(const ShimOrder& shim, const TaskPlace& place) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return fail_with_errno("pipe", "make one");
  const Fd from(ends[0]);
  Fd to(ends[1]);
  const pid_t self = ::getpid();
  const pid_t child = ::fork();
  if (child < 0) return fail(std::string("cannot make a process: ") + std::strerror(errno));
  if (child == 0) {
    const auto failed = become_task(shim, place, self);
    static_cast<void>(write_all(to.get(), failed ? "it did not start" : failed.error().text()));
    ::_exit(127);
  }
  to.reset();
  // The pipe closes by itself when the program begins; a word in it means that it never will.
  std::string why = read_to_end(from.get());
  if (why.empty()) return child;
  ::waitpid(child, nullptr, 0);
  return fail(std::move(why));
}

}  // namespace berth
