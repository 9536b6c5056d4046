// srun and salloc outside a job, sattach, berth notebook: a real scheduler, real terminals.
#include <csignal>

#include <sys/stat.h>
#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "client/scheduler.h"
#include "e2e/live/served.h"
#include "step/hosted.h"

namespace berth::test::interactive_tests {
namespace {

using step::TerminalClient;
using testing::HasSubstr;
using testing::Not;

constexpr step::WindowSize kSize{.rows = 40, .columns = 100};

class Interactive : public testing::Test {
 protected:
  explicit Interactive(const std::vector<std::string>& arguments = {}) : served_(arguments) {
    for (const char* name : {"srun", "salloc", "sattach", "scancel"})
      EXPECT_EQ(::symlink(BERTH_PROGRAM, (served_.folder() / name).c_str()), 0);
  }

  /// "srun -n1 true", in a shell.
  Ran run(const std::string& command) {
    const std::string& folder = served_.folder().path();
    return shell(served_.folder(),
                 "PATH=" + folder + ":$PATH BERTH_SOCKET=" + folder + "/s " + command);
  }
  /// The same at a terminal.
  std::unique_ptr<TerminalClient> terminal(const std::string& command) {
    return std::make_unique<TerminalClient>(kSize, [this, command] {
      const std::string folder = served_.folder().path();
      if (::chdir(folder.c_str()) != 0) return 98;
      ::setenv("BERTH_SOCKET", (folder + "/s").c_str(), 1);
      ::setenv("PATH", (folder + ":" + ::getenv("PATH")).c_str(), 1);
      ::setenv("SHELL", "/bin/bash", 1);
      ::setenv("PS1", "$ ", 1);
      const std::string line = "exec " + command;
      ::execl("/bin/sh", "sh", "-c", line.c_str(), nullptr);
      return 97;
    });
  }
  client::Scheduler scheduler() {
    client::Endpoint endpoint;
    endpoint.socket = served_.folder() / "s";
    return client::Scheduler(endpoint);
  }
  client::JobRow job(JobNumber number) {
    const auto row = scheduler().job(number);
    return row ? *row : client::JobRow{};
  }
  bool is_over_soon(JobNumber number) {
    return eventually([&] { return is_over(job(number).state); });
  }

  Served served_;
  JobNumber last_job_ = 0;
};

TEST_F(Interactive, SrunRunsACommandAsIfItWereHere) {
  const Ran ran = run("sh -c 'printf \"a\\nb\\n\" | srun sh -c \"cat; echo wrong >&2; exit 3\"'");
  EXPECT_EQ(ran.exit, 3) << ran.err;
  EXPECT_EQ(ran.out, "a\nb\n");
  EXPECT_THAT(ran.err, HasSubstr("wrong\n"));
  ASSERT_TRUE(is_over_soon(1));
  EXPECT_EQ(job(1).exit_code, 3);
  EXPECT_EQ(job(1).spec->kind, JobKind::Interactive);
}

TEST_F(Interactive, TasksOfSrunHaveTheirRanks) {
  const Ran ran = run("srun -n2 -l --gpus=2 sh -c 'echo $SLURM_PROCID of $SLURM_NTASKS'");
  EXPECT_EQ(ran.exit, 0) << ran.err;
  EXPECT_THAT(ran.out, HasSubstr("0: 0 of 2\n"));
  EXPECT_THAT(ran.out, HasSubstr("1: 1 of 2\n"));
}

TEST_F(Interactive, OutputThatNobodyReadsEndsTheCommand) {
  const Ran ran = run("sh -c 'srun yes | head -n 1'");
  EXPECT_EQ(ran.out, "y\n");
  EXPECT_TRUE(is_over_soon(1));
}

TEST_F(Interactive, WhoWaitsIsToldWhyAndCtrlCGivesUp) {
  ASSERT_EQ(served_.run("submit --gpus 4 -- sleep 1000").exit, 0);
  ASSERT_TRUE(eventually([&] { return job(1).state == LiveState::Running; }));
  const auto waits = terminal("srun --gpus=2 --pty bash");
  ASSERT_TRUE(waits->shows("srun: job 2 queued and waiting for resources"));
  ASSERT_TRUE(waits->shows("srun: job 2 waits: Resources [0 of 2 GPUs are free"));
  waits->type("\x03");
  EXPECT_EQ(waits->exit_code(), 130);
  EXPECT_THAT(waits->screen(), HasSubstr("Job allocation 2 has been revoked."));
  EXPECT_TRUE(is_over_soon(2));
  EXPECT_EQ(job(2).state, LiveState::Cancelled);
}

TEST_F(Interactive, WhoWaitedIsToldWhenItStarts) {
  ASSERT_EQ(served_.run("submit --gpus 4 -- sleep 1000").exit, 0);
  ASSERT_TRUE(eventually([&] { return job(1).state == LiveState::Running; }));
  const auto waits = terminal("srun --gpus=2 echo started");
  ASSERT_TRUE(waits->shows("srun: job 2 queued and waiting for resources"));
  ASSERT_EQ(served_.run("cancel 1").exit, 0);
  EXPECT_TRUE(waits->shows("srun: job 2 has been allocated resources"));
  EXPECT_TRUE(waits->shows("started"));
  EXPECT_EQ(waits->exit_code(), 0);
}

TEST_F(Interactive, ImmediateGivesUpAtOnce) {
  ASSERT_EQ(served_.run("submit --gpus 4 -- sleep 1000").exit, 0);
  ASSERT_TRUE(eventually([&] { return job(1).state == LiveState::Running; }));
  const Ran ran = run("srun --immediate --gpus=1 true");
  EXPECT_EQ(ran.exit, 1);
  EXPECT_THAT(ran.err, HasSubstr("Unable to allocate resources: Requested nodes are busy"));
  EXPECT_TRUE(is_over_soon(2));
}

TEST_F(Interactive, SallocGivesAShellOnATerminalOfItsOwn) {
  const auto shell = terminal("salloc --gpus=2");
  ASSERT_TRUE(shell->shows("salloc: Granted job allocation 1"));
  shell->type("echo job=$SLURM_JOB_ID gpus=$SLURM_GPUS; stty size\r");
  ASSERT_TRUE(shell->shows("job=1 gpus=2"));
  ASSERT_TRUE(shell->shows("40 100"));
  shell->resize({.rows = 51, .columns = 133});
  ASSERT_TRUE(eventually([&] {
    shell->type("stty size\r");
    return shell->screen().find("51 133") != std::string::npos || shell->shows("51 133");
  }));
  shell->type("exit 4\r");
  EXPECT_TRUE(shell->shows("salloc: Relinquishing job allocation 1"));
  EXPECT_EQ(shell->exit_code(), 4);
  EXPECT_FALSE(shell->is_raw());
}

TEST_F(Interactive, LostClientComesBackWithSattach) {
  const auto lost = terminal("srun --gpus=1 --pty bash --norc");
  lost->type("remember=me; echo rea''dy\r");
  ASSERT_TRUE(lost->shows("ready"));
  lost->kill(SIGKILL);
  ASSERT_EQ(lost->exit_code(), 137);
  const auto again = terminal("sattach 1");
  ASSERT_TRUE(again->shows("ready"));  // what was said before
  again->type("echo still=$remember\r");
  EXPECT_TRUE(again->shows("still=me"));
  again->type("exit 5\r");
  EXPECT_EQ(again->exit_code(), 5);
  EXPECT_TRUE(is_over_soon(1));
}

// A closed window or a broken ssh: the terminal is gone, the session is not.
TEST_F(Interactive, ClosedTerminalDetachesAndSattachBringsTheSessionBack) {
  for (const char* command : {"salloc --gpus=1", "srun --gpus=1 --pty bash --norc"}) {
    const auto lost = terminal(command);
    lost->type("remember=me; echo rea''dy=$SLURM_JOB_ID\r");
    ASSERT_TRUE(lost->shows("ready=")) << command;
    lost->close();
    EXPECT_EQ(lost->exit_code(), 128 + SIGHUP) << command;
    const auto again = terminal("sattach " + std::to_string(++last_job_));
    again->type("echo still=$remember\r");
    EXPECT_TRUE(again->shows("still=me")) << command;
    // A key that is typed does end the shell, once its prompt is back.
    EXPECT_TRUE(eventually([&] {
      again->type("\x04");
      return is_over(job(last_job_).state);
    })) << command;
    EXPECT_EQ(again->exit_code(), 0) << command;
  }
}

TEST_F(Interactive, WhoOnlyWatchesEndsNothing) {
  const auto lost = terminal("srun --gpus=1 --pty bash --norc");
  lost->type("echo rea''dy\r");
  ASSERT_TRUE(lost->shows("ready"));
  lost->kill(SIGKILL);
  ASSERT_EQ(lost->exit_code(), 137);
  const Ran watched = run("timeout -s INT 2 sattach --no-input 1 </dev/null");
  EXPECT_THAT(watched.out, HasSubstr("ready"));
  EXPECT_THAT(watched.out, Not(HasSubstr("exit")));
  EXPECT_EQ(job(1).state, LiveState::Running);
  const auto again = terminal("sattach 1");
  again->type("exit 7\r");
  EXPECT_EQ(again->exit_code(), 7);
}

TEST_F(Interactive, KilledSchedulerIsNotMissedAndFindsTheSessionAgain) {
  const auto client = terminal("srun --gpus=1 --pty bash --norc");
  client->type("echo rea''dy\r");
  ASSERT_TRUE(client->shows("ready"));
  served_.kill();
  client->type("echo with''out\r");
  ASSERT_TRUE(client->shows("without"));
  served_.start();
  client->type("echo aga''in\r");
  ASSERT_TRUE(client->shows("again"));
  client->type("exit 6\r");
  EXPECT_EQ(client->exit_code(), 6);
  EXPECT_TRUE(is_over_soon(1));
  EXPECT_EQ(job(1).exit_code, 6);
}

TEST_F(Interactive, KilledHostEndsTheJobAndTheClient) {
  const auto client = terminal("srun --gpus=1 --pty bash --norc");
  client->type("echo rea''dy\r");
  ASSERT_TRUE(client->shows("ready"));
  ASSERT_TRUE(eventually([&] { return job(1).pid != 0; }));
  ASSERT_EQ(::kill(static_cast<pid_t>(job(1).pid), SIGKILL), 0);
  const auto code = client->exit_code();
  ASSERT_TRUE(code);
  EXPECT_NE(*code, 0);
  EXPECT_FALSE(client->is_raw());
  EXPECT_TRUE(is_over_soon(1));
}

TEST_F(Interactive, CancelledFromElsewhereSaysSo) {
  const auto client = terminal("srun --gpus=1 --pty bash --norc");
  client->type("echo rea''dy\r");
  ASSERT_TRUE(client->shows("ready"));
  ASSERT_EQ(run("scancel 1").exit, 0);
  const auto code = client->exit_code();
  ASSERT_TRUE(code);
  EXPECT_NE(*code, 0);
  EXPECT_THAT(client->screen(), HasSubstr("cancelled"));
  EXPECT_FALSE(client->is_raw());
}

// Nobody is left to attach: the job must not hold devices for ever.
TEST_F(Interactive, ClientKilledWhileItWaitsLeavesNothingBehind) {
  ASSERT_EQ(served_.run("submit --gpus 4 -- sleep 1000").exit, 0);
  ASSERT_TRUE(eventually([&] { return job(1).state == LiveState::Running; }));
  const auto client = terminal("env BERTH_ATTACH_WAIT=1 srun --gpus=2 --pty bash");
  ASSERT_TRUE(client->shows("srun: job 2 queued and waiting for resources"));
  client->kill(SIGKILL);
  ASSERT_EQ(served_.run("cancel 1").exit, 0);
  ASSERT_TRUE(is_over_soon(2));
  EXPECT_THAT(job(2).reason, HasSubstr("nobody attached to the session within 1 s"));
}

TEST_F(Interactive, OverTheNetworkItIsRefusedInASentence) {
  for (const char* command : {"srun true", "salloc", "sattach 1"}) {
    const Ran ran =
        shell(served_.folder(), "PATH=.:$PATH BERTH_URL=http://127.0.0.1:" +
                                    std::to_string(served_.port()) + " BERTH_TOKEN=x " + command);
    EXPECT_EQ(ran.exit, 2) << command;
    EXPECT_THAT(ran.err, HasSubstr("terminals do not reach over the network")) << command;
  }
}

TEST_F(Interactive, BadWordsAreMisuse) {
  for (const char* command :
       {"srun", "srun --no-such-option true", "srun --gpus=many true", "srun --immediate=soon true",
        "salloc --time=never", "sattach", "sattach twelve", "srun --jobid=x true"})
    EXPECT_EQ(run(command).exit, 2) << command;
  EXPECT_EQ(run("sattach 77").exit, 1);
  EXPECT_EQ(run("srun --jobid=77 true").exit, 1);
  const Ran help = run("salloc --help");
  EXPECT_EQ(help.exit, 0);
  EXPECT_THAT(help.out, HasSubstr("--no-shell"));
}

TEST_F(Interactive, SrunStepsIntoARunningJob) {
  ASSERT_EQ(served_.run("submit --gpus 2 --env MARK=batch -- sleep 1000").exit, 0);
  ASSERT_TRUE(eventually([&] { return job(1).state == LiveState::Running; }));
  const Ran ran =
      run("srun --jobid=1 --overlap sh -c 'echo $SLURM_JOB_ID $SLURM_JOB_GPUS $MARK; exit 6'");
  EXPECT_EQ(ran.exit, 6) << ran.err;
  EXPECT_THAT(ran.out, HasSubstr("1 0,1 batch"));
  EXPECT_EQ(job(1).state, LiveState::Running);  // neither ended nor failed by it
  // at a terminal; ends with its job
  const auto inside = terminal("srun --jobid=1 --overlap --pty bash --norc");
  inside->type("echo in=$SLURM_JOB_ID\r");
  ASSERT_TRUE(inside->shows("in=1"));
  ASSERT_EQ(served_.run("cancel 1").exit, 0);
  EXPECT_TRUE(inside->exit_code());
  EXPECT_FALSE(inside->is_raw());
}

TEST_F(Interactive, AllocationWithoutAShellIsThereForOthers) {
  const Ran held = run("salloc --no-shell --gpus=1");
  EXPECT_EQ(held.exit, 0) << held.err;
  EXPECT_THAT(held.err, HasSubstr("salloc: Granted job allocation 1"));
  EXPECT_EQ(run("srun --jobid=1 --overlap sh -c 'exit 2'").exit, 2);
  EXPECT_EQ(job(1).state, LiveState::Running);
}

TEST_F(Interactive, NotebookPrintsItsLinkAndStops) {
  served_.folder().file("jupyter-notebook",
                        "#!/bin/sh\n"
                        "for word; do case $word in --port=*) port=${word#--port=};; esac; done\n"
                        "echo \"$JUPYTER_TOKEN\" > token\n"
                        "exec python3 -m http.server --bind 127.0.0.1 $port\n");
  ASSERT_EQ(::chmod((served_.folder() / "jupyter-notebook").c_str(), 0755), 0);
  const Ran ran = run("$BERTH notebook --detach --gpus 1");
  ASSERT_EQ(ran.exit, 0) << ran.err;
  const std::string token = served_.folder().read("token").substr(0, 32);
  EXPECT_EQ(token.size(), 32U);
  EXPECT_THAT(ran.out, testing::MatchesRegex("http://127.0.0.1:[0-9]+/\\?token=" + token + "\n"));
  EXPECT_THAT(ran.err, HasSubstr("ssh -L "));
  EXPECT_EQ(run("$BERTH notebook --links").out, "1 " + ran.out);
  EXPECT_EQ(run("$BERTH notebook --stop").exit, 0);
  EXPECT_TRUE(is_over_soon(1));
}

TEST_F(Interactive, NotebookWithoutJupyterSaysWhatToInstall) {
  const Ran ran = run("env PATH=/nowhere $BERTH notebook");
  EXPECT_EQ(ran.exit, 2);
  EXPECT_THAT(ran.err, HasSubstr("apt install jupyter-notebook"));
  EXPECT_EQ(run("$BERTH notebook --port 99999").exit, 2);
}

class IdleQueue : public Interactive {
 protected:
  IdleQueue() : Interactive({"--config", config()}) {}
  static std::string config() {
    static const TempFolder folder;
    return folder.file("berth.yaml",
                       "queues:\n  - {name: desk, idle_limit: 3s}\n  - {name: long}\n");
  }
};

TEST_F(IdleQueue, WarnsAndEndsAnIdleSessionWithTheReasonOnRecord) {
  const auto idle = terminal("salloc --gpus=1");
  ASSERT_TRUE(idle->shows("Granted job allocation 1"));
  EXPECT_TRUE(idle->shows("this session has been idle for"));
  EXPECT_TRUE(idle->shows("unless used"));
  ASSERT_TRUE(idle->exit_code());
  ASSERT_TRUE(is_over_soon(1));
  EXPECT_THAT(job(1).reason, HasSubstr("the limit of this queue is 3 s"));
}

}  // namespace
}  // namespace berth::test::interactive_tests
