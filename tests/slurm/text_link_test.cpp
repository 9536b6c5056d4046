// The link by text commands, against commands that are scripts of ours: what is asked for, and what
// is said when they are missing, hang, fail or say too much.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "slurm/process.h"
#include "slurm/refusal.h"
#include "slurm/text_link.h"
#include "support/temporary_directory.h"

namespace berth::slurm {
namespace {

using std::chrono::milliseconds;
using testing::HasSubstr;

class TextLinkTest : public testing::Test {
 protected:
  void command(const std::string& name, const std::string& body) {
    const auto path = std::filesystem::path(folder_.path()) / name;
    std::ofstream(path) << "#!/bin/sh\n" << body << "\n";
    std::filesystem::permissions(path, std::filesystem::perms::owner_all);
  }
  TextLink link(milliseconds deadline = milliseconds{10'000}) {
    return TextLink({.directory = folder_.path(), .deadline = deadline, .output_bytes = 1 << 20});
  }
  /// A command that notes its arguments, one per line.
  void note_arguments(const std::string& name) {
    command(name, "printf '%s\\n' \"" + name + "\" \"$@\" >> " + folder_.path() + "/noted");
  }
  std::string noted() {
    std::ifstream file(folder_.path() + "/noted");
    return {std::istreambuf_iterator<char>(file), {}};
  }
  berth::test::TemporaryDirectory folder_;
};

TEST_F(TextLinkTest, SaysWhichCommandIsMissing) {
  const auto nodes = link().nodes();
  ASSERT_FALSE(nodes);
  EXPECT_EQ(nodes.error().refusal, Refusal::Other);
  EXPECT_THAT(nodes.error().text, HasSubstr("scontrol: No such file or directory"));
  EXPECT_THAT(nodes.error().text, HasSubstr(folder_.path()));
}

TEST_F(TextLinkTest, AHangingCommandIsKilledWithItsChildren) {
  command("scontrol", "sleep 300 & echo $! > " + folder_.path() + "/child; wait");
  const auto begin = std::chrono::steady_clock::now();
  const auto config = link(milliseconds{500}).config();
  ASSERT_FALSE(config);
  EXPECT_EQ(config.error().refusal, Refusal::Unreachable);
  EXPECT_THAT(config.error().text, HasSubstr("no answer in 500 ms"));
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds{60});
  std::ifstream file(folder_.path() + "/child");
  std::string child;
  ASSERT_TRUE(std::getline(file, child));
  // Killed; somebody has still to reap it, and then its line is gone.
  for (int tries = 0; tries < 1000; ++tries) {
    std::ifstream stat("/proc/" + child + "/stat");
    std::string text{std::istreambuf_iterator<char>(stat), {}};
    if (text.empty() || text.find(") Z") != std::string::npos) return;
    std::this_thread::sleep_for(milliseconds{10});
  }
  FAIL() << "a child of the command lives on";
}

TEST_F(TextLinkTest, ACommandThatSaysTooMuchIsEnded) {
  command("scontrol", "exec yes");
  const auto config = link().config();
  ASSERT_FALSE(config);
  EXPECT_THAT(config.error().text, HasSubstr("says more than 1048576 bytes"));
}

TEST_F(TextLinkTest, TellsWhyByItsWords) {
  const auto refusal = [&](const std::string& words) {
    command("scontrol", "echo '" + words + "' >&2; exit 1");
    const auto held = link().hold("7");
    EXPECT_FALSE(held);
    EXPECT_THAT(held.error().text, HasSubstr("scontrol hold 7: " + words));
    return held.error().refusal;
  };
  EXPECT_EQ(refusal("slurm_load_jobs error: Unable to contact slurm controller (connect failure)"),
            Refusal::Unreachable);
  EXPECT_EQ(refusal("scontrol: error: If munged is up, restart with --num-threads=10"),
            Refusal::Unreachable);
  EXPECT_EQ(refusal("Invalid job id specified for job 7"), Refusal::NoSuchJob);
  EXPECT_EQ(refusal("Job is no longer pending execution for job 7"), Refusal::WrongState);
  EXPECT_EQ(refusal("Access/permission denied for job 7"), Refusal::NotAllowed);
  EXPECT_EQ(refusal("Unspecified error"), Refusal::Other);
}

TEST_F(TextLinkTest, AColumnThatSqueueDoesNotKnowIsNoEmptyQueue) {
  command("squeue", "echo 'squeue: error: Invalid job format specification: Requeue' >&2");
  const auto jobs = link().jobs();
  ASSERT_FALSE(jobs);
  EXPECT_THAT(jobs.error().text, HasSubstr("Invalid job format specification: Requeue"));
}

TEST_F(TextLinkTest, PlacesFirstAndReleasesThen) {
  note_arguments("scontrol");
  const auto placed = link().place(
      "7_2", {.nodes = {"n3", "n4"}, .tasks = 2, .cpus = 16, .begin_now = true, .qos = "berth"});
  ASSERT_TRUE(placed) << placed.error().text;
  EXPECT_EQ(noted(),
            "scontrol\nupdate\njobid=7_2\nreqnodelist=n[3-4]\nnumnodes=2-2\nnumtasks=2\n"
            "numcpus=16-16\nstarttime=now\nqos=berth\nscontrol\nrelease\n7_2\n");
}

// Because whatever is released without its nodes starts anywhere.
TEST_F(TextLinkTest, DoesNotReleaseWhatItCouldNotPlace) {
  command("scontrol", "echo $1 >> " + folder_.path() + "/noted; [ $1 != update ]");
  EXPECT_FALSE(link().place("7", {.nodes = {"n3"}}));
  EXPECT_EQ(noted(), "update\n");
  EXPECT_FALSE(link().place("7", {.nodes = {}}));
  EXPECT_EQ(noted(), "update\n");
}

TEST_F(TextLinkTest, EveryVerbHasItsCommand) {
  note_arguments("scontrol");
  note_arguments("scancel");
  TextLink slurm = link();
  ASSERT_TRUE(slurm.requeue_held("7"));
  ASSERT_TRUE(slurm.cancel("7"));
  ASSERT_TRUE(slurm.signal("7", 10));
  ASSERT_TRUE(slurm.signal_script("7", 12));
  ASSERT_TRUE(slurm.suspend("7"));
  ASSERT_TRUE(slurm.resume("7"));
  ASSERT_TRUE(slurm.set_time_limit("7", 3601));
  ASSERT_TRUE(slurm.set_admin_comment("7", "waits; $(reboot) 'x' behind 3"));
  ASSERT_TRUE(slurm.resume_node("n3"));
  EXPECT_EQ(noted(),
            "scontrol\nrequeuehold\n7\nscancel\n7\nscancel\n--full\n--signal=10\n7\n"
            "scancel\n--batch\n--signal=12\n7\nscontrol\nsuspend\n7\nscontrol\nresume\n7\n"
            "scontrol\nupdate\njobid=7\ntimelimit=61\n"
            "scontrol\nupdate\njobid=7\nadmincomment=waits; $(reboot) 'x' behind 3\n"
            "scontrol\nupdate\nnodename=n3\nstate=resume\n");
}

// Because `scontrol hold` takes lists and ranges of jobs as well.
TEST_F(TextLinkTest, OnlyOneJobIsNamedAtATime) {
  note_arguments("scontrol");
  note_arguments("scancel");
  for (const char* job : {"", "0", "7,8", "7-9", "-u root", "7_", "7_*", "7_[1-3]", "all",
                          "99999999999", "7\n8", "name=x"}) {
    const auto cancelled = link().cancel(job);
    ASSERT_FALSE(cancelled) << job;
    EXPECT_EQ(cancelled.error().refusal, Refusal::NoSuchJob);
    EXPECT_FALSE(link().set_time_limit(job, 60)) << job;
  }
  EXPECT_EQ(noted(), "");
}

TEST_F(TextLinkTest, WhatPeopleLikeToSeeIsNotAskedFor) {
  ::setenv("SQUEUE_FORMAT", "%i", 1);
  ::setenv("SLURM_TIME_FORMAT", "relative", 1);
  command("scontrol",
          "echo \"SLURM_VERSION = 24.11.5\"; echo \"Env = $TZ $SLURM_TIME_FORMAT "
          "${SQUEUE_FORMAT:-none}\"");
  const auto config = link().config();
  ::unsetenv("SQUEUE_FORMAT");
  ::unsetenv("SLURM_TIME_FORMAT");
  ASSERT_TRUE(config) << config.error().text;
  EXPECT_EQ(config->value("Env"), "UTC standard none");
  EXPECT_EQ(*link().version(), (Version{24, 11, 5}));
}

TEST_F(TextLinkTest, NodesThatHaveNotChangedAreNotToldAgain) {
  command("scontrol", "echo \"NodeName=n1 CPULoad=$(date +%N) State=IDLE\"");
  TextLink slurm = link();
  const auto first = slurm.nodes();
  ASSERT_TRUE(first && first->has_value());
  const auto second = slurm.nodes();
  ASSERT_TRUE(second);
  EXPECT_FALSE(second->has_value());
  command("scontrol", "echo \"NodeName=n1 CPULoad=1 State=DOWN*\"");
  const auto third = slurm.nodes();
  ASSERT_TRUE(third && third->has_value());
  EXPECT_EQ((*third)->front().state, "DOWN*");
}

}  // namespace
}  // namespace berth::slurm
