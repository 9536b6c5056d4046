// The PyTorch script of examples/, as a job of a real hub. Needs a python3 with torch.
#include <gtest/gtest.h>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cmath>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include <fmt/format.h>

#include "e2e/training/program.h"
#include "project_paths.h"

namespace berth::test {
namespace {

std::string python_with_torch(const OneJob& job) {
  for (const char* python : {"python3", "/usr/bin/python3"}) {
    Program program{{python, "-c", "import torch"}, {}, job.file("probe.out")};
    if (program.wait().exit == 0) return python;
  }
  return {};
}

int free_port() {
  const Descriptor socket{::socket(AF_INET, SOCK_STREAM, 0)};
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  ::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), size);
  ::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&address), &size);
  return ntohs(address.sin_port);
}

// What examples/pytorch/README.md says works as typed: nobody has installed our module or said
// where it is. An empty torch will do, --help asks nothing of it.
TEST(PyTorchExample, TakesTheModuleOfItsCloneIfNoneIsInstalled) {
  const OneJob job;
  if (Program{{"python3", "-c", ""}, {}, job.file("probe.out")}.wait().exit != 0)
    GTEST_SKIP() << "SKIP: no python3 here";
  std::filesystem::create_directory(job.file("torch"));
  std::ofstream(job.file("torch/__init__.py")).close();
  const Ended ended =
      Program{{"python3", BERTH_SOURCE_DIR "/examples/pytorch/train.py", "--help"},
              {{"PYTHONPATH", std::filesystem::path(job.file("torch")).parent_path()},
               {"PYTHONDONTWRITEBYTECODE", "1"}},
              job.file("out")}
          .wait();
  EXPECT_EQ(ended.exit, 0) << ended.output;
  EXPECT_NE(ended.output.find("--checkpoint"), std::string::npos) << ended.output;
}

class PyTorch : public testing::Test {
 protected:
  void SetUp() override {
    python_ = python_with_torch(job_);
    if (python_.empty())
      GTEST_SKIP() << "SKIP: no python3 with torch here (apt install python3-torch)";
  }
  [[nodiscard]] std::vector<std::string> command(std::vector<std::string> more = {}) const {
    std::vector<std::string> words{python_,     BERTH_SOURCE_DIR "/examples/pytorch/train.py",
                                   "--epochs",  "3",
                                   "--samples", "1024"};
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }
  [[nodiscard]] static Program::Environment with_one_thread(Program::Environment environment) {
    environment["PYTHONDONTWRITEBYTECODE"] = "1";
    environment["OMP_NUM_THREADS"] = "1";
    return environment;
  }
  std::string undisturbed_loss(const std::vector<std::string>& more = {}) {
    const Ended ended =
        Program{command(more), with_one_thread({}), job_.file("undisturbed.out")}.wait();
    EXPECT_EQ(ended.exit, 0) << ended.output;
    return ended.line("loss");
  }
  /// Trains until some step and is then warned.
  void train_until(double step, std::vector<std::string> more) {
    more.insert(more.end(), {"--checkpoint", job_.file("last.pt"), "--pause", "0.01"});
    Program program{command(more), with_one_thread(job_.begin()), job_.file("out")};
    ASSERT_TRUE(job_.wait_for_iteration(step));
    program.signal(SIGTERM);
    const Ended ended = program.wait();
    EXPECT_EQ(ended.exit, 143) << ended.output;
  }

  OneJob job_;
  std::string python_;
};

TEST_F(PyTorch, PreemptedItContinuesAndReachesTheSameLoss) {
  const std::string expected = undisturbed_loss();
  train_until(40, {});
  const Ended ended = Program{command({"--checkpoint", job_.file("last.pt")}),
                              with_one_thread(job_.begin()), job_.file("out")}
                          .wait();
  EXPECT_EQ(ended.exit, 0) << ended.output;
  EXPECT_NE(ended.line("continues after"), "") << ended.output;
  EXPECT_EQ(ended.line("loss"), expected);  // to the last digit: dropout and order are restored
}

TEST_F(PyTorch, AccumulatesGradientsAsTold) {
  const std::string expected = undisturbed_loss({"--dropout", "0"});
  job_.hub().tell(OneJob::kJob, {.sub_steps = 4});
  const Ended ended = Program{command({"--dropout", "0", "--pause", "0.005"}),
                              with_one_thread(job_.begin()), job_.file("out")}
                          .wait();
  EXPECT_EQ(ended.exit, 0) << ended.output;
  EXPECT_EQ(ended.line("sub-steps"), "sub-steps 4");
  // The same gradient but for the order of sums.
  EXPECT_NEAR(std::atof(ended.line("loss").c_str() + 5), std::atof(expected.c_str() + 5), 1e-5);
  EXPECT_EQ(job_.hub().view(OneJob::kJob)->sub_steps, 4);
}

TEST_F(PyTorch, GoesOnWithAnotherNumberOfWorkers) {
  const std::vector<std::string> plain{"--dropout", "0"};
  const double expected = std::atof(undisturbed_loss(plain).c_str() + 5);
  train_until(40, plain);
  Program::Environment environment = with_one_thread(job_.begin());
  environment["WORLD_SIZE"] = "2";
  environment["MASTER_ADDR"] = "127.0.0.1";
  environment["MASTER_PORT"] = fmt::to_string(free_port());
  const auto words = command({"--dropout", "0", "--checkpoint", job_.file("last.pt")});
  environment["RANK"] = "1";
  Program second{words, environment, job_.file("second.out")};
  environment["RANK"] = "0";
  Program first{words, environment, job_.file("first.out")};
  const Ended ended = first.wait();
  ASSERT_EQ(ended.exit, 0) << ended.output;
  EXPECT_EQ(second.wait().exit, 0);
  EXPECT_NE(ended.line("continues after").find("with 2 workers"), std::string::npos)
      << ended.output;
  EXPECT_NEAR(std::atof(ended.line("loss").c_str() + 5), expected, 1e-5);
}

}  // namespace
}  // namespace berth::test
