// Every command on its happy path, through the real program and the examples of the repository.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <set>
#include <sstream>

#include <fmt/format.h>

#include "e2e/cli/program.h"
#include "project_paths.h"

namespace berth::test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

struct T6Row {
  std::string policy;
  std::vector<std::string> settings;
  std::vector<std::string> finish;
  int preemptions = 0;
};

// specs/baselines.md §9: six jobs on four GPUs, exact finish times of every baseline
TEST(Simulate, MeetsTheWorkedExampleUnderEveryBaseline) {
  const std::vector<T6Row> rows{
      {"fifo", {}, {"10", "14", "21", "33", "32", "25"}, 0},
      {"fifo-skip", {}, {"10", "14", "28", "15", "21", "18"}, 0},
      {"easy", {}, {"10", "14", "22", "15", "33", "14"}, 0},
      {"conservative", {}, {"10", "14", "21", "33", "32", "9"}, 0},
      {"sjf", {"pass=strict"}, {"10", "14", "21", "33", "32", "14"}, 0},
      {"sjf", {}, {"10", "14", "32", "15", "25", "14"}, 0},
      {"smallest", {}, {"10", "18", "28", "15", "21", "14"}, 0},
      {"srtf", {}, {"14", "5", "31", "19", "24", "9"}, 3},
      {"srsf", {}, {"24", "5", "31", "15", "15", "9"}, 1},
      {"las", {"quantum=1"}, {"24", "12", "20", "27", "26", "12"}, 30},
      {"las-2d", {"quantum=1"}, {"29", "11", "28", "19", "19", "9"}, 24},
  };
  for (const T6Row& row : rows) {
    const TempFolder folder;
    std::vector<std::string> arguments{"simulate",  "--trace",  example("traces/t6.csv"),
                                       "--cluster", "1x4",      "--placement",
                                       "count",     "--policy", row.policy,
                                       "--out",     "run"};
    for (const std::string& setting : row.settings)
      arguments.insert(arguments.end(), {"--set", setting});
    const Ran ran = berth(folder, arguments);
    ASSERT_EQ(ran.exit, 0) << row.policy << ": " << ran.err;
    const std::string jobs = folder.read("run/jobs.csv");
    EXPECT_EQ(column(jobs, "job_id"), (std::vector<std::string>{"1", "2", "3", "4", "5", "6"}))
        << row.policy;
    EXPECT_EQ(column(jobs, "finish_time"), row.finish) << row.policy;
    int preemptions = 0;
    for (const std::string& count : column(jobs, "preemptions")) preemptions += std::stoi(count);
    EXPECT_EQ(preemptions, row.preemptions) << row.policy;
  }
}

TEST(Simulate, PrintsASummaryAndWritesEveryFile) {
  const TempFolder folder;
  const Ran ran = berth(folder, {"simulate", "-t", example("traces/philly-small.csv"), "-c",
                                 example("clusters/mixed.yaml"), "-p", "srtf", "--restart-cost",
                                 "30s", "--out", "run", "--figures"});
  ASSERT_EQ(ran.exit, 0) << ran.err;
  EXPECT_THAT(ran.out, HasSubstr("avg_jct"));
  EXPECT_THAT(ran.err, HasSubstr("wrote run"));
  EXPECT_THAT(ran.err, Not(HasSubstr("\x1b")));  // no terminal, no bar
  for (const char* file : {"jobs.csv", "summary.json", "actions.csv", "timeline.csv", "report.html",
                           "figures/jct_cdf.svg"}) {
    EXPECT_TRUE(folder.has(fmt::format("run/{}", file))) << file;
  }
  EXPECT_THAT(folder.names(), ElementsAre("run"));  // nothing left over
}

TEST(Simulate, JsonIsTheSummaryAndNothingElse) {
  const TempFolder folder;
  const Ran ran = berth(folder, {"simulate", "-t", example("traces/t6.csv"), "-c", "1x4", "-p",
                                 "fifo", "--placement", "count", "--json"});
  ASSERT_EQ(ran.exit, 0) << ran.err;
  EXPECT_THAT(ran.out, StartsWith("{"));
  EXPECT_TRUE(ran.out.ends_with("}\n") && !ran.out.ends_with("\n\n"));
  EXPECT_THAT(ran.out, HasSubstr("\"avg_jct\": 20"));  // 120 / 6
  EXPECT_EQ(folder.names().size(), 0U);
}

TEST(Simulate, SameRunSameDigest) {
  const TempFolder folder;
  const std::vector<std::string> arguments{"simulate",
                                           "-t",
                                           example("traces/philly-small.csv"),
                                           "-c",
                                           "8x4",
                                           "-p",
                                           "sjf",
                                           "--estimator",
                                           "oracle:0.5",
                                           "--placement",
                                           "random",
                                           "--mtbf",
                                           "2d",
                                           "--checkpoint-interval",
                                           "10m",
                                           "--seed",
                                           "7"};
  const Ran first = berth(folder, arguments);
  const Ran second = berth(folder, arguments);
  ASSERT_EQ(first.exit, 0) << first.err;
  EXPECT_THAT(first.out, HasSubstr("digest"));
  EXPECT_EQ(first.out, second.out);
  std::vector<std::string> other = arguments;
  other.back() = "8";
  EXPECT_NE(berth(folder, other).out, first.out);
}

TEST(Simulate, BootsFailAsOftenAsAskedFor) {
  const TempFolder folder;
  const auto digest = [&](const std::string& share) {
    const Ran ran =
        berth(folder, {"simulate", "-t", example("traces/philly-small.csv"), "-c", "32x8", "-p",
                       "fifo", "--power", "ces:buffer=0", "--boot-failures", share, "--json"});
    EXPECT_EQ(ran.exit, 0) << ran.err;
    const std::size_t at = ran.out.find("\"digest\"");
    EXPECT_NE(at, std::string::npos);
    return ran.out.substr(at, std::string_view{"\"digest\": \"0123456789abcdef\""}.size());
  };
  const std::string often = digest("0.5");
  EXPECT_NE(often, digest("0"));
  EXPECT_EQ(often, digest("0.5"));
}

TEST(Simulate, LimitsAndWindows) {
  const TempFolder folder;
  const auto jobs = [&](const std::vector<std::string>& more) {
    std::vector<std::string> arguments{
        "simulate", "-t", example("traces/t6.csv"), "-c", "1x4", "-p", "fifo", "--out",
        "run",      "-q"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const Ran ran = berth(folder, arguments);
    EXPECT_EQ(ran.exit, 0) << ran.err;
    return column(folder.read("run/jobs.csv"), "job_id");
  };
  EXPECT_THAT(jobs({"--limit", "2"}), ElementsAre("1", "2"));
  EXPECT_THAT(jobs({"--from", "2", "--until", "4s"}), ElementsAre("3", "4"));
}

TEST(Simulate, AnOutageDelaysTheJobOnIt) {
  const TempFolder folder;
  folder.file("t.csv", "job_id,submit_time,gpus,duration\na,0,4,10\n");
  folder.file("o.csv", "node,down_time,up_time\nn0,4,9\n");
  const Ran ran = berth(folder, {"simulate", "-t", "t.csv", "-c", "1x4", "-p", "fifo", "--failures",
                                 "o.csv", "--out", "run"});
  ASSERT_EQ(ran.exit, 0) << ran.err;
  EXPECT_THAT(column(folder.read("run/jobs.csv"), "finish_time"),
              ElementsAre("15"));  // 4 s done, 5 s down, 6 s left
  const Ran again =
      berth(folder, {"simulate", "-t", "t.csv", "-c", "1x4", "-p", "fifo", "--failures", "o.csv",
                     "--checkpoint-interval", "3", "--restart-cost", "2", "--out", "run"});
  ASSERT_EQ(again.exit, 0) << again.err;
  EXPECT_THAT(column(folder.read("run/jobs.csv"), "finish_time"),
              ElementsAre("18"));  // back to 3 s; 2 s to restart, 7 s left
}

TEST(Simulate, AJobThatFitsNowhereIsRejectedWithItsReason) {
  const TempFolder folder;
  folder.file("t.csv", "job_id,submit_time,gpus,duration\na,0,1,10\nbig,0,99,10\n");
  const Ran ran =
      berth(folder, {"simulate", "-t", "t.csv", "-c", "2x4", "-p", "fifo", "--out", "run"});
  ASSERT_EQ(ran.exit, 0) << ran.err;
  EXPECT_THAT(ran.err, HasSubstr("1 of 2 jobs were rejected"));
  EXPECT_THAT(ran.err, HasSubstr("job big: "));
  EXPECT_THAT(column(folder.read("run/jobs.csv"), "status"), ElementsAre("completed", "rejected"));
}

TEST(Compare, PrintsTheSameWhateverTheThreads) {
  const TempFolder folder;
  const auto with = [&](const std::string& threads, const std::string& out) {
    return berth(folder, {"compare", "-t", example("traces/philly-small.csv"), "-c", "8x4",
                          "--limit", "300", "--policies", "all", "--seeds", "2", "--estimator",
                          "oracle:0.5", "-j", threads, "--out", out});
  };
  const Ran one = with("1", "one");
  const Ran two = with("2", "two");
  ASSERT_EQ(one.exit, 0) << one.err;
  EXPECT_EQ(one.out, two.out);
  EXPECT_THAT(one.out, HasSubstr("vs fifo"));
  EXPECT_EQ(folder.read("one/srtf/jobs.csv"), folder.read("two/srtf/jobs.csv"));
  EXPECT_THAT(folder.names(), ElementsAre("one", "two"));
  EXPECT_TRUE(folder.has("one/report.html") && folder.has("one/comparison.csv") &&
              folder.has("one/summary.json"));
}

TEST(Compare, ASettingReachesThePoliciesThatHaveIt) {
  const TempFolder folder;
  const auto digests = [&](const std::vector<std::string>& more) {
    std::vector<std::string> arguments{
        "compare", "-t",         example("traces/t6.csv"), "-c",    "1x4", "--placement",
        "count",   "--policies", "fifo,las,las-2d",        "--out", "cmp", "-q"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const Ran ran = berth(folder, arguments);
    EXPECT_EQ(ran.exit, 0) << ran.err;
    return std::vector{folder.read("cmp/fifo/jobs.csv"), folder.read("cmp/las/jobs.csv"),
                       folder.read("cmp/las-2d/jobs.csv")};
  };
  const auto plain = digests({});
  const auto both = digests({"--set", "quantum=1"});
  const auto one = digests({"--set", "las.quantum=1"});
  EXPECT_EQ(plain[0], both[0]);
  EXPECT_NE(plain[1], both[1]);
  EXPECT_NE(plain[2], both[2]);
  EXPECT_EQ(one[1], both[1]);
  EXPECT_EQ(one[2], plain[2]);
}

TEST(Compare, RatiosReferToTheBaseline) {
  const TempFolder folder;
  const Ran named = berth(folder, {"compare", "-t", example("traces/t6.csv"), "-c", "1x4",
                                   "--policies", "fifo,srtf", "--baseline", "srtf"});
  EXPECT_THAT(named.out, HasSubstr("vs srtf"));
  const Ran json = berth(folder, {"compare", "-t", example("traces/t6.csv"), "-c", "1x4",
                                  "--policies", "fifo,srtf", "--json"});
  EXPECT_TRUE(json.out.starts_with("[") && json.out.ends_with("]\n") && !json.out.ends_with("\n\n"))
      << json.out;
  const Ran first = berth(
      folder, {"compare", "-t", example("traces/t6.csv"), "-c", "1x4", "--policies", "sjf,srtf"});
  EXPECT_THAT(first.out, HasSubstr("vs sjf"));
  const Ran absent = berth(folder, {"compare", "-t", example("traces/t6.csv"), "-c", "1x4",
                                    "--policies", "sjf,srtf", "--baseline", "las"});
  EXPECT_EQ(absent.exit, 2);
  EXPECT_THAT(absent.err, HasSubstr("--baseline las: not among"));
}

/// The lines of the script `run` from the one with `begin` on, as long as they end in a backslash.
std::string command_in_run(const std::string& begin) {
  std::ifstream script(BERTH_SOURCE_DIR "/run");
  std::string command;
  for (std::string line; std::getline(script, line);) {
    if (command.empty() && line.find(begin) == std::string::npos) continue;
    command += line + "\n";
    if (!line.ends_with('\\')) break;
  }
  return command;
}

// The first table that a newcomer sees: README shows what is printed, and no two rows are one
// schedule under two names.
TEST(FirstLook, IsAsReadmeShowsItAndNoTwoPoliciesDoTheSame) {
  const TempFolder folder;
  const std::string command = command_in_run("\"$berth\" compare");
  ASSERT_THAT(command, HasSubstr("--out out/first-look"));
  const Ran ran =
      shell(folder, "ln -s " BERTH_SOURCE_DIR "/examples examples; berth=$BERTH; " + command);
  ASSERT_EQ(ran.exit, 0) << ran.err;
  std::ifstream page(BERTH_SOURCE_DIR "/README.md");
  std::set<std::string> readme;
  for (std::string line; std::getline(page, line);) readme.insert(line);
  std::istringstream lines(ran.out);
  for (std::string line; std::getline(lines, line);)
    EXPECT_TRUE(readme.contains("    " + line)) << "not in README.md: " << line;
  const auto digests = column(folder.read("out/first-look/comparison.csv"), "digest");
  EXPECT_EQ(digests.size(), 10U);
  EXPECT_EQ(std::set<std::string>(digests.begin(), digests.end()).size(), digests.size());
}

TEST(Generate, AsManyUsersAsAskedFor) {
  const TempFolder folder;
  ASSERT_EQ(berth(folder, {"generate", "--like", "philly", "--users", "10", "-o", "t.csv"}).exit,
            0);
  EXPECT_THAT(berth(folder, {"check", "t.csv"}).out, HasSubstr("users         10\n"));
}

TEST(Generate, SameSeedSameTrace) {
  const TempFolder folder;
  const auto make = [&](const std::string& seed, const std::string& file) {
    return berth(folder, {"generate", "--like", "philly", "--jobs", "200", "--cluster", "16x4",
                          "--load", "0.9", "--seed", seed, "-o", file});
  };
  ASSERT_EQ(make("1", "a.csv").exit, 0);
  ASSERT_EQ(make("1", "b.csv").exit, 0);
  ASSERT_EQ(make("2", "c.csv").exit, 0);
  EXPECT_EQ(folder.read("a.csv"), folder.read("b.csv"));
  EXPECT_NE(folder.read("a.csv"), folder.read("c.csv"));
  const Ran checked = berth(folder, {"check", "a.csv"});
  EXPECT_THAT(checked.out, HasSubstr("200"));
  const Ran piped =
      berth(folder, {"generate", "--jobs", "200", "--cluster", "16x4", "--load", "0.9", "-o", "-"});
  EXPECT_EQ(piped.out, folder.read("a.csv"));
}

TEST(Convert, WritesOurCsv) {
  const TempFolder folder;
  const Ran ran = berth(folder, {"convert", example("traces/t6.csv"), "-o", "out.csv"});
  ASSERT_EQ(ran.exit, 0) << ran.err;
  EXPECT_THAT(folder.read("out.csv"), StartsWith("job_id,submit_time,gpus,duration"));
  EXPECT_EQ(berth(folder, {"convert", "out.csv", "-o", "-"}).out, folder.read("out.csv"));
  EXPECT_EQ(berth(folder, {"convert", "out.csv", "-o", "out.csv"}).exit, 2);  // not over itself
}

TEST(Check, TellsWhatEachFileIs) {
  const TempFolder folder;
  folder.file("o.csv", "node,down_time,up_time\nn0,4,9\nn1,5,\n");
  const Ran ran = berth(folder, {"check", example("traces/t6.csv"), example("clusters/philly.yaml"),
                                 "o.csv", "16x4"});
  ASSERT_EQ(ran.exit, 0) << ran.err;
  EXPECT_THAT(ran.out, HasSubstr("t6.csv: a sound trace"));
  EXPECT_THAT(ran.out, HasSubstr("552 in 32 racks"));
  EXPECT_THAT(ran.out, HasSubstr("2 on 2 nodes"));
  EXPECT_EQ(berth(folder, {"check", "o.csv", "--cluster", "1x4"}).exit, 2);  // no node n1 there
  const Ran json = berth(folder, {"check", "--json", example("traces/t6.csv"), "nowhere.csv"});
  EXPECT_EQ(json.exit, 2);
  EXPECT_THAT(json.out, HasSubstr("\"gpu_hours\":"));
  EXPECT_THAT(json.out, HasSubstr("\"ok\":false"));
}

TEST(Check, TheSpanBeginsAtTheFirstSubmit) {
  const TempFolder folder;
  folder.file("late.csv", "job_id,submit_time,gpus,duration\n1,86400,1,10\n2,90000,1,10\n");
  const Ran ran = berth(folder, {"check", "late.csv"});
  ASSERT_EQ(ran.exit, 0) << ran.err;
  EXPECT_THAT(ran.out, HasSubstr("submitted in  60.0 min"));
  EXPECT_THAT(berth(folder, {"check", "--json", "late.csv"}).out,
              HasSubstr("\"span_seconds\":3600"));
}

TEST(Report, RebuildsThePage) {
  const TempFolder folder;
  ASSERT_EQ(berth(folder, {"simulate", "-t", example("traces/t6.csv"), "-c", "1x4", "-p", "fifo",
                           "--out", "run"})
                .exit,
            0);
  ASSERT_EQ(shell(folder, "rm run/report.html").exit, 0);
  const Ran ran = berth(folder, {"report", "run"});
  ASSERT_EQ(ran.exit, 0) << ran.err;
  EXPECT_TRUE(folder.has("run/report.html"));
  EXPECT_EQ(berth(folder, {"report", "nowhere"}).exit, 2);
}

TEST(Lists, NameEverythingThereIs) {
  const TempFolder folder;
  EXPECT_THAT(berth(folder, {"policies"}).out, HasSubstr("tiresias"));
  EXPECT_THAT(berth(folder, {"policies", "las"}).out, HasSubstr("quantum"));
  EXPECT_THAT(berth(folder, {"policies", "las", "--json"}).out, HasSubstr("\"default\":"));
  EXPECT_THAT(berth(folder, {"policies", "--json"}).out, StartsWith("["));
  EXPECT_THAT(berth(folder, {"placements"}).out, HasSubstr("consolidated"));
  EXPECT_THAT(berth(folder, {"estimators", "--json"}).out, HasSubstr("oracle"));
  EXPECT_THAT(berth(folder, {"formats"}).out, HasSubstr("philly"));
}

TEST(Help, BeginsWithExamplesForEveryCommand) {
  const TempFolder folder;
  const Ran top = berth(folder, {"--help"});
  EXPECT_EQ(top.exit, 0);
  for (const char* command : {"simulate", "compare", "generate", "convert", "check", "report",
                              "policies", "placements", "estimators", "formats", "completion"}) {
    EXPECT_THAT(top.out, HasSubstr(fmt::format("\n  {} ", command)));
    const Ran help = berth(folder, {command, "--help"});
    EXPECT_EQ(help.exit, 0);
    EXPECT_THAT(help.out, StartsWith(fmt::format("berth {}: ", command)));
    EXPECT_THAT(help.out, HasSubstr("\nExamples\n  "));
    EXPECT_EQ(berth(folder, {"help", command}).out, help.out);
  }
  EXPECT_THAT(berth(folder, {"--version"}).out, StartsWith("berth "));
}

TEST(Completion, OffersCommandsOptionsAndNames) {
  const TempFolder folder;
  const auto complete = [&](const std::string& words) {
    const Ran ran = shell(
        folder, "source <($BERTH completion bash) && compopt() { :; } && COMP_WORDS=(" + words +
                    ") && COMP_CWORD=$((${#COMP_WORDS[@]} - 1)) && _berth && echo ${COMPREPLY[@]}");
    EXPECT_EQ(ran.exit, 0) << ran.err;
    return ran.out;
  };
  EXPECT_EQ(complete("berth sim"), "simulate\n");
  EXPECT_EQ(complete("berth simulate --tra"), "--trace\n");
  EXPECT_EQ(complete("berth simulate --policy srt"), "srtf\n");
  EXPECT_EQ(complete("berth compare --policies fifo,srt"), "fifo,srtf\n");
  EXPECT_EQ(complete("berth simulate --placement cou"), "count\n");
  EXPECT_EQ(complete("berth simulate --policy las --set qu"), "quantum=\n");
  EXPECT_THAT(complete("berth compare --set las.q"), HasSubstr("las.quantum="));
  for (const char* shell_name : {"zsh", "fish"}) {
    const Ran script = berth(folder, {"completion", shell_name});
    EXPECT_EQ(script.exit, 0);
    EXPECT_THAT(script.out, HasSubstr("restart-cost"));
  }
  EXPECT_EQ(berth(folder, {"completion", "tcsh"}).exit, 2);
}

}  // namespace
}  // namespace berth::test
