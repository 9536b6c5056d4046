// Same input, same bytes: the digest of every policy on a shipped trace, as first computed. A
// change here is a change of behaviour: review it like code. To write the file anew:
//   BERTH_WRITE_GOLDEN=1 build/dev/tests/golden_test --gtest_filter=Golden.*
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "placements/placements.h"
#include "policies/registry.h"
#include "project_paths.h"
#include "run/run.h"
#include "support/suite_name.h"
#include "trace/reader.h"

namespace berth {
namespace {

const std::string kGolden = std::string(BERTH_SOURCE_DIR) + "/tests/golden/digests.txt";

struct Row {
  std::string policy;
  std::string placement = "best-fit";
  std::string estimator = "oracle";
  Settings settings = {};

  [[nodiscard]] std::string name() const {
    std::string name = fmt::format("{} {} {}", policy, placement, estimator);
    for (const auto& [key, value] : settings) name += fmt::format(" {}={}", key, value);
    return name;
  }
};

std::vector<Row> rows() {
  std::vector<Row> rows;
  for (const PolicyEntry& entry : policy_registry()) {
    rows.push_back({.policy = entry.name});
    // The trace declares no range: without this nobody would be resized in it.
    const auto is_elastic = [](const ParamSpec& param) { return param.key == "elastic"; };
    if (std::ranges::any_of(entry.params, is_elastic))
      rows.push_back({.policy = entry.name, .settings = {{"elastic", "all"}}});
  }
  for (const PlacementInfo& info : placements()) {
    if (info.name != "best-fit") rows.push_back({.policy = "srtf", .placement = info.name});
  }
  for (const std::string estimator : {"oracle:0.5", "history", "limit"})
    rows.push_back({.policy = "easy", .estimator = estimator});
  return rows;
}

std::string digest_of(const Row& row) {
  const auto trace =
      read_trace(std::string(BERTH_SOURCE_DIR) + "/examples/traces/philly-small.csv", {});
  const auto cluster = parse_cluster_short("8x8:v100,8x8:a100");
  RunSpec spec;
  spec.settings = row.settings;
  spec.policy = row.policy;
  spec.placement = row.placement;
  spec.estimator = row.estimator;
  spec.sim.costs.resume = std::chrono::seconds{30};
  auto planned = make_run(*trace, *cluster, spec);
  if (!planned) return planned.error().text();
  const auto run = planned->run();
  return run ? run->summary.digest : run.error().text();
}

std::map<std::string, std::string> golden() {
  std::map<std::string, std::string> digests;
  std::ifstream in(kGolden);
  for (std::string line; std::getline(in, line);) digests[line.substr(17)] = line.substr(0, 16);
  return digests;
}

class Digest : public testing::TestWithParam<Row> {};

TEST_P(Digest, IsThatOfTheFile) {
  const auto digests = golden();
  const auto found = digests.find(GetParam().name());
  ASSERT_NE(found, digests.end()) << GetParam().name() << " is not in " << kGolden;
  EXPECT_EQ(digest_of(GetParam()), found->second) << GetParam().name();
}

INSTANTIATE_TEST_SUITE_P(Golden, Digest, testing::ValuesIn(rows()),
                         [](const auto& row) { return test::suite_name(row.param.name()); });

TEST(Golden, TheFileHasNoOtherRows) {
  if (std::getenv("BERTH_WRITE_GOLDEN") != nullptr) {
    std::map<std::string, std::string> now;
    for (const Row& row : rows()) now[row.name()] = digest_of(row);
    std::ofstream out(kGolden);
    for (const auto& [name, digest] : now) out << digest << ' ' << name << '\n';
  }
  auto rest = golden();
  for (const Row& row : rows()) rest.erase(row.name());
  EXPECT_TRUE(rest.empty()) << rest.begin()->first;
}

}  // namespace
}  // namespace berth
