#include "support/slurm_cluster.h"

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>
#include <unistd.h>

#include "project_paths.h"
#include "slurm/numbers.h"

namespace berth::test {

namespace {

namespace fs = std::filesystem;
using slurm::Ending;

std::string tool(const char* name) {
  return (fs::path(BERTH_SHARED_DIR) / "slurm" / name).string();
}

fs::path root_of(const std::string& suite) {
  const char* cache = std::getenv("XDG_CACHE_HOME");
  const char* home = std::getenv("HOME");
  const fs::path base = cache != nullptr && *cache != '\0'
                            ? fs::path(cache)
                            : fs::path(home != nullptr ? home : "/root") / ".cache";
  return base / "berth-slurm-roots" / suite;
}

slurm::Outcome run_whole(std::vector<std::string> words, std::chrono::seconds time) {
  return slurm::run_command({.words = std::move(words)}, {.time = time});
}

}  // namespace

std::optional<std::string> SlurmCluster::why_not(const std::string& suite) {
  if (!fs::exists(tool("up"))) return "shared data is not here: ../shared/slurm/up";
  if (::geteuid() != 0) return "needs root: a Slurm runs in a chroot";
  if (!fs::exists(root_of(suite) / ".slurm-test-root"))
    return "no Slurm of " + suite + " is here (../shared/slurm/up --suite " + suite +
           " --install-only makes one)";
  return std::nullopt;
}

SlurmCluster::SlurmCluster(const std::string& suite, const std::vector<std::string>& options)
    : suite_(suite), path_("/tmp/berth-slurm-XXXXXX") {
  if (::mkdtemp(path_.data()) == nullptr) {
    ADD_FAILURE() << "no folder for a Slurm";
    return;
  }
  std::vector<std::string> words{"bash", tool("up"), path_, "--suite", suite};
  words.insert(words.end(), options.begin(), options.end());
  const auto outcome = run_whole(words, std::chrono::seconds{120});
  is_up_ = outcome.ending == Ending::Exited && outcome.code == 0;
  if (!is_up_) ADD_FAILURE() << "no Slurm: " << outcome.error;
}

SlurmCluster::~SlurmCluster() {
  const auto outcome = run_whole({"bash", tool("down"), path_}, std::chrono::seconds{60});
  if (outcome.ending != Ending::Exited) ADD_FAILURE() << "Slurm does not end: " << outcome.error;
}

std::vector<std::string> SlurmCluster::link_program() {
  const std::string program = path_ + "/berth-slurm-link";
  if (!fs::exists(program)) {
    const auto outcome =
        run_whole({BERTH_SOURCE_DIR "/scripts/build-slurm-link", root_of(suite_).string(), program},
                  std::chrono::seconds{120});
    EXPECT_EQ(outcome.code, 0) << outcome.error;
    if (outcome.ending != Ending::Exited || outcome.code != 0) return {};
  }
  return {commands() + "/slurm-in", program};
}

std::string SlurmCluster::run(const std::vector<std::string>& words) {
  std::vector<std::string> whole = words;
  whole.front() = commands() + '/' + whole.front();
  auto outcome = run_whole(whole, std::chrono::seconds{60});
  EXPECT_TRUE(outcome.ending == Ending::Exited && outcome.code == 0)
      << words.front() << ": " << outcome.error;
  return std::move(outcome.out);
}

std::uint32_t SlurmCluster::submit(std::vector<std::string> words) {
  words.insert(words.begin(), {"sbatch", "--parsable", "-o", "/dev/null"});
  const std::string said = run(words);
  return slurm::number_or<std::uint32_t>(said.substr(0, said.find_first_of(";\n")), 0);
}

void SlurmCluster::kill_controller() {
  std::ifstream file(path_ + "/run/slurmctld.pid");
  int pid = 0;
  ASSERT_TRUE(file >> pid) << "slurmctld has no pid";
  ASSERT_GT(pid, 1);
  ASSERT_EQ(::kill(pid, SIGKILL), 0);
  // It is nobody's child here: gone when its number is.
  for (int tries = 0; tries < 1000 && ::kill(pid, 0) == 0; ++tries) ::usleep(5000);
}

void SlurmCluster::start_controller() { run({"slurmctld"}); }

}  // namespace berth::test
