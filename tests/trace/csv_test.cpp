#include "trace/csv.h"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace berth {
namespace {

using Rows = std::vector<std::vector<std::string>>;

Rows rows_of(std::string_view bytes, std::string_view delimiter = ",",
             CsvQuotes quotes = CsvQuotes::Quoted) {
  Rows rows;
  for (CsvRows csv(bytes, delimiter, quotes); csv.next();)
    rows.emplace_back(csv.fields().begin(), csv.fields().end());
  return rows;
}

struct CsvCase {
  const char* what;
  std::string_view bytes;
  Rows expected;
};

TEST(Csv, SplitsEveryShapeOfRow) {
  const std::vector<CsvCase> cases{
      {"plain", "a,b\n1,2\n", {{"a", "b"}, {"1", "2"}}},
      {"no last line break", "a,b\n1,2", {{"a", "b"}, {"1", "2"}}},
      {"CRLF", "a,b\r\n1,2\r\n", {{"a", "b"}, {"1", "2"}}},
      {"byte-order mark",
       "\xEF\xBB\xBF"
       "a,b\n",
       {{"a", "b"}}},
      {"blank lines", "\n\na,b\n\r\n\n1,2\n\n", {{"a", "b"}, {"1", "2"}}},
      {"ragged rows", "a,b\n1\n1,2,3\n", {{"a", "b"}, {"1"}, {"1", "2", "3"}}},
      {"empty fields", ",,\n", {{"", "", ""}}},
      {"quoted delimiter", "\"a,b\",c\n", {{"a,b", "c"}}},
      {"doubled quotes", "\"say \"\"hi\"\"\",c\n", {{"say \"hi\"", "c"}}},
      {"line break in quotes", "\"a\nb\",c\nd,e\n", {{"a\nb", "c"}, {"d", "e"}}},
      {"quoted CRLF end", "a,\"b\"\r\nc,d\r\n", {{"a", "b"}, {"c", "d"}}},
      {"quote inside a field", "a\"b,c\n", {{"a\"b", "c"}}},
      {"empty quotes", "\"\",x\n", {{"", "x"}}},
      {"open quote", "a,\"b\nc", {{"a", "b\nc"}}},
      {"lone quote at the end", "a,\"", {{"a", ""}}},
  };
  for (const CsvCase& item : cases) EXPECT_EQ(rows_of(item.bytes), item.expected) << item.what;
}

TEST(Csv, TakesDelimitersOfSeveralBytes) {
  EXPECT_EQ(rows_of("7\xE2\x98\x83name\xE2\x98\x83\n", kSnowman), (Rows{{"7", "name", ""}}));
  EXPECT_EQ(rows_of("\"a\xE2\x98\x83"
                    "b\"\xE2\x98\x83"
                    "c\n",
                    kSnowman),
            (Rows{{"a\xE2\x98\x83"
                   "b",
                   "c"}}));
}

TEST(Csv, LeavesQuotesAloneWhenTheyArePlain) {
  EXPECT_EQ(rows_of("\"a|b\n", "|", CsvQuotes::Plain), (Rows{{"\"a", "b"}}));
}

TEST(Csv, CountsPhysicalLines) {
  CsvRows csv("h\n\n\"a\nb\"\nlast\n", ",");
  std::vector<std::size_t> lines;
  while (csv.next()) lines.push_back(csv.line());
  EXPECT_THAT(lines, testing::ElementsAre(1, 3, 5));  // because the quoted row takes lines 3 and 4
}

TEST(Csv, KnowsARowThatWasCutOff) {
  CsvRows whole("a,b\n", ",");
  ASSERT_TRUE(whole.next());
  EXPECT_TRUE(whole.is_terminated());
  CsvRows cut("a,b", ",");
  ASSERT_TRUE(cut.next());
  EXPECT_FALSE(cut.is_terminated());
  CsvRows open("\"a", ",");
  ASSERT_TRUE(open.next());
  EXPECT_TRUE(open.has_open_quote());
}

TEST(Csv, GuessesTheDelimiter) {
  EXPECT_EQ(likely_delimiter("a,b,c"), ",");
  EXPECT_EQ(likely_delimiter("a\tb, c\td"), "\t");
  EXPECT_EQ(likely_delimiter("JobID|User|State"), "|");
  EXPECT_EQ(likely_delimiter("a;b"), ";");
  EXPECT_EQ(likely_delimiter("1\xE2\x98\x83x,y,z"), kSnowman);
  EXPECT_EQ(likely_delimiter("alone"), ",");
}

}  // namespace
}  // namespace berth
