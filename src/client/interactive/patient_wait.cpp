#include "client/interactive/patient_wait.h"

#include <algorithm>
#include <ctime>

#include <fmt/format.h>

#include "base/terminal_text.h"
#include "client/tables.h"

namespace berth::client {

namespace {

using Clock = std::chrono::steady_clock;
using namespace std::chrono_literals;

/// So long a start goes without a word.
constexpr auto kSilence = 500ms;
constexpr auto kLongestPause = 1'000ms;
constexpr auto kSchedulerPatience = 120s;
constexpr std::size_t kReasonColumns = 200;

/// What `berth why` says first, with its numbers; empty: it knows no more, or does not answer.
std::string first_reason(Scheduler& scheduler, JobNumber job) {
  const auto body = scheduler.why(job);
  if (!body) return {};
  const auto why = why_from(*body);
  if (!why || why->reasons.empty()) return {};
  return clipped(why->reasons.front().text, kReasonColumns);
}

/// "Resources [1 of 4 GPUs are free]": Slurm's word, then ours.
std::string reason_text(Scheduler& scheduler, const JobRow& job) {
  const std::string word = slurm_reason(job);
  std::string ours = harmless(job.reason);
  const auto is_same = [](char a, char b) { return (a | 0x20) == (b | 0x20); };
  if (ours.empty() || std::ranges::equal(ours, word, is_same))
    ours = first_reason(scheduler, job.number);
  return ours.empty() ? word : fmt::format("{} [{}]", word, ours);
}

/// Tells what is new.
class Voice {
 public:
  Voice(Scheduler& scheduler, const Console& console, bool is_quiet)
      : scheduler_(scheduler), console_(console), is_quiet_(is_quiet) {}

  void waits(const JobRow& job) {
    if (is_quiet_) return;
    if (!has_begun_)
      console_.note(fmt::format("job {} queued and waiting for resources", job.number));
    has_begun_ = true;
    // Asked once for each: the answer is dear, and numbers alone are not worth another line.
    const std::string kind = slurm_reason(job) + "/" + job.reason;
    if (kind == said_ || slurm_reason(job) == "None") return;
    said_ = kind;
    console_.note(fmt::format("job {} waits: {}", job.number, reason_text(scheduler_, job)));
  }
  void runs(const JobRow& job) const {
    if (has_begun_) console_.note(fmt::format("job {} has been allocated resources", job.number));
  }

 private:
  Scheduler& scheduler_;
  const Console& console_;
  bool is_quiet_;
  bool has_begun_ = false;
  std::string said_;
};

bool is_refusal(const Scheduler& scheduler) {
  return scheduler.last_status() != 0 && scheduler.last_status() < 500;
}

}  // namespace

HeardInterrupts::HeardInterrupts() {
  sigemptyset(&heard_);
  for (const int number : {SIGINT, SIGTERM, SIGHUP}) sigaddset(&heard_, number);
  ::sigprocmask(SIG_BLOCK, &heard_, &before_);
}

HeardInterrupts::~HeardInterrupts() { ::sigprocmask(SIG_SETMASK, &before_, nullptr); }

std::optional<int> HeardInterrupts::sleep(std::chrono::milliseconds time) const {
  timespec pause{};
  pause.tv_sec = time.count() / 1000;
  pause.tv_nsec = time.count() % 1000 * 1'000'000;
  const int number = ::sigtimedwait(&heard_, nullptr, &pause);
  if (number > 0) return number;
  return std::nullopt;
}

Result<Started> wait_for_start(Scheduler& scheduler, JobNumber job, const StartWait& how,
                               const Console& console) {
  const HeardInterrupts interrupts;
  Voice voice(scheduler, console, how.is_quiet);
  const auto begun = Clock::now();
  auto answered = begun;
  std::chrono::milliseconds pause = 30ms;
  scheduler.be_patient({});  // we are, and hear Ctrl-C meanwhile
  while (true) {
    const auto row = scheduler.job(job);
    const auto now = Clock::now();
    if (row) {
      answered = now;
      if (is_over(row->state)) return Started{.kind = Started::Kind::Over, .job = *row};
      if (row->state == LiveState::Running || row->state == LiveState::Suspended) {
        voice.runs(*row);
        return Started{.kind = Started::Kind::Runs, .job = *row};
      }
      if (how.at_most && now - begun > *how.at_most)
        return Started{.kind = Started::Kind::TooLate, .job = *row};
      if (now - begun > kSilence && row->state != LiveState::Starting) voice.waits(*row);
    } else if (is_refusal(scheduler) || now - answered > kSchedulerPatience) {
      return tl::unexpected<Error>(row.error());
    }
    if (const auto number = interrupts.sleep(pause))
      return Started{.kind = Started::Kind::Interrupted, .signal = *number};
    pause = std::min<std::chrono::milliseconds>(pause * 3 / 2, kLongestPause);
  }
}

void give_up(Scheduler& scheduler, JobNumber job, const std::string& why, const Console& console) {
  JobAction action;
  action.verb = Verb::Cancel;
  action.ids = {job};
  action.why = why;
  scheduler.be_patient({.of_others = 5s});
  if (const auto done = scheduler.act(std::move(action)); !done)
    console.note(fmt::format("job {} could not be cancelled: {}", job, done.error().text()));
}

std::optional<JobRow> wait_for_end(Scheduler& scheduler, JobNumber job,
                                   std::chrono::milliseconds at_most) {
  const auto until = Clock::now() + at_most;
  const HeardInterrupts interrupts;
  while (true) {
    const auto row = scheduler.job(job);
    if (row && is_over(row->state)) return *row;
    if (Clock::now() > until || interrupts.sleep(100ms)) return std::nullopt;
  }
}

}  // namespace berth::client
