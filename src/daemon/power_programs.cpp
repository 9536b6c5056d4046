#include "daemon/power_programs.h"

#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <pwd.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "exec/run_dir.h"

namespace berth {

namespace {

using Steady = std::chrono::steady_clock;
constexpr std::size_t kMostSaid = 400;  // bytes of its output that are worth telling
constexpr unsigned kCloseOnExec = 4;    // CLOSE_RANGE_CLOEXEC, which old headers lack
constexpr int kCannotExec = 127;
constexpr int kCannotChange = 126;

struct Rights {
  uid_t uid = 0;
  gid_t gid = 0;
  std::vector<gid_t> groups{};
};

Result<std::optional<Rights>> account_of(const std::string& user) {
  if (user.empty()) return std::nullopt;
  std::vector<char> space(1U << 16U);
  passwd entry{};
  passwd* found = nullptr;
  if (::getpwnam_r(user.c_str(), &entry, space.data(), space.size(), &found) != 0 ||
      found == nullptr)
    return fail(fmt::format("there is no user '{}'", user));
  Rights account{.uid = entry.pw_uid, .gid = entry.pw_gid};
  int count = 64;
  account.groups.resize(static_cast<std::size_t>(count));
  while (::getgrouplist(user.c_str(), entry.pw_gid, account.groups.data(), &count) < 0)
    account.groups.resize(static_cast<std::size_t>(count));
  account.groups.resize(static_cast<std::size_t>(count));
  return account;
}

/// The last line is where programs say what is wrong.
std::string last_line(std::string text) {
  while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.pop_back();
  const std::size_t line = text.rfind('\n');
  if (line != std::string::npos) text.erase(0, line + 1);
  for (char& c : text)
    if (static_cast<unsigned char>(c) < ' ' || c == '\x7f') c = ' ';
  return text;
}

std::string how_it_went(int status, const std::string& said) {
  std::string text = WIFEXITED(status) ? fmt::format("exit {}", WEXITSTATUS(status))
                                       : fmt::format("signal {}", WTERMSIG(status));
  if (WIFEXITED(status) && WEXITSTATUS(status) == kCannotExec && said.empty())
    text = "it cannot be executed";
  if (!said.empty()) text += ": " + said;
  return text;
}

int open_pidfd(pid_t pid) { return static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)); }

}  // namespace

/// One thread starts them, hears them and waits for them. It is the one whose death takes them
/// along, so that after a restart nobody switches a node behind the scheduler's back.
class PowerPrograms::Work {
 public:
  Work(Fd wake, std::function<void(ProgramEnd)> ended)
      : wake_(std::move(wake)), ended_(std::move(ended)), thread_([this] { loop(); }) {}
  ~Work() {
    {
      const std::lock_guard lock{mutex_};
      is_over_ = true;
    }
    stir();
    thread_.join();
  }
  Work(const Work&) = delete;
  Work& operator=(const Work&) = delete;

  void add(ProgramOrder order) {
    {
      const std::lock_guard lock{mutex_};
      orders_.push_back(std::move(order));
    }
    stir();
  }
  void kill(std::uint64_t ticket) {
    {
      const std::lock_guard lock{mutex_};
      kills_.insert(ticket);
    }
    stir();
  }

 private:
  struct Running {
    ProgramOrder order;
    pid_t pid = 0;
    Fd process;
    Fd output;
    std::string said{};
    Steady::time_point until;
    bool is_late = false;
    bool is_unwanted = false;
  };

  void stir() const {
    const std::uint64_t one = 1;
    static_cast<void>(::write(wake_.get(), &one, sizeof one));
  }

  void loop() {
    for (;;) {
      std::vector<ProgramOrder> orders;
      std::set<std::uint64_t> kills;
      {
        const std::lock_guard lock{mutex_};
        if (is_over_) break;
        orders.swap(orders_);
        kills.swap(kills_);
      }
      for (ProgramOrder& order : orders) begin(std::move(order));
      for (Running& program : running_) {
        if (!kills.contains(program.order.ticket)) continue;
        program.is_unwanted = true;
        end_all(program);
      }
      wait();
      reap();
    }
    for (Running& program : running_) end_all(program);
    for (const Running& program : running_) ::waitpid(program.pid, nullptr, 0);
  }

  static void end_all(const Running& program) {
    if (::kill(-program.pid, SIGKILL) != 0) ::kill(program.pid, SIGKILL);
  }

  void wait() {
    std::vector<pollfd> watched{{.fd = wake_.get(), .events = POLLIN, .revents = 0}};
    int timeout = -1;
    for (const Running& program : running_) {
      watched.push_back({.fd = program.process.get(), .events = POLLIN, .revents = 0});
      if (program.output.get() >= 0)
        watched.push_back({.fd = program.output.get(), .events = POLLIN, .revents = 0});
      if (program.is_late) continue;
      if (program.process.get() < 0) timeout = 50;  // an old kernel: look again soon
      const auto left = std::chrono::ceil<std::chrono::milliseconds>(program.until - Steady::now());
      const int soon = static_cast<int>(std::clamp<std::int64_t>(left.count(), 0, 3'600'000));
      timeout = timeout < 0 ? soon : std::min(timeout, soon);
    }
    ::poll(watched.data(), watched.size(), timeout);
    std::uint64_t ignored = 0;
    static_cast<void>(::read(wake_.get(), &ignored, sizeof ignored));
  }

  /// Nothing it says may stop it; of too much the end is kept.
  static void read_output(Running& program) {
    std::array<char, 4096> piece{};
    while (program.output.get() >= 0) {
      const ssize_t got = ::read(program.output.get(), piece.data(), piece.size());
      if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
      if (got <= 0) {
        program.output = Fd{};
        return;
      }
      program.said.append(piece.data(), static_cast<std::size_t>(got));
      if (program.said.size() > kMostSaid) program.said.erase(0, program.said.size() - kMostSaid);
    }
  }

  void reap() {
    const auto now = Steady::now();
    std::vector<ProgramEnd> ends;
    std::erase_if(running_, [&](Running& program) {
      read_output(program);
      int status = 0;
      const pid_t gone = ::waitpid(program.pid, &status, WNOHANG);
      if (gone == 0) {
        if (!program.is_late && now >= program.until) {
          program.is_late = true;
          end_all(program);
        }
        return false;
      }
      read_output(program);
      const bool is_good = gone == program.pid && WIFEXITED(status) && WEXITSTATUS(status) == 0;
      ProgramEnd end{.ticket = program.order.ticket, .is_good = is_good};
      if (program.is_unwanted)
        end.why = "it was not wanted any more";
      else if (program.is_late)
        end.why = fmt::format("killed after {}", human_duration(to_seconds(program.order.limit)));
      else if (!is_good)
        end.why = how_it_went(status, last_line(program.said));
      ends.push_back(std::move(end));
      return true;
    });
    for (ProgramEnd& end : ends) ended_(std::move(end));
  }

  void begin(ProgramOrder order) {
    const std::uint64_t ticket = order.ticket;
    if (auto begun = start(std::move(order)); !begun)
      ended_({.ticket = ticket, .is_good = false, .why = begun.error().text()});
  }

  Result<void> start(ProgramOrder order) {
    BERTH_TRY(const auto account, account_of(order.user));
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) return fail("no pipe can be made");
    Fd from(ends[0]);
    const Fd to(ends[1]);
    ::fcntl(from.get(), F_SETFL, O_NONBLOCK);
    const Fd nothing(::open("/dev/null", O_RDONLY | O_CLOEXEC));
    std::array<char*, 3> words{order.program.data(), order.node.data(), nullptr};
    std::string path = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
    std::string node = "BERTH_NODE=" + order.node;
    std::array<char*, 3> environment{path.data(), node.data(), nullptr};
    const pid_t parent = ::getpid();
    const pid_t child = ::fork();
    if (child < 0) return fail(fmt::format("it cannot be started: {}", std::strerror(errno)));
    if (child == 0) {  // async-signal-safe calls only
      ::setsid();
      ::dup2(nothing.get(), STDIN_FILENO);
      ::dup2(to.get(), STDOUT_FILENO);
      ::dup2(to.get(), STDERR_FILENO);
      // Whatever it leaves running must not hold our socket open.
      ::syscall(SYS_close_range, STDERR_FILENO + 1, ~0U, kCloseOnExec);
      struct sigaction plain {};
      plain.sa_handler = SIG_DFL;
      for (int number = 1; number < NSIG; ++number) ::sigaction(number, &plain, nullptr);
      sigset_t none;
      sigemptyset(&none);
      ::sigprocmask(SIG_SETMASK, &none, nullptr);
      if (account) {
        const bool is_changed = ::setgroups(account->groups.size(), account->groups.data()) == 0 &&
                                ::setgid(account->gid) == 0 && ::setuid(account->uid) == 0;
        if (!is_changed) ::_exit(kCannotChange);
      }
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);  // after the change of user, which takes it back
      if (::getppid() != parent) ::_exit(kCannotExec);
      if (::chdir("/") != 0) ::_exit(kCannotExec);
      ::execve(order.program.c_str(), words.data(), environment.data());
      ::_exit(kCannotExec);
    }
    const auto until = Steady::now() + std::chrono::microseconds{order.limit.count()};
    Running program{.order = std::move(order),
                    .pid = child,
                    .process = Fd(open_pidfd(child)),
                    .output = std::move(from),
                    .until = until};
    running_.push_back(std::move(program));
    return {};
  }

  Fd wake_;
  std::function<void(ProgramEnd)> ended_;
  std::mutex mutex_;
  std::vector<ProgramOrder> orders_;
  std::set<std::uint64_t> kills_;
  bool is_over_ = false;
  std::vector<Running> running_;  // the thread's own
  std::thread thread_;
};

PowerPrograms::PowerPrograms(std::unique_ptr<Work> work) : work_(std::move(work)) {}
PowerPrograms::~PowerPrograms() = default;

Result<std::unique_ptr<PowerPrograms>> PowerPrograms::open(std::function<void(ProgramEnd)> ended) {
  Fd wake(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (wake.get() < 0) return fail("programs: no event can be made");
  return std::unique_ptr<PowerPrograms>(
      new PowerPrograms(std::make_unique<Work>(std::move(wake), std::move(ended))));
}

void PowerPrograms::run(ProgramOrder order) { work_->add(std::move(order)); }
void PowerPrograms::kill(std::uint64_t ticket) { work_->kill(ticket); }

}  // namespace berth
