// What the program says to bad input: where, what, what to do; exit 2; nothing written.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <csignal>
#include <thread>

#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fmt/format.h>

#include "e2e/cli/program.h"

namespace berth::test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

constexpr const char* kHead = "job_id,submit_time,gpus,duration\n";

struct BadTrace {
  std::string what;
  std::string content;
  std::string message;
};

TEST(BadTrace, IsRefusedWithPlaceAndRemedyAndNothingIsWritten) {
  const std::string head = kHead;
  const std::vector<BadTrace> cases{
      {"empty", "", "t.csv:"},
      {"header only", head, "t.csv"},
      {"truncated row", head + "1,0,1,10\n2,0\n", "t.csv:3:"},
      {"binary",
       std::string("\x7f"
                   "ELF\0\x01\x02\xff\xfe",
                   9),
       "t.csv:"},
      {"missing column", "job_id,submit_time,gpus\n1,0,1\n", "duration"},
      {"doubled column", "job_id,submit_time,gpus,gpus,duration\n1,0,1,1,5\n", "t.csv:1:"},
      {"duplicate id", head + "1,0,1,10\n1,5,1,10\n", "t.csv:3:"},
      {"negative gpus", head + "1,0,-1,10\n", "t.csv:2:"},
      {"zero gpus", head + "1,0,0,10\n", "t.csv:2:"},
      {"negative duration", head + "1,0,1,-10\n", "t.csv:2:"},
      {"not a number", head + "1,0,1,nan\n", "t.csv:2:"},
      {"infinite", head + "1,inf,1,10\n", "t.csv:2:"},
      {"truncated gzip", std::string("\x1f\x8b\x08\x00\x00\x00", 6), "gzip"},
  };
  for (const BadTrace& bad : cases) {
    const TempFolder folder;
    folder.file("t.csv", bad.content);
    const Ran ran =
        berth(folder, {"simulate", "-t", "t.csv", "-c", "2x4", "-p", "fifo", "--out", "run"});
    EXPECT_EQ(ran.exit, 2) << bad.what << ran.err;
    EXPECT_THAT(ran.err, StartsWith("berth: ")) << bad.what;
    EXPECT_THAT(ran.err, HasSubstr(bad.message)) << bad.what;
    EXPECT_EQ(ran.out, "") << bad.what;
    EXPECT_THAT(folder.names(), ElementsAre("t.csv")) << bad.what;
    EXPECT_EQ(berth(folder, {"check", "t.csv"}).exit, 2) << bad.what;
  }
}

TEST(BadTrace, CanBeReadWithoutItsBadRows) {
  const TempFolder folder;
  folder.file("t.csv", std::string(kHead) + "1,0,1,10\n2,0,0,10\n");
  const Ran ran =
      berth(folder, {"simulate", "-t", "t.csv", "-c", "2x4", "-p", "fifo", "--skip-invalid"});
  EXPECT_EQ(ran.exit, 0) << ran.err;
  EXPECT_THAT(ran.err, HasSubstr("dropped 1 of 2 rows"));
}

struct Misuse {
  std::vector<std::string> arguments;
  std::string message;
};

TEST(Misuse, SaysWhatIsWrongAndNamesTheNearest) {
  const std::vector<std::string> fine{"simulate", "-t",  example("traces/t6.csv"), "-c", "1x4",
                                      "-p",       "fifo"};
  const auto with = [&](const std::vector<std::string>& more) {
    std::vector<std::string> all = fine;
    all.insert(all.end(), more.begin(), more.end());
    return all;
  };
  const auto compare = [&](const std::vector<std::string>& more) {
    std::vector<std::string> all{"compare", "-t", example("traces/t6.csv"), "-c", "1x4"};
    all.insert(all.end(), more.begin(), more.end());
    return all;
  };
  const std::vector<Misuse> cases{
      {{}, "no command"},
      {{"simulat"}, "no command is called 'simulat' (did you mean simulate?)"},
      {{"--verson"}, "did you mean --version?"},
      {{"simulate"}, "no --trace"},
      {{"simulate", "-t", example("traces/t6.csv")}, "no --cluster"},
      {{"simulate", "-t", example("traces/t6.csv"), "-c", "1x4"}, "no policy"},
      {{"compare"}, "berth generate"},
      {with({"--plcement", "count"}), "no option is called '--plcement' (did you mean --placement"},
      {with({"stray"}), "stray"},
      {with({"--seed", "x"}), "--seed"},
      {with({"--seed", "-1"}), "--seed"},
      {with({"--limit", "many"}), "--limit"},
      {with({"--policy"}), "--policy"},
      {with({"--placement", "consolidatd"}), "did you mean consolidated"},
      {with({"--placement", "skew:2"}), "from 0 to 1"},
      {with({"--cpu", "clever"}), "known: shared, role, bind, aware"},
      {with({"--cpu", "aware:objektive=sum"}), "did you mean objective?"},
      {with({"--cpu", "aware:leftover=spend"}), "must be one of keep, deal"},
      {with({"--estimator", "orcale"}), "oracle"},
      {with({"--estimator", "oracle:x"}), "oracle"},
      {with({"--format", "phily"}), "philly"},
      {with({"--set", "pas=skip"}), "did you mean pass?"},
      {with({"--set", "pass"}), "KEY=VALUE"},
      {with({"--set", "pass=maybe"}), "must be one of strict, skip"},
      {with({"--set", "las.quantum=1"}), "policy 'las' is not in this run"},
      {with({"--restart-cost", "-3"}), "--restart-cost"},
      {with({"--restart-cost", "soon"}), "--restart-cost: 'soon' is no time"},
      {with({"--boot-failures", "1.5"}), "--boot-failures"},
      {with({"--mtbf", "0"}), "--mtbf: must be more than zero"},
      {with({"--mtbf", "1us", "--repair", "1us"}), "outages in this trace"},
      {with({"--failures", "nowhere.csv"}), "nowhere.csv"},
      {with({"--checkpoint-interval", "auto:60"}), "give --mtbf"},
      {with({"--checkpoint-interval", "auto:often", "--mtbf", "1d"}), "--checkpoint-interval"},
      {with({"--history", "nowhere.csv"}), "nowhere.csv: cannot open"},
      {with({"--from", "5", "--until", "4"}), "--until: must be later"},
      {with({"--from", "9d"}), "no job was submitted in that window"},
      {with({"--force"}), "--force"},
      {with({"--figures"}), "--figures"},
      {{"simulate", "-t", "nowhere.csv", "-c", "1x4", "-p", "fifo"}, "nowhere.csv: cannot open"},
      {{"simulate", "-t", example("traces/t6.csv"), "-c", "nowhere.yaml", "-p", "fifo"},
       "nowhere.yaml: cannot open"},
      {{"simulate", "-t", example("traces/t6.csv"), "-c", "0x4", "-p", "fifo"}, "--cluster:1:1"},
      {{"simulate", "-t", example("traces/t6.csv"), "-c", "1x65", "-p", "fifo"}, "1 to 64"},
      {{"simulate", "-t", example("traces/t6.csv"), "-c", "1x4", "-p", "srft"},
       "no policy is called 'srft' (did you mean "},
      {{"simulate", "-t", example("traces/t6.csv"), "-c", "1x4", "-p", "fifo,srtf"},
       "berth compare"},
      {compare({"--policies", "fifo,srft"}), "the policies are: fifo, "},
      {compare({"--policies", "fifo,fifo"}), "'fifo' is named twice"},
      {compare({"--policies", "fifo,las", "--set", "quantm=1"}), "did you mean quantum?"},
      {compare({"--policies", "fifo", "--seeds", "0"}), "--seeds"},
      {compare({"--policies", "fifo", "-j", "-1"}), "threads"},
      {{"policies", "fiffo"}, "did you mean fifo"},
      {{"generate", "--jobs", "10"}, "no -o FILE"},
      {{"generate", "--jobs", "0", "-o", "x"}, "--jobs"},
      {{"generate", "--like", "phily", "-o", "x"}, "philly"},
      {{"generate", "--load", "0.5", "-o", "x"}, "--load: load of which cluster?"},
      {{"convert"}, "which trace?"},
      {{"convert", "nowhere.csv", "-o", "x"}, "nowhere.csv: cannot open"},
      {{"check"}, "which files?"},
      {{"report"}, "which folder?"},
      {{"completion"}, "for which shell?"},
  };
  const TempFolder folder;
  for (const Misuse& misuse : cases) {
    const Ran ran = berth(folder, misuse.arguments);
    EXPECT_EQ(ran.exit, 2) << fmt::format("{}", fmt::join(misuse.arguments, " ")) << "\n"
                           << ran.err;
    EXPECT_THAT(ran.err, StartsWith("berth: "));
    EXPECT_THAT(ran.err, HasSubstr(misuse.message));
    EXPECT_EQ(ran.out, "");
  }
  EXPECT_EQ(folder.names().size(), 0U);
}

TEST(Misuse, EverythingIsReportedAtOnce) {
  const TempFolder folder;
  folder.file("t.csv", std::string(kHead) + "1,0,0,10\n2,0,1,-3\n");
  folder.file("c.yaml", "groups: [{count: 1, gpus: 99}]\n");
  const Ran ran =
      berth(folder, {"simulate", "-t", "t.csv", "-c", "c.yaml", "-p", "fifo", "--placement", "cont",
                     "--estimator", "guess", "--restart-cost", "x", "--set", "a=b"});
  EXPECT_EQ(ran.exit, 2);
  for (const char* part :
       {"t.csv:2:", "t.csv:3:", "c.yaml:1:", "cont", "guess", "--restart-cost", "--set a=b"}) {
    EXPECT_THAT(ran.err, HasSubstr(part));
  }
}

TEST(Output, ForeignFoldersAndFilesAreLeftAlone) {
  const TempFolder folder;
  const auto run_into = [&](const std::vector<std::string>& where) {
    std::vector<std::string> arguments{"simulate", "-t",  example("traces/t6.csv"), "-c", "1x4",
                                       "-p",       "fifo"};
    arguments.insert(arguments.end(), where.begin(), where.end());
    return berth(folder, arguments);
  };
  ASSERT_EQ(
      shell(folder, "mkdir full empty && echo precious > full/thesis.tex && echo text > file").exit,
      0);
  EXPECT_EQ(run_into({"--out", "full"}).exit, 2);
  EXPECT_EQ(folder.read("full/thesis.tex"), "precious\n");
  EXPECT_EQ(run_into({"--out", "file"}).exit, 2);
  EXPECT_EQ(folder.read("file"), "text\n");
  EXPECT_EQ(run_into({"--out", "empty"}).exit, 0);
  EXPECT_EQ(run_into({"--out", "empty"}).exit, 0);  // an earlier run is replaced
  EXPECT_EQ(run_into({"--out", "full", "--force"}).exit, 0);
  EXPECT_TRUE(folder.has("full/jobs.csv"));
  EXPECT_EQ(run_into({"--out", "file/below"}).exit, 2);
  EXPECT_THAT(folder.names(), ElementsAre("empty", "file", "full"));
}

TEST(Output, AFolderThatCannotBeMadeIsFoundOutBeforeTheRun) {
  const TempFolder folder;
  if (::geteuid() != 0) {  // root may write anywhere
    ASSERT_EQ(shell(folder, "mkdir locked && chmod a-w locked").exit, 0);
    EXPECT_EQ(berth(folder, {"simulate", "-t", example("traces/t6.csv"), "-c", "1x4", "-p", "fifo",
                             "--out", "locked/run"})
                  .exit,
              2);
  }
  EXPECT_EQ(berth(folder, {"simulate", "-t", example("traces/t6.csv"), "-c", "1x4", "-p", "fifo",
                           "--out", "/proc/run"})
                .exit,
            2);
  EXPECT_NE(berth(folder, {"generate", "--jobs", "5", "-o", "/proc/x.csv"}).exit, 0);
}

TEST(Output, AKilledRunLeavesNoHalfFolder) {
  const TempFolder folder;
  ASSERT_EQ(berth(folder, {"generate", "--jobs", "30000", "--cluster", "16x8", "--load", "1.2",
                           "-o", "long.csv"})
                .exit,
            0);
  for (const int delay : {20, 60, 150, 300}) {  // milliseconds: reading, running, writing
    const int child = start_berth(
        folder, {"simulate", "-t", "long.csv", "-c", "16x8", "-p", "las", "--out", "run"});
    std::this_thread::sleep_for(std::chrono::milliseconds(delay));
    ::kill(child, SIGKILL);
    int status = 0;
    ::waitpid(child, &status, 0);
    const bool ended_itself = WIFEXITED(status);
    EXPECT_EQ(folder.has("run/summary.json"), folder.has("run/report.html")) << delay;
    if (!ended_itself) {
      EXPECT_FALSE(folder.has("run/jobs.csv") && !folder.has("run/summary.json")) << delay;
    }
  }
  const Ran next = berth(folder, {"simulate", "-t", example("traces/t6.csv"), "-c", "1x4", "-p",
                                  "fifo", "--out", "run"});
  EXPECT_EQ(next.exit, 0) << next.err;
  EXPECT_TRUE(folder.has("run/report.html"));
}

TEST(Output, AReaderThatGoesAwayIsNoCrash) {
  const TempFolder folder;
  const Ran ran = shell(folder, "set -o pipefail; $BERTH generate --jobs 20000 -o - | head -1");
  EXPECT_EQ(ran.exit, 0) << ran.err;
  EXPECT_THAT(ran.out, StartsWith("job_id"));
  EXPECT_EQ(shell(folder, "$BERTH policies > /dev/full").exit, 1);  // a full disk is told
}

}  // namespace
}  // namespace berth::test
