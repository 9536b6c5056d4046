// Rooms know each other in one direction only; a policy sees no files, sockets, clocks or truth.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <regex>
#include <set>
#include <string>

#include "project_paths.h"

namespace {

namespace fs = std::filesystem;

// room -> rooms it includes (docs/architecture.md); an arrow that nobody uses is not there
const std::map<std::string, std::set<std::string>> kMayInclude{
    {"base", {}},
    {"model", {"base"}},
    {"wire", {"base", "model"}},
    {"solve", {"base"}},
    {"perf", {"base", "model", "solve"}},
    {"core", {"base", "model", "perf"}},
    {"placements", {"base", "model", "perf", "core"}},
    {"policies", {"base", "model", "solve", "perf", "core", "placements"}},
    {"cpu", {"base", "perf", "core", "placements"}},
    {"power", {"base", "solve", "core"}},
    {"step", {"base", "model", "wire"}},
    {"store", {"base", "model", "wire"}},
    {"exec", {"base", "model", "step", "store"}},
    {"training", {"base", "model", "wire", "perf"}},
    {"slurm", {"base"}},
    {"why", {"base", "model", "wire", "core"}},
    {"daemon",
     {"base", "model", "wire", "why", "perf", "core", "placements", "policies", "cpu", "power",
      "sim", "store", "exec", "training"}},
    {"advise", {"base", "model", "wire", "why", "core", "store", "daemon", "slurm"}},
    {"slurm_host", {"base", "model", "store", "exec", "slurm", "daemon"}},
    {"api", {"base", "model", "wire", "daemon"}},
    {"client", {"base", "model", "wire", "step"}},
    {"sim", {"base", "model", "perf", "core"}},
    {"trace", {"base", "model"}},
    {"metrics", {"base", "core"}},
    {"report", {"base", "wire", "metrics"}},
    {"run", {"base", "perf", "core", "placements", "policies", "cpu", "power", "sim", "metrics"}},
    {"lab", {"base", "model", "perf", "placements", "policies", "power", "trace", "run"}},
    {"apps", {"base", "model", "perf",    "placements", "policies",   "cpu", "power",
              "sim",  "trace", "metrics", "report",     "run",        "lab", "slurm",
              "step", "exec",  "daemon",  "advise",     "slurm_host", "api", "client"}},
};

template <class Visit>
void for_each_line(Visit visit) {
  const fs::path root = fs::path(BERTH_SOURCE_DIR) / "src";
  for (const auto& entry : fs::recursive_directory_iterator(root)) {
    const auto extension = entry.path().extension();
    if (extension != ".h" && extension != ".cpp") continue;
    const std::string file = fs::relative(entry.path(), root).string();
    std::ifstream in(entry.path());
    int number = 0;
    for (std::string line; std::getline(in, line);) visit(file, ++number, line);
  }
}

template <class Visit>
void for_each_include(Visit visit) {
  const std::regex pattern(R"re(^\s*#\s*include\s*(["<])([^">]+)[">])re");
  for_each_line([&](const std::string& file, int number, const std::string& line) {
    std::smatch match;
    if (std::regex_search(line, match, pattern)) visit(file, number, match[2].str());
  });
}

std::string first_part(const std::string& path) { return path.substr(0, path.find('/')); }

TEST(House, EveryFolderIsARoom) {
  for (const auto& entry : fs::directory_iterator(fs::path(BERTH_SOURCE_DIR) / "src")) {
    if (!entry.is_directory()) continue;
    const std::string room = entry.path().filename().string();
    EXPECT_TRUE(kMayInclude.contains(room)) << "room " << room << " is not in the map";
  }
}

TEST(House, IncludesFollowTheArrowsAndEveryArrowIsUsed) {
  std::map<std::string, std::set<std::string>> used;
  for_each_include([&](const std::string& file, int line, const std::string& included) {
    const std::string to = first_part(included);
    const std::string from = first_part(file);
    if (!kMayInclude.contains(to) || from == to) return;  // a library, or one's own room
    ASSERT_TRUE(kMayInclude.contains(from)) << "room " << from << " is not in the map";
    EXPECT_TRUE(kMayInclude.at(from).contains(to))
        << file << ":" << line << ": " << from << " must not know " << to;
    used[from].insert(to);
  });
  for (const auto& [from, rooms] : kMayInclude) {
    for (const std::string& to : rooms)
      EXPECT_TRUE(used[from].contains(to)) << from << " may know " << to << ", but does not";
  }
}

std::string text_of(const fs::path& path) {
  std::ifstream in(path);
  return {std::istreambuf_iterator<char>(in), {}};
}

TEST(House, TheArchitecturePageHasARowForEveryRoomAndNoOther) {
  const std::string whole = text_of(fs::path(BERTH_SOURCE_DIR) / "docs" / "architecture.md");
  const std::size_t head = whole.find("\n| room |");
  ASSERT_NE(head, std::string::npos);
  const std::string page = whole.substr(head, whole.find("\n\n", head) - head);
  std::set<std::string> rows;
  const std::regex row(R"re(\n\| ([a-z_]+) \| )re");
  for (std::sregex_iterator match(page.begin(), page.end(), row), end; match != end; ++match)
    rows.insert((*match)[1].str());
  rows.erase("room");  // the head of the table
  for (const auto& [room, unused] : kMayInclude)
    EXPECT_TRUE(rows.erase(room) == 1) << room << " has no row in docs/architecture.md";
  for (const std::string& other : rows) ADD_FAILURE() << other << " is no folder of src";
}

TEST(House, CoreAndPoliciesTouchNoFilesSocketsOrClocks) {
  const std::set<std::string> forbidden{"fstream",     "iostream", "filesystem", "thread",
                                        "random",      "cstdio",   "unistd.h",   "sys/socket.h",
                                        "base/file.h", "ctime",    "sys/time.h"};
  for_each_include([&](const std::string& file, int line, const std::string& included) {
    const std::string room = first_part(file);
    if (room != "core" && room != "policies" && room != "placements" && room != "cpu" &&
        room != "power")
      return;
    EXPECT_FALSE(forbidden.contains(included)) << file << ":" << line << ": <" << included << ">";
  });
}

// A live clock never stands on a multiple, nor exactly where a policy wished: policies/kit knows
// when a round is due.
TEST(House, NoPolicyAsksWhetherTheClockStandsExactlySomewhere) {
  const std::regex exact(
      R"re(\bnow *[!=]= *[a-z_*]|[!=]= *(view\.)?now\b|(now|time_since_epoch\(\)|since[a-z_]*) *% )re"
      R"re(|% *options_\.)re");
  for_each_line([&](const std::string& file, int number, const std::string& line) {
    const std::string room = first_part(file);
    if (room != "policies" && room != "placements" && room != "cpu" && room != "power") return;
    EXPECT_FALSE(std::regex_search(line, exact)) << file << ":" << number << ": " << line;
  });
}

TEST(House, EveryRoomSaysItsPurpose) {
  for (const auto& [room, unused] : kMayInclude) {
    EXPECT_TRUE(fs::exists(fs::path(BERTH_SOURCE_DIR) / "src" / room / "README.md")) << room;
  }
}

}  // namespace
