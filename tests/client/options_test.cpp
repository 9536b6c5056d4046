// Options as shells give them, and times and sizes as people write them.
#include "client/options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdlib>
#include <ctime>

#include "client/job_ids.h"
#include "client/moment.h"
#include "client/slurm/format.h"

namespace berth::client {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr std::array kKnown{OptionSpec{"name", 'n', Takes::Value, "NAME", ""},
                            OptionSpec{"nodes", 'N', Takes::Value, "N", ""},
                            OptionSpec{"long", 'l', Takes::Nothing, "", ""},
                            OptionSpec{"quiet", 'q', Takes::Nothing, "", ""},
                            OptionSpec{"nice", 0, Takes::Maybe, "N", ""}};

std::string shown(const Parsed& parsed) {
  std::string text;
  for (const Given& one : parsed.options)
    text += std::string(one.option->name) + "=" + one.value + " ";
  for (const std::string& one : parsed.operands) text += one + " ";
  for (const OptionFault& one : parsed.faults)
    text += "!" + std::to_string(one.word) + " " + one.text;
  return text;
}
std::string parsed(std::vector<std::string> words, OperandOrder order = OperandOrder::Mixed) {
  return shown(parse_options(kKnown, words, order));
}

TEST(Options, AreShortOrLongWithOrWithoutEquals) {
  EXPECT_EQ(parsed({"--name", "x"}), "name=x ");
  EXPECT_EQ(parsed({"--name=x=y"}), "name=x=y ");
  EXPECT_EQ(parsed({"-nx"}), "name=x ");
  EXPECT_EQ(parsed({"-n", "x"}), "name=x ");
  EXPECT_EQ(parsed({"-n=x"}), "name=x ");
  EXPECT_EQ(parsed({"-lqn", "x"}), "long= quiet= name=x ");
  EXPECT_EQ(parsed({"--nice"}), "nice= ");
  EXPECT_EQ(parsed({"--nice", "5"}), "nice= 5 ");  // only with '=' because it may stand alone
  EXPECT_EQ(parsed({"--nice=5"}), "nice=5 ");
  EXPECT_EQ(parsed({"--lo"}), "long= ");  // a beginning that only one has
}

TEST(Options, EndWhereTheScriptBegins) {
  EXPECT_EQ(parsed({"-l", "a", "-q"}), "long= quiet= a ");
  EXPECT_EQ(parsed({"-l", "a", "-q"}, OperandOrder::Leading), "long= a -q ");
  EXPECT_EQ(parsed({"-l", "--", "-q"}), "long= -q ");
  EXPECT_EQ(parsed({"-5", "-"}), "-5 - ");  // a number and standard input are no options
}

TEST(Options, TellEverythingThatIsWrongWithTheNearestName) {
  EXPECT_THAT(parsed({"--nmae=x"}),
              HasSubstr("!0 no option is called '--nmae' (did you mean --name"));
  EXPECT_THAT(parsed({"--n=x"}), HasSubstr("'--n' may be --name, --nodes, --nice"));
  EXPECT_THAT(parsed({"--long=1"}), HasSubstr("--long takes no value"));
  EXPECT_THAT(parsed({"--name"}), HasSubstr("--name needs a value (NAME)"));
  EXPECT_THAT(parsed({"-lz", "-y"}), HasSubstr("'-y'"));
  EXPECT_THAT(parsed({"-lz", "-y"}), HasSubstr("'-z'"));
}

class Moments : public testing::Test {
 protected:
  Moments() {
    ::setenv("TZ", "UTC", 1);
    ::tzset();
  }
  static constexpr std::int64_t kNow = 1'763'300'000;  // 2025-11-16 13:33:20 UTC, a Sunday
};

TEST_F(Moments, AreReadAsSlurmReadsThem) {
  const auto at = [](std::string_view text) {
    return parse_moment(text, kNow).value_or(-1) - kNow;
  };
  EXPECT_EQ(at("now"), 0);
  EXPECT_EQ(at("now+90"), 90);
  EXPECT_EQ(at("now+2hours"), 7'200);
  EXPECT_EQ(at("NOW+1day"), 86'400);
  EXPECT_EQ(at("14:00"), 1'600);           // later today
  EXPECT_EQ(at("13:00"), 86'400 - 2'000);  // past, so tomorrow
  EXPECT_EQ(at("1:00pm"), 86'400 - 2'000);
  EXPECT_EQ(at("midnight"), 37'600);  // 10 h 26 min 40 s to go
  EXPECT_EQ(at("tomorrow"), 37'600);
  EXPECT_EQ(at("2025-11-16T13:33:21"), 1);
  EXPECT_EQ(at("2025-11-17"), 37'600);
  EXPECT_EQ(at("11/17/25"), 37'600);
  EXPECT_EQ(at("111725"), 37'600);
  for (const char* bad : {"", "soon", "25:00", "12:60", "2025-02-30", "2025-13-01", "now+", "now+x",
                          "2025-11-17T", "-5", "99"})
    EXPECT_FALSE(parse_moment(bad, kNow)) << bad;
}

TEST_F(Moments, LookBackForHistory) {
  const auto ago = [](std::string_view text) {
    return kNow - parse_past_moment(text, kNow).value_or(0);
  };
  EXPECT_EQ(ago("2h"), 7'200);
  EXPECT_EQ(ago("3d"), 3 * 86'400);
  EXPECT_EQ(ago("13:00"), 2'000);
  EXPECT_EQ(ago("14:00"), 86'400 - 1'600);  // not yet, so yesterday's
  EXPECT_EQ(ago("yesterday"), 86'400 + 48'800);
}

TEST(Sizes, HaveUnitsAndRoundUp) {
  EXPECT_EQ(parse_memory_mib("1024").value_or(-1), 1'024);
  EXPECT_EQ(parse_memory_mib("4G").value_or(-1), 4'096);
  EXPECT_EQ(parse_memory_mib("1.5GB").value_or(-1), 1'536);
  EXPECT_EQ(parse_memory_mib("100K").value_or(-1), 1);  // 0.098 MiB
  EXPECT_EQ(parse_memory_mib("1T").value_or(-1), 1 << 20);
  for (const char* bad : {"", "G", "-1G", "4X", "1e30", "nan"})
    EXPECT_FALSE(parse_memory_mib(bad)) << bad;
}

TEST(Signals, HaveNamesAndNumbers) {
  EXPECT_EQ(parse_signal("USR1").value_or(0), 10);
  EXPECT_EQ(parse_signal("SIGTERM").value_or(0), 15);
  EXPECT_EQ(parse_signal("kill").value_or(0), 9);
  EXPECT_EQ(parse_signal("12").value_or(0), 12);
  for (const char* bad : {"", "0", "65", "FOO", "SIG"}) EXPECT_FALSE(parse_signal(bad)) << bad;
}

TEST(Spans, ArePrintedAsSlurmPrintsThem) {
  EXPECT_EQ(clock_span(0), "0:00");
  EXPECT_EQ(clock_span(65.9), "1:05");
  EXPECT_EQ(clock_span(3'600), "1:00:00");
  EXPECT_EQ(clock_span(2 * 86'400 + 3 * 3'600), "2-03:00:00");
}

TEST(JobNames, AreNumbersAndPartsOfArrays) {
  const auto names = parse_job_names("12,13_4,14_[0-2,7],15_*");
  ASSERT_TRUE(names);
  ASSERT_EQ(names->size(), 4U);
  EXPECT_FALSE((*names)[0].indices);
  EXPECT_THAT(*(*names)[1].indices, ElementsAre(4));
  EXPECT_THAT(*(*names)[2].indices, ElementsAre(0, 1, 2, 7));
  EXPECT_THAT(*(*names)[3].indices, ElementsAre());
  for (const char* bad :
       {"", "0", "x", "12_", "12_[1", "12_]", "-3", "1,,2", "12_[1-3]%2", "99999999999999999999"})
    EXPECT_FALSE(parse_job_names(bad)) << bad;
}

TEST(SlurmFormat, CutsAndPads) {
  constexpr std::array kColumns{ColumnName{"jobid", 'i', "JOBID"}, ColumnName{"name", 'j', "NAME"},
                                ColumnName{"timelimit", 'l', "TIME_LIMIT", true}};
  const auto value = [](std::size_t column) {
    return std::array{"12", "a-long-name", "1-00:00:00"}[column];
  };
  const auto line = [&](const char* text) {
    return format_line(*parse_format(text, kColumns), value);
  };
  EXPECT_EQ(line("%.6i|%4j|%j"), "    12|a-lo|a-long-name\n");
  EXPECT_EQ(line("%%%i %j"), "%12 a-long-name\n");
  EXPECT_EQ(line("%.5l|%5j"), "1-00:00:00|a-lon\n");  // half a time is a wrong time
  EXPECT_FALSE(parse_format("%y", kColumns));
  EXPECT_FALSE(parse_format("100%", kColumns));
  const auto named = [&](const char* text) {
    return format_line(*parse_long_format(text, kColumns), value);
  };
  EXPECT_EQ(named("JobID,name:4"), "12                  a-lo\n");
  EXPECT_EQ(named("jobid:.6,name:|"), "    12a-long-name|\n");
  EXPECT_EQ(named("name:3;,jobid: "), "a-l;12\n");
  EXPECT_EQ(format_titles(*parse_long_format("jobid:|,timelimit:5|", kColumns), kColumns),
            "JOBID|TIME_|\n");
  EXPECT_FALSE(parse_long_format("jobbid", kColumns));
  EXPECT_FALSE(parse_long_format("", kColumns));
}

TEST(SlurmFormat, FoldsNamesOfNodes) {
  EXPECT_EQ(folded_names({"n1", "n3", "n2", "n7", "login"}), "login,n[1-3,7]");
  EXPECT_EQ(folded_names({"n01", "n02", "n1"}), "n1,n[01-02]");  // n01 is not n1
  EXPECT_EQ(folded_names({"a5"}), "a5");
  EXPECT_EQ(folded_names({}), "");
}

}  // namespace
}  // namespace berth::client
