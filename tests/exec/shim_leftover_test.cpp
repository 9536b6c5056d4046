// A shim waits for ever to write down an end that somebody may ask for, and not a second for one
// that nobody can.
#include <csignal>
#include <filesystem>
#include <fstream>

#include "exec/host_fixture.h"

namespace berth::host_test {
namespace {

namespace fs = std::filesystem;

class ShimLeftover : public HostTest {
 protected:
  /// A job whose scheduler is gone; its process.
  pid_t orphan() {
    EXPECT_TRUE(host().launch(script("echo $$ > pid; cd /; exec sleep 60")));
    const pid_t job = pid_in(file("pid"));
    close();
    EXPECT_EQ(shims_of(root_ + "/run").size(), 1U);
    return job;
  }
  bool is_gone() {
    return eventually([&] { return shims_of(root_ + "/run").empty(); });
  }
};

TEST_F(ShimLeftover, GoesWhenTheSchedulerIsGoneWithAllItsFiles) {
  const pid_t job = orphan();
  fs::remove_all(root_);
  ::kill(job, SIGKILL);
  EXPECT_TRUE(is_gone());
  fs::create_directory(root_);  // for the end of the test
}

TEST_F(ShimLeftover, GoesWhenItsAttemptIsAnothersByNow) {
  const pid_t job = orphan();
  fs::remove_all(root_ + "/run");
  fs::create_directory(root_ + "/run");
  std::ofstream(run_file("attempt.1.1")) << "nobody\n";
  ::kill(job, SIGKILL);
  EXPECT_TRUE(is_gone());
  EXPECT_FALSE(exists(run_file("exit.1.1")));
}

TEST_F(ShimLeftover, MakesTheRunDirectoryAgainIfOnlyThatIsGone) {
  const pid_t job = orphan();
  fs::remove_all(root_ + "/run");
  ::kill(job, SIGKILL);
  EXPECT_TRUE(is_gone());
  EXPECT_TRUE(exists(run_file("exit.1.1")));
}

}  // namespace
}  // namespace berth::host_test
