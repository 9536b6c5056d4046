#include "live_commands.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <thread>

#include <fmt/format.h>

#include "live_server.h"
#include "live_table.h"

namespace berth::bench {

namespace {

using namespace std::chrono_literals;
constexpr int kShells = 16;

std::int64_t now_nanos() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return std::int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

std::vector<std::string> environment_with(
    const std::vector<std::pair<std::string, std::string>>& more) {
  std::vector<std::string> entries;
  for (char** entry = environ; *entry != nullptr; ++entry) entries.emplace_back(*entry);
  for (const auto& [name, value] : more) entries.push_back(name + "=" + value);
  return entries;
}

std::vector<char*> pointers_to(std::vector<std::string>& words) {
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  return pointers;
}

}  // namespace

double millis_to_first_instruction(const std::string& output, const std::function<void()>& submit) {
  const std::int64_t begin = now_nanos();
  submit();
  for (const std::int64_t deadline = begin + 60'000'000'000; now_nanos() < deadline;) {
    std::ifstream file(output);
    std::string line;
    if (std::getline(file, line) && !file.eof())
      return static_cast<double>(std::strtoll(line.c_str(), nullptr, 10) - begin) * 1e-6;
    std::this_thread::sleep_for(1ms);
  }
  give_up("a job did not start within a minute");
}

std::string berth_sbatch(const std::string& directory) {
  const std::string path = directory + "/sbatch";
  std::error_code ignored;
  std::filesystem::create_symlink(BERTH_PROGRAM, path, ignored);
  return path;
}

void CommandBench::command(std::vector<std::string> words) const {
  auto environment = environment_with(options_.environment);
  words.insert(words.begin(), options_.sbatch);
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
  pid_t child = 0;
  const int error = ::posix_spawnp(&child, options_.sbatch.c_str(), &actions, nullptr,
                                   pointers_to(words).data(), pointers_to(environment).data());
  ::posix_spawn_file_actions_destroy(&actions);
  if (error != 0) give_up(options_.sbatch + ": cannot be started");
  int status = 0;
  ::waitpid(child, &status, 0);
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) give_up(options_.sbatch + " failed");
}

/// Held: what is measured is taking jobs, not running them.
void CommandBench::hold_one() const {
  command({"--hold", "--gres=gpu:1", "--output=/dev/null", "--chdir=/tmp", "--wrap=true"});
}

CommandFigures CommandBench::run() const {
  CommandFigures figures;
  std::vector<double> times;
  for (int i = 0; i < options_.starts; ++i) {
    const std::string output = fmt::format("{}/{}-{}.out", options_.directory, now_nanos(), i);
    times.push_back(millis_to_first_instruction(output, [&] {
      command({"--gres=gpu:1", "--output=" + output, "--chdir=/tmp",
               "--wrap=" BERTH_FIRST_INSTRUCTION});
    }));
  }
  figures.start_millis = quantile(times, 0.5);
  times.clear();
  for (int i = 0; i < options_.starts; ++i) {
    const std::int64_t begin = now_nanos();
    hold_one();
    times.push_back(static_cast<double>(now_nanos() - begin) * 1e-6);
  }
  figures.submit_millis = quantile(times, 0.5);
  std::vector<std::thread> shells;
  const std::int64_t begin = now_nanos();
  for (int shell = 0; shell < kShells; ++shell) {
    shells.emplace_back([this] {
      for (int i = 0; i < options_.submits / kShells; ++i) hold_one();
    });
  }
  for (auto& shell : shells) shell.join();
  const double seconds = static_cast<double>(now_nanos() - begin) * 1e-9;
  figures.submits_per_second = options_.submits / kShells * kShells / seconds;
  return figures;
}

SlurmCluster::SlurmCluster(std::string scripts, std::string directory)
    : scripts_(std::move(scripts)), directory_(std::move(directory)) {
  const std::string up = fmt::format("'{}/up' '{}' -n 1 -t v100:4 2>&2", scripts_, directory_);
  FILE* pipe = ::popen(up.c_str(), "r");
  if (pipe == nullptr) return;
  char line[4096];
  std::string said;
  while (std::fgets(line, sizeof line, pipe) != nullptr) said += line;
  if (::pclose(pipe) != 0) return;
  const std::size_t at = said.find("SLURM_CONF=");
  if (at == std::string::npos) return;
  conf_ = said.substr(at + 11, said.find_first_of(" ;\n", at) - at - 11);
  std::erase_if(conf_, [](char c) { return c == '\'' || c == '"'; });
}

SlurmCluster::~SlurmCluster() {
  const std::string down = fmt::format("'{}/down' '{}' >&2", scripts_, directory_);
  if (std::system(down.c_str()) != 0) std::fprintf(stderr, "live_bench: %s failed\n", down.c_str());
}

}  // namespace berth::bench
