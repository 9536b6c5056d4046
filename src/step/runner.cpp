#include "step/runner.h"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <map>

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fmt/format.h>

#include "base/split.h"
#include "model/output_pattern.h"

namespace berth {

namespace {

constexpr std::int64_t kMilli = 1'000;
constexpr std::int64_t kKillWait = 30 * kMilli;  // between asking and killing
constexpr std::int64_t kFlushAfter = 100;        // a prompt without a line break is seen, too
constexpr std::int64_t kAgain = kMilli;          // two interrupts within this are meant

constexpr int kPassedOn[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGALRM, SIGCONT};

std::int64_t now_millis() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * kMilli + now.tv_nsec / 1'000'000;
}

/// "0-3,7".
std::string ranks_text(std::vector<std::size_t> ranks) {
  std::ranges::sort(ranks);
  std::string text;
  for (std::size_t i = 0; i < ranks.size();) {
    std::size_t last = i;
    while (last + 1 < ranks.size() && ranks[last + 1] == ranks[last] + 1) ++last;
    text += fmt::format("{}{}", text.empty() ? "" : ",", ranks[i]);
    if (last > i) text += fmt::format("-{}", ranks[last]);
    i = last + 1;
  }
  return text;
}

std::string end_text(int status) {
  if (WIFEXITED(status)) return fmt::format("Exited with exit code {}", WEXITSTATUS(status));
  return fmt::format("{}{}", ::strsignal(WTERMSIG(status)),
                     WCOREDUMP(status) ? " (core dumped)" : "");
}

int shell_code(int status) {
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

struct Pipe {
  Fd read, write;
};
Result<Pipe> make_pipe() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return fail_with_errno("pipe", "make one");
  return Pipe{Fd(ends[0]), Fd(ends[1])};
}

/// Why a program could not be run. A directory of PATH that we may not enter spoils the system's
/// own answer; it says nothing of the program unless that is there.
int exec_fault(int reason, const std::string& program, const std::string& path) {
  if (reason != EACCES || program.find('/') != std::string::npos) return reason;
  for (const std::string_view folder : split(path, ':')) {
    const std::string file = fmt::format("{}/{}", folder.empty() ? "." : folder, program);
    if (::access(file.c_str(), F_OK) == 0) return EACCES;
  }
  return ENOENT;
}

/// In the child, once its streams are at 0, 1 and 2. Never comes back.
[[noreturn]] void become(const TaskPlan& plan, const std::string& workdir) {
  for (int number = 1; number < NSIG; ++number) ::signal(number, SIG_DFL);
  sigset_t none;
  sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  if (!workdir.empty() && ::chdir(workdir.c_str()) != 0) {
    const int reason = errno;
    static_cast<void>(write_all(2, fmt::format("srun: error: couldn't chdir to `{}': {}\n", workdir,
                                               std::strerror(reason))));
    if (::chdir("/tmp") != 0) ::_exit(reason);  // as Slurm does
  }
  if (!plan.cores.empty()) {
    cpu_set_t set;
    CPU_ZERO(&set);
    for (const std::int32_t core : plan.cores) CPU_SET(static_cast<std::size_t>(core), &set);
    static_cast<void>(::sched_setaffinity(0, sizeof set, &set));  // a hint: cores may have moved
  }
  std::vector<std::string> entries;
  for (const auto& [name, value] : plan.environment) entries.push_back(name + "=" + value);
  entries.push_back(fmt::format("SLURM_TASK_PID={}", ::getpid()));
  std::vector<char*> environment, words;
  for (std::string& entry : entries) environment.push_back(entry.data());
  environment.push_back(nullptr);
  std::vector<std::string> program = plan.program;
  for (std::string& word : program) words.push_back(word.data());
  words.push_back(nullptr);
  // The PATH of the task decides, not ours.
  const auto path = plan.environment.find("PATH");
  if (path != plan.environment.end()) ::setenv("PATH", path->second.c_str(), 1);
  ::execvpe(words.front(), words.data(), environment.data());
  const int told = errno;
  const char* searched = std::getenv("PATH");
  const int reason = exec_fault(told, program.front(), searched != nullptr ? searched : "");
  std::string whole = program.front();
  std::error_code ignored;
  if (whole.find('/') != std::string::npos && whole.front() != '/')
    whole = std::filesystem::current_path(ignored).string() + "/" + whole;
  // Slurm's words: scripts and people look for them.
  static_cast<void>(write_all(
      2, fmt::format("slurmstepd: error: execve(): {}: {}\n", whole, std::strerror(reason))));
  ::_exit(reason);
}

/// Where a stream of a task begins or ends.
struct Ends {
  int in = -1, out = -1, err = -1;
};

void take_streams(const Ends& ends) {
  // Copies above 2 first: one of them may be 0, 1 or 2 itself.
  const int in = ::fcntl(ends.in, F_DUPFD_CLOEXEC, 3), out = ::fcntl(ends.out, F_DUPFD_CLOEXEC, 3),
            err = ::fcntl(ends.err, F_DUPFD_CLOEXEC, 3);
  if (::dup2(in, 0) < 0 || ::dup2(out, 1) < 0 || ::dup2(err, 2) < 0) ::_exit(errno);
}

}  // namespace

StepRunner::StepRunner(std::vector<TaskPlan> tasks, RunSettings settings)
    : plans_(std::move(tasks)), settings_(std::move(settings)) {
  sigset_t awaited;
  sigemptyset(&awaited);
  sigaddset(&awaited, SIGCHLD);
  for (const int number : kPassedOn) sigaddset(&awaited, number);
  ::sigprocmask(SIG_BLOCK, &awaited, nullptr);
  signals_.reset(::signalfd(-1, &awaited, SFD_CLOEXEC | SFD_NONBLOCK));
  ::signal(SIGPIPE, SIG_IGN);
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);  // orphans of tasks are ours to end
}

StepRunner::~StepRunner() = default;

Result<StepEnd> StepRunner::run() {
  begun_ = now_millis();
  if (auto begun = start_all(); !begun) {
    signal_tasks(SIGKILL);
    while (open_tasks_ > 0) {
      reap();
      pass_on(100);
    }
    end_leftovers();
    return tl::unexpected<Error>(std::move(begun).error());
  }
  const auto is_anything_open = [&] {
    return open_tasks_ > 0 ||
           std::ranges::any_of(relays_, [](const OutputRelay& one) { return one.is_open(); });
  };
  while (open_tasks_ > 0) {
    pass_on(until_next());
    reap();
    watch_clock();
  }
  end_leftovers();  // whoever still holds a pipe of theirs
  while (is_anything_open()) pass_on(100);
  return judged();
}

Result<void> StepRunner::start_all() {
  std::vector<Fd> inputs;
  for (std::size_t rank = 0; rank < plans_.size(); ++rank) BERTH_TRY_VOID(start(rank, inputs));
  if (!inputs.empty()) input_ = std::make_unique<InputFan>(0, std::move(inputs));
  return {};
}

Result<void> StepRunner::start(std::size_t rank, std::vector<Fd>& inputs) {
  const auto number = static_cast<std::int32_t>(rank);
  std::vector<Fd> held;
  Ends ends;
  const auto from_file = [&](const std::string& pattern) -> Result<int> {
    const std::string path = path_of_task(pattern, number);
    held.emplace_back(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    if (!held.back().is_open()) return fail_with_errno(path, "read it");
    return held.back().get();
  };
  // Of several tasks with one file only the first empties it.
  const auto to_file = [&](const std::string& pattern) -> Result<int> {
    const std::string path = path_of_task(pattern, number);
    const bool is_new = rank == 0 || is_per_task(pattern);
    const int mode =
        O_WRONLY | O_CREAT | O_CLOEXEC | O_APPEND | (is_new && !settings_.appends ? O_TRUNC : 0);
    held.emplace_back(::open(path.c_str(), mode, 0666));
    if (!held.back().is_open()) return fail_with_errno(path, "write it");
    return held.back().get();
  };
  const auto relayed = [&](int to) -> Result<int> {
    BERTH_TRY(Pipe pipe, make_pipe());
    const int end = pipe.write.get();
    held.push_back(std::move(pipe.write));
    std::string label;
    if (settings_.labels) {
      const auto width = fmt::to_string(plans_.size() - 1).size();
      label = fmt::format("{:0>{}}: ", rank, width);
    }
    relays_.emplace_back(std::move(pipe.read), to, std::move(label), plans_.size() > 1);
    return end;
  };
  const auto output = [&](const std::string& pattern, int own) -> Result<int> {
    const bool is_wanted = !settings_.output_rank || *settings_.output_rank == number;
    if (!is_wanted) return to_file("/dev/null");
    if (pattern.empty()) return relayed(own);
    BERTH_TRY(const int file, to_file(pattern));
    if (!settings_.labels) return file;
    files_.push_back(std::move(held.back()));
    held.pop_back();
    return relayed(files_.back().get());
  };

  if (settings_.has_terminal && rank == 0) {
    ends = {0, 1, 2};
  } else {
    const bool has_input = !settings_.input_rank || *settings_.input_rank == number;
    if (!settings_.input.empty()) {
      BERTH_TRY(ends.in, from_file(settings_.input));
    } else if (!has_input || settings_.has_terminal) {
      BERTH_TRY(ends.in, from_file("/dev/null"));
    } else {
      BERTH_TRY(Pipe pipe, make_pipe());
      ::fcntl(pipe.write.get(), F_SETFL, O_NONBLOCK);
      ends.in = pipe.read.get();
      held.push_back(std::move(pipe.read));
      inputs.push_back(std::move(pipe.write));
    }
    BERTH_TRY(ends.out, output(settings_.output, 1));
    const bool shares = settings_.error.empty() && !settings_.output.empty();
    if (shares) {
      ends.err = ends.out;
    } else {
      BERTH_TRY(ends.err, output(settings_.error, 2));
    }
  }

  const pid_t parent = ::getpid();
  const pid_t child = ::fork();
  if (child < 0) return fail(fmt::format("cannot make a process: {}", std::strerror(errno)));
  if (child == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != parent) ::_exit(1);
    // A group of its own: what the terminal sends is for srun to pass on. One that has the terminal
    // itself stays where its terminal is.
    if (!settings_.has_terminal) ::setpgid(0, 0);
    take_streams(ends);
    become(plans_[rank], settings_.workdir);
  }
  if (!settings_.has_terminal) ::setpgid(child, child);
  tasks_.push_back({.pid = child});
  ++open_tasks_;
  return {};
}

void StepRunner::pass_on(int timeout) {
  std::vector<pollfd> files{{signals_.get(), POLLIN, 0}};
  std::vector<std::size_t> relays;
  for (std::size_t i = 0; i < relays_.size(); ++i) {
    if (!relays_[i].is_open()) continue;
    files.push_back({relays_[i].fd(), POLLIN, 0});
    relays.push_back(i);
  }
  const bool reads = input_ != nullptr && input_->wants_input();
  const std::size_t input_at = files.size();
  if (reads) files.push_back({input_->from(), POLLIN, 0});
  const auto waiting = input_ != nullptr ? input_->waiting() : std::vector<InputFan::Waiting>{};
  const std::size_t waiting_at = files.size();
  for (const InputFan::Waiting& one : waiting) files.push_back({one.fd, POLLOUT, 0});

  const int ready = ::poll(files.data(), files.size(), timeout);
  if (ready <= 0) {
    for (OutputRelay& one : relays_) one.flush();
    return;
  }
  for (std::size_t i = 0; i < relays.size(); ++i)
    if (files[i + 1].revents != 0) relays_[relays[i]].pump();
  if (reads && files[input_at].revents != 0) input_->read_more();
  for (std::size_t i = 0; i < waiting.size(); ++i)
    if (files[waiting_at + i].revents != 0) input_->write_to(waiting[i].task);
  if (files.front().revents != 0) read_signals();
}

void StepRunner::read_signals() {
  signalfd_siginfo what{};
  while (::read(signals_.get(), &what, sizeof what) == sizeof what)
    if (what.ssi_signo != SIGCHLD)
      obey(static_cast<int>(what.ssi_signo), static_cast<std::int64_t>(what.ssi_pid));
}

void StepRunner::obey(int number, std::int64_t sender) {
  // What the shim sends goes to every process of the job: the tasks have it already.
  const bool is_for_all = settings_.shim != 0 && sender == settings_.shim;
  if (number == SIGINT && !is_for_all) return interrupt();
  if (number == SIGTERM || number == SIGHUP) {
    is_cancelled_ = true;
    if (!is_for_all) begin_end("forcing job termination", number);
    return;
  }
  if (!is_for_all) signal_tasks(number);
}

void StepRunner::interrupt() {
  const std::int64_t now = now_millis();
  const bool is_again = interrupts_ > 0 && now - interrupted_ <= kAgain;
  interrupts_ = is_again ? interrupts_ + 1 : 1;
  interrupted_ = now;
  if (interrupts_ == 1 && !settings_.quits_on_interrupt && ::isatty(0) == 1) {
    std::vector<std::size_t> running;
    for (std::size_t rank = 0; rank < tasks_.size(); ++rank)
      if (!tasks_[rank].is_over) running.push_back(rank);
    settings_.say("interrupt (one more within 1 sec to abort)");
    settings_.say(fmt::format("StepId={} tasks {}: running", settings_.step, ranks_text(running)));
    return;
  }
  is_cancelled_ = true;
  if (interrupts_ > 2) return begin_end("forcing job termination", SIGKILL);
  settings_.say(fmt::format("sending Ctrl-C to StepId={}", settings_.step));
  signal_tasks(SIGINT);
}

void StepRunner::signal_tasks(int number) {
  for (const Task& task : tasks_) {
    if (task.is_over) continue;
    // The group reaches what a task has started; one with the terminal has no group of its own.
    ::kill(settings_.has_terminal ? task.pid : -task.pid, number);
  }
}

void StepRunner::begin_end(std::string why, int number) {
  if (!why.empty()) settings_.say(why);
  signal_tasks(number);
  signal_tasks(SIGCONT);
  if (kill_at_ == 0) kill_at_ = now_millis() + kKillWait;
}

void StepRunner::reap() {
  std::vector<std::size_t> ended;
  for (;;) {
    int status = 0;
    rusage used{};
    const pid_t pid = ::wait4(-1, &status, WNOHANG, &used);
    if (pid <= 0) break;
    const auto task = std::ranges::find(tasks_, pid, &Task::pid);
    if (task == tasks_.end() || task->is_over) continue;  // somebody's orphan
    task->is_over = true;
    task->status = status;
    --open_tasks_;
    ended.push_back(static_cast<std::size_t>(task - tasks_.begin()));
    const auto seconds = [](const timeval& time) {
      return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
    };
    end_.cpu_seconds += seconds(used.ru_utime) + seconds(used.ru_stime);
    end_.max_rss_kib = std::max<std::int64_t>(end_.max_rss_kib, used.ru_maxrss);
  }
  if (ended.empty()) return;
  if (first_end_ == 0) first_end_ = now_millis();
  tell_ends(ended);
  const bool is_bad =
      std::ranges::any_of(ended, [&](std::size_t rank) { return tasks_[rank].status != 0; });
  if (is_bad && settings_.kills_on_bad_exit && open_tasks_ > 0 && kill_at_ == 0)
    begin_end(fmt::format("Terminating StepId={}", settings_.step), SIGTERM);
  const bool is_signalled = std::ranges::any_of(
      ended, [&](std::size_t rank) { return WIFSIGNALED(tasks_[rank].status); });
  if (is_signalled && open_tasks_ == 0)
    settings_.say(fmt::format("Force Terminated StepId={}", settings_.step));
}

/// Tasks that ended alike share a line.
void StepRunner::tell_ends(const std::vector<std::size_t>& ranks) {
  std::map<int, std::vector<std::size_t>> by_status;
  for (const std::size_t rank : ranks)
    if (tasks_[rank].status != 0) by_status[tasks_[rank].status].push_back(rank);
  for (const auto& [status, alike] : by_status)
    settings_.say(fmt::format("error: {}: task{} {}: {}", settings_.node,
                              alike.size() > 1 ? "s" : "", ranks_text(alike), end_text(status)));
}

void StepRunner::watch_clock() {
  const std::int64_t now = now_millis();
  if (open_tasks_ == 0) return;
  if (settings_.limit_seconds > 0 && !is_timed_out_ &&
      now >= begun_ + settings_.limit_seconds * kMilli) {
    is_timed_out_ = true;
    begin_end(fmt::format("error: *** STEP {} ON {} CANCELLED DUE TO TIME LIMIT ***",
                          settings_.step, settings_.node),
              SIGTERM);
  }
  if (settings_.wait_seconds > 0 && first_end_ > 0 && kill_at_ == 0 &&
      now >= first_end_ + settings_.wait_seconds * kMilli)
    begin_end(fmt::format("error: some tasks have not ended {} s after the first: terminating "
                          "StepId={}",
                          settings_.wait_seconds, settings_.step),
              SIGTERM);
  if (kill_at_ > 0 && now >= kill_at_) {
    signal_tasks(SIGKILL);
    kill_at_ = now + kMilli;  // and again, until they are gone
  }
}

int StepRunner::until_next() const {
  std::int64_t next = -1;
  const std::int64_t now = now_millis();
  const auto consider = [&](std::int64_t at) {
    const std::int64_t left = std::max<std::int64_t>(0, at - now);
    next = next < 0 ? left : std::min(next, left);
  };
  if (settings_.limit_seconds > 0 && !is_timed_out_)
    consider(begun_ + settings_.limit_seconds * kMilli);
  if (settings_.wait_seconds > 0 && first_end_ > 0)
    consider(first_end_ + settings_.wait_seconds * kMilli);
  if (kill_at_ > 0) consider(kill_at_);
  if (std::ranges::any_of(relays_, [](const OutputRelay& one) { return one.has_part(); }))
    consider(now + kFlushAfter);
  return static_cast<int>(std::min<std::int64_t>(next, 3'600'000));
}

/// What tasks have started and left: our children now that they are gone, for we are their
/// subreaper. Asked by a kill, for nobody waits for them any more.
void StepRunner::end_leftovers() {
  const std::int64_t until = now_millis() + 5 * kMilli;
  while (now_millis() < until) {
    int status = 0;
    pid_t pid = 0;
    while ((pid = ::waitpid(-1, &status, WNOHANG)) > 0) {
    }
    if (pid < 0) return;  // none is left
    std::ifstream children(fmt::format("/proc/self/task/{}/children", ::getpid()));
    for (pid_t child = 0; children >> child;) ::kill(child, SIGKILL);
    ::poll(nullptr, 0, 5);
  }
}

StepEnd StepRunner::judged() const {
  StepEnd end = end_;
  for (const Task& task : tasks_) {
    const int code = shell_code(task.status);
    if (code <= end.status) continue;
    end.status = code;
    end.exit_code = WIFEXITED(task.status) ? WEXITSTATUS(task.status) : 0;
    end.signal = WIFSIGNALED(task.status) ? WTERMSIG(task.status) : 0;
  }
  const bool is_cancelled = is_cancelled_ || end.signal == SIGTERM;
  end.state = is_timed_out_                     ? StepState::TimedOut
              : is_cancelled && end.status != 0 ? StepState::Cancelled
              : end.status != 0                 ? StepState::Failed
                                                : StepState::Completed;
  return end;
}

}  // namespace berth
