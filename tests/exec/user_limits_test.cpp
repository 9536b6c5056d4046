#include "exec/user_limits.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include <grp.h>
#include <unistd.h>

namespace berth {
namespace {

namespace fs = std::filesystem;

class UserLimits : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = (fs::temp_directory_path() / "berth-limits-XXXXXX").string();
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    root_ = name;
    fs::create_directories(root_ + "/security/limits.d");
    places_ = {.security = root_ + "/security",
               .systemd = root_ + "/systemd",
               .first_process = root_ + "/limits"};
  }
  void TearDown() override { fs::remove_all(root_); }
  void put(const std::string& name, const std::string& text) const {
    std::ofstream(root_ + "/" + name) << text;
  }
  [[nodiscard]] FileLimits of(const std::string& name, std::uint32_t uid = 1000) const {
    return ordinary_file_limits({.name = name, .uid = uid, .gid = 0, .groups = {0}}, places_);
  }

  std::string root_;
  LimitPlaces places_;
};

TEST_F(UserLimits, ComeFromTheFirstProcessWhereThereIsNoSystemd) {
  put("limits",
      "Limit                     Soft Limit           Hard Limit           Units     \n"
      "Max open files            2048                 4096                 files     \n");
  EXPECT_EQ(of("ann"), (FileLimits{2048, 4096}));
  put("limits", "Max open files            unlimited            unlimited            files\n");
  EXPECT_EQ(of("ann"), (FileLimits{1'048'576, 1'048'576}));
}

TEST_F(UserLimits, AreSystemdsDefaultsWhereItRuns) {
  put("limits", "Max open files            1073741816           1073741816           files\n");
  fs::create_directory(places_.systemd);  // which has raised its own
  EXPECT_EQ(of("ann"), (FileLimits{1024, 524288}));
  fs::remove(root_ + "/limits");
  fs::remove(places_.systemd);
  EXPECT_EQ(of("ann"), (FileLimits{1024, 524288}));  // nobody says anything
}

TEST_F(UserLimits, TheCloserLineWinsAndTheLaterOfTwo) {
  fs::create_directory(places_.systemd);
  const ::group* own = ::getgrgid(0);
  ASSERT_NE(own, nullptr);
  put("security/limits.conf",
      std::string("# comment\n") +                //
          "ann   soft nofile 3000\n"              // by name: stands against what follows
          "*     soft nofile 2000 # everybody\n"  //
          "*     -    nproc  77\n"                // of something else
          "@" +
          own->gr_name +
          " hard nofile 9000\n"       // closer than the next file's
          "bob   soft nofile much\n"  // no sense
          "half a line\n");
  put("security/limits.d/10-more.conf", "* hard nofile 8000\n* soft nofile 2500\n");
  put("security/limits.d/20.bak", "* soft nofile 1\n");
  EXPECT_EQ(of("ann"), (FileLimits{3000, 9000}));
  EXPECT_EQ(of("bob"), (FileLimits{2500, 9000}));
}

TEST_F(UserLimits, WildcardsAreNotForRootAndSoftIsNeverAboveHard) {
  fs::create_directory(places_.systemd);
  put("security/limits.conf", "* - nofile 10\n");
  EXPECT_EQ(of("root", 0), (FileLimits{1024, 524288}));
  EXPECT_EQ(of("ann"), (FileLimits{10, 10}));
  put("security/limits.conf", "* hard nofile 100\nroot - nofile unlimited\n");
  EXPECT_EQ(of("ann"), (FileLimits{100, 100}));
  EXPECT_EQ(of("root", 0), (FileLimits{1'048'576, 1'048'576}));
}

}  // namespace
}  // namespace berth
