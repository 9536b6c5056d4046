// The screen of top: what is on it at every size.
#include "client/top_view.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fmt/format.h>

#include "base/text_table.h"
#include "client/tables.h"

namespace berth::client {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::shared_ptr<const JobSpec> spec_of(std::string name, std::string user, std::int32_t gpus) {
  JobSpec spec;
  spec.name = std::move(name);
  spec.user = std::move(user);
  spec.gpus = gpus;
  return std::make_shared<const JobSpec>(std::move(spec));
}

TopSnapshot small() {
  TopSnapshot snapshot;
  snapshot.at = 1'000;
  snapshot.cluster.policy = "las";
  snapshot.cluster.version = "0.1.0";
  snapshot.cluster.uptime_seconds = 7'200;
  snapshot.cluster.pending = 1;
  snapshot.cluster.running = 1;
  snapshot.cluster.gpus = 4;
  snapshot.cluster.gpus_used = 2;
  NodeView node;
  node.name = "n1";
  node.state = "up";
  node.type = "a100";
  node.gpus = 4;
  node.gpus_used = 2;
  node.cpus = 16;
  node.cpus_used = 8;
  node.devices = {{12}, {12}, {}, {}};
  snapshot.nodes = {node};
  JobRow running;
  running.number = 12;
  running.spec = spec_of("train", "ann", 2);
  running.granted = 2;
  running.state = LiveState::Running;
  running.run_seconds = 65;
  running.where = {{"n1", {0, 1}, {}}};
  JobRow waiting;
  waiting.number = 7;
  waiting.spec = spec_of("big", "bob", 4);
  waiting.state = LiveState::Pending;
  waiting.reason = "2 of 4 GPUs are free";
  waiting.submitted = 940'000'000;
  snapshot.jobs = {waiting, running};
  return snapshot;
}

TEST(TopView, FitsEightyByTwentyFour) {
  const auto lines = top_lines(small(), {}, {80, 24, false});
  ASSERT_EQ(lines.size(), 24U);
  EXPECT_EQ(lines[0], "berth 0.1.0  las  up 2.0 h  1 running, 1 waiting, 0 held");
  EXPECT_EQ(lines[1], "GPUs [####################....................] 2/4");
  EXPECT_EQ(lines[2], "n1           up       a100     gpus  2/4  cpus   8/16  12 12 . .");
  EXPECT_EQ(lines[3],
            "    job name             user     state      gpus       time where (why not)");
  EXPECT_EQ(lines[4], "     12 train            ann      running       2       1:05 n1:0,1");
  EXPECT_EQ(lines[5],
            "      7 big              bob      pending       4      +1:00 (2 of 4 GPUs are f…");
  EXPECT_THAT(lines[23], HasSubstr("q quit  s sort:state"));
}

TEST(TopView, NeverLeavesItsBounds) {
  TopSnapshot snapshot = small();
  for (int i = 0; i < 300; ++i) {
    snapshot.jobs.push_back(snapshot.jobs[static_cast<std::size_t>(i % 2)]);
    snapshot.jobs.back().number = static_cast<JobNumber>(100 + i);
    snapshot.jobs.back().spec = spec_of("ünïcödé-\x1b[31m-and-very-long-indeed", "ann", 2);
    snapshot.nodes.push_back(snapshot.nodes.front());
  }
  for (const bool has_colour : {false, true}) {
    for (const auto& [width, height] : {std::pair{20, 6}, {40, 10}, {80, 24}, {200, 60}}) {
      TopChoice choice;
      choice.selected = 250;
      const auto lines = top_lines(snapshot, choice, {width, height, has_colour});
      EXPECT_EQ(lines.size(), static_cast<std::size_t>(height));
      for (const std::string& line : lines)
        EXPECT_LE(display_width(line), static_cast<std::size_t>(width)) << line;
    }
  }
}

TEST(TopView, KeepsTheSelectedJobOnTheScreen) {
  TopSnapshot snapshot = small();
  for (JobNumber number = 100; number < 200; ++number) {
    snapshot.jobs.push_back(snapshot.jobs.front());
    snapshot.jobs.back().number = number;
  }
  TopChoice choice;
  choice.selected = 190;
  const auto lines = top_lines(snapshot, choice, {80, 24, false});
  EXPECT_THAT(lines, testing::Contains(testing::StartsWith(">   190")));
}

TEST(TopView, SortsAndFilters) {
  const TopSnapshot snapshot = small();
  const auto numbers = [&](TopSort sort, const std::string& filter) {
    TopChoice choice;
    choice.sort = sort;
    choice.filter = filter;
    std::vector<JobNumber> all;
    for (const JobRow* job : top_jobs(snapshot, choice)) all.push_back(job->number);
    return all;
  };
  EXPECT_THAT(numbers(TopSort::State, ""), ElementsAre(12, 7));  // what runs comes first
  EXPECT_THAT(numbers(TopSort::Number, ""), ElementsAre(7, 12));
  EXPECT_THAT(numbers(TopSort::Gpus, ""), ElementsAre(7, 12));
  EXPECT_THAT(numbers(TopSort::User, ""), ElementsAre(12, 7));
  EXPECT_THAT(numbers(TopSort::Time, ""), ElementsAre(12, 7));
  EXPECT_THAT(numbers(TopSort::Number, "ann"), ElementsAre(12));
  EXPECT_THAT(numbers(TopSort::Number, "pend"), ElementsAre(7));
  EXPECT_THAT(numbers(TopSort::Number, "zzz"), ElementsAre());
}

TEST(Clipping, CountsColumnsNotBytesAndTakesNoOrders) {
  EXPECT_EQ(clipped("abcdef", 4), "abc…");
  EXPECT_EQ(clipped("äöüß", 4), "äöüß");
  EXPECT_EQ(clipped("äöüßx", 4), "äöü…");
  EXPECT_EQ(clipped("a\nb\tc", 10), "a?b?c");
}

TEST(WhyText, TellsNeverFirstThenTheOthersThenWhatHelps) {
  const auto why = why_from(
      R"({"job":12,"state":"pending","summary":"waits for 2 a100 with 8 cores on one node: n2 has the GPUs but 2 cores",
    "reasons":[
      {"kind":"side resource","text":"n2: 2 GPUs free, 6 cores short","who":"user","when":"now","sole":true,
       "numbers":{"cores_free":2,"cores_needed":8},"entities":["n2","2 jobs of other users, 3 GPUs"],
       "fix":"ask for 2 cores: berth change 12 cpus=2"},
      {"kind":"request","text":"no node has 64 cores","when":"never","who":"user","sole":false}],
    "would_start":["1 core per GPU: --cpus 2","a v100 as well: --gpu-type 'a100|v100'"],"place":2,"of":9,"age_seconds":0.2})");
  ASSERT_TRUE(why);
  EXPECT_EQ(
      why_text(*why),
      "job 12 is pending: waits for 2 a100 with 8 cores on one node: n2 has the GPUs but 2 cores\n"
      "\n"
      "What holds it back\n"
      "  request        no node has 64 cores [no state of this cluster can satisfy it; you can "
      "change it]\n"
      "  side resource  n2: 2 GPUs free, 6 cores short [you can change it; alone it keeps the job "
      "waiting]\n"
      "                 cores free 2, cores needed 8\n"
      "                 it is about: n2; 2 jobs of other users, 3 GPUs\n"
      "                 to open it: ask for 2 cores: berth change 12 cpus=2\n"
      "\n"
      "What would let it start\n"
      "  1 core per GPU: --cpus 2\n"
      "  a v100 as well: --gpu-type 'a100|v100'\n"
      "\n"
      "Place 2 of 9 in the order of those that wait.\n");
}

}  // namespace
}  // namespace berth::client
