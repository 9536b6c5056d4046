// Control groups: against trees of plain files, and the real thing where this machine lets us.
#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fstream>

#include <fcntl.h>
#include <unistd.h>

#include "exec/cgroup.h"
#include "exec/host_fixture.h"
#include "exec/process_table.h"

namespace berth::host_test {
namespace {

namespace fs = std::filesystem;

class Cgroup : public HostTest {
 protected:
  /// A directory with control files, as the kernel would make them.
  std::string fake(const std::string& path, const std::vector<std::string>& files) {
    fs::create_directories(file(path));
    for (const std::string& name : files) std::ofstream(file(path + "/" + name)) << "\n";
    return file(path);
  }
};

TEST_F(Cgroup, V2TakesLimitsFreezesAndKills) {
  const std::string root = fake("v2", {});
  const std::string group =
      fake("v2/a", {"cgroup.procs", "cgroup.freeze", "cgroup.kill", "memory.max", "cpuset.cpus"});
  std::vector<std::string> refused;
  const auto made = AttemptCgroups::make({root}, "a", {.cores = {1, 3}, .memory_mib = 2}, refused);
  EXPECT_TRUE(refused.empty());
  EXPECT_EQ(made.directories(), std::vector<std::string>{group});
  EXPECT_EQ(content(group + "/memory.max"), "2097152");
  EXPECT_EQ(content(group + "/cpuset.cpus"), "1,3");
  EXPECT_TRUE(made.join());
  EXPECT_EQ(content(group + "/cgroup.procs"), "0\n");
  EXPECT_TRUE(made.set_frozen(true));
  EXPECT_EQ(content(group + "/cgroup.freeze"), "1");
  EXPECT_TRUE(made.set_frozen(false));
  EXPECT_EQ(content(group + "/cgroup.freeze"), "0");
  EXPECT_TRUE(made.set_cores({0}));
  EXPECT_EQ(content(group + "/cpuset.cpus"), "0");
  EXPECT_TRUE(made.set_cores({}));
  EXPECT_EQ(content(group + "/cpuset.cpus"), "\n");
  EXPECT_TRUE(made.kill_all());
  EXPECT_EQ(content(group + "/cgroup.kill"), "1");
}

TEST_F(Cgroup, V1IsSpreadOverHierarchies) {
  fake("memory", {});
  fake("memory/a", {"cgroup.procs", "memory.limit_in_bytes"});
  fake("freezer/a", {"cgroup.procs", "freezer.state"});
  fake("cpuset/a", {"cgroup.procs", "cpuset.cpus", "cpuset.mems"});
  std::ofstream(file("cpuset/cpuset.cpus")) << "0-7\n";
  std::ofstream(file("cpuset/cpuset.mems")) << "0\n";
  std::vector<std::string> refused;
  const auto made = AttemptCgroups::make({file("memory"), file("freezer"), file("cpuset")}, "a",
                                         {.cores = {}, .memory_mib = 1}, refused);
  EXPECT_EQ(made.directories().size(), 3U);
  EXPECT_EQ(content(file("memory/a/memory.limit_in_bytes")), "1048576");
  EXPECT_EQ(content(file("cpuset/a/cpuset.cpus")), "0-7\n");  // a set without cores takes nobody
  EXPECT_EQ(content(file("cpuset/a/cpuset.mems")), "0\n");
  EXPECT_TRUE(made.set_frozen(true));
  EXPECT_EQ(content(file("freezer/a/freezer.state")), "FROZEN");
  EXPECT_FALSE(made.kill_all());  // v1 cannot: process by process
  EXPECT_TRUE(made.set_cores({2}));
  EXPECT_TRUE(made.set_cores({}));
  EXPECT_EQ(content(file("cpuset/a/cpuset.cpus")), "0-7\n");
}

TEST_F(Cgroup, ARootThatRefusesIsLeftOut) {
  std::ofstream(file("no-directory")) << "";
  std::vector<std::string> refused;
  const auto made = AttemptCgroups::make({file("no-directory")}, "a", {}, refused);
  EXPECT_EQ(refused, std::vector<std::string>{file("no-directory")});
  EXPECT_TRUE(made.directories().empty());
  EXPECT_FALSE(made.set_frozen(true));
  EXPECT_FALSE(made.set_cores({0}));
  EXPECT_TRUE(made.join());  // nothing to enter
}

TEST_F(Cgroup, OutOfMemoryIsSeen) {
  const AttemptCgroups group({fake("a", {})});
  EXPECT_FALSE(group.was_out_of_memory());
  std::ofstream(file("a/memory.events")) << "low 0\noom 1\noom_kill 0\n";
  EXPECT_FALSE(group.was_out_of_memory());
  std::ofstream(file("a/memory.events")) << "low 0\noom 1\noom_kill 2\n";
  EXPECT_TRUE(group.was_out_of_memory());
}

TEST_F(Cgroup, RootsAreFoundWhereTheProcessStands) {
  std::ofstream(file("self"))
      << "6:freezer:/\n4:memory:/batch\n3:cpuset:/missing\n2:cpu,cpuacct:/\n0::/mine\n";
  fake("mount/unified/mine", {"cgroup.procs", "cgroup.controllers", "cgroup.subtree_control"});
  fake("mount/freezer", {"cgroup.procs"});
  for (const char* root : {"unified/mine", "freezer", "memory/batch"})
    fake(std::string("mount/") + root + "/berth.probe", {"cgroup.procs"});
  fake("mount/memory/batch", {"cgroup.procs"});
  const auto roots = find_cgroup_roots({.mount = file("mount"), .self = file("self")});
  EXPECT_EQ(roots, (std::vector<std::string>{file("mount/unified/mine"), file("mount/freezer"),
                                             file("mount/memory/batch")}));
  EXPECT_NE(content(file("mount/unified/mine/cgroup.subtree_control")).find("+"),
            std::string::npos);
  // A place that lets us make groups and takes no process is none.
  fs::remove(file("mount/freezer/berth.probe/cgroup.procs"));
  EXPECT_EQ(find_cgroup_roots({.mount = file("mount"), .self = file("self")}).size(), 2U);
  EXPECT_TRUE(find_cgroup_roots({.mount = file("mount"), .self = file("none")}).empty());
}

TEST_F(Cgroup, AProcessAloneInItsGroupMakesRoomForControllers) {
  std::ofstream(file("self")) << "0::/\n";
  fake("mount", {"cgroup.controllers", "cgroup.subtree_control"});
  std::ofstream(file("mount/cgroup.procs")) << ::getpid() << "\n";
  fake("mount/scheduler", {"cgroup.procs"});
  fake("mount/berth.probe", {"cgroup.procs"});
  EXPECT_EQ(find_cgroup_roots({.mount = file("mount"), .self = file("self")}).size(), 1U);
  EXPECT_EQ(content(file("mount/scheduler/cgroup.procs")), "0\n");
}

TEST_F(Cgroup, ARealGroupHoldsSuspendsAndEndsTheJob) {
  std::string root;
  for (const char* place : {"/sys/fs/cgroup", "/sys/fs/cgroup/unified", "/sys/fs/cgroup/freezer"}) {
    if (!exists(std::string(place) + "/cgroup.procs")) continue;
    const std::string own = std::string(place) + "/berth-test-" + std::to_string(::getpid());
    std::error_code problem;
    if (fs::create_directory(own, problem) &&
        (exists(own + "/cgroup.freeze") || exists(own + "/freezer.state"))) {
      root = own;
      break;
    }
    fs::remove(own, problem);
  }
  if (root.empty()) GTEST_SKIP() << "no control group may be made here";
  open({root});
  ASSERT_TRUE(
      host().launch(script("echo $$ > pid; setsid sh -c 'trap \"\" TERM; while :; do echo x >> "
                           "steps; sleep 0.005; done'")));
  const pid_t job = pid_in(file("pid"));
  ASSERT_TRUE(eventually([&] { return content(file("steps")).size() > 4; }));
  std::string group;
  for (const auto& entry : fs::directory_iterator(root))
    if (entry.is_directory()) group = entry.path();
  EXPECT_NE(content(group + "/cgroup.procs").find(std::to_string(job) + "\n"), std::string::npos);
  host().suspend({1, 1});
  const bool is_v2 = exists(group + "/cgroup.freeze");
  ASSERT_TRUE(eventually([&] {
    return is_v2 ? content(group + "/cgroup.events").find("frozen 1") != std::string::npos
                 : content(group + "/freezer.state") == "FROZEN\n";
  }));
  const auto before = content(file("steps")).size();
  ::usleep(100'000);  // twenty steps' time
  EXPECT_EQ(content(file("steps")).size(), before);
  host().resume({1, 1});
  EXPECT_TRUE(eventually([&] { return content(file("steps")).size() > before; }));
  host().suspend({1, 1});
  host().stop({1, 1}, Host::Stop::Kill, 0);  // also the frozen die
  EXPECT_EQ(wait_for(HostEventKind::Ended).exit.signal, SIGKILL);
  EXPECT_TRUE(eventually([&] { return !exists(group); }));
  std::error_code problem;
  fs::remove(root, problem);
  EXPECT_FALSE(exists(root));
}

}  // namespace
}  // namespace berth::host_test
