// Advice beside a real Slurm that schedules by itself: the program runs as an ordinary user where
// that Slurm lives, is asked by the real client, and leaves everything as it was. The short test
// needs a few seconds of Slurm; the long one has accounting, limits and a slurmctld that dies, and
// runs with BERTH_SLURM_LONG=1.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <thread>

#include <fmt/format.h>

#include "e2e/cli/program.h"
#include "project_paths.h"

namespace berth::test {
namespace {

using testing::ContainsRegex;
using testing::HasSubstr;
using testing::Not;
namespace fs = std::filesystem;

constexpr const char* kTools = BERTH_SHARED_DIR "/slurm";

/// The chroot of Debian 13's Slurm, if somebody has made it.
std::string kept_root() {
  const char* cache = std::getenv("XDG_CACHE_HOME");
  const char* home = std::getenv("HOME");
  const std::string base =
      cache != nullptr ? cache : std::string{home != nullptr ? home : "/root"} + "/.cache";
  return base + "/berth-slurm-roots/trixie";
}

class AdviceOnSlurm : public testing::Test {
 protected:
  ~AdviceOnSlurm() override {
    if (serving_ > 0) static_cast<void>(run(fmt::format("kill {}", serving_)));
    if (fs::exists(slurm_)) static_cast<void>(run(fmt::format("{}/down {}", kTools, slurm_)));
  }

  /// False: the test is skipped.
  [[nodiscard]] bool bring_up(const std::string& options) {
    if (geteuid() != 0) return false;
    if (!fs::exists(std::string{kTools} + "/up") || !fs::exists(kept_root() + "/.slurm-test-root"))
      return false;
    fs::permissions(folder_.path(), fs::perms{0755});
    const Ran up = run(fmt::format("{}/up {} -n 8 -t v100:4,a100:8 --suite trixie --backfill {}",
                                   kTools, slurm_, options));
    EXPECT_EQ(up.exit, 0) << up.err;
    // The program is this machine's: libraries that it needs and the chroot lacks go with it.
    const Ran copied =
        run(fmt::format("mkdir -p home lib && chown games home && cp \"$BERTH\" berth && for l in "
                        "$({0}/bin/slurm-in "
                        "ldd $PWD/berth | sed -n 's/ => not found//p'); do cp -L $(ldd berth | awk "
                        "-v l=$l '$1 == l "
                        "{{print $3}}') lib/; done",
                        slurm_));
    EXPECT_EQ(copied.exit, 0) << copied.err;
    return up.exit == 0 && copied.exit == 0;
  }

  Ran run(const std::string& command) const {
    return shell(folder_, fmt::format("export SLURM_CONF={0}/slurm.conf PATH={0}/bin:$PATH; {1}",
                                      slurm_, command));
  }
  std::string submit(const std::string& user, const std::string& options) const {
    const Ran ran = run(fmt::format(
        "slurm-in -u {} sbatch --parsable -o /dev/null {} --wrap 'sleep 600'", user, options));
    EXPECT_EQ(ran.exit, 0) << options << ": " << ran.err;
    return ran.out.substr(0, ran.out.find('\n'));
  }

  void serve(const std::string& options) {
    const Ran ran =
        run(fmt::format("cd home && (slurm-in -u games env HOME=$PWD XDG_RUNTIME_DIR=$PWD "
                        "LD_LIBRARY_PATH=$PWD/../lib "
                        "$PWD/../berth serve --engine slurm --advise --poll 1 --log-level info {} "
                        "> log 2>&1 & echo $!)",
                        options));
    serving_ = std::atoi(ran.out.c_str());
    EXPECT_TRUE(becomes([&] { return ask("queue").exit == 0; })) << folder_.read("home/log");
  }
  /// By the real client, as root, on the socket of games.
  [[nodiscard]] Ran ask(const std::string& command) const {
    return run(
        fmt::format("\"$BERTH\" {} --server {}/home/berth/berth.sock", command, folder_.path()));
  }
  [[nodiscard]] std::string told(const std::string& command) const {
    const Ran ran = ask(command);
    return ran.out + ran.err;
  }
  template <class Condition>
  static bool becomes(Condition condition, int seconds = 30) {
    const auto until = std::chrono::steady_clock::now() + std::chrono::seconds{seconds};
    while (!condition()) {
      if (std::chrono::steady_clock::now() > until) return false;
      std::this_thread::sleep_for(std::chrono::milliseconds{200});
    }
    return true;
  }
  /// Everything of the jobs that only a command changes; times of starts that Slurm expects, and
  /// when it last looked, are its own.
  [[nodiscard]] std::string jobs_as_they_are() const {
    return run("scontrol -d show job | grep -vE 'StartTime|LastSchedEval|RunTime|Scheduler' | sed "
               "'s/ SchedNodeList=.*//'")
        .out;
  }
  /// Requests of slurmctld that change something, by who sent them.
  [[nodiscard]] std::string changes_asked() const {
    return run("sdiag | grep -E 'REQUEST_(UPDATE|CANCEL|KILL|SUSPEND|JOB_REQUEUE|SUBMIT|RECONF|"
               "SHUTDOWN|JOB_WILL)' | sed 's/ave_time.*//'")
        .out;
  }

  TempFolder folder_;
  std::string slurm_ = folder_ / "slurm";
  int serving_ = 0;
};

#define BERTH_NEEDS_SLURM(options)                                                              \
  if (!bring_up(options)) {                                                                     \
    if (HasFailure()) return;                                                                   \
    GTEST_SKIP() << "no kept Slurm here: needs root, ../shared/slurm and its chroot of trixie"; \
  }

TEST_F(AdviceOnSlurm, AnOrdinaryUserSeesTheQueueAndWhyJobsWait) {
  BERTH_NEEDS_SLURM("");
  for (int i = 0; i < 4; ++i) submit("nobody", "--gres=gpu:a100:5 -t 60");
  ASSERT_TRUE(becomes([&] {
    return run("squeue -h -t R").out.find("R ") != std::string::npos &&
           run("squeue -h -t PD").out.empty();
  }));
  const std::string spread = submit("games", "-J wide --gres=gpu:a100:6 -t 30");
  const std::string held = submit("games", "-J kept --hold --gres=gpu:1");
  ASSERT_TRUE(becomes([&] { return run("squeue -h -o %r -j " + spread).out == "Resources\n"; }));
  const std::string before = jobs_as_they_are(), asked_before = changes_asked();
  serve("--policy easy");
  ASSERT_TRUE(becomes([&] { return ask("queue").out.find("wide") != std::string::npos; }));
  EXPECT_THAT(told("queue"), ContainsRegex(spread + " +wide +games +main +pending +6"));
  EXPECT_THAT(told("queue"), ContainsRegex("nobody +main +running +5 .*n5:0,1,2,3,4"));
  EXPECT_THAT(told("nodes"), ContainsRegex("n5 +up +a100 +5/8"));
  // 3 of 8 are free on each of four nodes.
  EXPECT_THAT(told("why " + spread),
              HasSubstr("12 a100 are free but spread over 4 nodes, at most 3 together"));
  EXPECT_THAT(told("why " + spread), HasSubstr("Berth: under easy it would wait"));
  EXPECT_THAT(told("why " + held), HasSubstr("to open it: scontrol release " + held));
  EXPECT_THAT(told("why " + held),
              HasSubstr("Berth: once it competes: under easy it would start now on n"));
  EXPECT_THAT(told("cancel " + spread), HasSubstr("use `scancel " + spread + "`"));
  EXPECT_THAT(told("history"), HasSubstr("Slurm keeps no accounting"));
  EXPECT_EQ(jobs_as_they_are(), before);
  EXPECT_EQ(changes_asked(), asked_before);
}

TEST_F(AdviceOnSlurm, EverySituationIsExplainedAndADeadSlurmctldIsLivedWith) {
  if (std::getenv("BERTH_SLURM_LONG") == nullptr)
    GTEST_SKIP() << "takes long: BERTH_SLURM_LONG=1 runs it";
  BERTH_NEEDS_SLURM("--dbd --extra AccountingStorageEnforce=associations,limits,qos");
  const Ran accounts =
      run("sacctmgr -i add account lab && sacctmgr -i add user games,nobody Account=lab && "
          "sacctmgr -i add qos small MaxTRESPerUser=gres/gpu=2 && "
          "sacctmgr -i modify user games,nobody set qos+=small");
  ASSERT_EQ(accounts.exit, 0) << accounts.err << accounts.out;
  const std::string done = submit("games", "-A lab --gres=gpu:1 -t 1");
  ASSERT_TRUE(becomes([&] { return run("squeue -h -t R").out.find(done) != std::string::npos; }));
  static_cast<void>(run("scancel " + done));
  const std::string gang =
      submit("games", "-A lab -J gang --gres=gpu:a100:8 -N2 --ntasks-per-node=1 -t 90");
  submit("nobody", "-A lab --gres=gpu:a100:5 -t 60");
  submit("nobody", "-A lab --gres=gpu:a100:5 -t 60");
  const std::string cores = submit("nobody", "-A lab -J cores -n32 -N1 -t 30");
  const std::string limited = submit("games", "-A lab --qos=small --gres=gpu:2 -t 10");
  ASSERT_TRUE(becomes([&] { return run("squeue -h -t PD").out.empty(); }));
  const std::string shape = submit("games", "-A lab -J shape --gres=gpu:a100:4 -t 30");
  ASSERT_TRUE(becomes([&] { return run("squeue -h -o %r -j " + shape).out == "Resources\n"; }));
  const std::string later = submit("games", "-A lab -J later --gres=gpu:a100:4 -t 30 --nice=100");
  const std::string held = submit("games", "-A lab --hold --gres=gpu:1");
  const std::string behind =
      submit("nobody", "-A lab --dependency=afterok:" + gang + " --gres=gpu:1");
  const std::string begin = submit("nobody", "-A lab --begin=now+1hour --gres=gpu:1");
  const std::string limit = submit("games", "-A lab --qos=small --gres=gpu:1 -t 10");
  const std::string array =
      submit("nobody", "-A lab -J tasks --array=1-6%2 --gres=gpu:v100:1 -t 10");
  ASSERT_TRUE(becomes([&] {
    return run("squeue -h -o %r").out.find("JobArrayTaskLimit") != std::string::npos &&
           run("squeue -h -o %r -j " + limit).out == "QOSMaxGRESPerUser\n" &&
           run("squeue -h -o %r -j " + later).out == "Priority\n";
  }));
  const std::string before = jobs_as_they_are(), asked_before = changes_asked();
  serve("--policy easy --listen 127.0.0.1:0");
  ASSERT_TRUE(becomes([&] { return ask("queue").out.find("shape") != std::string::npos; }));

  EXPECT_THAT(told("queue"), ContainsRegex(array + " +tasks.3-6. +nobody +main +pending +1"));
  EXPECT_THAT(told("queue"), ContainsRegex(gang + " +gang +games +main +running +16"));
  EXPECT_THAT(told("queue"), ContainsRegex(cores + " +cores +nobody +main +running +0"));
  EXPECT_THAT(told("why " + later), ContainsRegex("1 job of higher priority waits before it"));
  EXPECT_THAT(told("why " + shape), HasSubstr("at most 3 together"));
  EXPECT_THAT(told("why " + held), HasSubstr("Slurm says JobHeldUser"));
  EXPECT_THAT(told("why " + behind), HasSubstr("waits for job " + gang + " (running) to complete"));
  EXPECT_THAT(told("why " + begin), HasSubstr("may not begin before its time, which comes in"));
  EXPECT_THAT(told("why " + limit),
              HasSubstr("QOS small: 2 in use of 2 gres/gpu per user; it asks for 1 GPU"));
  EXPECT_THAT(told("why " + array + "_5"), HasSubstr("Slurm says JobArrayTaskLimit"));
  EXPECT_THAT(told("why " + limited), ContainsRegex("runs on 2 .* on n"));
  EXPECT_THAT(told("history"), ContainsRegex(done + " .*games +cancelled"));
  EXPECT_THAT(told("show " + done), HasSubstr("cancelled"));
  const std::string log = folder_.read("home/log");
  const std::string port =
      log.substr(log.find("port=") + 5, log.find(' ', log.find("port=")) - log.find("port=") - 5);
  EXPECT_THAT(run("curl -s http://127.0.0.1:" + port + "/metrics").out,
              HasSubstr("berth_slurm_gpus{type=\"a100\",state=\"used\"} 28"));
  EXPECT_EQ(jobs_as_they_are(), before);
  EXPECT_EQ(changes_asked(), asked_before);

  ASSERT_EQ(run("kill -9 $(cat slurm/run/slurmctld.pid)").exit, 0);
  EXPECT_TRUE(becomes(
      [&] { return told("queue").find("Slurm does not answer") != std::string::npos; }, 60));
  EXPECT_THAT(told("queue"), HasSubstr("shape"));  // as it was last known
  EXPECT_THAT(told("why " + shape), ContainsRegex("As of [0-9]+ s ago"));
  ASSERT_EQ(run("slurmctld").exit, 0);
  EXPECT_TRUE(becomes(
      [&] { return told("queue").find("Slurm does not answer") == std::string::npos; }, 90));
}

TEST(AdviceRefused, WhatCannotBeServedIsSaidBeforeAnythingIsBound) {
  TempFolder folder;
  const auto refused = [&](const std::vector<std::string>& more) {
    std::vector<std::string> words{"serve", "--socket", folder / "s", "--state-dir",
                                   folder / "state"};
    words.insert(words.end(), more.begin(), more.end());
    return berth(folder, words);
  };
  const Ran both = refused({"--engine", "slurm", "--advise", "--cluster", "2x4"});
  EXPECT_EQ(both.exit, 2);
  EXPECT_THAT(both.err, HasSubstr("one scheduler serves a machine or a Slurm, not both"));
  EXPECT_EQ(refused({"--advise"}).exit, 2);
  EXPECT_THAT(refused({"--engine", "moon"}).err, HasSubstr("neither machine nor slurm"));
  const Ran nowhere = refused({"--engine", "slurm", "--advise", "--slurm-commands", folder.path()});
  EXPECT_EQ(nowhere.exit, 1);
  EXPECT_THAT(nowhere.err, HasSubstr("squeue: there is no such command"));
  EXPECT_THAT(nowhere.err, HasSubstr("slurm-client"));
  // Berth under Slurm's names would ask itself.
  ASSERT_EQ(
      shell(
          folder,
          "mkdir own && for c in squeue scontrol; do ln -s $(readlink -f \"$BERTH\") own/$c; done")
          .exit,
      0);
  const Ran itself = refused({"--engine", "slurm", "--advise", "--slurm-commands", folder / "own"});
  EXPECT_EQ(itself.exit, 1);
  EXPECT_THAT(itself.err, HasSubstr("is Berth itself under Slurm's name"));
}

}  // namespace
}  // namespace berth::test
