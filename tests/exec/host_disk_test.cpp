// A full disk: what cannot begin is refused, and what has begun ends with its record.
#include <cerrno>
#include <filesystem>
#include <fstream>

#include <sys/mount.h>
#include <unistd.h>

#include "exec/host_fixture.h"

namespace berth::host_test {
namespace {

namespace fs = std::filesystem;

/// A small disk in memory, gone with the test.
class SmallDisk {
 public:
  explicit SmallDisk(std::string path) : path_(std::move(path)) {
    is_there_ = ::mount("berth-test", path_.c_str(), "tmpfs", 0, "size=256k,mode=0711") == 0;
  }
  ~SmallDisk() {
    if (is_there_) ::umount2(path_.c_str(), MNT_DETACH);
  }
  SmallDisk(const SmallDisk&) = delete;
  SmallDisk& operator=(const SmallDisk&) = delete;
  [[nodiscard]] bool is_there() const { return is_there_; }
  /// Not a byte is left.
  void fill() const {
    std::ofstream out(path_ + "/filler", std::ios::app);
    for (int i = 0; i < 1024 && out; ++i) out << std::string(1024, 'x') << std::flush;
    EXPECT_FALSE(out);
  }

 private:
  std::string path_;
  bool is_there_ = false;
};

TEST_F(HostTest, AFullDiskTakesNoJobAndLosesNoEnd) {
  close();
  const SmallDisk disk(file("run"));
  if (!disk.is_there()) GTEST_SKIP() << "needs root: a small disk";
  open();
  ASSERT_TRUE(host().launch(script("while [ ! -e go ]; do sleep 0.01; done; exit 5")));
  wait_for(HostEventKind::Started);
  disk.fill();
  // The next one is refused in words, and leaves nothing that a shim could begin with.
  LaunchOrder second = script("touch ran", 2);
  second.script += std::string(65536, '#');
  const auto refused = host().launch(second);
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().text().find("No space left on device"), std::string::npos)
      << refused.error().text();
  EXPECT_FALSE(exists(run_file("order.1.2")));
  EXPECT_FALSE(exists(file("ran")));
  // The first has had its space from the beginning.
  std::ofstream(file("go")) << "\n";
  EXPECT_EQ(wait_for(HostEventKind::Ended).exit.exit_code, 5);
  close();
}

TEST_F(HostTest, AReadOnlyDiskIsAClearError) {
  close();
  const SmallDisk disk(file("run"));
  if (!disk.is_there()) GTEST_SKIP() << "needs root: a small disk";
  open();
  ASSERT_EQ(::mount("berth-test", file("run").c_str(), "tmpfs", MS_REMOUNT | MS_RDONLY, nullptr),
            0);
  const auto refused = host().launch(script("true"));
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().text().find("Read-only file system"), std::string::npos);
  // Nobody can promise that it never ran: whoever asked is told when to ask again.
  EXPECT_FALSE(host().look(101, {1, 1}));
  EXPECT_EQ(wait_for(HostEventKind::LaunchLost).job, 101U);
  close();
}

}  // namespace
}  // namespace berth::host_test
