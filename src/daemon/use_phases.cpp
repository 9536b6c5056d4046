#include "daemon/use_phases.h"

#include <sched.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>

#include "exec/process_table.h"

namespace berth {

namespace {

constexpr double kFewGpus = 0.5, kAllCores = 0.9;
constexpr double kAnyCore = 0.5;
constexpr int kLooks = 3;
constexpr auto kPause = std::chrono::seconds{1};

/// Seconds in which its threads were on a core or could have been: others on its cores take nothing
/// away from what it wants.
double core_seconds(pid_t pid) {
  double nanoseconds = 0;
  std::error_code ignored;
  const std::filesystem::path tasks = "/proc/" + std::to_string(pid) + "/task";
  for (const auto& task : std::filesystem::directory_iterator(tasks, ignored)) {
    double on_core = 0, ready = 0;
    if (std::ifstream{task.path() / "schedstat"} >> on_core >> ready)
      nanoseconds += on_core + ready;
  }
  return nanoseconds * 1e-9;
}

/// Of it and of all below it.
double core_seconds(const std::vector<ProcessRow>& all, pid_t ancestor) {
  std::set<pid_t> family{ancestor};
  for (std::size_t known = 0; known != family.size();) {
    known = family.size();
    for (const ProcessRow& row : all)
      if (family.contains(row.parent)) family.insert(row.pid);
  }
  double seconds = 0;
  for (const pid_t pid : family) seconds += core_seconds(pid);
  return seconds;
}

/// To which it is bound; 0: it is gone.
double cores_of(pid_t pid) {
  constexpr std::size_t kMostCores = 8'192;
  cpu_set_t* set = CPU_ALLOC(kMostCores);
  const std::size_t size = CPU_ALLOC_SIZE(kMostCores);
  CPU_ZERO_S(size, set);
  const bool is_known = ::sched_getaffinity(pid, size, set) == 0;
  const double cores = is_known ? CPU_COUNT_S(size, set) : 0;
  CPU_FREE(set);
  return cores;
}

}  // namespace

std::optional<Phase> PhaseGuess::update(JobNumber job, const JobUse& use) {
  Row& row = rows_[job];
  // It need not use all cores it was lent: then it would be taken for another at once.
  const double enough = row.phase == Phase::Validation ? kAnyCore : kAllCores * use.cores;
  const bool validates = use.cores > 0 && use.gpus_busy < kFewGpus && use.cores_used > enough;
  const Phase looks_like = validates ? Phase::Validation : Phase::Training;
  row.looks = row.looks_like == looks_like ? row.looks + 1 : 1;
  row.looks_like = looks_like;
  if (row.phase == looks_like || row.looks < kLooks) return std::nullopt;
  row.phase = looks_like;
  return row.phase;
}

void PhaseGuess::keep_only(const std::vector<JobNumber>& running) {
  std::erase_if(rows_, [&](const auto& entry) {
    return std::ranges::find(running, entry.first) == running.end();
  });
}

UsePhases::UsePhases(Parts parts) : parts_(std::move(parts)) {
  const bool is_known =
      parts_.cluster.nodes.size() == 1 && parts_.gpus.size() > 0 &&
      parts_.gpus.size() == static_cast<std::size_t>(parts_.cluster.nodes.front().gpus);
  if (!is_known) return;
  thread_ = std::thread([this] {
    auto last = std::chrono::steady_clock::now();
    std::unique_lock lock{mutex_};
    while (!leaving_.wait_for(lock, kPause, [this] { return is_over_; })) {
      lock.unlock();
      const auto now = std::chrono::steady_clock::now();
      if (parts_.is_wanted()) look(std::chrono::duration<double>(now - last).count());
      last = now;
      lock.lock();
    }
  });
}

UsePhases::~UsePhases() {
  {
    const std::lock_guard lock{mutex_};
    is_over_ = true;
  }
  leaving_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void UsePhases::look(double seconds) {
  const auto running = parts_.board.running();
  std::vector<JobNumber> numbers;
  for (const auto& [job, pid, held] : running) numbers.push_back(job);
  guess_.keep_only(numbers);
  std::map<JobNumber, double> used;
  if (running.empty()) return used_.clear();
  const auto busy = parts_.gpus.busy();
  const std::vector<ProcessRow> processes = all_processes();
  for (const auto& [job, pid, held] : running) {
    if (pid <= 0) continue;
    used[job] = core_seconds(processes, static_cast<pid_t>(pid));
    const auto before = used_.find(job);
    JobUse use{.cores = cores_of(static_cast<pid_t>(pid))};
    double devices = 0;
    for (const HeldDevices& part : held) {
      for (const std::int32_t device : part.devices) {
        const auto at = static_cast<std::size_t>(device);
        if (at >= busy.size() || !busy[at]) continue;
        use.gpus_busy += *busy[at];
        ++devices;
      }
    }
    if (before == used_.end() || devices == 0 || seconds <= 0) continue;
    use.gpus_busy /= devices;
    use.cores_used = std::max(0.0, used[job] - before->second) / seconds;
    if (const auto phase = guess_.update(job, use)) parts_.tell(job, *phase);
  }
  used_ = std::move(used);
}

}  // namespace berth
