// The catalogue that comes with the project: nothing in it can stop a job, and it is what the
// measurements say.
#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <filesystem>

#include "base/file.h"
#include "lab/fit/catalogue.h"
#include "model/catalogue.h"
#include "perf/built_in_table.h"
#include "perf/profile_file.h"
#include "perf/rate_function.h"
#include "project_paths.h"
#include "support/sanitized.h"

namespace berth {
namespace {

std::vector<ProfileId> all_ids(const ProfileSet& set) {
  std::vector<ProfileId> ids;
  for (std::uint32_t i = 0; i < set.size(); ++i) ids.push_back(ProfileId{i});
  return ids;
}

double speed_on(const Profile& profile, const DeviceType& device) {
  for (const auto& [type, speed] : profile.speeds) {
    if (type == device.name) return speed;
  }
  return device.speed;
}

TEST(BuiltInProfiles, EveryModelRunsOnEveryDeviceAtEveryLevel) {
  const ProfileSet& set = built_in_profiles();
  ASSERT_GT(set.size(), 30U);
  const Links links;
  for (const ProfileId id : all_ids(set)) {
    const Profile& profile = set[id];
    for (const DeviceType& device : built_in_devices()) {
      for (const Level level : kAllLevels) {
        for (const std::int32_t gpus : {1, 2, 8, 64}) {
          for (const double cores : {0.0, 0.5, 1.0, 3.0, 24.0}) {
            const IterationTime time =
                iteration_time(profile, {.device_speed = speed_on(profile, device),
                                         .gpus = gpus,
                                         .link = links.at(level),
                                         .cores = cores});
            ASSERT_GT(time.total, 0) << profile.name << " on " << device.name;
            ASSERT_LT(time.total, 1e5) << profile.name << " on " << device.name;
          }
        }
      }
    }
  }
}

TEST(BuiltInProfiles, FasterLinksAreNeverSlower) {
  const Links links;
  for (const ProfileId id : all_ids(built_in_profiles())) {
    double before = 0;
    for (const Level level :
         {Level::Nvlink, Level::Pcie, Level::Server, Level::Rack, Level::CrossRack}) {
      const double now =
          iteration_time(built_in_profiles()[id], {.gpus = 8, .link = links.at(level)}).total;
      EXPECT_GE(now, before) << built_in_profiles()[id].name;
      before = now;
    }
  }
}

TEST(BuiltInProfiles, NobodyRunsFasterBesideAnother) {
  const ProfileSet& set = built_in_profiles();
  int measured = 0;
  for (const ProfileId of : all_ids(set)) {
    for (const ProfileId beside : all_ids(set)) {
      EXPECT_GE(set.slowdown(of, beside), 1) << set[of].name << " beside " << set[beside].name;
      EXPECT_LT(set.slowdown(of, beside), 20);
      if (set.has_pair(of, beside)) ++measured;
    }
  }
  EXPECT_GT(measured, 100);
}

TEST(BuiltInProfiles, EveryPartSaysWhereItComesFrom) {
  for (const ProfileId id : all_ids(built_in_profiles())) {
    const Profile& profile = built_in_profiles()[id];
    EXPECT_FALSE(profile.sources.empty()) << profile.name;
    for (const PartSource& source : profile.sources) {
      EXPECT_FALSE(source.source.empty()) << profile.name << " " << source.part;
      EXPECT_LT(source.error, 0.5) << profile.name << " " << source.part;
    }
  }
}

TEST(BuiltInProfiles, EnoughCoresFeedWhatTheGpuTakes) {
  for (const ProfileId id : all_ids(built_in_profiles())) {
    const Profile& profile = built_in_profiles()[id];
    if (!profile.cpu.is_known()) continue;
    const IterationTime alone = iteration_time(profile, {});
    const IterationTime fed =
        iteration_time(profile, {.cores = static_cast<double>(profile.cpu.theta)});
    EXPECT_NEAR(fed.total, alone.total, 0.01 * alone.total) << profile.name;
    EXPECT_GE(iteration_time(profile, {.cores = 0.5}).total, alone.total * 0.999) << profile.name;
  }
}

TEST(BuiltInProfiles, TracesFindTheirModels) {
  const ProfileSet& set = built_in_profiles();
  for (const char* model : {"ResNet-18",  "ResNet-50",    "Transformer",
                            "A3C",        "LM",           "Recommendation",
                            "CycleGAN",  // Gavel
                            "bert",       "cifar10",      "deepspeech2",
                            "imagenet",   "ncf",          "yolov3",  // Pollux, Sia
                            "vgg16",      "resnet50",     "inception3",
                            "gpt2",  // ElasticFlow
                            "vgg19",      "resnet18",     "shufflenet_v2_x1_0",
                            "a2c",        "dqn",  // Muri
                            "alexnet",    "inception_v3", "mobilenet_v2",
                            "resnet101",  // Chronus
                            "deepspeech", "gnmt",         "lstm",
                            "mobilenet",  "res18",        "res50",
                            "shufflenet",  // Synergy
                            "llama30",    "llama7",       "roberta",
                            "t5",         "vit"}) {  // Rubick
    EXPECT_TRUE(set.find(model)) << model;
  }
}

TEST(BuiltInProfiles, TheBuiltTableIsTheFile) {
  const auto text = read_file(BERTH_SOURCE_DIR "/data/profiles/models.yaml");
  ASSERT_TRUE(text);
  const auto set = parse_profiles(*text, "models.yaml", ProfileSet{});
  ASSERT_TRUE(set) << set.error().text();
  EXPECT_EQ(profiles_to_yaml(*set, ""), profiles_to_yaml(built_in_profiles(), ""));
}

TEST(BuiltInProfiles, AreAtHandWithinFiveMilliseconds) {
  auto best = std::chrono::steady_clock::duration::max();
  for (int i = 0; i < 5; ++i) {  // the best of a few: other work may be going on
    const auto begin = std::chrono::steady_clock::now();
    const ProfileSet set = built_in_table();
    best = std::min(best, std::chrono::steady_clock::now() - begin);
    ASSERT_EQ(set.size(), built_in_profiles().size());
  }
  EXPECT_LT(best, std::chrono::milliseconds(5) * test::kSanitizedSlowdown);
}

void expect_near(double a, double b, const std::string& what) {
  EXPECT_NEAR(a, b, 1e-6 * std::max(std::abs(a), std::abs(b))) << what;
}

TEST(BuiltInProfiles, FittingAgainGivesWhatIsShipped) {
  const std::string data = BERTH_SHARED_DIR "/data";
  if (!std::filesystem::exists(data + "/sia/profiles"))
    GTEST_SKIP() << "the published measurements are not here (" << data << ")";
  const auto again = fit_catalogue(data);
  ASSERT_TRUE(again) << again.error().text();
  const ProfileSet& shipped = built_in_profiles();
  ASSERT_EQ(again->profiles.size(), shipped.size());
  for (const ProfileId id : all_ids(shipped)) {
    const Profile& a = shipped[id];
    const Profile& b = again->profiles[id];
    EXPECT_EQ(a.name, b.name);
    expect_near(a.iteration.alpha, b.iteration.alpha, a.name + " alpha");
    expect_near(a.iteration.beta, b.iteration.beta, a.name + " beta");
    expect_near(a.iteration.gradient_bytes, b.iteration.gradient_bytes, a.name + " bytes");
    expect_near(a.iteration.overlap, b.iteration.overlap, a.name + " overlap");
    expect_near(a.memory.fixed_mib, b.memory.fixed_mib, a.name + " memory");
    expect_near(a.memory.per_sample_mib, b.memory.per_sample_mib, a.name + " memory");
    expect_near(a.cpu.plateau, b.cpu.plateau, a.name + " cpu");
    ASSERT_EQ(a.noise.size(), b.noise.size()) << a.name;
    for (std::size_t i = 0; i < a.noise.size(); ++i)
      expect_near(a.noise[i].scale, b.noise[i].scale, a.name + " noise");
    EXPECT_EQ(a.batch_limits.most_total, b.batch_limits.most_total) << a.name;
    ASSERT_EQ(a.speeds.size(), b.speeds.size()) << a.name;
    for (std::size_t i = 0; i < a.speeds.size(); ++i)
      expect_near(a.speeds[i].second, b.speeds[i].second, a.name + " on " + a.speeds[i].first);
    for (const ProfileId beside : all_ids(shipped)) {
      EXPECT_NEAR(shipped.slowdown(id, beside), again->profiles.slowdown(id, beside), 1e-4)
          << a.name << " beside " << shipped[beside].name;
    }
  }
}

}  // namespace
}  // namespace berth
