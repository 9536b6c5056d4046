#include "e2e/cli/program.h"
#include "project_paths.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <gtest/gtest.h>

namespace berth::test {

namespace fs = std::filesystem;

namespace {

std::string content_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

void redirect(const std::string& path, int descriptor) {
  const int file = ::open(path.c_str(), O_CREAT | O_TRUNC | O_WRONLY, 0600);
  ::dup2(file, descriptor);
}

int launch(const TempFolder& folder, const std::string& logs, std::vector<std::string> words) {
  const int child = ::fork();
  if (child != 0) return child;
  redirect(logs + "/out", STDOUT_FILENO);
  redirect(logs + "/err", STDERR_FILENO);
  if (::chdir(folder.path().c_str()) != 0) std::_Exit(126);
  const std::string link = logs + "/berth";
  ::setenv("BERTH", ::access(link.c_str(), X_OK) == 0 ? link.c_str() : BERTH_PROGRAM, 1);
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  ::execv(argv[0], argv.data());
  std::_Exit(127);
}

Ran run(const TempFolder& folder, std::vector<std::string> words) {
  const TempFolder logs;
  // Commands say $BERTH without quotes, and a checkout may lie in a path with a space.
  fs::create_symlink(BERTH_PROGRAM, logs / "berth");
  const int child = launch(folder, logs.path(), std::move(words));
  int status = 0;
  ::waitpid(child, &status, 0);
  Ran ran;
  if (WIFEXITED(status))
    ran.exit = WEXITSTATUS(status);
  else
    ran.signal = WTERMSIG(status);
  ran.out = logs.read("out");
  ran.err = logs.read("err");
  return ran;
}

}  // namespace

TempFolder::TempFolder() {
  std::string pattern = (fs::temp_directory_path() / "berth-test-XXXXXX").string();
  if (::mkdtemp(pattern.data()) == nullptr) ADD_FAILURE() << "no temporary folder";
  path_ = pattern;
}
TempFolder::~TempFolder() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}
std::string TempFolder::file(const std::string& name, const std::string& content) const {
  std::ofstream(path_ + "/" + name, std::ios::binary) << content;
  return path_ + "/" + name;
}
std::string TempFolder::read(const std::string& name) const {
  return content_of(path_ + "/" + name);
}
bool TempFolder::has(const std::string& name) const { return fs::exists(path_ + "/" + name); }
std::vector<std::string> TempFolder::names() const {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(path_))
    names.push_back(entry.path().filename().string());
  std::ranges::sort(names);
  return names;
}

Ran berth(const TempFolder& folder, const std::vector<std::string>& arguments) {
  std::vector<std::string> words{BERTH_PROGRAM};
  words.insert(words.end(), arguments.begin(), arguments.end());
  return run(folder, std::move(words));
}

Ran shell(const TempFolder& folder, const std::string& command) {
  return run(folder, {"/bin/bash", "-c", command});
}

int start_berth(const TempFolder& folder, const std::vector<std::string>& arguments) {
  std::vector<std::string> words{BERTH_PROGRAM};
  words.insert(words.end(), arguments.begin(), arguments.end());
  return launch(folder, folder.path(), std::move(words));
}

std::string example(const std::string& name) {
  return std::string(BERTH_SOURCE_DIR) + "/examples/" + name;
}

std::vector<std::string> column(const std::string& csv, const std::string& name) {
  std::istringstream lines(csv);
  std::string line;
  std::size_t wanted = 0;
  std::vector<std::string> values;
  for (bool head = true; std::getline(lines, line); head = false) {
    std::istringstream cells(line);
    std::string cell;
    for (std::size_t i = 0; std::getline(cells, cell, ','); ++i) {
      if (head && cell == name) wanted = i + 1;
      if (!head && i + 1 == wanted) values.push_back(cell);
    }
  }
  if (wanted == 0) ADD_FAILURE() << "no column " << name;
  return values;
}

}  // namespace berth::test
