// Rooms know each other in one direction only; a policy sees no files, sockets, clocks or truth.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <set>
#include <string>

#include "project_paths.h"

namespace {

namespace fs = std::filesystem;

// room -> rooms it may include (docs/architecture.md)
const std::map<std::string, std::set<std::string>> kMayInclude{
    {"base", {}},
    {"model", {"base"}},
    {"wire", {"base", "model"}},
    {"solve", {"base"}},
    {"perf", {"base", "model", "solve"}},
    {"core", {"base", "model", "perf"}},
    {"placements", {"base", "model", "perf", "core"}},
    {"policies", {"base", "model", "solve", "perf", "core", "placements"}},
    {"cpu", {"base", "model", "perf", "core", "placements"}},
    {"power", {"base", "model", "solve", "perf", "core"}},
    {"store", {"base", "model"}},
    {"exec", {"base", "model", "store"}},
    {"training", {"base", "model", "wire", "perf"}},
    {"why", {"base", "model", "wire", "perf", "core"}},
    {"daemon",
     {"base", "model", "wire", "why", "perf", "core", "placements", "policies", "cpu", "power",
      "sim", "trace", "metrics", "store", "exec", "training"}},
    {"api", {"base", "model", "wire", "store", "daemon"}},
    {"client", {"base", "model", "wire"}},
    {"sim", {"base", "model", "perf", "core"}},
    {"trace", {"base", "model"}},
    {"metrics", {"base", "model", "perf", "core"}},
    {"report", {"base", "model", "wire", "perf", "core", "metrics"}},
    {"run",
     {"base", "model", "perf", "core", "placements", "policies", "cpu", "power", "sim", "metrics"}},
    {"lab",
     {"base", "model", "perf", "core", "placements", "policies", "power", "sim", "trace", "metrics",
      "run"}},
    {"apps", {"base", "model", "wire",  "perf",   "core",    "placements", "policies",
              "cpu",  "power", "sim",   "trace",  "metrics", "report",     "run",
              "lab",  "exec",  "store", "daemon", "api",     "client"}},
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

TEST(House, IncludesFollowTheArrows) {
  int seen = 0;
  for_each_include([&](const std::string& file, int line, const std::string& included) {
    const std::string to = first_part(included);
    if (!kMayInclude.contains(to)) return;  // a library
    const std::string from = first_part(file);
    ASSERT_TRUE(kMayInclude.contains(from)) << "room " << from << " is not in the map";
    ++seen;
    EXPECT_TRUE(from == to || kMayInclude.at(from).contains(to))
        << file << ":" << line << ": " << from << " must not know " << to;
  });
  EXPECT_GT(seen, 100);
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
