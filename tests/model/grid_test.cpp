// Parameter grids: which combinations there are, and how they get into a job.
#include <gtest/gtest.h>

#include "model/grid.h"
#include "model/job_spec_json.h"

namespace berth {
namespace {

JobSpec sweep() {
  JobSpec spec;
  spec.command = {"train", "--lr", "{lr}", "--seed={seed}"};
  spec.workdir = "/";
  spec.name = "train";
  spec.grid = {"lr=0.1,0.01", "seed=1-3"};
  return spec;
}

TEST(Grid, IsEveryCombinationOnceTheLastParameterFastest) {
  const JobSpec spec = sweep();
  EXPECT_EQ(Grid::parse(spec.grid, false)->size(), 6U);
  EXPECT_EQ(shown_name(spec, 0), "train lr=0.1 seed=1");
  EXPECT_EQ(shown_name(spec, 1), "train lr=0.1 seed=2");
  EXPECT_EQ(shown_name(spec, 5), "train lr=0.01 seed=3");
  EXPECT_EQ(shown_name(spec, 6), "train");  // no such job
}

TEST(Grid, ZippedTakesTheFirstValuesTogether) {
  JobSpec spec = sweep();
  spec.grid = {"lr=0.1,0.01", "seed=7,9"};
  spec.grid_zip = true;
  EXPECT_EQ(Grid::parse(spec.grid, true)->size(), 2U);
  EXPECT_EQ(shown_name(spec, 1), "train lr=0.01 seed=9");
  spec.grid[1] = "seed=1-3";
  ASSERT_FALSE(grid_problems(spec).empty());
  EXPECT_EQ(grid_problems(spec).front(), "grid: zipped, lr has 2 values and seed has 3");
}

TEST(Grid, FillsInNamesAndLeavesTheShellsAlone) {
  const GridPoint point{{"lr", "0.1"}, {"seed", "3"}};
  EXPECT_EQ(filled_in("--lr={lr} {seed}{seed} ${lr} {other} {", point),
            "--lr=0.1 33 ${lr} {other} {");
  EXPECT_EQ(grid_variable("warm-up"), "BERTH_GRID_WARM_UP");
}

TEST(Grid, RangesAreWholeNumbersAndNothingElseIs) {
  EXPECT_EQ(Grid::parse({"seed=1-9:4,20"}, false)->size(), 4U);  // 1, 5, 9, 20
  EXPECT_EQ(Grid::parse({"lr=1e-3,1e-4"}, false)->point(1)[0].second, "1e-4");
  EXPECT_EQ(Grid::parse({"t=5-1"}, false)->point(0)[0].second, "5-1");  // no range: a value
}

TEST(Grid, WhatCannotBeMeantIsRefused) {
  for (const char* wrong : {"lr", "=1", "lr=", "lr=1,,2", "1r=2", "l r=1", "seed=0-99999999"})
    EXPECT_FALSE(Grid::parse({wrong}, false)) << wrong;
  EXPECT_FALSE(Grid::parse({"a=1", "a=2"}, false));
  EXPECT_FALSE(Grid::parse({"a=1-200", "b=1-200"}, false));  // 40,000 jobs
  JobSpec spec = sweep();
  EXPECT_TRUE(problems(spec).empty());
  spec.command = {"train", "--lr", "{lr}", "--deep", "{depth}"};
  const auto faults = grid_problems(spec);
  ASSERT_EQ(faults.size(), 2U);
  EXPECT_EQ(faults[0],
            "grid: seed is used nowhere: write {seed} in the command, or read BERTH_GRID_SEED");
  EXPECT_EQ(faults[1], "grid: {depth} is no parameter (there are: lr, seed)");
}

TEST(Grid, BecomesAnArrayUnlessTheRequestNamesSomeOfIt) {
  JobSpec spec = sweep();
  add_grid_array(spec);
  EXPECT_EQ(to_text(*spec.array), "0-5");
  spec.array = *parse_array("1,4%1");
  add_grid_array(spec);
  EXPECT_EQ(spec.array->at_once, 1);
  EXPECT_TRUE(grid_problems(spec).empty());
  spec.array = *parse_array("6");
  EXPECT_FALSE(grid_problems(spec).empty());
}

}  // namespace
}  // namespace berth
