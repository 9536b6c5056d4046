// What each policy does on a handful of jobs, drawn: tests/golden/timelines/<policy>.txt says what
// to see in it, gives the scenario, and holds the picture. Where a digest says that something
// changed, this says what. After a change that is meant, draw them anew and read the difference:
//   BERTH_WRITE_GOLDEN=1 build/dev/tests/golden_test --gtest_filter='*Timeline*'
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/split.h"
#include "golden/drawing.h"
#include "policies/registry.h"
#include "project_paths.h"
#include "run/run.h"
#include "support/suite_name.h"
#include "trace/reader.h"

namespace berth::test {
namespace {

const std::filesystem::path kFolder =
    std::filesystem::path(BERTH_SOURCE_DIR) / "tests/golden/timelines";

/// A file in its parts: words for people, `key value` lines and the jobs as a trace (docs/formats/
/// traces.md), then, below a blank line, the picture.
struct Scene {
  std::string given;  // everything above the picture, as it stands
  std::string see;    // its '#' lines
  std::vector<std::pair<std::string, std::string>> options;  // `set` may stand there often
  std::string jobs;
  std::string picture;
};

Scene read_scene(std::istream& in) {
  Scene scene;
  std::string line;
  while (std::getline(in, line) && !line.empty()) {
    scene.given += line + '\n';
    const std::size_t space = line.find(' ');
    if (line.starts_with('#')) {
      scene.see += line.substr(1);
    } else if (!scene.jobs.empty() || line.starts_with("job_id,")) {
      scene.jobs += line + '\n';
    } else if (space != std::string::npos) {
      scene.options.emplace_back(line.substr(0, space), line.substr(space + 1));
    } else {
      ADD_FAILURE() << "neither 'key value' nor a job: " << line;
    }
  }
  std::stringstream rest;
  rest << in.rdbuf();
  scene.picture = rest.str();
  return scene;
}

/// What a scene says beside its jobs; an unknown key fails the test.
struct Stage {
  RunSpec spec;
  Cluster cluster;
  DrawOptions draw;
};

template <class T>
T take(const Result<T>& result) {
  if (!result) throw std::runtime_error(result.error().text());
  return *result;
}

Stage set_stage(const std::string& policy, const Scene& scene) {
  Stage stage;
  std::string cluster = "1x4";
  std::int64_t cores = 0;
  const auto duration = [](const std::string& text) {
    return seconds_to_duration(std::stod(text));
  };
  const std::map<std::string, std::function<void(const std::string&)>> keys{
      {"cluster", [&](const auto& text) { cluster = text; }},
      {"cores", [&](const auto& text) { cores = std::stoll(text); }},
      {"set",
       [&](const auto& text) {
         const std::size_t equals = text.find('=');
         if (equals == std::string::npos) throw std::runtime_error("set KEY=VALUE, not " + text);
         stage.spec.settings.emplace_back(text.substr(0, equals), text.substr(equals + 1));
       }},
      {"placement", [&](const auto& text) { stage.spec.placement = text; }},
      {"estimator", [&](const auto& text) { stage.spec.estimator = text; }},
      {"effects", [&](const auto& text) { stage.spec.effects = take(parse_effects(text)); }},
      {"restart", [&](const auto& text) { stage.spec.sim.costs.resume = duration(text); }},
      {"migrate", [&](const auto& text) { stage.spec.sim.costs.migrate = duration(text); }},
      {"boot", [&](const auto& text) { stage.spec.sim.boot = duration(text); }},
      {"column", [&](const auto& text) { stage.draw.column = duration(text); }},
  };
  for (const auto& [key, value] : scene.options) {
    const auto found = keys.find(key);
    if (found == keys.end()) throw std::runtime_error("unknown key " + key);
    found->second(value);
  }
  stage.cluster = take(parse_cluster_short(cluster));
  for (Node& node : stage.cluster.nodes) {
    if (cores > 0) node.cpus_milli = cores * 1000;
  }
  stage.spec.policy = policy;
  stage.spec.recording = Recording::Everything;
  stage.draw.boot = stage.spec.sim.boot;
  return stage;
}

std::string picture_of(const std::string& policy, const Scene& scene) {
  const Stage stage = set_stage(policy, scene);
  const Trace trace = take(parse_trace(scene.jobs, policy + ".txt", {}));
  auto planned = make_run(trace, stage.cluster, stage.spec);
  if (!planned) throw std::runtime_error(planned.error().text());
  const RunData run = take(planned->run());
  return draw(run, trace, stage.cluster, stage.draw);
}

/// Row by row: '-' as it was, '+' as it is.
std::string difference(const std::string& before, const std::string& after) {
  const auto old_rows = split(before, '\n');
  const auto new_rows = split(after, '\n');
  std::string text;
  for (std::size_t i = 0; i < std::max(old_rows.size(), new_rows.size()); ++i) {
    const std::string_view was = i < old_rows.size() ? old_rows[i] : "";
    const std::string_view is = i < new_rows.size() ? new_rows[i] : "";
    text += was == is ? fmt::format("  {}\n", is) : fmt::format("- {}\n+ {}\n", was, is);
  }
  return text;
}

std::vector<std::string> policy_names() {
  std::vector<std::string> names;
  for (const PolicyEntry& entry : policy_registry()) names.push_back(entry.name);
  return names;
}

class Timeline : public testing::TestWithParam<std::string> {};

TEST_P(Timeline, IsThatOfTheFile) {
  const std::filesystem::path path = kFolder / (GetParam() + ".txt");
  std::ifstream in(path);
  ASSERT_TRUE(in) << "no scene for " << GetParam() << ": write " << path.string()
                  << " (take another policy's as an example)";
  const Scene scene = read_scene(in);
  EXPECT_NE(scene.see.find("See:"), std::string::npos) << "it says nowhere what to see in it";
  const std::string now = picture_of(GetParam(), scene);
  if (std::getenv("BERTH_WRITE_GOLDEN") != nullptr) {
    std::ofstream(path) << scene.given << '\n' << now;
    return;
  }
  EXPECT_TRUE(scene.picture == now) << GetParam() << " does something else:" << scene.see << '\n'
                                    << difference(scene.picture, now);
}

INSTANTIATE_TEST_SUITE_P(Golden, Timeline, testing::ValuesIn(policy_names()), kByName);

TEST(Timelines, AllAreOfPolicies) {
  for (const auto& file : std::filesystem::directory_iterator(kFolder)) {
    const std::string policy = file.path().stem().string();
    EXPECT_TRUE(find_policy(policy)) << file.path().string() << " is about no policy";
  }
}

}  // namespace
}  // namespace berth::test
