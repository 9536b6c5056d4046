// The small pieces everything stands on: time, rates, names, random numbers, text.
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <filesystem>
#include <fstream>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "base/digest.h"
#include "base/file.h"
#include "base/json_writer.h"
#include "base/names.h"
#include "base/portable_math.h"
#include "base/rng.h"
#include "base/split.h"
#include "base/suggest.h"
#include "base/text_table.h"
#include "base/time.h"

namespace berth {
namespace {

TEST(Split, EmptyPartsArePartsToo) {
  using Parts = std::vector<std::string_view>;
  EXPECT_EQ(split("a,bc", ','), (Parts{"a", "bc"}));
  EXPECT_EQ(split("a", ','), (Parts{"a"}));
  EXPECT_EQ(split("", ','), (Parts{""}));
  EXPECT_EQ(split(",a,", ','), (Parts{"", "a", ""}));
  EXPECT_EQ(split("a:b,c", ':'), (Parts{"a", "b,c"}));
}

TEST(Rate, IsExactAtOneAndRoundsSoThatWorkIsDoneWhenTheTimeIsUp) {
  const Duration work = std::chrono::seconds{7};
  EXPECT_EQ(Rate::one().time_for(work), work);
  for (const double speed : {0.6, 0.95, 1.0 / 3, 8.0 / 11, 1.7}) {
    const Rate rate = Rate::from(speed);
    const Duration needed = rate.time_for(work);
    EXPECT_GE(rate.work_in(needed), work) << "the condition of a computed time holds when it fires";
    EXPECT_LT(rate.work_in(needed - Duration{1}), work) << "and not a tick earlier";
    EXPECT_NEAR(to_seconds(needed), 7 / speed, 1e-5);
  }
}

TEST(Time, ComputedTimesRoundUp) {
  EXPECT_EQ(seconds_to_duration_up(1.0000001).count(), 1'000'001);
  EXPECT_EQ(seconds_to_duration(1.0000001).count(), 1'000'000);
}

TEST(PortableMath, AgreesWithTheLibraryToTheLastFewBits) {
  for (double x = -40; x < 40; x += 0.37) {
    EXPECT_NEAR(portable_exp(x) / std::exp(x), 1, 4e-15) << x;
    EXPECT_NEAR(portable_cos_turns(x / 10), std::cos(2 * M_PI * x / 10), 4e-15) << x;
  }
  for (double x = 1e-9; x < 1e12; x *= 3.7)
    EXPECT_NEAR(portable_log(x), std::log(x), 1e-14 * std::max(1.0, std::abs(std::log(x)))) << x;
  EXPECT_DOUBLE_EQ(portable_log(1.0), 0);
}

TEST(Rng, IsTheSameOnEveryMachine) {
  Rng rng{42};
  EXPECT_EQ(rng.next(), 1546998764402558742ULL);
  EXPECT_EQ(rng.next(), 6990951692964543102ULL);
}

TEST(Rng, DistributionsHaveTheirMoments) {
  Rng rng{7};
  const int n = 200'000;
  double sum = 0;
  double squares = 0;
  double waits = 0;
  for (int i = 0; i < n; ++i) {
    const double z = rng.normal();
    sum += z;
    squares += z * z;
    waits += rng.exponential(3);
  }
  EXPECT_NEAR(sum / n, 0, 0.01);
  EXPECT_NEAR(squares / n, 1, 0.02);
  EXPECT_NEAR(waits / n, 3, 0.05);
}

TEST(Rng, ForksDoNotDependOnEachOther) {
  const Rng rng{1};
  EXPECT_NE(rng.fork("policy").next(), rng.fork("placement").next());
  EXPECT_EQ(rng.fork("policy").next(), rng.fork("policy").next());
}

TEST(Names, EachTextHasOneIdInOrderOfFirstUse) {
  Names names;
  EXPECT_EQ(names.intern(""), NameId{0});
  for (int i = 0; i < 1000; ++i)
    EXPECT_EQ(names.intern("user" + std::to_string(i)), NameId{static_cast<std::uint32_t>(i + 1)});
  EXPECT_EQ(names.intern("user77"), NameId{78});
  EXPECT_EQ(names.text(NameId{78}), "user77");
  EXPECT_FALSE(names.find("nobody").has_value());
}

TEST(Digest, DependsOnOrderAndLength) {
  Digest a;
  a.add(std::uint64_t{1});
  a.add(std::uint64_t{2});
  Digest b;
  b.add(std::uint64_t{2});
  b.add(std::uint64_t{1});
  EXPECT_NE(a.hex(), b.hex());
  EXPECT_EQ(a.hex().size(), 16U);
}

TEST(Json, EscapesWhatHtmlAndJsonCannotBear) {
  JsonWriter json;
  json.begin_object()
      .field("a\"b", "x<y\n\x01")
      .field("n", 0.1)
      .key("list")
      .begin_array()
      .value(1)
      .value(true)
      .null()
      .end_array()
      .end_object();
  EXPECT_EQ(json.str(), R"({"a\"b":"x\u003cy\n\u0001","n":0.1,"list":[1,true,null]})");
}

TEST(Table, AlignsTextLeftAndNumbersRight) {
  TextTable table{{{"policy", Align::Left}, {"JCT"}}};
  table.add_row({"fifo", "120"});
  table.add_row({"é\x1b[1mx\x1b[0m", "9"});
  EXPECT_EQ(table.str(), "policy  JCT\n------  ---\nfifo    120\né\x1b[1mx\x1b[0m        9\n");
}

TEST(Suggest, NamesTheNearest) {
  const std::vector<std::string> known{"fifo", "fifo-skip", "srtf", "srsf"};
  EXPECT_EQ(nearest_names("srft", known), (std::vector<std::string>{"srtf", "srsf"}));
  EXPECT_EQ(suggestion("zzzzzzzz", known), " (known: fifo, fifo-skip, srtf, srsf)");
}

class Files : public ::testing::Test {
 protected:
  std::string path_ =
      (std::filesystem::temp_directory_path() / ("berth-file-test-" + std::to_string(getpid())))
          .string();
  void TearDown() override { std::filesystem::remove(path_); }
};

TEST_F(Files, ReadsGzipByContentAndRefusesATruncatedOne) {
  const std::string text(100'000, 'a');
  gzFile out = gzopen(path_.c_str(), "wb");
  gzwrite(out, text.data(), static_cast<unsigned>(text.size()));
  gzclose(out);
  EXPECT_EQ(*read_file(path_), text);
  std::filesystem::resize_file(path_, std::filesystem::file_size(path_) - 20);
  const auto broken = read_file(path_);
  ASSERT_FALSE(broken.has_value());
  EXPECT_NE(broken.error().text().find("truncated"), std::string::npos) << broken.error().text();
}

TEST_F(Files, SaysWhyAFileCannotBeReadOrWritten) {
  EXPECT_NE(read_file("/no/such/file").error().text().find("cannot open"), std::string::npos);
  EXPECT_NE(read_file("/").error().text().find("directory"), std::string::npos);
  EXPECT_FALSE(write_file("/no/such/folder/x", "y").has_value());
  EXPECT_TRUE(write_file(path_, "hello").has_value());
  EXPECT_EQ(*read_file(path_), "hello");
}

// because `berth generate -o /dev/null`, typed by root, must leave the machine its /dev/null
TEST_F(Files, WhatIsNoPlainFileIsWrittenToAndStaysWhatItIs) {
  ASSERT_EQ(::mkfifo(path_.c_str(), 0600), 0);
  const int reader = ::open(path_.c_str(), O_RDONLY | O_NONBLOCK);
  EXPECT_TRUE(write_file(path_, "hello").has_value());
  EXPECT_TRUE(std::filesystem::is_fifo(path_));
  std::array<char, 16> buffer{};
  EXPECT_EQ(::read(reader, buffer.data(), buffer.size()), 5);
  ::close(reader);
  std::filesystem::remove(path_);

  const std::string link = path_ + ".link";
  std::filesystem::remove(link);
  std::filesystem::create_symlink(path_, link);
  for (const char* text : {"made", "made anew"}) {
    EXPECT_TRUE(write_file(link, text).has_value());
    EXPECT_TRUE(std::filesystem::is_symlink(link));
    EXPECT_EQ(*read_file(path_), text);
  }
  std::filesystem::remove(link);
}

}  // namespace
}  // namespace berth
