// What a newcomer sees: the demo, its end, its interruption; and history as a trace.
#include <csignal>

#include <sys/wait.h>
#include <unistd.h>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "e2e/live/served.h"
#include "project_paths.h"

namespace berth::test {
namespace {

using testing::ContainsRegex;
using testing::HasSubstr;
using testing::Not;

TEST(Demo, RunsItsJobsAndSetsThemBesideFifo) {
  const TempFolder folder;
  const Ran ran = shell(folder, "TMPDIR=$PWD $BERTH demo --speed 10");
  EXPECT_EQ(ran.exit, 0) << ran.err;
  EXPECT_THAT(ran.out, HasSubstr("whole-machine"));
  EXPECT_THAT(ran.out, ContainsRegex("small-a +1 GPU +completed"));
  EXPECT_THAT(ran.out, ContainsRegex("sjf, just now: +waited"));
  EXPECT_THAT(ran.out, ContainsRegex("fifo, simulated: +waited"));
  EXPECT_THAT(folder.names(), testing::IsEmpty());  // nothing is left behind
}

TEST(Demo, AnInterruptEndsItsJobsAndLeavesNothing) {
  const TempFolder folder, work;
  const int child = [&] {
    ::setenv("TMPDIR", work.path().c_str(), 1);
    const int started = start_berth(folder, {"demo"});
    ::unsetenv("TMPDIR");
    return started;
  }();
  ASSERT_TRUE(eventually([&] { return folder.read("out").find("running") != std::string::npos; }))
      << folder.read("err");
  ::kill(child, SIGINT);
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0) << folder.read("err");
  EXPECT_THAT(folder.read("err"), HasSubstr("stopped"));
  EXPECT_THAT(work.names(), testing::IsEmpty());
  // Its jobs carry the directory in their command or their working directory.
  const Ran left = shell(folder, "readlink /proc/[0-9]*/cwd 2>/dev/null | grep -F " + work.path());
  EXPECT_EQ(left.out, "");
}

TEST(Demo, WithAPolicyNobodyKnowsSaysWhy) {
  const TempFolder folder;
  const Ran ran = shell(folder, "TMPDIR=$PWD $BERTH demo --policy sjff");
  EXPECT_EQ(ran.exit, 1);
  EXPECT_THAT(ran.err, HasSubstr("sjf"));
  EXPECT_THAT(folder.names(), testing::IsEmpty());
}

// Jobs run in a directory of their own, where a relative path would lead nowhere.
TEST(Demo, TakesATrainerByARelativePath) {
  const TempFolder folder;
  const Ran ran = shell(folder,
                        "printf '#!/bin/sh\nexit 0\n' > trainer; chmod +x trainer; mkdir work; "
                        "TMPDIR=$PWD/work $BERTH demo --speed 100 --trainer ./trainer");
  EXPECT_EQ(ran.exit, 0) << ran.err;
  const Ran missing = shell(folder, "TMPDIR=$PWD $BERTH demo --trainer ./nothing");
  EXPECT_EQ(missing.exit, 2);
  EXPECT_THAT(missing.err, HasSubstr("--trainer: ./nothing is no program"));
}

TEST(Export, WritesAHistoryThatCanBeReplayed) {
  const Served served;
  ASSERT_NE(served.port(), 0);
  const std::string submit = "submit --output /dev/null --name ";
  EXPECT_EQ(served.run(submit + "one --gpus 2 --time 1h -- sleep 0.2").exit, 0);
  EXPECT_EQ(served.run(submit + "two --wait -- false").exit, 1);
  EXPECT_EQ(served.run(submit + "never --hold -- true").exit, 0);
  EXPECT_EQ(served.run("cancel 3").exit, 0);
  EXPECT_EQ(served.run("wait 1").exit, 0);
  ASSERT_TRUE(
      eventually([&] { return served.run("history").out.find("one") != std::string::npos; }));

  const Ran ran = served.run("export -o trace.csv");
  EXPECT_EQ(ran.exit, 0) << ran.err;
  EXPECT_THAT(ran.err, HasSubstr("1 jobs never ran"));
  const std::string csv = served.folder().read("trace.csv");
  EXPECT_EQ(column(csv, "job_id"), (std::vector<std::string>{"1", "2"}));
  EXPECT_EQ(column(csv, "gpus"), (std::vector<std::string>{"2", "1"}));
  EXPECT_EQ(column(csv, "name"), (std::vector<std::string>{"one", "two"}));
  EXPECT_GE(std::stod(column(csv, "duration")[0]), 0.2);
  EXPECT_EQ(column(csv, "status")[1], "failed");
  EXPECT_GT(std::stod(column(csv, "submit_time")[0]), 1.7e9);  // Unix time: the file's own zero

  const Ran compared = served.run("compare --trace trace.csv --cluster 1x4 --policies fifo,srtf");
  EXPECT_EQ(compared.exit, 0) << compared.err;
  EXPECT_THAT(compared.out, HasSubstr("srtf"));
  EXPECT_EQ(served.run("export").exit, 2);  // where to?
}

TEST(Export, OfAnEmptyHistorySaysSo) {
  const Served served;
  const Ran ran = served.run("export -o -");
  EXPECT_EQ(ran.exit, 1);
  EXPECT_THAT(ran.err, HasSubstr("nothing to write"));
  EXPECT_THAT(ran.out, Not(HasSubstr("job_id")));
}

// After `su`, in a container: a user's scheduler and his commands must still mean one socket. A
// user of whom nobody else has heard, because the place is a folder of /tmp with his number.
TEST(Serve, IsFoundByItsUserWithoutARuntimeDirectory) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root to become another user";
  const TempFolder folder;
  const std::string user = fmt::format("{}", 1'000'000'000 + ::getpid());
  const std::string as_user =
      "chmod 755 . && mkdir -p home && chown " + user +
      " home && cd home && unset BERTH_SOCKET BERTH_URL "
      "XDG_RUNTIME_DIR XDG_STATE_HOME; export HOME=$PWD; U='setpriv --reuid " +
      user + " --regid " + user + " --clear-groups'; ";
  if (shell(folder, as_user + "$U test -x $BERTH && $U test -w /tmp").exit != 0)
    GTEST_SKIP() << "the program or /tmp is closed to other users";
  const Ran ran =
      shell(folder,
            as_user +
                "$U $BERTH serve --cluster 1x1:cpu > log 2>&1 & pid=$!; "
                "for i in $(seq 600); do grep -q ready log && break; kill -0 $pid || break; sleep "
                "0.1; done; "
                "$U $BERTH queue; echo exit $?; kill $pid; wait $pid; cat log; rm -rf /tmp/berth-" +
                user);
  EXPECT_THAT(ran.out, HasSubstr("exit 0")) << ran.out << ran.err;
}

TEST(Dist, TheExampleConfigurationIsGood) {
  const TempFolder folder;
  const Ran ran =
      shell(folder, "$BERTH serve --check --config '" BERTH_SOURCE_DIR "/dist/berth.yaml'");
  EXPECT_EQ(ran.exit, 0) << ran.err;
  EXPECT_THAT(ran.out, HasSubstr("policy easy, state in /var/lib/berth"));
}

TEST(Dist, TheUnitIsGood) {
  const TempFolder folder;
  if (shell(folder, "command -v systemd-analyze").exit != 0)
    GTEST_SKIP() << "systemd-analyze is not installed";
  for (const std::string unit : {"berth.service", "berth-slurm-watch.service"}) {
    // The program is not where the unit will find it.
    const Ran ran =
        shell(folder, "sed 's|/usr/bin/berth|/bin/true|' '" BERTH_SOURCE_DIR "/dist/" + unit +
                          "' > " + unit + " && systemd-analyze verify ./" + unit + " 2>&1");
    EXPECT_EQ(ran.exit, 0) << ran.out;
    EXPECT_THAT(ran.out, Not(HasSubstr(unit + ":")));
  }
}

}  // namespace
}  // namespace berth::test
