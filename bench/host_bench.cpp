// What it costs to start a job as a process of this machine: from LocalHost::launch() to the job's
// first instruction, and how much of it launch() itself takes; then how many a second when they all
// come at once; and what a waiting shim holds. Exits with 1 if the median start needs 20 ms or
// more.
//   host_bench [JOBS]
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <future>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include <time.h>
#include <unistd.h>

#include "exec/claim.h"
#include "exec/local_host.h"

namespace {

using namespace berth;
namespace fs = std::filesystem;

std::int64_t now_nanos() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return std::int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

double millis(std::int64_t nanos) { return static_cast<double>(nanos) * 1e-6; }

void print(const char* what, std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const auto at = [&](double share) {
    return values[static_cast<std::size_t>(share * static_cast<double>(values.size() - 1))];
  };
  std::printf("%-34s median %7.2f ms   p95 %7.2f ms   worst %7.2f ms\n", what, at(0.5), at(0.95),
              at(1));
}

class Bench {
 public:
  explicit Bench(std::string root) : root_(std::move(root)) {
    auto opened = LocalHost::open(
        {.run_dir = root_ + "/run", .shim = BERTH_SHIM, .cgroup_roots = {}, .log = nullptr},
        [this](const HostEvent& event) { note(event); });
    if (!opened) {
      std::fprintf(stderr, "%s\n", opened.error().text().c_str());
      std::exit(1);
    }
    host_ = std::move(*opened);
  }

  LaunchOrder order(std::vector<std::string> words) {
    LaunchOrder one;
    one.job = ++count_;
    one.attempt = {1, count_};
    one.command = std::move(words);
    one.workdir = "/";
    one.output = root_ + "/out." + std::to_string(count_);
    one.uid = ::geteuid();
    one.gid = ::getegid();
    return one;
  }
  void launch(const LaunchOrder& one) {
    {
      const std::lock_guard lock(mutex_);
      started_[one.attempt];
      ended_[one.attempt];
    }
    if (!host_->launch(one)) std::abort();
  }
  void wait_started(AttemptId attempt) { future_of(started_, attempt).wait(); }
  void wait_ended(AttemptId attempt) { future_of(ended_, attempt).wait(); }
  std::int64_t first_instruction(const LaunchOrder& one) {
    std::int64_t nanos = 0;
    std::ifstream(one.output) >> nanos;
    return nanos;
  }
  LocalHost& host() { return *host_; }

 private:
  using Promises = std::map<AttemptId, std::promise<void>>;
  std::future<void> future_of(Promises& promises, AttemptId attempt) {
    const std::lock_guard lock(mutex_);
    return promises[attempt].get_future();
  }
  void note(const HostEvent& event) {
    const std::lock_guard lock(mutex_);
    if (event.kind == HostEventKind::Started) started_[event.attempt].set_value();
    if (event.kind == HostEventKind::Ended) ended_[event.attempt].set_value();
  }

  std::string root_;
  std::uint64_t count_ = 0;
  std::mutex mutex_;
  Promises started_, ended_;
  std::unique_ptr<LocalHost> host_;
};

double one_by_one(Bench& bench, int jobs) {
  std::vector<double> to_launch, to_begin, whole;
  for (int i = 0; i < jobs; ++i) {
    const LaunchOrder one = bench.order({BERTH_FIRST_INSTRUCTION});
    const std::int64_t begin = now_nanos();
    bench.launch(one);
    to_launch.push_back(millis(now_nanos() - begin));
    bench.wait_ended(one.attempt);
    whole.push_back(millis(now_nanos() - begin));
    to_begin.push_back(millis(bench.first_instruction(one) - begin));
    bench.host().forget(one.attempt);
  }
  print("launch() returns after", to_launch);
  print("first instruction after", to_begin);
  print("end is known after", whole);
  std::nth_element(to_begin.begin(), to_begin.begin() + jobs / 2, to_begin.end());
  return to_begin[static_cast<std::size_t>(jobs / 2)];
}

void all_at_once(Bench& bench, int jobs) {
  std::vector<LaunchOrder> orders;
  for (int i = 0; i < jobs; ++i) orders.push_back(bench.order({BERTH_FIRST_INSTRUCTION}));
  const std::int64_t begin = now_nanos();
  for (const LaunchOrder& one : orders) bench.launch(one);
  for (const LaunchOrder& one : orders) bench.wait_ended(one.attempt);
  const double seconds = millis(now_nanos() - begin) * 1e-3;
  std::printf("%-34s %.0f jobs a second, from launch to known end\n", "all at once",
              jobs / seconds);
  for (const LaunchOrder& one : orders) bench.host().forget(one.attempt);
}

void shim_memory(Bench& bench, const std::string& run_dir) {
  const LaunchOrder one = bench.order({"/bin/sleep", "60"});
  bench.launch(one);
  bench.wait_started(one.attempt);
  const auto shim = holder_of(RunDir(run_dir), one.attempt);
  long kib = 0;
  std::ifstream rollup("/proc/" + std::to_string(shim.value_or(0)) + "/smaps_rollup");
  for (std::string word; rollup >> word;)
    if (long part = 0; word.starts_with("Private_") && rollup >> part) kib += part;
  std::printf("%-34s %ld KiB private\n", "a waiting shim holds", kib);
  bench.host().stop(one.attempt, Host::Stop::Kill, 0);
  bench.wait_ended(one.attempt);
}

}  // namespace

int main(int argc, char** argv) {
  const int jobs = argc > 1 ? std::atoi(argv[1]) : 200;
  if (jobs < 1) return 2;
  std::string root = (fs::temp_directory_path() / "host-bench-XXXXXX").string();
  if (::mkdtemp(root.data()) == nullptr) return 1;
  double median = 0;
  {
    Bench bench(root);
    median = one_by_one(bench, jobs);
    all_at_once(bench, jobs);
    shim_memory(bench, root + "/run");
  }
  fs::remove_all(root);
  return median < 20 ? 0 : 1;
}
