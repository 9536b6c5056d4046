// Real training jobs under a real scheduler in this process: what they say reaches policies, tuner
// and people, and what is decided reaches them.
#include <gtest/gtest.h>

#include <sched.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <thread>

#include <fmt/format.h>
#include <unistd.h>

#include "daemon/daemon.h"
#include "model/cluster.h"
#include "perf/profile_file.h"
#include "support/temporary_directory.h"

namespace berth::test {
namespace {

using namespace std::chrono_literals;

const Caller kAdmin{.user = "root", .uid = 0, .gid = 0, .role = Role::Admin};

class LiveTraining : public testing::Test {
 protected:
  ~LiveTraining() override { leave(); }

  void serve(const std::string& cluster, const SchedulerOptions& scheduling) {
    if (::getuid() != 0) GTEST_SKIP() << "needs root: jobs run as their user";
    const std::string file = path("cluster.yaml");
    std::ofstream{file} << cluster;
    auto described = load_cluster(file);
    ASSERT_TRUE(described.has_value()) << described.error().text();
    DaemonOptions options;
    options.cluster = *std::move(described);
    options.state_dir = path("state");
    options.run_dir = path("run");
    options.shim = BERTH_SHIM;
    options.live = scheduling;
    options.training_socket = path("training.sock");
    std::filesystem::create_directories(options.state_dir);
    auto opened = Daemon::open(std::move(options), log_);
    ASSERT_TRUE(opened.has_value()) << opened.error().text();
    daemon_ = *std::move(opened);
    thread_ = std::thread{[this] { EXPECT_TRUE(daemon_->run().has_value()); }};
  }
  /// Jobs are cancelled first: nothing of a test outlives it.
  void leave() {
    if (!daemon_) return;
    static_cast<void>(daemon_->service().act(kAdmin, Verb::Cancel, JobFilter{}, "", 0));
    EXPECT_TRUE(wait_until([&] {
      const auto page = daemon_->service().jobs(kAdmin, {});
      return page && page->jobs.empty();
    }));
    daemon_->stop();
    thread_.join();
    daemon_.reset();
  }
  [[nodiscard]] std::string path(const std::string& name) const {
    return folder_.path() + "/" + name;
  }

  JobNumber submit(std::vector<std::string> command, std::int64_t estimate = 10) {
    JobSpec spec;
    spec.command = std::move(command);
    spec.workdir = folder_.path();
    spec.output = "%j.out";
    spec.name = "training";
    spec.open_mode = OpenMode::Append;
    spec.estimate = estimate;
    spec.gpus = 1;
    const auto submitted = daemon_->service().submit(kAdmin, spec);
    EXPECT_TRUE(submitted.has_value());
    return submitted ? submitted->first : 0;
  }
  JobNumber submit(JobSpec spec) {
    spec.workdir = folder_.path();
    const auto submitted = daemon_->service().submit(kAdmin, std::move(spec));
    EXPECT_TRUE(submitted.has_value());
    return submitted ? submitted->first : 0;
  }
  [[nodiscard]] JobView view(JobNumber job) {
    auto found = daemon_->service().job(kAdmin, job);
    return found ? *found : JobView{};
  }
  bool wait_until(const std::function<bool()>& holds) {
    const auto deadline = std::chrono::steady_clock::now() + 90s;
    while (!holds()) {
      if (std::chrono::steady_clock::now() > deadline) return false;
      std::this_thread::sleep_for(10ms);
    }
    return true;
  }
  bool wait_for_iteration(JobNumber job, double iteration) {
    return wait_until([&] {
      const JobView now = view(job);
      return now.training && now.training->iterations >= iteration;
    });
  }
  /// The last line of its output that begins so.
  std::string line(JobNumber job, const std::string& prefix) {
    std::ifstream in(path(fmt::format("{}.out", job)));
    std::string found;
    for (std::string text; std::getline(in, text);) {
      if (text.starts_with(prefix)) found = text;
    }
    return found;
  }

  TemporaryDirectory folder_;
  Logger log_{{.level = LogLevel::Off}};
  std::unique_ptr<Daemon> daemon_;
  std::thread thread_;
};

std::string cluster_of(int gpus, int cpus) {
  return fmt::format(
      "name: test\ndevices:\n  - {{name: toy, memory_gb: 9, speed: 1, idle_watts: 1, busy_watts: "
      "2}}\n"
      "groups:\n  - {{nodes: n1, gpus: {}, type: toy, cpus: {}, memory_gb: 8}}\n",
      gpus, cpus);
}

std::vector<std::string> trainer(const std::string& checkpoint) {
  return {BERTH_TRAINER, "--epochs",    "3", "--samples",    "4096",    "--batch",
          "32",          "--device-ms", "8", "--checkpoint", checkpoint};
}

TEST_F(LiveTraining, APreemptedTrainingContinuesAndReachesTheSameLoss) {
  serve(cluster_of(1, 2), {});
  if (!daemon_) return;
  const JobNumber plain =
      submit({BERTH_TRAINER, "--epochs", "3", "--samples", "4096", "--batch", "32"});
  ASSERT_TRUE(wait_until([&] { return !line(plain, "loss").empty(); }));
  const JobNumber job = submit(trainer("last.ckpt"));
  ASSERT_TRUE(wait_for_iteration(job, 50));
  JobFilter filter;
  filter.numbers = {job};
  const auto results = daemon_->service().act(kAdmin, Verb::Requeue, filter, "test", 0);
  ASSERT_TRUE(results && results->front().is_done);
  ASSERT_TRUE(wait_until([&] { return !line(job, "loss").empty(); }));
  EXPECT_NE(line(job, "stopped after"), "");
  EXPECT_NE(line(job, "continues after"), "");
  EXPECT_EQ(line(job, "loss"), line(plain, "loss"));
}

// A (unknown model: 3000 + 32 x 64 = 5048 MiB of 9216) has far more left than B needs, so B starts
// beside it; 9216 - 512 - 5048 = 3656 MiB take 3000 + 8 x 64 of B: four sub-batches of 8.
TEST_F(LiveTraining, SharingAGpuReallySetsASubBatch) {
  SchedulerOptions options;
  options.policy.policy = "sjf-bsbf";
  serve(cluster_of(1, 2), options);
  if (!daemon_) return;
  std::vector<std::string> longer = trainer("a.ckpt");
  longer[2] = "1000";
  const JobNumber a = submit(longer, 10'000);
  ASSERT_TRUE(wait_for_iteration(a, 1));
  const JobNumber b = submit(trainer("b.ckpt"), 5);
  ASSERT_TRUE(wait_for_iteration(b, 20));
  EXPECT_EQ(view(b).training->sub_steps, 4);
  EXPECT_EQ(view(a).training->sub_steps, 1);
  ASSERT_TRUE(wait_until([&] { return !line(b, "loss").empty(); }));
  EXPECT_EQ(line(b, "sub-steps"), "sub-steps 4");
}

int cores_of(std::int64_t pid) {
  cpu_set_t set;
  CPU_ZERO(&set);
  return ::sched_getaffinity(static_cast<pid_t>(pid), sizeof set, &set) == 0 ? CPU_COUNT(&set) : 0;
}

/// How far two busy threads get in a moment on so many of the first two cores.
double work_done(std::size_t cores) {
  std::atomic<bool> over = false;
  std::atomic<std::uint64_t> done = 0;
  const auto spin = [&] {
    cpu_set_t set;
    CPU_ZERO(&set);
    for (std::size_t core = 0; core < cores; ++core) CPU_SET(core, &set);
    static_cast<void>(::sched_setaffinity(0, sizeof set, &set));
    std::uint64_t mine = 0;
    while (!over.load(std::memory_order_relaxed)) ++mine;
    done += mine;
  };
  std::thread first{spin}, second{spin};
  std::this_thread::sleep_for(200ms);
  over = true;
  first.join();
  second.join();
  return static_cast<double>(done);
}

/// On a machine that others keep busy a second core may give nothing, and then to stay on one is
/// the right answer.
bool does_a_second_core_help() {
  for (int round = 0; round < 3; ++round) {
    if (work_done(2) < 1.7 * work_done(1)) return false;
  }
  return true;
}

// Two GPUs and two cores: its share is one core, but the loader can use both.
TEST_F(LiveTraining, AHungryJobFindsItsCores) {
  if (!does_a_second_core_help()) GTEST_SKIP() << "SKIP: this machine has no two idle cores";
  SchedulerOptions options;
  options.cpu = "aware:check=1s";
  serve(cluster_of(2, 2), options);
  if (!daemon_) return;
  const JobNumber job = submit({BERTH_TRAINER, "--epochs", "10000", "--samples", "1024", "--batch",
                                "8", "--workers", "4", "--loader-work", "50000"});
  ASSERT_TRUE(wait_until([&] { return view(job).pid > 0; }));
  // While it is measured it has one or two cores for a second or so each; what it keeps is decided.
  auto since = std::chrono::steady_clock::now();
  const bool has_settled = wait_until([&] {
    const auto now = std::chrono::steady_clock::now();
    if (cores_of(view(job).pid) != 2) since = now;
    return now - since > 10s;  // far longer than one measurement
  });
  if (!has_settled && !does_a_second_core_help())
    GTEST_SKIP() << "SKIP: this machine became busy meanwhile";
  EXPECT_TRUE(has_settled);
}

// --- how fast jobs really run

/// A step takes 100 ms at least, whatever else the machine does.
std::vector<std::string> slow_trainer(int steps) {
  return {BERTH_TRAINER, "--epochs", "1",           "--samples", fmt::format("{}", steps * 8),
          "--batch",     "8",        "--device-ms", "100"};
}

JobSpec slow_job(const std::string& name, int steps) {
  JobSpec spec;
  spec.command = slow_trainer(steps);
  spec.name = name;
  spec.output = "%j.out";
  spec.iterations = steps;
  spec.gpus = 1;
  return spec;
}

// 400 steps of 100 ms are 40 s or more; its estimate says 20 s. Who goes by the estimate alone
// would have it over when half of it is done.
TEST_F(LiveTraining, ATrainerSlowerThanItsEstimateIsKnownToBe) {
  SchedulerOptions options;
  options.policy.policy = "srtf";
  serve(cluster_of(1, 2), options);
  if (!daemon_) return;
  JobSpec spec = slow_job("slow", 400);
  spec.estimate = 20;
  const JobNumber job = submit(spec);
  ASSERT_TRUE(wait_until([&] {
    const JobView now = view(job);
    return now.pace && now.pace->source == "reports" && now.pace->rate < 0.7;
  })) << (view(job).pace ? view(job).pace->rate : -1);
  const JobView now = view(job);
  ASSERT_TRUE(now.pace->progress && now.pace->seconds_left && now.training);
  // 0.5 at most: a busy machine makes it slower, never faster.
  EXPECT_LT(now.pace->rate, 0.55);
  EXPECT_NEAR(*now.pace->progress, now.training->iterations / 400, 0.1);
  EXPECT_GT(*now.pace->seconds_left, 0.9 * (1 - *now.pace->progress) * 40);
}

// The profile says that one takes twice as long beside the other; nobody reports.
TEST_F(LiveTraining, TwoOnOneDeviceRunAtHalfSpeed) {
  const auto known = parse_profiles(
      "profiles:\n  - {name: half, gpu_utilisation: 0.5, memory: {fixed_mib: 100, per_sample_mib: "
      "1}}\npairs:\n  - [half, half, 2]\n",
      "test", built_in_profiles());
  ASSERT_TRUE(known.has_value()) << known.error().text();
  SchedulerOptions options;
  options.policy.policy = "sjf-ffs";
  options.beliefs.profiles = std::make_shared<const ProfileSet>(*known);
  serve(cluster_of(1, 2), options);
  if (!daemon_) return;
  JobSpec spec;
  spec.command = {"sleep", "600"};
  spec.name = "half";
  spec.model = "half";
  spec.estimate = 1000;
  spec.gpus = 1;
  const JobNumber a = submit(spec);
  ASSERT_TRUE(wait_until([&] { return view(a).pace && view(a).pace->rate == 1; }));
  const JobNumber b = submit(spec);
  ASSERT_TRUE(wait_until([&] {
    return view(a).pace && view(b).pace && view(a).pace->rate < 0.6 && view(b).pace->rate < 0.6;
  }));
  EXPECT_NEAR(view(a).pace->rate, 0.5, 0.01);
  EXPECT_NEAR(*view(b).pace->seconds_left, 2000, 120);
  EXPECT_EQ(view(a).pace->source, "belief");
  JobFilter filter;
  filter.numbers = {b};
  static_cast<void>(daemon_->service().act(kAdmin, Verb::Cancel, filter, "", 0));
  ASSERT_TRUE(wait_until([&] { return view(a).pace && view(a).pace->rate == 1; }));
}

// What the first job has shown is in the journal, exported, and believed of the next one.
TEST_F(LiveTraining, WhatOneJobHasShownIsBelievedOfTheNext) {
  serve(cluster_of(1, 2), {});
  if (!daemon_) return;
  const JobNumber first = submit(slow_job("again", 100));
  ASSERT_TRUE(wait_until([&] {
    return daemon_->service().learnt_profiles(kAdmin).find("name: again") != std::string::npos;
  }));
  ASSERT_TRUE(wait_until([&] { return !line(first, "loss").empty(); }));
  leave();
  serve(cluster_of(1, 2), {});  // another life, the same journal
  const auto read =
      parse_profiles(daemon_->service().learnt_profiles(kAdmin), "export", built_in_profiles());
  ASSERT_TRUE(read.has_value()) << read.error().text();
  const auto profile = read->find("again");
  ASSERT_TRUE(profile);
  EXPECT_GT((*read)[*profile].iteration.alpha + 8 * (*read)[*profile].iteration.beta, 0.095);
  // Nobody says how long this one is: 3,000 steps of 100 ms or more.
  const JobNumber second = submit(slow_job("again", 3000));
  ASSERT_TRUE(wait_until([&] { return view(second).pace && view(second).pace->seconds_left; }));
  EXPECT_GT(*view(second).pace->seconds_left, 0.9 * 300);
  EXPECT_LT(*view(second).pace->seconds_left, 3000);  // an hour is what nobody knows better
  const Caller other{.user = "nobody", .uid = 65534, .gid = 65534, .role = Role::User};
  EXPECT_EQ(daemon_->service().learnt_profiles(other).find("again"), std::string::npos);
}

}  // namespace
}  // namespace berth::test
