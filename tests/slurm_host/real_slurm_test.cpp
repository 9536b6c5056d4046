// The scheduler over a real Slurm, in a process of its own that can be killed: users submit by
// sbatch and cancel by scancel, and nothing but Slurm says what came of it.
//   BERTH_REAL_SLURM=SUITE   runs it (trixie: Slurm 24.11); it takes minutes
#include <gtest/gtest.h>

#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <thread>

#include <fmt/format.h>

#include "project_paths.h"
#include "slurm/text_link.h"
#include "slurm_host/host_maker.h"
#include "slurm_host/slurm_cluster.h"

namespace berth::test {
namespace {

using namespace std::chrono_literals;

std::string output_of(const std::string& command) {
  std::string output;
  std::FILE* pipe = popen(command.c_str(), "r");
  if (pipe == nullptr) return output;
  for (char part[4096]; const auto count = std::fread(part, 1, sizeof part, pipe);)
    output.append(part, count);
  pclose(pipe);
  return output;
}

class RealSlurm : public ::testing::Test {
 protected:
  void SetUp() override {
    const char* suite = std::getenv("BERTH_REAL_SLURM");
    if (suite == nullptr) GTEST_SKIP() << "BERTH_REAL_SLURM is not set";
    const std::string scripts = BERTH_SHARED_DIR "/slurm";
    if (!std::filesystem::exists(scripts + "/up")) GTEST_SKIP() << "../shared/slurm is not there";
    down_ = scripts + "/down";
    // Where a Slurm in a root of its own sees the same files.
    std::string made_here = std::filesystem::temp_directory_path() / "berth-slurm-XXXXXX";
    ASSERT_NE(mkdtemp(made_here.data()), nullptr);
    directory_ = made_here;
    place_ = directory_ + "/slurm";
    const int made = std::system(
        fmt::format("{}/up {} -n 8 -t v100:4,a100:8 --hold --suite {} > {}.env 2> {}.log", scripts,
                    place_, suite, place_, place_)
            .c_str());
    ASSERT_EQ(made, 0) << output_of(fmt::format("tail -n 20 {}.log", place_));
    is_up_ = true;
    static_cast<void>(run("mkdir -p out && chmod 777 out"));
  }
  void TearDown() override {
    kill_scheduler();
    if (is_up_) {
      EXPECT_EQ(std::system(fmt::format("{} {} > /dev/null 2>&1", down_, place_).c_str()), 0);
    }
    if (!directory_.empty()) std::filesystem::remove_all(directory_);
  }

  /// In the directory of this Slurm, with its environment.
  [[nodiscard]] std::string run(const std::string& command) const {
    return output_of(
        fmt::format("cd {0} && . {0}.env > /dev/null 2>&1; {1} 2>&1", place_, command));
  }
  void submit(const std::string& request) const {
    last_said_ = run("sbatch --parsable -o out/%j " + request);
  }
  void start_scheduler(const std::string& policy) {
    child_ = fork();
    ASSERT_GE(child_, 0);
    if (child_ == 0) serve(policy);
  }
  void kill_scheduler() {
    if (child_ <= 0) return;
    kill(child_, SIGKILL);
    waitpid(child_, nullptr, 0);
    child_ = 0;
  }
  [[noreturn]] void serve(const std::string& policy) const {
    setenv("SLURM_CONF", (place_ + "/slurm.conf").c_str(), 0);
    auto link =
        std::make_shared<slurm::TextLink>(slurm::TextLinkSettings{.directory = place_ + "/bin"});
    const auto nodes = link->nodes();
    const auto switches = link->topology();
    if (!nodes || !*nodes) _exit(3);
    auto cluster = cluster_from(**nodes, switches.value_or(std::vector<slurm::Switch>{}), "slurm");
    if (!cluster) _exit(4);
    Logger log{{.level = LogLevel::Info}};
    DaemonOptions options;
    options.cluster = *std::move(cluster);
    options.state_dir = place_ + ".state";
    std::filesystem::create_directories(options.state_dir);
    options.live.policy.policy = policy;
    options.live.placement = "consolidated";
    options.live.min_run = 5;
    options.host = slurm_host_maker(link);
    options.host_traits = slurm_traits();
    auto daemon = Daemon::open(std::move(options), log);
    if (!daemon) {
      fmt::print(stderr, "{}\n", daemon.error().text());
      _exit(5);
    }
    static_cast<void>((*daemon)->run());
    _exit(0);
  }
  [[nodiscard]] int count(const std::string& state) const {
    return std::atoi(
        run(fmt::format("scontrol -o show job | grep -c 'JobState={} '", state)).c_str());
  }
  [[nodiscard]] bool wait_for(const std::function<bool()>& holds, std::chrono::seconds most) const {
    for (const auto end = std::chrono::steady_clock::now() + most;
         std::chrono::steady_clock::now() < end; std::this_thread::sleep_for(500ms))
      if (holds()) return true;
    return false;
  }
  [[nodiscard]] std::string picture() const { return run("scontrol -o show job") + last_said_; }

  std::string directory_, place_, down_;
  mutable std::string last_said_;
  bool is_up_ = false;
  pid_t child_ = 0;
};

TEST_F(RealSlurm, TwentyJobsRunUnderFifoAlthoughTheSchedulerIsKilled) {
  start_scheduler("fifo");
  for (int i = 0; i < 20; ++i) submit(fmt::format("--gres=gpu:{} --wrap 'sleep 3'", 1 + i % 4));
  std::this_thread::sleep_for(4s);
  kill_scheduler();
  std::this_thread::sleep_for(2s);
  start_scheduler("fifo");
  EXPECT_TRUE(wait_for([&] { return count("COMPLETED") == 20; }, 120s)) << picture();
}

TEST_F(RealSlurm, ALongJobSavesItsWorkAndMakesWay) {
  // Half of the GPUs of the large nodes and all of the small ones: whoever wants eight at once has
  // to have somebody leave.
  start_scheduler("srtf");
  for (int i = 0; i < 8; ++i)
    submit(
        "--time=60 --gres=gpu:4 --wrap 'trap \"echo saved; exit 1\" TERM; "
        "for i in $(seq 25); do sleep 1; done'");
  ASSERT_TRUE(wait_for([&] { return count("RUNNING") == 8; }, 60s)) << picture();
  std::this_thread::sleep_for(6s);
  for (int i = 0; i < 4; ++i) submit("--time=1 --gres=gpu:8 --wrap 'sleep 2'");
  EXPECT_TRUE(wait_for([&] { return count("COMPLETED") == 12; }, 240s)) << picture();
}

TEST_F(RealSlurm, ACancelInEachStateIsFollowed) {
  start_scheduler("fifo");
  for (int i = 0; i < 10; ++i) submit("--gres=gpu:4 --wrap 'sleep 5'");
  submit("--gres=gpu:8 --wrap 'sleep 60'");
  static_cast<void>(run("scancel 10"));
  ASSERT_TRUE(wait_for([&] { return count("RUNNING") > 4; }, 60s)) << picture();
  static_cast<void>(run("scancel 1 11"));
  EXPECT_TRUE(wait_for(
      [&] { return count("CANCELLED") == 3 && count("PENDING") + count("RUNNING") == 0; }, 120s))
      << picture();
}

}  // namespace
}  // namespace berth::test
