// srun inside a job: a real scheduler, a real script, real processes.
#include <csignal>

#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "client/scheduler.h"
#include "e2e/live/served.h"

namespace berth::test::srun_tests {
namespace {

using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

class Srun : public testing::Test {
 protected:
  Srun() { EXPECT_EQ(::symlink(BERTH_PROGRAM, (served_.folder() / "srun").c_str()), 0); }

  /// Runs it as a batch script of four tasks and GPUs; what it printed.
  std::string run(const std::string& body, const std::string& more = "") {
    submit(body, more);
    last_ = served_.run("wait 1");
    return served_.folder().read("log");
  }
  void submit(const std::string& body, const std::string& more = "") {
    const std::string& folder = served_.folder().path();
    served_.folder().file("job.sh", "#!/bin/bash\n#SBATCH --ntasks=4 --gpus=4 -o log\n" + more +
                                        "\nPATH=" + folder + ":$PATH\n" + body);
    const Ran sent = served_.run("submit job.sh");
    ASSERT_EQ(sent.exit, 0) << sent.err;
  }
  std::vector<StepView> steps() {
    client::Endpoint endpoint;
    endpoint.socket = served_.folder() / "s";
    const auto told = client::Scheduler(endpoint).steps({1});
    EXPECT_TRUE(told) << told.error().text();
    return told && !told->empty() ? told->front().steps : std::vector<StepView>{};
  }

  Served served_;
  Ran last_;
};

TEST_F(Srun, TasksHaveRanksDevicesAndLabels) {
  const std::string log =
      run("srun -n4 -l --gpus-per-task=1 sh -c 'echo $SLURM_PROCID/$SLURM_NTASKS "
          "$CUDA_VISIBLE_DEVICES $SLURM_STEP_ID'\n");
  for (const char* line : {"0: 0/4 0 0\n", "1: 1/4 1 0\n", "2: 2/4 2 0\n", "3: 3/4 3 0\n"})
    EXPECT_THAT(log, HasSubstr(line));
  EXPECT_EQ(last_.exit, 0);
}

TEST_F(Srun, ExitCodesComeBackAndAreOnRecord) {
  const std::string log =
      run("srun -n2 sh -c 'exit $((SLURM_PROCID + 3))'; echo code $?\n"
          "srun -n1 sh -c 'kill -9 $$'; echo code $?\n"
          "srun -n1 /no/such/program; echo code $?\n"
          "srun -n3 -K sh -c '[ $SLURM_PROCID = 1 ] && exit 7; sleep 300'; echo killed\n"
          "srun -n1 true; echo code $?\n");
  EXPECT_THAT(log, HasSubstr("task 1: Exited with exit code 4\n"));
  EXPECT_THAT(log, HasSubstr("code 4\n"));
  EXPECT_THAT(log, HasSubstr("task 0: Killed\n"));
  EXPECT_THAT(log, HasSubstr("code 137\n"));
  EXPECT_THAT(log, HasSubstr("/no/such/program: No such file or directory\n"));
  EXPECT_THAT(log, HasSubstr("code 2\n"));
  EXPECT_THAT(log, HasSubstr("killed\n"));
  EXPECT_THAT(log, HasSubstr("code 0\n"));
  const auto all = steps();
  ASSERT_EQ(all.size(), 6U);
  EXPECT_EQ(all[0].id, "batch");
  EXPECT_EQ(all[0].state, StepState::Completed);
  EXPECT_EQ(all[1].exit_code, 4);
  EXPECT_EQ(all[1].state, StepState::Failed);
  EXPECT_EQ(all[2].signal, 9);
  EXPECT_EQ(all[5].state, StepState::Completed);
  for (const StepView& step : all) EXPECT_GT(step.ended, 0) << step.id;
}

TEST_F(Srun, StepsBesideEachOtherHaveDevicesOfTheirOwnAndNeverMore) {
  const std::string log =
      run("srun -n1 --exact --gpus=2 sh -c 'echo A $CUDA_VISIBLE_DEVICES; touch a; while [ ! -e b "
          "]; do "
          "sleep 0.05; done' &\n"
          "while [ ! -e a ]; do sleep 0.05; done\n"
          "srun -n1 --exact --gpus=2 sh -c 'echo B $CUDA_VISIBLE_DEVICES; touch b'\n"
          "wait\n"
          "srun -n1 --gpus=5 true; echo code $?\n"
          "srun -n1 --immediate true && echo free\n");
  EXPECT_THAT(log, HasSubstr("A 0,1\n"));
  EXPECT_THAT(log, HasSubstr("B 2,3\n"));
  EXPECT_THAT(log, HasSubstr("Invalid generic resource (gres) specification\n"));
  EXPECT_THAT(log, HasSubstr("code 1\n"));
  EXPECT_THAT(log, HasSubstr("free\n"));
}

TEST_F(Srun, AKilledStepTakesItsTasksAndGivesItsDevicesBack) {
  const std::string log =
      run("srun -n2 --gpus=4 sh -c 'echo $$ >pid.$SLURM_PROCID; sleep 300' & srun=$!\n"
          "while [ ! -s pid.0 ] || [ ! -s pid.1 ]; do sleep 0.05; done\n"
          "srun -n1 --immediate --gpus=1 true || echo busy\n"
          "kill -9 $srun; wait $srun\n"
          "srun -n1 --gpus=4 echo again\n"
          "for p in $(cat pid.0 pid.1); do kill -0 $p 2>/dev/null && echo alive; done; true\n");
  EXPECT_THAT(log, HasSubstr("busy\n"));
  EXPECT_THAT(log, HasSubstr("again\n"));
  EXPECT_THAT(log, Not(HasSubstr("alive")));
  ASSERT_EQ(steps().size(), 3U);  // the one that was refused has none
  EXPECT_EQ(steps()[1].state, StepState::Cancelled);
}

TEST_F(Srun, StreamsGoWhereTheyAreSent) {
  const std::string log = run(
      "echo hello | srun -n2 cat\n"
      "srun -n2 -o step-%j.%s-%t.txt sh -c 'echo file $SLURM_PROCID; echo err >&2'\n"
      "cat step-1.1-0.txt step-1.1-1.txt\n"
      "seq 200000 | srun -n1 tail -n 1\n"
      "srun -n1 -o none echo unseen\n"
      "printf '0 echo zero %%t\\n1-3 echo rest %%t %%o\\n' >prog; srun -n4 -l --multi-prog prog\n");
  EXPECT_THAT(log, HasSubstr("hello\nhello\n"));
  EXPECT_THAT(log, HasSubstr("file 0\nerr\nfile 1\nerr\n"));
  EXPECT_THAT(log, HasSubstr("200000\n"));
  EXPECT_THAT(log, Not(HasSubstr("unseen")));
  EXPECT_THAT(log, HasSubstr("0: zero 0\n"));
  EXPECT_THAT(log, HasSubstr("3: rest 3 2\n"));
}

/// A signal to the job reaches each task once, and one to the step reaches its tasks.
TEST_F(Srun, SignalsReachTasksOnce) {
  submit(
      "srun -n2 bash -c 'trap \"echo got >>got.$SLURM_PROCID\" USR1; touch up.$SLURM_PROCID; "
      "while [ ! -e stop ]; do sleep 0.05; done' & srun=$!\n"
      "while [ ! -e stop ]; do sleep 0.05; done\n"
      "wait\n");
  const TempFolder& folder = served_.folder();
  ASSERT_TRUE(eventually([&] { return folder.has("up.0") && folder.has("up.1"); }));
  EXPECT_EQ(served_.run("cancel --signal USR1 1").exit, 0);
  ASSERT_TRUE(eventually([&] { return folder.has("got.0") && folder.has("got.1"); }));
  ::usleep(300'000);  // a second one would come now
  EXPECT_EQ(folder.read("got.0"), "got\n");
  EXPECT_EQ(folder.read("got.1"), "got\n");
  ASSERT_EQ(steps().size(), 2U);
  const StepView step = steps()[1];
  EXPECT_EQ(step.state, StepState::Running);
  ASSERT_EQ(::kill(static_cast<pid_t>(step.pid), SIGUSR1), 0);
  EXPECT_TRUE(eventually([&] { return folder.read("got.1") == "got\ngot\n"; }));
  folder.file("stop", "");
  EXPECT_EQ(served_.run("wait 1").exit, 0);
}

/// A warning before the limit is for the steps: a script without a trap lives to write its end.
TEST_F(Srun, TheWarningIsForTheStepsAndNotForTheScriptThatWaits) {
  const std::string log =
      run("(sleep 11; echo beside) & beside=$!\n"
          "srun -n1 bash -c 'trap \"echo warned; exit 0\" USR1; while :; do sleep 0.05; done'\n"
          "wait $beside\n"
          "echo saved\n",
          "#BERTH --time 70s\n#SBATCH --signal=USR1@60\n");
  // The signal reaches the task's children too, so bash may tell of its `sleep` in between.
  EXPECT_THAT(log, HasSubstr("warned\n"));
  EXPECT_THAT(log, EndsWith("beside\nsaved\n"));
  EXPECT_EQ(last_.exit, 0);
}

/// The job's own request is each step's, unless the step says something else.
TEST_F(Srun, ReadsItsOptionsFromVariables) {
  const std::string log =
      run("srun -n2 bash -c 'echo $CUDA_VISIBLE_DEVICES' | sort -u | wc -l\n"
          "srun -n1 --gpus=3 bash -c 'echo $CUDA_VISIBLE_DEVICES' | tr -cd ,; echo\n"
          "SLURM_LABELIO=1 srun -n1 echo labelled\n"
          "SLURM_LABELIO=0 srun -n1 echo bare\n"
          "SLURM_GPU_BIND=single:1 srun -n4 --gpus=1 bash -c 'echo $CUDA_VISIBLE_DEVICES' | sort "
          "-u | wc -l\n"
          "LEFT=there SLURM_EXPORT_ENV=NONE srun -n1 bash -c 'echo [$LEFT]'\n"
          "SLURM_WAIT=nonsense srun -n1 true; echo code $?\n",
          "#SBATCH --gpus-per-task=1\n");
  EXPECT_THAT(log, StartsWith("2\n,,\n0: labelled\nbare\n1\n[]\n"));
  EXPECT_THAT(log, Not(HasSubstr("code 0")));
}

/// What the job holds is on record; a variable that says more yields nothing more.
TEST_F(Srun, NoVariableYieldsDevicesThatTheJobDoesNotHold) {
  const std::string show = "bash -c 'echo [$CUDA_VISIBLE_DEVICES] [$SLURM_JOB_GPUS]'";
  const std::string log =
      run("SLURM_JOB_GPUS=0,1,2,3 srun -n1 -G 4 true; echo code $?\n"
          "export SLURM_JOB_GPUS=2,3 BERTH_DEVICES=2,3 CUDA_VISIBLE_DEVICES=2,3\n"
          "srun -n1 " +
              show +
              "\n"
              "srun -n1 --gpus=2 " +
              show +
              "\n"
              "unset SLURM_JOB_GPUS; srun -n1 " +
              show + "\n",
          "#SBATCH --gpus=2\n");
  EXPECT_THAT(log, HasSubstr("it wants 4 GPUs, its job holds 2"));
  EXPECT_THAT(log, HasSubstr("code 1\n[0,1] [0,1]\n[0,1] [0,1]\n[0,1] [0,1]\n"));
}

/// In Slurm's words, measured with 24.11.
TEST_F(Srun, RefusesWhatItsJobDoesNotHave) {
  const std::string log =
      run("echo node; srun -n1 -w zz true; echo code $?\n"
          "srun -n1 -w $SLURMD_NODENAME true && echo here\n"
          "srun -n1 -r 1 true; echo code $?\n"
          "srun -n1 -r 0 true && echo first\n"
          "echo type; srun -n1 --gpus=zx81:1 true; echo code $?\n"
          "srun -n1 --gres=gpu:zx81:1 true; echo code $?\n"
          "echo tasks; srun -n 9 true; echo code $?\n"
          "srun -n 9 --overlap true; echo code $?\n"
          "srun -n 9 --overcommit true && echo crowded\n"
          "SLURM_OVERCOMMIT=1 srun -n 9 --exact true && echo packed\n"
          "srun -n 8 true && echo full\n",
          "#SBATCH -c 2\n");
  const std::string cannot = "srun: error: Unable to create step for job 1: ";
  EXPECT_THAT(log, HasSubstr("node\n" + cannot +
                             "Requested node configuration is not available\n"
                             "srun: its job does not run on zz\ncode 1\nhere\n" +
                             cannot + "Requested node configuration is not available\n"));
  EXPECT_THAT(log, HasSubstr("code 1\nfirst\n"));
  EXPECT_THAT(log, HasSubstr("type\n" + cannot +
                             "Invalid generic resource (gres) specification\n"
                             "srun: it wants zx81, its job holds "));
  EXPECT_THAT(log, HasSubstr("tasks\n" + cannot + "More processors requested than permitted\n"));
  EXPECT_THAT(log, EndsWith("code 1\ncrowded\npacked\nfull\n"));
}

/// A directory of PATH that cannot be entered says nothing of the program.
TEST_F(Srun, TellsAMissingProgramFromOneThatCannotBeRun) {
  const std::string log =
      run("mkdir -m 0 closed; touch plain; as=\n"
          // What root may do in spite of it would hide it.
          "[ $(id -u) = 0 ] && as='setpriv --bounding-set -dac_override,-dac_read_search'\n"
          "export PATH=$PWD/closed:$PATH\n"
          "$as srun -n1 no-such-program; echo code $?\n"
          "PATH=$PATH:$PWD $as srun -n1 plain; echo code $?\n"
          "rmdir closed\n");
  EXPECT_THAT(log, HasSubstr("execve(): no-such-program: No such file or directory\n"));
  EXPECT_THAT(log, HasSubstr("code 2\n"));
  EXPECT_THAT(log, HasSubstr("Permission denied\n"));
  EXPECT_THAT(log, EndsWith("code 13\n"));
}

TEST_F(Srun, OptionsThatMeanNothingInsideAJobAreTaken) {
  const std::string log =
      run("srun -n1 --nice=5 --contiguous --switches=1 --wckey=x --mail-type=ALL -k echo quiet\n"
          "srun -n1 --bcast=/tmp/q --cpu-freq=low -S 1 echo noted\n");
  EXPECT_THAT(log, StartsWith("quiet\n"));
  for (const char* name : {"bcast", "cpu-freq", "core-spec"})
    EXPECT_THAT(log, HasSubstr(std::string("srun: --") + name + " has no effect inside a job\n"));
  EXPECT_THAT(log, EndsWith("noted\n"));
}

TEST_F(Srun, RefusesNonsense) {
  const std::string log =
      run("srun; echo code $?\n"
          "srun -n 0 true; echo code $?\n"
          "srun --gpu-bind=sideways true; echo code $?\n"
          "srun --no-such true; echo code $?\n"
          "srun --no-requeue true; echo code $?\n"
          "srun --test-only true; echo code $?\n"
          "srun -r first true; echo code $?\n"
          "srun -n1 --multi-prog /no/such/file; echo code $?\n"
          "BERTH_STEPS=/no/where srun -n1 true; echo code $?\n"
          "srun -n1 -o /no/where/x true; echo code $?\n");
  EXPECT_THAT(log, HasSubstr("No command given to execute."));
  EXPECT_THAT(log, HasSubstr("--gpu-bind=sideways"));
  EXPECT_THAT(log, HasSubstr("/no/such/file"));
  EXPECT_THAT(log, Not(HasSubstr("code 0")));
}

}  // namespace
}  // namespace berth::test::srun_tests
