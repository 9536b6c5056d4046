#include "trace/numbers.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace berth {
namespace {

struct SpanCase {
  std::string_view text;
  std::int64_t unit;
  std::int64_t ticks;
};

TEST(Numbers, ReadsSpansExactlyToTheMicrosecond) {
  for (const SpanCase& item : std::vector<SpanCase>{
           {"0", kTicksPerSecond, 0},
           {"172800.0", kTicksPerSecond, 172'800'000'000},
           {"0.000001", kTicksPerSecond, 1},
           {"99999999999.123456", kTicksPerSecond,
            99'999'999'999'123'456},                   // a double would lose digits
           {"1.0000005", kTicksPerSecond, 1'000'001},  // half a tick rounds up
           {"1e3", kTicksPerSecond, 1'000'000'000},
           {" 5 ", kTicksPerSecond, 5'000'000},
           {"+5", kTicksPerSecond, 5'000'000},
           {".5", kTicksPerSecond, 500'000},
           {"927475000", kTicksPerMillisecond, 927'475'000'000},
           {"211", kTicksPerMinute, 12'660'000'000},
           {"1.5", kTicksPerMinute, 90'000'000},
       }) {
    const auto parsed = parse_span(item.text, item.unit);
    EXPECT_TRUE(parsed.is_good()) << item.text << ": " << parsed.broken_rule;
    EXPECT_EQ(parsed.value.count(), item.ticks) << item.text;
  }
}

TEST(Numbers, RefusesSpansThatAreNone) {
  for (const std::string_view text :
       {"",    " ",    "x",    "1x",    "1,5",          "--1",  "+-1", "-1", "-0.5",  "nan",
        "inf", "-inf", "1e12", "1e999", "100000000001", "0x10", ".",   "-",  "1.2.3", "1e"}) {
    EXPECT_FALSE(parse_span(text, kTicksPerSecond).is_good()) << text;
  }
}

TEST(Numbers, ReadsIsoTimesAsUtc) {
  const auto seconds = [](std::string_view text) {
    return to_seconds(parse_instant(text, kTicksPerSecond).value);
  };
  EXPECT_EQ(seconds("2017-10-03T10:00:00Z"), 1507024800);  // date -u -d 2017-10-03T10:00 +%s
  EXPECT_EQ(seconds("2017-10-03 10:00:00"), 1507024800);
  EXPECT_EQ(seconds("2017-10-03T10:00"), 1507024800);
  EXPECT_EQ(seconds("2017-10-03"), 1506988800);
  EXPECT_EQ(seconds("2017-10-03T12:00:00+02:00"), 1507024800);
  EXPECT_EQ(seconds("2017-10-03T03:00:00-0700"), 1507024800);
  EXPECT_EQ(parse_instant("2017-10-03T10:00:00.250000Z", kTicksPerSecond)
                .value.time_since_epoch()
                .count(),
            1'507'024'800'250'000);
  EXPECT_EQ(seconds("2020-02-29"), 1582934400);
}

TEST(Numbers, RefusesTimesThatDoNotExist) {
  for (const std::string_view text :
       {"2017-13-01", "2019-02-29", "2017-10-03T25:00:00", "2017-10-03T10:61:00",
        "2017-10-03X10:00:00", "2017-10-03T10:00:00+99", "1969-12-31T23:59:59Z", "2017-1-1",
        "yesterday", "2017-10-03T10:00:00Zjunk", "2017-10-03T", "9999-99-99"}) {
    EXPECT_FALSE(parse_instant(text, kTicksPerSecond).is_good()) << text;
  }
}

TEST(Numbers, ReadsSlurmSpans) {
  const auto seconds = [](std::string_view text) {
    return to_seconds(parse_slurm_span(text).value);
  };
  EXPECT_EQ(seconds("1-04:33:44"), 86'400 + 4 * 3600 + 33 * 60 + 44);
  EXPECT_EQ(seconds("03:34:13"), 3 * 3600 + 34 * 60 + 13);
  EXPECT_EQ(seconds("23:08.358"), 23 * 60 + 8.358);
  for (const std::string_view text :
       {"", "UNLIMITED", "1-", "a:b", "99999999999-00:00:00", "-1-00:00:00"}) {
    EXPECT_FALSE(parse_slurm_span(text).is_good()) << text;
  }
}

TEST(Numbers, ReadsWholeNumbersHoweverTheyAreWritten) {
  EXPECT_EQ(parse_whole("4").value, 4);
  EXPECT_EQ(parse_whole("4.0").value, 4);
  EXPECT_EQ(parse_whole("-7").value, -7);
  EXPECT_EQ(parse_whole("1e3").value, 1000);
  for (const std::string_view text : {"1.5", "", "four", "1e30", "nan"})
    EXPECT_FALSE(parse_whole(text).is_good()) << text;
}

}  // namespace
}  // namespace berth
