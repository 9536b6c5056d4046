// #SBATCH lines become a JobSpec; what cannot be honoured is told; what is wrong has its place.
#include "client/sbatch_script.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>

#include <nlohmann/json.hpp>

#include "base/file.h"
#include "base/split.h"
#include "model/job_spec_json.h"
#include "project_paths.h"

namespace berth::client {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

Draft blank() {
  Draft draft;
  draft.context.directory = "/home/ann";
  draft.context.environment = {{"HOME", "/home/ann"}, {"LANG", "C"}, {"BERTH_TOKEN", "secret"}};
  draft.context.now = 1'763'300'000;
  return draft;
}

/// The spec as JSON without script, environment and directory, so that a row shows what matters.
std::string spec_of(const std::string& lines) {
  Draft draft = blank();
  const auto applied = apply_script(draft, "#!/bin/sh\n" + lines + "\necho hi\n", "job.sh");
  if (!applied) return applied.error().text();
  if (const auto settled = settle(draft); !settled) return settled.error().text();
  if (const auto faults = problems(draft.spec); !faults.empty()) return faults.front();
  auto json = to_json(draft.spec);
  for (const char* key : {"script", "env", "workdir", "output"}) json.erase(key);
  return json.dump();
}

std::vector<std::string> notes_of(const std::string& lines) {
  Draft draft = blank();
  const auto applied = apply_script(draft, "#!/bin/sh\n" + lines + "\n", "job.sh");
  EXPECT_TRUE(applied) << (applied ? "" : applied.error().text());
  EXPECT_TRUE(settle(draft));
  return draft.notes;
}

struct Row {
  const char* lines;
  const char* spec;
};

TEST(SbatchLines, BecomeASpec) {
  const std::vector<Row> rows{
      {"#SBATCH -J train", R"({"cpus":1,"gpus":0,"name":"train"})"},
      {"#SBATCH --job-name=train", R"({"cpus":1,"gpus":0,"name":"train"})"},
      {"#SBATCH --job-name train", R"({"cpus":1,"gpus":0,"name":"train"})"},
      {"#SBATCH --job-name=\"my job\"  # a comment", R"({"cpus":1,"gpus":0,"name":"my job"})"},
      {"#SBATCH --job-name='a b' --gres=gpu:2", R"({"gpus":2,"name":"a b"})"},
      // a GPU's type and count in all their forms
      {"#SBATCH --gres=gpu", R"({})"},
      {"#SBATCH --gres=gpu:4", R"({"gpus":4})"},
      {"#SBATCH --gres=gpu:a100", R"({"gpu_type":"a100"})"},
      {"#SBATCH --gres=gpu:a100:4", R"({"gpu_type":"a100","gpus":4})"},
      {"#SBATCH --gres=gres:gpu:2", R"({"gpus":2})"},
      {"#SBATCH --gpus=v100:3", R"({"gpu_type":"v100","gpus":3})"},
      {"#SBATCH -G 3", R"({"gpus":3})"},
      {"#SBATCH --gpus-per-node=4 -N 2", R"({"gpus":8})"},  // 4 on each of 2
      {"#SBATCH --gres=gpu:4\n#SBATCH --nodes=2", R"({"gpus":8})"},
      {"#SBATCH --gpus-per-task=2 --ntasks=3", R"({"cpus":3,"gpus":6})"},
      {"#SBATCH --ntasks-per-gpu=2 --ntasks=8", R"({"cpus":8,"gpus":4})"},
      // cores: tasks × cores per task, or cores per GPU
      {"#SBATCH -n 4 -c 2", R"({"cpus":8,"gpus":0})"},
      {"#SBATCH -N 2 --ntasks-per-node=4 --cpus-per-task=2", R"({"cpus":16,"gpus":0})"},
      {"#SBATCH --gpus=4 --cpus-per-gpu=6", R"({"cpus":24,"gpus":4})"},
      {"#SBATCH --gpus=4 --cpus-per-task=8", R"({"cpus":8,"gpus":4})"},
      // memory: of each node, core or GPU
      {"#SBATCH --gpus=1 --mem=16G", R"({"memory_mib":16384})"},
      {"#SBATCH --gpus=1 --mem=16G -N 2", R"({"memory_mib":32768})"},
      {"#SBATCH -c 4 --mem-per-cpu=2G", R"({"cpus":4,"gpus":0,"memory_mib":8192})"},
      {"#SBATCH --gpus=2 --mem-per-gpu=1000", R"({"gpus":2,"memory_mib":2000})"},
      // time
      {"#SBATCH --gpus=1 -t 30", R"({"time_limit":1800})"},
      {"#SBATCH --gpus=1 --time=1-12", R"({"time_limit":129600})"},
      {"#SBATCH --gpus=1 --begin=now+1hour", R"({"begin":1763303600})"},
      {"#SBATCH --gpus=1 --deadline=now+2days", R"({"deadline":1763472800})"},
      {"#SBATCH --gpus=1 --signal=B:USR1@120",
       R"({"warn_seconds":120,"warn_shell":true,"warn_signal":10})"},
      {"#SBATCH --gpus=1 --signal=R:USR1@120", R"({"warn_seconds":120,"warn_signal":10})"},
      {"#SBATCH --gpus=1 --signal=10", R"({"warn_seconds":60,"warn_signal":10})"},
      // who and how
      {"#SBATCH --gpus=1 -p big,small -A vision", R"({"group":"vision","queue":"big"})"},
      {"#SBATCH --gpus=1 -H --requeue --open-mode=append", R"({"hold":true,"open_mode":"append"})"},
      {"#SBATCH --gpus=1 --no-requeue --exclusive", R"({"exclusive":true,"requeue":false})"},
      {"#SBATCH --gpus=1 --exclusive=user", R"({"exclusive":true})"},
      {"#SBATCH --gpus=1 --nice=50", R"({"priority":-50})"},
      {"#SBATCH --gpus=1 --priority=7 --comment=\"x y\"", R"({"comment":"x y","priority":7})"},
      {"#SBATCH --gpus=1 -w n[1-3],m7", R"({"nodes":["n1","n2","n3","m7"]})"},
      {"#SBATCH --gpus=1 -a 0-9:3%2", R"({"array":"0,3,6,9%2"})"},
      {"#SBATCH --gpus=1 -d afterok:12:13?afterany:9",
       R"({"any_dependency":true,"dependencies":"afterok:12,afterok:13,afterany:9"})"},
      {"#SBATCH --gpus=1 -i in.txt -e err-%j.txt", R"({"error":"err-%j.txt","input":"in.txt"})"},
      // later lines win; our own lines say more
      {"#SBATCH --gpus=1\n#SBATCH --gpus=4", R"({"gpus":4})"},
      {"#SBATCH --gpus=4\n#BERTH --gpus 2-8 --model resnet50",
       R"({"gpus":8,"gpus_max":8,"gpus_min":2,"model":"resnet50"})"},
      {"#BERTH --share 0.5 --retries 3", R"({"gpu_milli":500,"max_retries":3})"},
      {"#BERTH --set weight=2.5 --set estimate=1h", R"({"estimate":3600,"weight":2.5})"},
      {"\n# a remark\n\n#SBATCH --gpus=2", R"({"gpus":2})"},
      {"#SBATCH", R"({})"},
  };
  for (const Row& row : rows) EXPECT_EQ(spec_of(row.lines), row.spec) << row.lines;
}

TEST(SbatchLines, StopAtTheFirstCommandAndSaySo) {
  EXPECT_EQ(spec_of("echo begin\n#SBATCH --gpus=4"), "{}");
  EXPECT_THAT(notes_of("echo begin\n#SBATCH --gpus=4"),
              ElementsAre("job.sh:3: not read, because the script's commands begin in line 2"));
}

TEST(SbatchLines, ThatOnlyLookLikeOptionsAreToldOf) {
  EXPECT_THAT(notes_of("# SBATCH --gpus=4"), Contains(HasSubstr("job.sh:2: a comment")));
  EXPECT_THAT(notes_of("##SBATCH --gpus=4"), Contains(HasSubstr("job.sh:2: a comment")));
  EXPECT_THAT(notes_of("#sbatch --gpus=4"), Contains(HasSubstr("job.sh:2: a comment")));
  EXPECT_THAT(notes_of("#PBS -l nodes=1"), Contains(HasSubstr("other schedulers")));
  EXPECT_THAT(notes_of("# sbatch is the command to submit this"), IsEmpty());
}

TEST(SbatchLines, ThatCannotBeHonouredAreNoted) {
  EXPECT_THAT(notes_of("#SBATCH --gpus=1 --mail-type=END --mail-user=ann@example.org"),
              ElementsAre(HasSubstr("job.sh:2: --mail-type is not honoured: no mail is sent"),
                          HasSubstr("job.sh:2: --mail-user is not honoured")));
  EXPECT_THAT(notes_of("#SBATCH -G 1 -C a100"), ElementsAre(HasSubstr("--gres=gpu:TYPE:N")));
  EXPECT_THAT(notes_of("#SBATCH -G 1 -M big,small"),
              ElementsAre(HasSubstr("there is one cluster, the job goes there")));
  EXPECT_THAT(notes_of("#SBATCH --gpus=a100:2,v100:1"),
              ElementsAre(HasSubstr("asks for 3 of a100|v100")));
  EXPECT_THAT(notes_of("#SBATCH --gres=gpu:1,nvme:2"), ElementsAre(HasSubstr("nvme:2: only gpu")));
  EXPECT_THAT(notes_of("#SBATCH -N 2 --gres=gpu:4"),
              ElementsAre("--nodes=2: asked for as 8 GPUs in all; they may lie on fewer nodes"));
  EXPECT_THAT(notes_of("#SBATCH -G 1 -o out-%J-%4j.txt"), IsEmpty());
}

TEST(SbatchLines, NoDeviceNamedIsNoneAndAtLeastACore) {
  EXPECT_EQ(spec_of("#SBATCH -J train"), R"({"cpus":1,"gpus":0,"name":"train"})");
  EXPECT_THAT(notes_of("#SBATCH -J train"), IsEmpty());
  EXPECT_THAT(notes_of("#SBATCH -N 2 -c 4"),
              ElementsAre("--nodes=2: asked for as 8 cores in all; they may lie on fewer nodes"));
  for (const char* zero :
       {"#SBATCH --gres=gpu:0", "#SBATCH --gres=none", "#SBATCH --gpus=0", "#SBATCH -G a100:0",
        "#BERTH --gpus 0", "#BERTH --set gpus=0", "#SBATCH --gpus=2\n#BERTH --gpus 0"})
    EXPECT_EQ(spec_of(zero), R"({"cpus":1,"gpus":0})") << zero;
}

/// What `sbatch --help` of Slurm 24.11 lists, and what its manual adds.
constexpr std::string_view kSlurmsOptions =
    "array account bb bbf begin comment cpu-freq cpus-per-task dependency deadline delay-boot "
    "chdir "
    "error export export-file get-user-env gid gres gres-flags hold ignore-pbs input job-name "
    "no-kill licenses clusters container container-id distribution mail-type mail-user mcs-label "
    "ntasks nice no-requeue ntasks-per-node nodes oom-kill-step output overcommit partition "
    "parsable "
    "power priority profile propagate qos quiet reboot requeue oversubscribe core-spec signal "
    "spread-job switches thread-spec time time-min tres-bind tres-per-task uid use-min-nodes "
    "verbose "
    "wait wckey wrap cluster-constraint contiguous constraint nodefile mem mincpus reservation tmp "
    "nodelist exclude exclusive mem-per-cpu resv-ports sockets-per-node cores-per-socket "
    "threads-per-core extra-node-info ntasks-per-core ntasks-per-socket cpus-per-gpu gpus gpu-bind "
    "gpu-freq gpus-per-node gpus-per-socket gpus-per-task mem-per-gpu help usage version "
    "acctg-freq "
    "batch extra hint kill-on-invalid-dep mem-bind network ntasks-per-gpu open-mode prefer segment "
    "stepmgr test-only wait-all-nodes tasks-per-node cluster jobid";

TEST(SbatchOptions, AreAllThatSlurmHas) {
  const auto specs = sbatch_options().specs();
  for (const std::string_view name : split(kSlurmsOptions, ' '))
    EXPECT_NE(std::ranges::find(specs, name, &OptionSpec::name), specs.end()) << name;
}

TEST(SbatchOptions, AreInTheGuideAsTheyAre) {
  const std::string path = BERTH_SOURCE_DIR "/docs/sbatch.md";
  std::string guide = read_file(path, {}).value_or("");
  const std::string head = "| option | what happens |\n|---|---|\n";
  const auto begin = guide.find(head);
  ASSERT_NE(begin, std::string::npos);
  const auto end = guide.find("\n\n", begin) + 1;
  const std::string told = guide.substr(begin + head.size(), end - begin - head.size());
  if (std::getenv("BERTH_WRITE_GOLDEN") != nullptr) {
    guide.replace(begin + head.size(), end - begin - head.size(), sbatch_option_rows());
    std::ofstream(path) << guide;
    return;
  }
  EXPECT_EQ(told, sbatch_option_rows()) << "BERTH_WRITE_GOLDEN=1 writes it anew";
}

TEST(SbatchLines, OfNewerAndOlderSlurmsAreKnown) {
  EXPECT_EQ(spec_of("#SBATCH -G 1 --tasks-per-node=4"),
            spec_of("#SBATCH -G 1 --ntasks-per-node=4"));
  EXPECT_EQ(spec_of("#SBATCH -G 1 -q long -x n[3-4] --kill-on-invalid-dep=no"),
            R"({"exclude":["n3","n4"],"keep_unmet":true,"qos":"long"})");
  EXPECT_EQ(spec_of("#SBATCH -G 1 -d afterok:12_3:13_*,after:9+5"),
            R"({"dependencies":"afterok:12_3,afterok:13,after:9+5"})");
  EXPECT_EQ(spec_of("#SBATCH -G 1 --container=docker://a/b:1"),
            R"({"container":"docker://a/b:1"})");
  for (const char* known : {"--oom-kill-step", "--stepmgr", "--segment=2", "--resv-ports",
                            "--tres-bind=x", "--container-id=x", "--jobid=3"})
    EXPECT_THAT(notes_of(std::string("#SBATCH -G 1 ") + known),
                ElementsAre(HasSubstr("is not honoured")))
        << known;
}

TEST(SbatchLines, ThatAreWrongHaveFileLineAndColumn) {
  const std::vector<Row> rows{
      {"#SBATCH --gpu=2 --jobname=x",
       "job.sh:2:9: '--gpu' may be --gpus, --gpus-per-node, --gpus-per-task, --gpu-bind, "
       "--gpu-freq, "
       "--gpus-per-socket\n"
       "job.sh:2:17: no option is called '--jobname' (did you mean --job-name?)"},
      {"#SBATCH --time=soon", "job.sh:2:9: --time: 'soon' is no time limit"},
      {"\n#SBATCH  -n x", "job.sh:3:10: --ntasks: 'x' is no whole number"},
      {"#SBATCH --array=3-1", "job.sh:2:9: --array: array '3-1': '3-1' is no index or range"},
      {"#SBATCH -o out-%q", "job.sh:2:9: --output: unknown pattern %q (known: %j"},
      {"#SBATCH --gres=gpu:-2", "job.sh:2:9: --gres: -2 is not within 0 and"},
      {"#SBATCH --job-name='open", "job.sh:2:20: a ' is not closed"},
      {"#SBATCH stray", "job.sh:2:9: 'stray' is no option"},
      {"#SBATCH --ntasks", "job.sh:2:9: --ntasks needs a value (N)"},
      {"#SBATCH hetjob", "job.sh:2:9: jobs of several kinds in one are not supported"},
      {"#SBATCH -z", "job.sh:2:9: no option is called '-z'"},
      {"#BERTH --gpus 8-2", "job.sh:2:8: --gpus: '8-2' is no range"},
      {"#SBATCH --mem=lots", "job.sh:2:9: --mem: 'lots' is no amount of memory"},
  };
  for (const Row& row : rows)
    EXPECT_THAT(spec_of(row.lines), testing::StartsWith(row.spec)) << row.lines;
}

TEST(SbatchLines, OfBrokenScriptsAreRefused) {
  const auto error_of = [](std::string_view text) {
    const auto head = read_script_head(text, "job.sh");
    return head ? std::string("fine") : head.error().text();
  };
  EXPECT_THAT(error_of("echo hi\n"), HasSubstr("job.sh:1:1: a script begins with #!"));
  EXPECT_THAT(error_of(""), HasSubstr("job.sh:1:1: a script begins with #!"));
  EXPECT_THAT(error_of("#!/bin/sh\r\necho\r\n"), HasSubstr("job.sh:1:10: a DOS line break"));
  EXPECT_THAT(error_of(std::string_view("#!/bin/sh\n\0x", 12)), HasSubstr("NUL"));
  EXPECT_THAT(error_of("#!/bin/sh\n" + std::string(kMaxScriptBytes, 'x')), HasSubstr("at most"));
}

TEST(SbatchEnvironment, TravelsAsAsked) {
  const auto env_of = [](const std::string& exported) {
    Draft draft = blank();
    draft.exported = exported;
    draft.spec.command = {"true"};
    EXPECT_TRUE(settle(draft)) << exported;
    std::string text;
    for (const auto& [name, value] : draft.spec.env) text += name + "=" + value + " ";
    return text;
  };
  EXPECT_EQ(env_of("ALL"), "HOME=/home/ann LANG=C ");  // the token stays at home
  EXPECT_EQ(env_of("NONE"), "");
  EXPECT_EQ(env_of("LANG,X=1"), "LANG=C X=1 ");
  EXPECT_EQ(env_of("ALL,LANG=de,Y='a,b'"), "HOME=/home/ann LANG=de Y=a,b ");
  EXPECT_EQ(env_of("LANG=de,ALL"), "HOME=/home/ann LANG=de ");
  Draft draft = blank();
  draft.exported = "X='a";
  EXPECT_FALSE(settle(draft));
}

TEST(SbatchTasks, AreToldToTheScriptWhichRunsOnce) {
  Draft draft = blank();
  ASSERT_TRUE(apply_script(draft, "#!/bin/sh\n#SBATCH -n 4 -c 2 --ntasks-per-node=4\n", "job.sh"));
  ASSERT_TRUE(settle(draft));
  EXPECT_EQ(draft.spec.tasks, 1);  // srun and torchrun start the others, as under Slurm
  EXPECT_EQ(draft.spec.env["SLURM_NTASKS"], "4");
  EXPECT_EQ(draft.spec.env["SLURM_CPUS_PER_TASK"], "2");
  EXPECT_EQ(draft.spec.env["SLURM_NTASKS_PER_NODE"], "4");
}

TEST(SbatchOutput, IsNamedAsSlurmNamesIt) {
  Draft one = blank();
  ASSERT_TRUE(apply_script(one, "#!/bin/sh\n#SBATCH -n 1\n", "job.sh"));
  ASSERT_TRUE(settle(one));
  EXPECT_EQ(one.spec.output, "slurm-%j.out");
  Draft many = blank();
  ASSERT_TRUE(apply_script(many, "#!/bin/sh\n#SBATCH --array=1-3\n", "job.sh"));
  ASSERT_TRUE(settle(many));
  EXPECT_EQ(many.spec.output, "slurm-%A_%a.out");
  Draft own = blank();
  ASSERT_TRUE(apply_script(own, "#!/bin/sh\n#BERTH --gpus 1\n", "job.sh"));
  ASSERT_TRUE(settle(own));
  EXPECT_EQ(own.spec.output, "");  // the scheduler's own default
  EXPECT_EQ(own.spec.workdir, "/home/ann");
}

}  // namespace
}  // namespace berth::client
