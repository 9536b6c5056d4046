#include "exec/shim/keeper.h"

#include <algorithm>
#include <cerrno>
#include <csignal>

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/boot_clock.h"
#include "base/crash_point.h"
#include "exec/shim/cleanup.h"
#include "exec/shim/joined.h"
#include "exec/shim/output_note.h"
#include "exec/shim/private_tmp.h"
#include "exec/shim/program.h"
#include "exec/shim/steps.h"
#include "exec/shim/task.h"

namespace berth {

namespace {

constexpr std::int64_t kSecond = 1'000'000;
constexpr std::int64_t kFirstPause = 10'000;
constexpr std::int64_t kFullRate = 1000;
constexpr std::int64_t kLeastRate = 10;
constexpr std::int64_t kRatePeriod = 200'000;  // short to people, long against the cost of a freeze

/// A group without a limit counts those whom the machine, or a group around it, has killed.
std::string out_of_memory(std::int64_t limit_mib, std::int64_t peak_kib) {
  const std::string used =
      peak_kib > 0 ? ", it used up to " + std::to_string(peak_kib / 1024) + " MiB" : "";
  if (limit_mib == 0) return "out of memory: there was none left for it" + used;
  return "out of memory: its limit is " + std::to_string(limit_mib) + " MiB" + used;
}

}  // namespace

Keeper::Keeper(RunDir directory, ShimOrder shim, std::function<void(pid_t)> started)
    : directory_(std::move(directory)),
      shim_(std::move(shim)),
      started_(std::move(started)),
      claim_(directory_.claim(shim_.order.attempt)),
      family_(AttemptCgroups(shim_.cgroups)) {
  record_.job = shim_.order.job;
  record_.attempt = shim_.order.attempt;
  record_.boot_id = boot_id();
  // A stopped child is no news.
  struct sigaction quiet {};
  quiet.sa_handler = SIG_DFL;
  quiet.sa_flags = SA_NOCLDSTOP;
  ::sigaction(SIGCHLD, &quiet, nullptr);
  sigevent alarm{};
  alarm.sigev_notify = SIGEV_SIGNAL;
  alarm.sigev_signo = SIGALRM;
  ::timer_create(CLOCK_BOOTTIME, &alarm, &timer_);
}

ExitRecord Keeper::run() {
  record_.begun_clock = active_since_ = boot_clock_micros();
  if (const auto begun = start_all(); !begun) {
    record_.was_started = false;
    record_.why = begun.error().text();
    record_.exit_code = 127;
    has_failed_ = true;  // how the tasks that did start end is not the story
    kill_all();
  } else {
    started_(tasks_.front().pid);
    crash_point("shim.started");
  }
  cleanup_environment_ = cleanup_environment(shim_.order);
  for (const auto& [name, value] : shim_.order.env)
    if (name == "BERTH_NODE") node_ = value;
  shim_.order.script = {};
  shim_.order.env = {};
  for (reap(); has_children_; reap()) wait();
  crash_point("shim.exited");
  finish(record_);
  return record_;
}

Result<void> Keeper::start_all() {
  std::string script;
  if (!shim_.order.script.empty()) {
    is_script_ = true;
    BERTH_TRY(script, write_script(directory_, shim_.order));
  }
  tmp_ = make_private_tmp(directory_, shim_.order);
  const std::string steps = directory_.steps(shim_.order.attempt);
  BERTH_TRY_VOID(make_steps_directory(steps, shim_.order));
  // One after the other: the first empties the output file before the second writes into it.
  for (std::int32_t rank = 0; rank < shim_.order.tasks; ++rank) {
    BERTH_TRY(const pid_t pid,
              start_task(
                  shim_,
                  {.program = script, .claim = claim_, .steps = steps, .tmp = tmp_, .rank = rank}));
    tasks_.push_back({pid});
    ++open_tasks_;
  }
  return {};
}

void Keeper::wait() {
  set_timer();
  sigset_t awaited;
  sigemptyset(&awaited);
  sigaddset(&awaited, SIGCHLD);
  sigaddset(&awaited, SIGALRM);
  sigaddset(&awaited, shim_signal());
  siginfo_t what{};
  const int number = ::sigwaitinfo(&awaited, &what);
  if (number == shim_signal()) {
    reap();  // what is over is over: a stop that comes now has not ended it
    if (has_children_) obey(unpack(what.si_value.sival_int));
  }
  watch_clock();
}

void Keeper::reap() {
  for (;;) {
    int status = 0;
    const pid_t pid = ::waitpid(-1, &status, WNOHANG);
    if (pid > 0) {
      note_end(pid, status);
      continue;
    }
    has_children_ = pid == 0;  // none at all: nothing descends from us any more
    break;
  }
  const bool is_unasked = phase_ == Phase::Running;
  if (has_children_ && is_unasked && (open_tasks_ == 0 || has_failed_))
    begin_end(Ask::Leave, shim_.order.grace_seconds);
  // Only the shells were warned and they are gone: the rest need not wait for its kill.
  if (has_children_ && phase_ == Phase::Ending && open_tasks_ == 0 && !is_everybody_asked_)
    ask_everybody(SIGTERM);
}

void Keeper::note_end(pid_t pid, int status) {
  const auto task = std::find_if(tasks_.begin(), tasks_.end(), [&](const Task& each) {
    return each.pid == pid && !each.is_over;
  });
  if (task == tasks_.end()) return;  // somebody's orphan
  task->is_over = true;
  --open_tasks_;
  const bool is_failure = !WIFEXITED(status) || WEXITSTATUS(status) != 0;
  if (!is_failure || has_failed_) return;
  has_failed_ = true;
  record_.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 0;
  record_.signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
  if (tasks_.size() > 1)
    record_.why = "task " + std::to_string(task - tasks_.begin()) + " failed first";
}

void Keeper::obey(ShimCommand command) {
  switch (command.action) {
    case ShimAction::Warn:
    case ShimAction::Kill: return obey_stop(command);
    case ShimAction::Suspend:
      if (phase_ != Phase::Running || is_suspended_) return;
      active_before_ = active_micros();
      suspended_since_ = boot_clock_micros();
      is_suspended_ = true;
      return family_.suspend();
    case ShimAction::Resume:
      if (!is_suspended_) return;
      end_suspension();
      active_since_ = rate_at_ = boot_clock_micros();
      is_resting_ = true;  // until the clock is looked at, which is next
      return;
    case ShimAction::Signal:
      if (command.value >= 1 && command.value <= 64) signal_job(static_cast<int>(command.value));
      return;
    case ShimAction::SignalShell:
      if (command.value >= 1 && command.value <= 64) signal_tasks(static_cast<int>(command.value));
      return;
    case ShimAction::Cores: return read_cores();
    case ShimAction::Limit: return set_limit(command.value);
    case ShimAction::Rate: return set_rate(command.value);
    case ShimAction::Join: return join(command.value);
  }
}

void Keeper::obey_stop(ShimCommand command) {
  const bool is_killed = command.action == ShimAction::Kill;
  const bool is_running = open_tasks_ > 0 && !has_failed_;
  if (is_running)
    record_.stopped = std::max(record_.stopped, is_killed ? Stopped::Killed : Stopped::Warned);
  if (is_killed) return kill_all();
  if (phase_ == Phase::Running) return begin_end(Ask::Warning, command.value);
  // Warned already, for another reason: not again, but perhaps with less time.
  if (phase_ == Phase::Ending)
    kill_at_ = std::min(kill_at_, boot_clock_micros() + command.value * kSecond);
}

void Keeper::read_cores() {
  const auto text = get_file(directory_.cores(shim_.order.attempt));
  if (!text || !*text) return;
  if (const auto cores = cores_from(**text)) family_.bind(*cores);
}

void Keeper::set_limit(std::int64_t seconds) {
  LaunchOrder& order = shim_.order;
  order.time_limit = seconds;
  // Who was warned of the old limit and has time again is warned of the new one as well.
  was_warned_of_limit_ = was_warned_of_limit_ && seconds > 0 &&
                         active_micros() >= (seconds - order.warn_seconds) * kSecond;
}

/// It is no task: its end is nobody's business, and it goes when the tasks are over.
void Keeper::join(std::int64_t request) {
  if (phase_ != Phase::Running || open_tasks_ == 0) return;
  // What goes wrong is not told: nobody listens where it is asked for, which its client notices.
  TaskPlace place;
  place.claim = claim_;
  place.steps = directory_.steps(shim_.order.attempt);
  static_cast<void>(start_joined(directory_, shim_, std::move(place), request));
}

void Keeper::set_rate(std::int64_t milli) {
  rate_milli_ = std::clamp(milli, kLeastRate, kFullRate);
  rate_at_ = boot_clock_micros();
  is_resting_ = true;  // its next period begins now
}

/// Runs and rests by turns. Who is to run all the time is woken and left alone.
void Keeper::watch_rate() {
  if (phase_ != Phase::Running || is_suspended_) return;
  const std::int64_t now = boot_clock_micros();
  const bool is_full = rate_milli_ >= kFullRate;
  if (is_full ? !is_resting_ : now < rate_at_) return;
  is_resting_ = !is_resting_;
  const std::int64_t share = is_resting_ ? kFullRate - rate_milli_ : rate_milli_;
  // What was late is made up for, but not what was very late.
  rate_at_ = std::max(rate_at_, now - kRatePeriod) + kRatePeriod * share / kFullRate;
  if (is_resting_)
    family_.suspend();
  else
    family_.resume();
}

void Keeper::watch_clock() {
  watch_rate();
  watch_limit();
  if (phase_ == Phase::Running && family_.holds_the_killed()) family_.let_the_killed_go();
  if (phase_ == Phase::Running || boot_clock_micros() < kill_at_) return;
  // Only the kill that ends a running task is part of how it ended.
  if (phase_ == Phase::Ending && record_.stopped == Stopped::Warned && open_tasks_ > 0 &&
      !has_failed_)
    record_.stopped = Stopped::Killed;
  kill_all();
}

void Keeper::watch_limit() {
  const LaunchOrder& order = shim_.order;
  if (order.time_limit == 0 || phase_ != Phase::Running || is_suspended_) return;
  const std::int64_t active = active_micros();
  if (active >= order.time_limit * kSecond) {
    record_.timed_out = true;
    note_in_output(order, time_limit_note(order, node_));
    // A program that was told its time has had its warning: now it is asked to go.
    begin_end(was_warned_of_limit_ ? Ask::Leave : Ask::Warning, order.grace_seconds);
  } else if (!was_warned_of_limit_ && order.warn_seconds > 0 &&
             active >= (order.time_limit - order.warn_seconds) * kSecond) {
    was_warned_of_limit_ = true;
    if (order.warn_shell)
      signal_tasks(order.warn_signal);
    else
      signal_job(order.warn_signal);
  }
}

void Keeper::ask_everybody(int signal) {
  is_everybody_asked_ = true;
  family_.signal(signal);
}

/// Slurm's way: with steps running, a signal is for them and not for the script that waits for them.
void Keeper::signal_job(int number) {
  const bool has_steps = is_script_ && is_step_running(directory_.steps(shim_.order.attempt));
  if (has_steps)
    family_.signal_steps(number);
  else
    family_.signal(number);
}

void Keeper::warn() {
  const LaunchOrder& order = shim_.order;
  if (!order.warn_shell) return ask_everybody(order.warn_signal);
  signal_tasks(order.warn_signal);
}

void Keeper::signal_tasks(int number) {
  // Our own children, not reaped yet: their numbers are still theirs.
  for (const Task& task : tasks_)
    if (!task.is_over && task.pid > 0) ::kill(task.pid, number);
}

void Keeper::begin_end(Ask ask, std::int64_t grace_seconds) {
  if (grace_seconds <= 0) return kill_all();
  phase_ = Phase::Ending;
  kill_at_ = boot_clock_micros() + grace_seconds * kSecond;
  if (ask == Ask::Warning)
    warn();
  else
    ask_everybody(SIGTERM);
  end_suspension();
  is_resting_ = false;
  family_.resume();  // a job that stands still could not answer
}

void Keeper::kill_all() {
  const bool is_first = phase_ != Phase::Killing;
  phase_ = Phase::Killing;
  family_.kill();
  kill_pause_ = is_first ? kFirstPause : std::min(kill_pause_ * 2, kSecond);
  kill_at_ = boot_clock_micros() + kill_pause_;
}

std::int64_t Keeper::active_micros() const {
  if (is_suspended_) return active_before_;
  return active_before_ + boot_clock_micros() - active_since_;
}

std::int64_t Keeper::suspended_micros() const {
  return suspended_before_ + (is_suspended_ ? boot_clock_micros() - suspended_since_ : 0);
}

void Keeper::end_suspension() {
  suspended_before_ = suspended_micros();
  is_suspended_ = false;
}

std::optional<std::int64_t> Keeper::next_deadline() const {
  if (phase_ != Phase::Running) return kill_at_;
  if (is_suspended_) {
    if (!family_.holds_the_killed()) return std::nullopt;
    return boot_clock_micros() + kSecond;
  }
  const auto limit = next_of_limit();
  if (rate_milli_ >= kFullRate) return limit;
  return std::min(rate_at_, limit.value_or(rate_at_));
}

std::optional<std::int64_t> Keeper::next_of_limit() const {
  const LaunchOrder& order = shim_.order;
  if (order.time_limit == 0) return std::nullopt;
  const bool warns = !was_warned_of_limit_ && order.warn_seconds > 0;
  const std::int64_t limit =
      std::max<std::int64_t>(0, order.time_limit - (warns ? order.warn_seconds : 0));
  return active_since_ + limit * kSecond - active_before_;
}

void Keeper::set_timer() {
  itimerspec when{};
  if (const auto deadline = next_deadline()) {
    const std::int64_t at = std::max<std::int64_t>(1, *deadline);  // zero would switch it off
    when.it_value.tv_sec = at / kSecond;
    when.it_value.tv_nsec = at % kSecond * 1000;
  }
  ::timer_settime(timer_, TIMER_ABSTIME, &when, nullptr);
}

void Keeper::finish(ExitRecord& record) const {
  record.ended_clock = boot_clock_micros();
  record.suspended_micros = suspended_micros();
  rusage used{};
  ::getrusage(RUSAGE_CHILDREN, &used);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
  };
  record.cpu_seconds = seconds(used.ru_utime) + seconds(used.ru_stime);
  record.max_rss_kib = used.ru_maxrss;
  record.peak_kib = family_.peak_kib();
  if (has_failed_ && family_.was_out_of_memory()) {
    record.out_of_memory = true;
    note_in_output(shim_.order, memory_note(shim_.order, node_));
    record.why = out_of_memory(shim_.order.memory_mib, record.peak_kib) +
                 (record.why.empty() ? "" : "; ") + record.why;
  }
  if (has_failed_ && record.why.empty() && !record.timed_out)
    record.why = session_reason(directory_.steps(shim_.order.attempt));
  family_.remove_groups();
  run_cleanup(shim_.order, cleanup_environment_);
  remove_private_tmp(directory_, shim_.order, tmp_);
  ::unlink(directory_.script(shim_.order.attempt).c_str());
}

}  // namespace berth
