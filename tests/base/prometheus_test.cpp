#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <string>

#include "base/prometheus.h"

namespace berth {
namespace {

using Kind = PrometheusText::Kind;

TEST(PrometheusText, WritesFamiliesWithHelpAndKind) {
  PrometheusText text;
  text.counter("berth_passes_total", "Scheduling passes.", 3);
  text.family(Kind::Gauge, "berth_jobs", "Jobs by state.");
  text.sample(2, {{"state", "pending"}}).sample(0.5, {{"state", "running"}, {"user", "a"}});
  EXPECT_EQ(text.str(),
            "# HELP berth_passes_total Scheduling passes.\n"
            "# TYPE berth_passes_total counter\n"
            "berth_passes_total 3\n"
            "# HELP berth_jobs Jobs by state.\n"
            "# TYPE berth_jobs gauge\n"
            "berth_jobs{state=\"pending\"} 2\n"
            "berth_jobs{state=\"running\",user=\"a\"} 0.5\n");
}

TEST(PrometheusText, EscapesWhatTheFormatReserves) {
  PrometheusText text;
  text.family(Kind::Gauge, "g", "a \"quoted\"\nback\\slash").sample(1, {{"n", "x\"\\\ny"}});
  EXPECT_EQ(text.str(),
            "# HELP g a \"quoted\"\\nback\\\\slash\n"
            "# TYPE g gauge\n"
            "g{n=\"x\\\"\\\\\\ny\"} 1\n");
}

TEST(PrometheusText, WritesWhatIsNoNumberAsTheFormatSays) {
  PrometheusText text;
  text.family(Kind::Gauge, "g", "h").sample(std::nan("")).sample(HUGE_VAL).sample(-HUGE_VAL);
  EXPECT_NE(text.str().find("g NaN\ng +Inf\ng -Inf\n"), std::string::npos);
}

TEST(PrometheusHistogram, CountsUpToEachBound) {
  PrometheusHistogram histogram({0.1, 1});
  for (const double value : {0.05, 0.1, 0.5, 7.0}) histogram.observe(value);
  PrometheusText text;
  text.family(Kind::Histogram, "h", "x");
  histogram.write(text, {{"route", "r"}});
  // 0.05 and 0.1 are at most 0.1; 0.5 is at most 1; 7 is above; 0.05 + 0.1 + 0.5 + 7 = 7.65
  EXPECT_EQ(text.str(),
            "# HELP h x\n# TYPE h histogram\n"
            "h_bucket{route=\"r\",le=\"0.1\"} 2\n"
            "h_bucket{route=\"r\",le=\"1\"} 3\n"
            "h_bucket{route=\"r\",le=\"+Inf\"} 4\n"
            "h_sum{route=\"r\"} 7.65\n"
            "h_count{route=\"r\"} 4\n");
}

TEST(PrometheusText, PleasesPromtool) {
  if (std::system("command -v promtool >/dev/null 2>&1") != 0) GTEST_SKIP() << "no promtool here";
  PrometheusText text;
  text.counter("berth_passes_total", "Scheduling \\ passes\nof all kinds.", 3);
  text.family(Kind::Gauge, "berth_jobs", "Jobs.").sample(1, {{"name", "a\"b\\c\nd"}});
  PrometheusHistogram histogram({0.1, 1});
  histogram.observe(0.3);
  text.family(Kind::Histogram, "berth_wait_seconds", "Waits.");
  histogram.write(text);
  std::FILE* const check = ::popen("promtool check metrics", "w");
  ASSERT_NE(check, nullptr);
  std::fwrite(text.str().data(), 1, text.str().size(), check);
  EXPECT_EQ(::pclose(check), 0) << text.str();
}

}  // namespace
}  // namespace berth
