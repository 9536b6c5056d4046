// Same input, same bytes: the digest of every policy on a shipped trace, as first computed. A
// change here is a change of behaviour: review it like code. To write the file anew:
//   BERTH_WRITE_GOLDEN=1 build/dev/tests/golden_test
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <map>
#include <string>

#include <fmt/format.h>

#include "placements/placements.h"
#include "policies/registry.h"
#include "project_paths.h"
#include "run/run.h"
#include "trace/reader.h"

namespace berth {
namespace {

const std::string kGolden = std::string(BERTH_SOURCE_DIR) + "/tests/golden/digests.txt";

std::map<std::string, std::string> digests_now() {
  const auto trace =
      read_trace(std::string(BERTH_SOURCE_DIR) + "/examples/traces/philly-small.csv", {});
  const auto cluster = parse_cluster_short("8x8:v100,8x8:a100");
  std::map<std::string, std::string> digests;
  const auto add = [&](const std::string& policy, const std::string& placement,
                       const std::string& estimator, const Settings& settings = {}) {
    RunSpec spec;
    spec.settings = settings;
    spec.policy = policy;
    spec.placement = placement;
    spec.estimator = estimator;
    spec.sim.costs.resume = std::chrono::seconds{30};
    const auto run = run_one(*trace, *cluster, spec, {});
    std::string name = fmt::format("{} {} {}", policy, placement, estimator);
    for (const auto& [key, value] : settings) name += fmt::format(" {}={}", key, value);
    digests[name] = run ? run->summary.digest : run.error().text();
  };
  for (const PolicyEntry& entry : policy_registry()) {
    add(entry.name, "best-fit", "oracle");
    // The trace declares no range: without this nobody would be resized in it.
    const auto is_elastic = [](const ParamSpec& param) { return param.key == "elastic"; };
    if (std::ranges::any_of(entry.params, is_elastic))
      add(entry.name, "best-fit", "oracle", {{"elastic", "all"}});
  }
  for (const PlacementInfo& info : placements()) add("srtf", info.name, "oracle");
  for (const std::string estimator : {"oracle:0.5", "history", "limit"}) {
    add("easy", "best-fit", estimator);
  }
  return digests;
}

TEST(Golden, DigestsAreThoseOfTheFile) {
  const auto now = digests_now();
  if (std::getenv("BERTH_WRITE_GOLDEN") != nullptr) {
    std::ofstream out(kGolden);
    for (const auto& [name, digest] : now) out << digest << ' ' << name << '\n';
    return;
  }
  std::map<std::string, std::string> golden;
  std::ifstream in(kGolden);
  for (std::string line; std::getline(in, line);) golden[line.substr(17)] = line.substr(0, 16);
  EXPECT_EQ(now, golden);
}

}  // namespace
}  // namespace berth
