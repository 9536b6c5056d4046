#include "apps/demo.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <map>

#include <fmt/format.h>

#include "apps/commands.h"
#include "apps/demo_jobs.h"
#include "apps/demo_report.h"
#include "apps/embedded_scheduler.h"
#include "client/commands.h"
#include "client/tables.h"

namespace berth {

namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;
using client::JobRow;

/// SIGINT, SIGTERM and SIGHUP, asked for instead of suffered: the end is then like any other.
class Interrupts {
 public:
  Interrupts() {
    sigemptyset(&signals_);
    for (const int number : {SIGINT, SIGTERM, SIGHUP}) sigaddset(&signals_, number);
    pthread_sigmask(SIG_BLOCK, &signals_, &before_);
  }
  ~Interrupts() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  Interrupts(const Interrupts&) = delete;
  Interrupts& operator=(const Interrupts&) = delete;

  /// Sleeps; whether somebody wanted us to stop meanwhile.
  [[nodiscard]] bool within(std::chrono::milliseconds time) const {
    const timespec span{.tv_sec = time.count() / 1'000,
                        .tv_nsec = static_cast<long>(time.count() % 1'000) * 1'000'000};
    return sigtimedwait(&signals_, nullptr, &span) > 0;
  }

 private:
  sigset_t signals_{}, before_{};
};

/// The queue as it changes: redrawn in place on a terminal, otherwise a line for each event.
class QueueShow {
 public:
  void show(const std::vector<JobRow>& jobs, double now) {
    console_.is_terminal() ? redraw(jobs, now) : tell(jobs, now);
  }

 private:
  void redraw(const std::vector<JobRow>& jobs, double now) {
    std::int32_t busy = 0;
    for (const JobRow& job : jobs) busy += is_over(job.state) ? 0 : job.granted;
    std::string text = lines_ > 0 ? fmt::format("\x1b[{}F\x1b[J", lines_) : "";
    const std::string body =
        fmt::format("{:5.1f} s   GPUs in use: {} of {}\n\n", now, busy, kDemoGpus) +
        client::queue_table(jobs, {.has_colour = console_.has_colour(),
                                   .width = console_.width(),
                                   .now = client::unix_now()});
    lines_ = std::ranges::count(body, '\n');
    console_.put(text + body);
  }
  /// Ends before starts: it is they that make room.
  void tell(std::vector<JobRow> jobs, double now) {
    std::ranges::stable_partition(jobs, [](const JobRow& job) { return is_over(job.state); });
    for (const JobRow& job : jobs) {
      const auto [seen, is_new] = states_.try_emplace(job.number, LiveState::Unknown);
      if (seen->second == job.state) continue;
      const bool is_short = job.state == LiveState::Starting || job.state == LiveState::Stopping;
      seen->second = job.state;
      if (is_short) continue;
      console_.put(fmt::format(
          "{:5.1f} s  job {:>2} {:<13} {} GPU{}  {}{}\n", now, job.number, job.spec->name,
          job.spec->gpus, job.spec->gpus == 1 ? " " : "s", to_string(job.state),
          job.state == LiveState::Pending && !job.reason.empty() ? " (" + job.reason + ")"
                                                                 : std::string{}));
    }
  }

  client::Console console_{"berth"};
  std::map<JobNumber, LiveState> states_;  // as last told
  std::ptrdiff_t lines_ = 0;               // drawn
};

client::Endpoint at_socket(const std::string& path) {
  client::Endpoint endpoint;
  endpoint.socket = path;
  return endpoint;
}

enum class Ending : std::uint8_t { AllOver, Interrupted };

class Demo {
 public:
  Demo(const DemoOptions& options, EmbeddedScheduler& home)
      : options_(options), home_(home), scheduler_(at_socket(home.socket())) {}

  /// Submits what is due and shows the queue, until everything is over or somebody wants an end.
  [[nodiscard]] Result<Ending> run(const Interrupts& interrupts) {
    const auto jobs = demo_jobs();
    const auto begin = Clock::now();
    for (std::size_t next = 0;;) {
      const double now = std::chrono::duration<double>(Clock::now() - begin).count();
      for (; next < jobs.size() && jobs[next].submit <= now * options_.speed; ++next) {
        BERTH_TRY_VOID(scheduler_.submit(demo_spec(jobs[next], options_, home_.directory())));
      }
      BERTH_TRY(jobs_, rows());
      show_.show(jobs_, now);
      if (next == jobs.size() && all_over()) return Ending::AllOver;
      if (interrupts.within(200ms)) return Ending::Interrupted;
    }
  }

  /// Nothing of ours runs on.
  void cancel_all() {
    const auto deadline = Clock::now() + 20s;
    JobAction query;
    query.verb = Verb::Cancel;
    query.why = "the demo was stopped";
    for (const JobRow& job : jobs_) query.ids.push_back(job.number);
    static_cast<void>(scheduler_.act(query));
    while (Clock::now() < deadline) {
      auto now = rows();
      if (!now) return;
      jobs_ = *std::move(now);
      if (all_over()) return;
      usleep(50'000);
    }
  }
  [[nodiscard]] const std::vector<JobRow>& jobs() const noexcept { return jobs_; }

 private:
  /// Those that are over are in the history, asked second: who ends in between is in both.
  [[nodiscard]] Result<std::vector<JobRow>> rows() {
    BERTH_TRY(const auto alive, scheduler_.jobs({}));
    BERTH_TRY(const auto past, scheduler_.history({}));
    std::map<JobNumber, JobRow> all;
    for (const auto* page : {&alive, &past})
      for (const JobRow& job : page->jobs) all[job.number] = job;
    std::vector<JobRow> rows;
    for (auto& [number, job] : all) rows.push_back(std::move(job));
    return rows;
  }
  [[nodiscard]] bool all_over() const {
    return std::ranges::all_of(jobs_, [](const JobRow& job) { return is_over(job.state); });
  }

  const DemoOptions& options_;
  EmbeddedScheduler& home_;
  client::Scheduler scheduler_;
  QueueShow show_;
  std::vector<JobRow> jobs_;  // as last seen
};

Exit told_end(const Demo& demo, const DemoOptions& options, const std::string& cluster) {
  const auto report = demo_report({demo.jobs(), options.policy, cluster});
  if (!report) return complain(Exit::Failure, report.error());
  const Exit written = write_stdout("\n" + *report);
  const auto failed = std::ranges::count_if(
      demo.jobs(), [](const JobRow& job) { return job.state != LiveState::Completed; });
  if (failed > 0)
    return complain(Exit::Failure, fmt::format("{} of the jobs did not complete", failed));
  return written;
}

}  // namespace

Exit execute(const DemoOptions& options) {
  if (options.train > 0)
    return write_stdout(fmt::format("loss {:.6f}\n", demo_training(options.train)));
  if (options.speed < 0.1 || options.speed > 100)
    return complain(Exit::Misuse, "--speed: between 0.1 and 100");
  if (!options.trainer.empty() && ::access(options.trainer.c_str(), X_OK) != 0)
    return complain(Exit::Misuse, fmt::format("--trainer: {} is no program", options.trainer));
  const Interrupts interrupts;
  const std::string cluster = fmt::format("1x{}:cpu", kDemoGpus);
  const auto home = EmbeddedScheduler::start(
      {"--cluster", cluster, "--policy", options.policy, "--estimator", "limit"});
  if (!home) return complain(Exit::Failure, home.error());
  const EmbeddedScheduler& here = **home;
  print_note(fmt::format(
      "A scheduler of its own for a minute: {} devices (CPU slots), policy {}, {} training jobs.\n"
      "Look at it meanwhile:  berth top --server {}   (or http://127.0.0.1:{}, with a token)\n",
      kDemoGpus, options.policy, demo_jobs().size(), here.socket(), here.port()));
  Demo demo{options, **home};
  const auto ending = demo.run(interrupts);
  if (!ending) {
    demo.cancel_all();
    return complain(Exit::Failure, ending.error());
  }
  if (*ending == Ending::AllOver) return told_end(demo, options, cluster);
  demo.cancel_all();
  print_note("\nstopped: its jobs are cancelled, its directory is removed");
  return Exit::Success;
}

}  // namespace berth
