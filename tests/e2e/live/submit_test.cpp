// berth submit: commands, scripts and job files become requests.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fmt/format.h>

#include "client/played_scheduler.h"

namespace berth::test {
namespace {

using nlohmann::json;
using testing::HasSubstr;

constexpr auto kJobs = "/api/v1/jobs";

TEST(Submit, ACommand) {
  PlayedScheduler scheduler;
  const Ran ran =
      scheduler.run("submit -g 2 --time 2h --export NONE --env X=1 -- ./train --help -g 9");
  EXPECT_EQ(ran.exit, 0) << ran.err;
  EXPECT_EQ(ran.out, "job 100\n");
  json sent = scheduler.sent("POST", kJobs);
  EXPECT_EQ(sent["key"], scheduler.server().asked("POST", kJobs).back().headers["idempotency-key"]);
  sent.erase("key");
  EXPECT_FALSE(sent["submit_host"].get<std::string>().empty());
  sent.erase("submit_host");
  EXPECT_EQ(sent, (json{{"command", {"./train", "--help", "-g", "9"}},
                        {"env", {{"X", "1"}}},
                        {"gpus", 2},
                        {"name", "train"},
                        {"time_limit", 7'200},
                        {"workdir", scheduler.folder().path()}}));
}

// Not 0, which would be the queue's default.
TEST(Submit, UnlimitedIsSentAsSuch) {
  PlayedScheduler scheduler;
  for (const char* limit :
       {"-t UNLIMITED", "-t 0", "-t INFINITE", "--time=unlimited", "--time=Infinite", "-t 0:00:00",
        "--set time_limit=unlimited", "--set time_limit=0"}) {
    EXPECT_EQ(scheduler.run(fmt::format("submit {} -- true", limit)).exit, 0) << limit;
    EXPECT_EQ(scheduler.sent("POST", kJobs)["time_limit"], 3'200'000'000) << limit;
  }
  for (const char* limit : {"-t UNLIMITED", "-t 0", "--time=INFINITE"}) {
    EXPECT_EQ(scheduler.sh(fmt::format("sbatch {} --wrap true", limit)).exit, 0) << limit;
    EXPECT_EQ(scheduler.sent("POST", kJobs)["time_limit"], 3'200'000'000) << limit;
  }
  scheduler.folder().file("job.yaml", "command: [./a]\ntime_limit: unlimited\n");
  EXPECT_EQ(scheduler.run("submit job.yaml").exit, 0);
  EXPECT_EQ(scheduler.sent("POST", kJobs)["time_limit"], 3'200'000'000);
  EXPECT_EQ(scheduler.run("submit -- true").exit, 0);
  EXPECT_FALSE(scheduler.sent("POST", kJobs).contains("time_limit")) << "nothing said";
}

TEST(Submit, AScriptWithItsLinesAndArguments) {
  PlayedScheduler scheduler;
  scheduler.folder().file(
      "job.sh",
      "#!/bin/bash\n#SBATCH --gres=gpu:4 --mail-type=END\n#BERTH --model resnet50\nsrun x\n");
  const Ran ran = scheduler.run("submit --gpus 8 --export NONE job.sh one --two");
  EXPECT_EQ(ran.exit, 0) << ran.err;
  EXPECT_THAT(ran.err, HasSubstr("berth: note: job.sh:2: --mail-type is not honoured"));
  const json sent = scheduler.sent("POST", kJobs);
  EXPECT_EQ(sent["gpus"], 8);  // the command line wins
  EXPECT_EQ(sent["model"], "resnet50");
  EXPECT_EQ(sent["command"], (json{"one", "--two"}));
  EXPECT_EQ(sent["name"], "job.sh");
  EXPECT_THAT(sent["script"].get<std::string>(), testing::EndsWith("\nsrun x\n"));
}

TEST(Submit, AJobFileWithSeveralJobs) {
  PlayedScheduler scheduler;
  scheduler.folder().file(
      "jobs.yaml",
      "defaults: {gpus: 2}\njobs:\n- command: [./a]\n- command: [./b]\n  array: 0-9\n");
  const Ran ran = scheduler.run("submit --queue night jobs.yaml");
  EXPECT_EQ(ran.exit, 0) << ran.err;
  EXPECT_EQ(ran.out, "job 100\njobs 101 to 110\n");
  const auto asked = scheduler.server().asked("POST", kJobs);
  ASSERT_EQ(asked.size(), 2U);
  EXPECT_NE(asked[0].headers.at("idempotency-key"), asked[1].headers.at("idempotency-key"));
  EXPECT_EQ(json::parse(asked[0].body)["queue"], "night");
  EXPECT_EQ(json::parse(asked[1].body)["gpus"], 2);
}

TEST(Submit, PrintsWhatIsAskedFor) {
  PlayedScheduler scheduler;
  EXPECT_EQ(scheduler.run("submit --parsable -- true").out, "100\n");
  EXPECT_EQ(json::parse(scheduler.run("submit --json -- true").out)["job"], 101);
  const Ran dry = scheduler.run("submit --dry-run --export NONE -- true");
  EXPECT_EQ(json::parse(dry.out)["command"], (json{"true"}));
  EXPECT_EQ(scheduler.server().asked("POST", kJobs).size(), 2U);
  EXPECT_EQ(scheduler.sh("printf '#!/bin/sh\\ntrue\\n' | $BERTH submit -").out, "job 102\n");
}

TEST(Submit, WaitsAndExitsAsTheJobDid) {
  PlayedScheduler scheduler;
  scheduler.first = [](const Asked& asked) {
    if (asked.method != "GET" || asked.path() != kJobs) return Told{.status = 0};
    return Told{
        .body =
            R"({"jobs":[{"number":100,"state":"failed","exit_code":7}],"next":null,"total":1})"};
  };
  EXPECT_EQ(scheduler.run("submit --wait -- false").exit, 7);
}

TEST(Submit, NeverSendsTheToken) {
  PlayedScheduler scheduler;
  EXPECT_EQ(scheduler.sh("BERTH_TOKEN=s3cret BERTH_X=1 $BERTH submit -- true").exit, 0);
  const json sent = scheduler.sent("POST", kJobs);
  EXPECT_EQ(sent["env"]["BERTH_X"], "1");
  EXPECT_FALSE(sent["env"].contains("BERTH_TOKEN"));
}

TEST(Submit, TellsEverythingThatIsWrongBeforeItAsks) {
  PlayedScheduler scheduler;
  const auto error_of = [&](const std::string& arguments) {
    const Ran ran = scheduler.run("submit " + arguments);
    EXPECT_EQ(ran.exit, 2) << arguments << ran.err;
    return ran.err;
  };
  EXPECT_THAT(error_of(""), HasSubstr("submit: what?"));
  EXPECT_THAT(error_of("missing.sh"),
              HasSubstr("missing.sh: no such script (for a command: `berth submit -- missing.sh"));
  EXPECT_THAT(error_of("."), HasSubstr("a folder, not a script"));
  EXPECT_THAT(error_of("--timme 3 -- true"),
              HasSubstr("no option is called '--timme' (did you mean --time"));
  EXPECT_THAT(error_of("--gpus x --time y -- true"), HasSubstr("--gpus: 'x' is no whole number"));
  EXPECT_THAT(error_of("--gpus x --time y -- true"), HasSubstr("--time: 'y' is no time limit"));
  EXPECT_THAT(error_of("--share 0.5 --gpus 2 -- true"),
              HasSubstr("gpu_milli: only a job of one device"));
  scheduler.folder().file("bin",
                          "\x7f"
                          "ELF");
  EXPECT_THAT(error_of("bin"), HasSubstr("bin:1:1: a script begins with #!"));
  scheduler.folder().file("bad.sh", "#!/bin/sh\n#SBATCH --timme=3\n");
  EXPECT_THAT(error_of("bad.sh"),
              HasSubstr("bad.sh:2:9: no option is called '--timme' (did you mean --time"));
  scheduler.folder().file("bad.yaml", "comand: x\n");
  EXPECT_THAT(error_of("bad.yaml"), HasSubstr("bad.yaml:1:1: a job has no key 'comand'"));
  EXPECT_TRUE(scheduler.server().asked().empty());
}

TEST(Submit, HelpIsForTheCommandNotForItsProgram) {
  PlayedScheduler scheduler;
  EXPECT_THAT(scheduler.run("submit --help").out, HasSubstr("berth submit sweep.yaml"));
  EXPECT_THAT(scheduler.run("help submit").out, HasSubstr("berth submit sweep.yaml"));
  EXPECT_EQ(scheduler.run("submit -- prog --help").out, "job 100\n");
  EXPECT_THAT(scheduler.run("--help").out, HasSubstr("submit a job"));
  EXPECT_THAT(scheduler.run("completion bash").out, HasSubstr("submit)"));
}

}  // namespace
}  // namespace berth::test
