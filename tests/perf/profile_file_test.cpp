// The YAML profile file: what it means, and what is said about a bad one.
#include "perf/profile_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace berth {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::SizeIs;
using testing::StartsWith;

ProfileSet good(const std::string& text, ProfileSet base = {}) {
  auto set = parse_profiles(text, "p.yaml", std::move(base));
  if (!set) {
    ADD_FAILURE() << set.error().text();
    return {};
  }
  return std::move(*set);
}

std::vector<std::string> faults(const std::string& text) {
  const auto set = parse_profiles(text, "p.yaml", ProfileSet{});
  return set ? std::vector<std::string>{"(read without complaint)"} : set.error().messages;
}

constexpr const char* kFull = R"(
defaults: {slowdown: 1.7, pairs_from_utilisation: false}
devices: [tpu9]
profiles:
  - name: My-Net
    aliases: [mynet_large, "net 7"]
    batch: 48
    iteration: {alpha: 0.01, beta: 0.002, gradient_bytes: 5e8, overlap: 1.5}
    memory: {fixed_mib: 2000, per_sample_mib: 30}
    cpu: {log_gain: 40, linear_gain: 5, plateau: 160, theta: 12}
    validation: {every_seconds: 1800, seconds: 90, log_gain: 20, linear_gain: 3, plateau: 120, theta: 20}
    data: {dataset_mib: 150000, sample_mib: 0.11, storage_mib_per_second: 60}
    gpu_utilisation: 0.9
    memory_utilisation: 0.4
    bus: 0.2
    stages: [0.1, 0.2, 0.3, 0]
    speeds: {K80: 0.2, tpu9: 3}
    noise: [[0, 300], [0.5, 2000]]
    batch_limits: {least_per_gpu: 8, most_per_gpu: 64, most_total: 2048}
    loss: {b0: 0.3, b1: 0.7, b2: 0.1, epochs: 40, spread: 0.5, noise: 0.02}
    measured:
      - {device: v100, gpus: 4, level: cross-rack, batch: 48, seconds: 0.25}
    sources:
      - {part: iteration, provenance: fitted, source: "our own: cluster", error: 0.05, points: 7}
  - {name: other}
pairs:
  - [my-net, other, 1.8]
  - [other, mynet-large, 1.1]
)";

// A curve alone says how fast the GPU is: as fast as its plateau, so that the sweet point is theta.
TEST(ProfileFile, ACurveWithoutAnIterationSaysHowLongOneTakes) {
  const ProfileSet set = good(
      "profiles:\n"
      "  - {name: curve, batch: 10, cpu: {log_gain: 0, linear_gain: 50, plateau: 100, theta: 2}}\n"
      "  - {name: both, batch: 10, iteration: {alpha: 1, beta: 0},"
      " cpu: {log_gain: 0, linear_gain: 50, plateau: 100, theta: 2}}\n"
      "  - {name: like, like: both, cpu: {log_gain: 0, linear_gain: 50, plateau: 9, theta: 2}}\n"
      "  - {name: neither, batch: 10}\n");
  const auto seconds = [&](const char* name) {
    const Profile& profile = set[*set.find(name)];
    return profile.iteration.alpha + profile.iteration.beta * profile.batch;
  };
  EXPECT_DOUBLE_EQ(seconds("curve"), 0.1);  // 10 samples at 100 a second
  EXPECT_DOUBLE_EQ(seconds("both"), 1);
  EXPECT_DOUBLE_EQ(seconds("like"), 1);
  EXPECT_DOUBLE_EQ(seconds("neither"), 0.07);
}

TEST(ProfileFile, ReadsEveryField) {
  const ProfileSet set = good(kFull);
  ASSERT_EQ(set.size(), 3U);
  EXPECT_EQ(set.default_slowdown(), 1.7);
  const auto id = set.find("my net");
  ASSERT_TRUE(id);
  const Profile& p = set[*id];
  EXPECT_EQ(p.name, "My-Net");
  EXPECT_EQ(set.find("Net-7"), id);
  EXPECT_EQ(p.batch, 48);
  EXPECT_EQ(p.iteration.alpha, 0.01);
  EXPECT_EQ(p.iteration.beta, 0.002);
  EXPECT_EQ(p.iteration.gradient_bytes, 5e8);
  EXPECT_EQ(p.iteration.overlap, 1.5);
  EXPECT_EQ(p.memory.fixed_mib, 2000);
  EXPECT_EQ(p.memory.per_sample_mib, 30);
  EXPECT_EQ(p.cpu, (CpuCurve{40, 5, 160, 12}));
  EXPECT_EQ(p.validation.every_seconds, 1800);
  EXPECT_EQ(p.validation.seconds, 90);
  EXPECT_EQ(p.validation.cpu, (CpuCurve{20, 3, 120, 20}));
  EXPECT_EQ(p.cpu_in(Phase::Training), p.cpu);
  EXPECT_EQ(p.cpu_in(Phase::Validation), p.validation.cpu);
  EXPECT_EQ(p.data, (DataCache{150'000, 0.11, 60}));
  EXPECT_EQ(p.gpu_utilisation, 0.9);
  EXPECT_EQ(p.memory_utilisation, 0.4);
  EXPECT_EQ(p.bus, 0.2);
  EXPECT_THAT(p.stages, ElementsAre(0.1, 0.2, 0.3, 0));
  EXPECT_THAT(p.speeds, ElementsAre(std::pair<std::string, double>{"k80", 0.2},
                                    std::pair<std::string, double>{"tpu9", 3}));
  ASSERT_THAT(p.noise, SizeIs(2));
  EXPECT_EQ(p.noise[1].progress, 0.5);
  EXPECT_EQ(p.noise[1].scale, 2000);
  EXPECT_EQ(p.batch_limits.least_per_gpu, 8);
  EXPECT_EQ(p.batch_limits.most_per_gpu, 64);
  EXPECT_EQ(p.batch_limits.most_total, 2048);
  EXPECT_EQ(p.loss.b0, 0.3);
  EXPECT_EQ(p.loss.b1, 0.7);
  EXPECT_EQ(p.loss.b2, 0.1);
  EXPECT_EQ(p.loss.epochs, 40);
  EXPECT_EQ(p.loss.spread, 0.5);
  EXPECT_EQ(p.loss.noise, 0.02);
  ASSERT_THAT(p.measured, SizeIs(1));
  EXPECT_EQ(p.measured[0].level, Level::CrossRack);
  EXPECT_EQ(p.measured[0].seconds, 0.25);
  ASSERT_THAT(p.sources, SizeIs(1));
  EXPECT_EQ(p.sources[0].provenance, Provenance::Fitted);
  EXPECT_EQ(p.sources[0].source, "our own: cluster");
  EXPECT_EQ(p.sources[0].points, 7);
  const ProfileId other = *set.find("other");
  EXPECT_EQ(set.slowdown(*id, other), 1.8);
  EXPECT_EQ(set.slowdown(other, *id), 1.1);
  EXPECT_EQ(set.slowdown(other, other), 1.7);  // not from utilisations: they are switched off
}

TEST(ProfileFile, WhatWasWrittenReadsBackTheSame) {
  const ProfileSet first = good(kFull);
  const std::string yaml = profiles_to_yaml(first, "two\nlines");
  EXPECT_THAT(yaml, StartsWith("# two\n# lines\ndefaults:"));
  // The device type of its own is not part of a ProfileSet, so it is named again.
  const ProfileSet second = good(yaml + "devices: [tpu9]\n");
  EXPECT_EQ(profiles_to_yaml(second, "two\nlines"), yaml);
  const Profile& before = first[*first.find("mynet")];
  const Profile& after = second[*second.find("mynet")];
  EXPECT_EQ(after.cpu, before.cpu);
  EXPECT_EQ(after.validation.cpu, before.validation.cpu);
  EXPECT_EQ(after.data, before.data);
}

TEST(ProfileFile, LeavesOutMeansTheClassDefault) {
  const ProfileSet set = good("profiles: [{name: bare}]");
  const Profile& p = set[*set.find("bare")];
  const Profile usual;
  EXPECT_EQ(p.batch, usual.batch);
  EXPECT_EQ(p.iteration.alpha, usual.iteration.alpha);
  EXPECT_FALSE(p.cpu.is_known());
  EXPECT_FALSE(p.has_stages());
}

TEST(ProfileFile, AddsToItsBaseAndReplacesByName) {
  const ProfileSet base = good(kFull);
  const ProfileSet set =
      good("profiles: [{name: mynet, batch: 5}, {name: new}]\npairs: [[new, other, 2]]", base);
  EXPECT_EQ(set.size(), 4U);
  EXPECT_EQ(set[*set.find("my-net")].batch, 5);
  EXPECT_EQ(set[*set.find("my-net")].memory.fixed_mib, MemoryParams{}.fixed_mib);
  EXPECT_EQ(set.slowdown(*set.find("new"), *set.find("other")), 2);
}

TEST(ProfileFile, LikeStartsFromAKnownProfile) {
  const ProfileSet set = good("profiles: [{name: twin, like: my-net, bus: 0.6}]", good(kFull));
  const Profile& twin = set[*set.find("twin")];
  EXPECT_EQ(twin.batch, 48);
  EXPECT_EQ(twin.bus, 0.6);
  EXPECT_EQ(set[*set.find("mynet_large")].name, "My-Net");  // aliases stay where they were
}

TEST(ProfileFileFaults, PartsWithFieldsMissingOrOutOfRange) {
  EXPECT_THAT(faults("profiles: [{name: a, data: {dataset_mib: 5}}]"),
              ElementsAre(HasSubstr("data needs sample_mib"),
                          HasSubstr("data needs storage_mib_per_second")));
  EXPECT_THAT(faults("profiles: [{name: a, data: {dataset_mib: 0, sample_mib: 1, "
                     "storage_mib_per_second: 1}}]"),
              ElementsAre(HasSubstr("dataset_mib must be")));
  EXPECT_THAT(faults("profiles: [{name: a, validation: {every_seconds: 0, seconds: 9, log_gain: 1, "
                     "linear_gain: 1, plateau: 9, theta: 4}}]"),
              ElementsAre(HasSubstr("every_seconds must be")));
  EXPECT_THAT(faults("profiles: [{name: a, validation: {every_seconds: 9, seconds: 9, log_gain: "
                     "-1, linear_gain: 0, plateau: 9, theta: 4}}]"),
              ElementsAre(HasSubstr("would feed nothing")));
}

TEST(ProfileFileFaults, TrainingParts) {
  EXPECT_THAT(faults("profiles: [{name: a, noise: [[0.5, 10], [0.5, 20]]}]"),
              ElementsAre(HasSubstr("in the order of progress")));
  EXPECT_THAT(faults("profiles: [{name: a, noise: [7]}]"),
              ElementsAre(HasSubstr("[progress, scale]")));
  EXPECT_THAT(faults("profiles: [{name: a, noise: [[0, 0]]}]"),
              ElementsAre(HasSubstr("a noise scale")));
  EXPECT_THAT(faults("profiles: [{name: a, batch_limits: {least_per_gpu: 9, most_per_gpu: 8}}]"),
              ElementsAre(HasSubstr("no batch would do")));
  EXPECT_THAT(faults("profiles: [{name: a, loss: {epochs: 0}}]"),
              ElementsAre(HasSubstr("epochs must be")));
}

TEST(ProfileFileFaults, OneSetOfProfilesPerFile) {
  EXPECT_THAT(faults("profiles: [{name: a}]\n---\nprofiles: [{name: b}]\n"),
              ElementsAre("p.yaml:2:1: a second document begins (one set of profiles per file)"));
}

TEST(ProfileFileFaults, SeveralAtOnceEachWithItsPlace) {
  EXPECT_THAT(
      faults("profiles:\n"
             "  - name: a\n"
             "    batch: 0\n"
             "    iteration: {alpha: -1, beta: 0.1}\n"
             "    speed: {v100: 1}\n"
             "pairs:\n"
             "  - [a, b, 0.5]\n"),
      ElementsAre(
          AllOf(StartsWith("p.yaml:5:5: "), HasSubstr("no key 'speed'"), HasSubstr("speeds")),
          AllOf(StartsWith("p.yaml:3:12: "), HasSubstr("batch must be a number from 1")),
          AllOf(StartsWith("p.yaml:4:24: "), HasSubstr("alpha"), HasSubstr("'-1'")),
          AllOf(StartsWith("p.yaml:7:9: "), HasSubstr("no profile is called 'b'")),
          AllOf(StartsWith("p.yaml:7:12: "), HasSubstr("from 1 to 1000"))));
}

struct Bad {
  const char* text;
  const char* place;
  const char* says;
};

TEST(ProfileFileFaults, EachKindIsNamed) {
  const std::vector<Bad> all{
      {"", "p.yaml:1:1:", "empty"},
      {"[]", "p.yaml:1:1:", "is a mapping"},
      {"defaults: {slowdown: 2}", "p.yaml:1:1:", "neither profiles nor pairs"},
      {"profiles: {name: a}", "p.yaml:1:11:", "must be a list"},
      {"profiles: [a]", "p.yaml:1:12:", "a profile is a mapping"},
      {"profiles: [{batch: 3}]", "p.yaml:1:12:", "needs name"},
      {"profiles: [{name: '--'}]", "p.yaml:1:19:", "needs a letter"},
      {"profiles: [{name: a}, {name: A}]", "p.yaml:1:30:", "described twice"},
      {"profiles: [{name: a, name: b}]", "p.yaml:1:22:", "given twice"},
      {"profiles: [{name: a, like: nobody}]", "p.yaml:1:28:", "no profile is called 'nobody'"},
      // points that are missing
      {"profiles: [{name: a, iteration: {alpha: 1}}]", "p.yaml:1:33:", "iteration needs beta"},
      {"profiles: [{name: a, stages: [1, 2, 3]}]", "p.yaml:1:30:", "four numbers"},
      {"profiles: [{name: a, cpu: {log_gain: 1}}]", "p.yaml:1:27:", "cpu needs linear_gain"},
      {"profiles: [{name: a, measured: [{device: v100}]}]", "p.yaml:1:33:", "needs gpus"},
      {"pairs: [[default, default]]", "p.yaml:1:9:", "[of, beside, slowdown]"},
      // times and speeds that cannot be
      {"profiles: [{name: a, iteration: {alpha: 0, beta: 0}}]", "p.yaml:1:33:", "both zero"},
      {"profiles: [{name: a, iteration: {alpha: nan, beta: 1}}]", "p.yaml:1:41:", "'nan'"},
      {"profiles: [{name: a, iteration: {alpha: .inf, beta: 1}}]", "p.yaml:1:41:", "'.inf'"},
      {"profiles: [{name: a, iteration: {alpha: 1, beta: 1, overlap: 0.5}}]",
       "p.yaml:1:62:", "from 1 to"},
      {"profiles: [{name: a, speeds: {v100: 0}}]", "p.yaml:1:37:", "a speed"},
      {"profiles: [{name: a, speeds: {v100: -2}}]", "p.yaml:1:37:", "a speed"},
      {"profiles: [{name: a, speeds: {v100: 1, V100: 2}}]", "p.yaml:1:40:", "given twice"},
      {"profiles: [{name: a, stages: [0, 0, 0, 0]}]", "p.yaml:1:30:", "all stages are zero"},
      {"profiles: [{name: a, stages: [0, -1, 0, 0]}]", "p.yaml:1:34:", "a stage"},
      {"profiles: [{name: a, cpu: {log_gain: 0, linear_gain: 0, plateau: 5, theta: 4}}]",
       "p.yaml:1:27:", "would feed nothing"},
      {"profiles: [{name: a, cpu: {log_gain: 1, linear_gain: 1, plateau: 0, theta: 4}}]",
       "p.yaml:1:66:", "plateau"},
      {"profiles: [{name: a, measured: [{device: v100, gpus: 1, level: device, batch: 8, "
       "seconds: 0}]}]",
       "p.yaml:1:91:", "seconds"},
      {"profiles: [{name: a, measured: [{device: v100, gpus: 1.5, level: device, batch: 8, "
       "seconds: 1}]}]",
       "p.yaml:1:54:", "whole number"},
      {"profiles: [{name: a, gpu_utilisation: 70}]", "p.yaml:1:39:", "from 0 to 1"},
      {"pairs: [[default, default, 0.9]]", "p.yaml:1:28:", "from 1 to 1000"},
      {"defaults: {slowdown: 0.5}\npairs: []", "p.yaml:1:22:", "from 1 to 1000"},
      {"defaults: {pairs_from_utilisation: maybe}\npairs: []", "p.yaml:1:36:", "true or false"},
      // names nobody knows
      {"profiles: [{name: a, speeds: {v10: 1}}]", "p.yaml:1:31:", "v100"},
      {"profiles: [{name: a, measured: [{device: a10000, gpus: 1, level: device, batch: 8, "
       "seconds: 1}]}]",
       "p.yaml:1:42:", "no device type is called 'a10000'"},
      {"profiles: [{name: a, measured: [{device: v100, gpus: 2, level: racks, batch: 8, "
       "seconds: 1}]}]",
       "p.yaml:1:64:", "rack"},
      {"profiles: [{name: a, sources: [{part: x, provenance: guessed}]}]",
       "p.yaml:1:54:", "default, given, fitted or measured"},
      // not YAML, or more than any file needs
      {"profiles: [{name: a", "p.yaml:", "YAML"},
      {"pairs: []\n---\npairs: []", "p.yaml:", "second document"},
  };
  for (const Bad& bad : all) {
    const auto messages = faults(bad.text);
    ASSERT_FALSE(messages.empty());
    EXPECT_THAT(messages.front(), StartsWith(bad.place)) << bad.text;
    EXPECT_THAT(messages.front(), HasSubstr(bad.says)) << bad.text;
  }
}

TEST(ProfileFileFaults, StopsTalkingAfterTwenty) {
  std::string text = "profiles:\n";
  for (int i = 0; i < 50; ++i) text += "  - {name: a" + std::to_string(i) + ", batch: 0}\n";
  const auto messages = faults(text);
  ASSERT_THAT(messages, SizeIs(21));
  EXPECT_THAT(messages.back(), HasSubstr("30 more"));
}

}  // namespace
}  // namespace berth
