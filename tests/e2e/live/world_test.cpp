// The world a job finds itself in, seen from inside a real one: mask, variables, temporary
// directory, grids, jobs without a GPU, dependencies on arrays, and what is said before it exists.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "e2e/live/served.h"

namespace berth::test {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using testing::Not;

TEST(JobsWorld, HasTheSubmittersMaskAndADirectoryOfItsOwn) {
  const Served served;
  Ran ran = shell(served.folder(),
                  "umask 027; BERTH_SOCKET='" + (served.folder() / "s") +
                      "' $BERTH submit --wait -o out.txt -- sh -c "
                      "'umask; touch made; test -d \"$TMPDIR\" && test \"$TMPDIR\" = "
                      "\"$SLURM_TMPDIR\" && touch \"$TMPDIR/x\" && stat -c %a \"$TMPDIR\"; "
                      "echo $TMPDIR > where'");
  ASSERT_EQ(ran.exit, 0) << ran.err;
  EXPECT_EQ(served.folder().read("out.txt"), "0027\n700\n");
  EXPECT_EQ(shell(served.folder(), "stat -c %a made out.txt").out, "640\n640\n");
  EXPECT_EQ(shell(served.folder(), "test -e \"$(cat where)\"; echo $?").out, "1\n");  // it is gone
}

TEST(JobsWorld, OfABatchScriptHasNoRanks) {
  const Served served;
  served.folder().file("job.sh",
                       "#!/bin/sh\n#SBATCH -n 4 -c 1 --gres=gpu:1 -q fast -o env.txt\n"
                       "env | sort\necho \"pid $$\"\n");
  const Ran ran = served.run("submit --wait job.sh");
  ASSERT_EQ(ran.exit, 0) << ran.err;
  const std::string env = "\n" + served.folder().read("env.txt");
  for (const char* none : {"\nRANK=", "\nWORLD_SIZE=", "\nLOCAL_RANK=", "\nMASTER_ADDR="})
    EXPECT_THAT(env, Not(HasSubstr(none)));
  for (const char* there :
       {"\nSLURM_PROCID=0\n", "\nSLURM_LOCALID=0\n", "\nSLURM_NTASKS=4\n", "\nSLURM_GTIDS=0\n",
        "\nSLURM_JOB_QOS=fast\n", "\nSLURM_CPUS_PER_TASK=1\n", "\nSLURM_TASKS_PER_NODE=4\n"})
    EXPECT_THAT(env, HasSubstr(there));
  const auto pid = env.substr(env.rfind("pid ") + 4);
  EXPECT_THAT(env, HasSubstr("\nSLURM_TASK_PID=" + pid));
  EXPECT_EQ(
      served.run("submit --wait --tasks 1 -o one.txt -- sh -c 'echo $RANK of $WORLD_SIZE'").exit,
      0);
  EXPECT_EQ(served.folder().read("one.txt"), "0 of 1\n");
}

TEST(JobsWorld, AJobFromInsideAJobDoesNotTakeItsWordsForItsOwn) {
  const Served served;
  const Ran ran = served.run(
      "submit --wait -a 3 -o outer.%a -- sh -c '$BERTH submit --wait -o inner.txt -- sh -c "
      "\"echo [\\$SLURM_ARRAY_TASK_ID][\\$BERTH_ARRAY_INDEX]\"'");
  ASSERT_EQ(ran.exit, 0) << ran.err << served.folder().read("outer.3");
  EXPECT_EQ(served.folder().read("inner.txt"), "[][]\n");
}

TEST(Grids, AreOneArrayWithNames) {
  const Served served;
  Ran ran = served.run(
      "submit --wait --grid lr=0.1,0.01 --grid seed=1-2 -n train -o '{lr}-{seed}.out' -- "
      "sh -c 'echo {lr} {seed} $BERTH_GRID_SEED \"$BERTH_JOB_NAME\"'");
  ASSERT_EQ(ran.exit, 0) << ran.err;
  EXPECT_EQ(served.folder().read("0.01-2.out"), "0.01 2 2 train lr=0.01 seed=2\n");
  EXPECT_THAT(served.run("history").out, HasSubstr("train lr=0.1 seed=2"));
  EXPECT_THAT(served.run("show 1").out, HasSubstr("grid         lr=0.1 seed=1"));
  ran = served.run("submit --hold --grid lr=1-30 -- sh -c 'echo {lr}'");
  ASSERT_EQ(ran.exit, 0) << ran.err;
  ran = served.run("queue");
  EXPECT_THAT(ran.out, HasSubstr("sh (30 of lr)"));
  EXPECT_THAT(ran.out, Not(HasSubstr("lr=2")));
  ran = served.run("submit --grid lr=1,2 -- sh -c 'echo {rate}'");
  EXPECT_EQ(ran.exit, 2);
  EXPECT_THAT(ran.err, HasSubstr("lr is used nowhere"));
  EXPECT_THAT(ran.err, HasSubstr("{rate} is no parameter"));
}

TEST(Dependencies, OnArraysAndKeptOnesTellWhy) {
  const Served served;
  ASSERT_EQ(served.run("submit -a 1-2 -- sh -c 'exit $((BERTH_ARRAY_INDEX - 1))'").exit, 0);
  ASSERT_EQ(served.run("submit -d afterok:1_1 -- true").exit, 0);                      // 3
  ASSERT_EQ(served.run("submit -d afterok:1 --keep-unmet -- true").exit, 0);           // 4
  ASSERT_EQ(served.run("submit -d afterok:1 -- true").exit, 0);                        // 5
  ASSERT_EQ(served.run("submit -a 1-2 -d aftercorr:1 --keep-unmet -- true").exit, 0);  // 6, 7
  ASSERT_EQ(served.run("submit -d afternotok:1 -- true").exit, 0);                     // 8
  const auto state = [&](int job) {
    const Ran shown = served.run("show --json " + std::to_string(job));
    return json::parse(shown.out, nullptr, false).value("state", "");
  };
  EXPECT_TRUE(eventually([&] { return state(3) == "completed" && state(6) == "completed"; }));
  EXPECT_TRUE(eventually([&] {
    return served.run("why 4").out.find("can never be met: job 2 failed") != std::string::npos;
  })) << served.run("why 4").out;
  EXPECT_EQ(state(4), "blocked");
  EXPECT_TRUE(eventually([&] { return state(5) == "cancelled"; })) << state(5);
  EXPECT_EQ(state(7), "blocked");
  EXPECT_TRUE(eventually([&] { return state(8) == "completed"; })) << state(8);
  EXPECT_EQ(served.run("submit -d afterok:99 -- true").exit, 1);
  EXPECT_EQ(served.run("cancel 4 7").exit, 0);
}

TEST(TestOnly, AsksTheSchedulerAndMakesNothing) {
  const Served served;
  Ran ran = served.run("submit --test-only -g 2 -- true");
  EXPECT_EQ(ran.exit, 0) << ran.err;
  EXPECT_THAT(ran.out, HasSubstr("Job 1 to start at 20"));
  EXPECT_THAT(ran.out, HasSubstr("in partition main"));
  ran = served.run("submit --test-only -g 5 -- true");
  EXPECT_EQ(ran.exit, 1);
  EXPECT_THAT(ran.err, HasSubstr("needs 5 GPUs"));
  ASSERT_EQ(served.run("submit -g 4 -- sleep 600").exit, 0);
  ASSERT_TRUE(
      eventually([&] { return served.run("queue").out.find("running") != std::string::npos; }));
  ran = served.run("submit --test-only -g 1 -- true");
  EXPECT_EQ(ran.exit, 0);
  EXPECT_THAT(ran.out, HasSubstr("Job 2 would wait"));
  EXPECT_THAT(ran.out, Not(HasSubstr("to start at")));
  ran = served.run("submit --test-only -g 0 -- true");  // no GPU, so that it need not wait
  EXPECT_THAT(ran.out, HasSubstr("Job 2 to start at"));
  EXPECT_THAT(served.run("queue --json").out, Not(HasSubstr("\"number\":2")));
}

// A podman of our own on PATH: says how it was called and runs the program.
constexpr const char* kPodman = R"sh(#!/bin/bash
echo "$@" >> "$(dirname "$0")/../log.txt"
[ "$1" = run ] || exit 0
while [ "$1" != image/of:1 ]; do shift; done
shift
exec "$@"
)sh";

TEST(Containers, RunByPodmansTemplateAndAreCleanedUpAfterAKill) {
  const Served served;
  const TempFolder& folder = served.folder();
  folder.file("podman", kPodman);
  ASSERT_EQ(shell(folder, "mkdir bin && mv podman bin && chmod +x bin/podman").exit, 0);
  const std::string path = "PATH=" + (folder / "bin") + ":$PATH";
  const auto submit = [&](const std::string& rest) {
    return shell(folder, path + " BERTH_SOCKET='" + (folder / "s") + "' $BERTH submit " + rest);
  };
  Ran ran =
      submit("--wait --container image/of:1 -o out.txt -- sh -c 'echo it\\'\"'\"'s $0; exit 3' x");
  EXPECT_EQ(ran.exit, 3) << ran.err << folder.read("out.txt");
  const std::string called = folder.read("log.txt");
  EXPECT_THAT(called, HasSubstr("run --rm --replace --name berth-1-"));
  EXPECT_THAT(called, HasSubstr("--workdir " + folder.path()));
  EXPECT_THAT(called, HasSubstr("--env BERTH_JOB_ID"));
  EXPECT_THAT(called, Not(HasSubstr("--env PATH")));
  EXPECT_THAT(called, HasSubstr("rm --force --ignore --time 0 berth-1-"));
  folder.file("job.sh",
              "#!/bin/sh\n#SBATCH --gpus=1 --container=image/of:1 -o s.txt\necho in $1\n");
  EXPECT_EQ(submit("--wait job.sh image").exit, 0);
  EXPECT_EQ(folder.read("s.txt"), "in image\n");
  ASSERT_EQ(submit("--container image/of:1 -- sleep 600").exit, 0);
  ASSERT_TRUE(
      eventually([&] { return served.run("show 3").out.find("running") != std::string::npos; }));
  EXPECT_EQ(served.run("cancel 3").exit, 0);
  EXPECT_TRUE(eventually([&] {
    return folder.read("log.txt").find("rm --force --ignore --time 0 berth-3-") !=
           std::string::npos;
  }));
}

TEST(GpuMemory, IsAskedForInSizes) {
  const Served served;
  const Ran ran = served.run("submit --gpu-memory 90000G -- true");
  EXPECT_EQ(ran.exit, 1);
  EXPECT_THAT(ran.err, HasSubstr("GiB of GPU memory, the largest here (cpu) has"));
  EXPECT_EQ(served.run("submit --gpu-memory much -- true").exit, 2);
}

}  // namespace
}  // namespace berth::test
