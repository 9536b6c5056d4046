// The configuration of `berth serve`: every key arrives, every mistake is named with its line.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <fstream>

#include "daemon/config.h"
#include "support/temporary_directory.h"

namespace berth::test {
namespace {

std::string complaint(const std::string& text) {
  const auto config = parse_serve_config(text, "serve.yaml");
  return config ? "" : config.error().text();
}

// because a path that is cut off is another path
TEST(ServeConfigFile, LongTextsArriveWhole) {
  const std::string place = "/srv/cluster/" + std::string(300, 'x') + "/state";
  const auto config =
      parse_serve_config(fmt::format("state_dir: {0}\nsocket: {0}.sock\n", place), "f");
  ASSERT_TRUE(config) << config.error().text();
  EXPECT_EQ(config->state_dir, place);
  EXPECT_EQ(config->socket, place + ".sock");
  EXPECT_NE(complaint("state_dir: " + std::string(5000, 'x')), "");
  EXPECT_NE(complaint("state_dir: \"/a\\x1b[31m\""), "");
}

TEST(ServeConfigFile, EveryKeyArrives) {
  const auto config = parse_serve_config(R"(
state_dir: /a
run_dir: /b
socket: /c
listen: 127.0.0.1:1
tls: {certificate: /cert, key: /key}
plain_network: true
cluster: 2x4
devices: 3
policy: srtf
set: {period: 60}
placement: consolidated
estimator: limit
cpu: bind
queues:
  - {name: short, default_time_limit: 30, max_time_limit: 1h, max_gpus: 4, priority: 10}
  - {name: long}
admins: [ann]
operators: [bob, eve]
groups: [table]
users:
  ann: {groups: [vision, ml]}
  bob: {}
max_jobs: 7
max_jobs_per_user: 5
max_user_priority: -2
max_requests_per_second: 12
half_life: 3600
log_level: debug
log_format: json
)",
                                         "serve.yaml");
  ASSERT_TRUE(config) << config.error().text();
  EXPECT_EQ(config->state_dir, "/a");
  EXPECT_EQ(config->run_dir, "/b");
  EXPECT_EQ(config->socket, "/c");
  EXPECT_EQ(config->listen, "127.0.0.1:1");
  EXPECT_EQ(config->tls_certificate, "/cert");
  EXPECT_EQ(config->tls_key, "/key");
  EXPECT_TRUE(config->plain_network);
  EXPECT_EQ(config->cluster, "2x4");
  EXPECT_EQ(config->devices, 3);
  EXPECT_EQ(config->scheduling.policy.policy, "srtf");
  ASSERT_EQ(config->scheduling.policy.settings.size(), 1U);
  EXPECT_EQ(config->scheduling.policy.settings[0],
            (std::pair<std::string, std::string>("period", "60")));
  EXPECT_EQ(config->scheduling.estimator, "limit");
  const GroupRules& groups = config->service.identity.groups;
  EXPECT_FALSE(groups.from_unix);
  EXPECT_TRUE(groups.from_table);
  EXPECT_FALSE(groups.any);
  EXPECT_EQ(groups.users.at("ann"), (std::vector<std::string>{"vision", "ml"}));
  EXPECT_TRUE(groups.users.at("bob").empty());
  ASSERT_EQ(config->admission.queues.size(), 2U);
  EXPECT_EQ(config->admission.queues[0].name, "short");
  EXPECT_EQ(config->admission.queues[0].default_time_limit, 1800);
  EXPECT_EQ(config->admission.queues[0].max_time_limit, 3600);
  EXPECT_EQ(config->admission.queues[0].max_gpus, 4);
  EXPECT_EQ(config->admission.queues[0].priority, 10);
  EXPECT_EQ(config->service.admins, std::set<std::string>{"ann"});
  EXPECT_EQ(config->service.operators, (std::set<std::string>{"bob", "eve"}));
  EXPECT_EQ(config->admission.max_jobs, 7U);
  EXPECT_EQ(config->admission.max_jobs_per_user, 5U);
  EXPECT_EQ(config->admission.max_user_priority, -2);
  EXPECT_EQ(config->max_requests_per_second, 12);
  EXPECT_EQ(config->service.fair_share_half_life, 3600);
  EXPECT_EQ(config->scheduling.half_life, 3600);
  EXPECT_EQ(config->log_level, "debug");
  EXPECT_EQ(config->log_format, "json");
}

TEST(ServeConfigFile, ASlurmIsNamedWithItsCommandsAndHowOftenItIsRead) {
  const auto config = parse_serve_config(
      "engine: slurm\nadvise: true\nslurm: {commands: /opt/slurm/bin, poll: 10s}\n", "f");
  ASSERT_TRUE(config) << config.error().text();
  EXPECT_EQ(config->engine, "slurm");
  EXPECT_TRUE(config->advise);
  EXPECT_EQ(config->slurm.commands, "/opt/slurm/bin");
  EXPECT_EQ(config->slurm.poll, 10);
  EXPECT_NE(complaint("slurm: {poll: 0}"), "");
  EXPECT_NE(complaint("slurm: {poll: 2h}"), "");
  EXPECT_NE(complaint("slurm: {pol: 5s}"), "");
  EXPECT_NE(complaint("slurm: yes"), "");
}

TEST(ServeConfigFile, NothingAtAllIsAConfiguration) {
  for (const char* text : {"", "\n \n"}) {
    const auto config = parse_serve_config(text, "serve.yaml");
    ASSERT_TRUE(config);
    EXPECT_EQ(config->max_requests_per_second, 5'000);
    EXPECT_TRUE(config->listen.empty());
  }
}

TEST(ServeConfigFile, AMistakeIsNamedWithItsLine) {
  const std::pair<const char*, std::vector<const char*>> wrong[] = {
      {"policy: fifo\nstate_dirr: /a\n", {"serve.yaml:2", "state_dirr", "state_dir"}},
      {"- policy\n", {"serve.yaml:1", "key: value"}},
      {"max_jobs: many\n", {"serve.yaml:1", "max_jobs"}},
      {"max_jobs: 0\n", {"serve.yaml:1", "max_jobs"}},
      {"max_requests_per_second: -1\n", {"serve.yaml:1", "max_requests_per_second"}},
      {"half_life: 1\n", {"serve.yaml:1", "half_life"}},
      {"plain_network: maybe\n", {"serve.yaml:1", "true or false"}},
      {"devices: 65\n", {"serve.yaml:1", "devices"}},
      {"tls: yes\n", {"serve.yaml:1", "certificate"}},
      {"queues: {name: main}\n", {"serve.yaml:1", "queues is a list"}},
      {"queues:\n  - {max_gpus: 4}\n", {"serve.yaml:2", "a queue has a name"}},
      {"queues:\n  - {name: q, max_time_limit: soon}\n", {"serve.yaml:2", "soon"}},
      {"admins: ann\n", {"serve.yaml:1", "admins is a list"}},
      {"set: [1]\n", {"serve.yaml:1", "set"}},
      {"policy: [\n", {"serve.yaml", "YAML"}},
      {"policy:\tfifo\n\tx", {"serve.yaml"}},
  };
  for (const auto& [text, parts] : wrong) {
    const std::string said = complaint(text);
    for (const char* part : parts)
      EXPECT_NE(said.find(part), std::string::npos) << text << "\nsaid: " << said;
  }
}

TEST(ServeConfigFile, SeveralMistakesAreAllSaid) {
  const std::string said = complaint("max_jobs: 0\nhalf_life: 1\nfoo: 1\n");
  for (const char* part : {"max_jobs", "half_life", "foo"})
    EXPECT_NE(said.find(part), std::string::npos) << said;
}

TEST(ServeConfigFile, OnlyTheStateDirectoryMovesEverything) {
  ServeConfig config;
  config.state_dir = "/a";
  fill_defaults(config);
  EXPECT_EQ(config.run_dir, "/a/jobs");
  EXPECT_EQ(config.socket, "/a/berth.sock");
}

// because heterogeneity, distance and interference count live only if somebody can say so
TEST(ServeConfigFile, BeliefsArrive) {
  const TemporaryDirectory folder;
  std::ofstream{folder.path() + "/mine.yaml"}
      << "profiles:\n  - {name: my-net, iteration: {alpha: 0.1, beta: 0.01}}\n";
  const auto config = parse_serve_config(R"(
effects: [sharing, device]
profiles: [mine.yaml]
profile_error: 0.5
start_cost: 5
restart_cost: 30s
preempt_cost: 2m
)",
                                         folder.path() + "/serve.yaml");
  ASSERT_TRUE(config) << config.error().text();
  const BeliefOptions& beliefs = config->scheduling.beliefs;
  EXPECT_EQ(beliefs.effects, "sharing,device");
  ASSERT_TRUE(beliefs.profiles);
  EXPECT_TRUE(beliefs.profiles->find("my_net"));
  EXPECT_TRUE(beliefs.profiles->find("resnet50"));  // the built-in ones stay
  EXPECT_EQ(beliefs.profile_error, 0.5);
  EXPECT_EQ(beliefs.costs.start, std::chrono::seconds{5});
  EXPECT_EQ(beliefs.costs.resume, std::chrono::seconds{30});
  EXPECT_EQ(beliefs.costs.preempt, std::chrono::minutes{2});
  EXPECT_EQ(beliefs.costs.migrate, std::chrono::seconds{30});  // unless said: as a restart
}

TEST(ServeConfigFile, NonsenseAboutBeliefsIsNamedWithItsLine) {
  EXPECT_NE(complaint("policy: easy\neffects: sharing,warp\n").find("serve.yaml:2:10: effects"),
            std::string::npos);
  EXPECT_NE(complaint("effects: {a: b}\n").find("serve.yaml:1:10"), std::string::npos);
  EXPECT_NE(complaint("profiles: /is/not/there.yaml\n").find("serve.yaml:1:11: /is/not/there.yaml"),
            std::string::npos);
  EXPECT_NE(complaint("profile_error: -1\n"), "");
  EXPECT_NE(complaint("profile_error: .nan\n"), "");
  EXPECT_NE(complaint("restart_cost: soon\n").find("serve.yaml:1:15"), std::string::npos);
  EXPECT_NE(complaint("restart_cost: -3\n"), "");
  EXPECT_NE(complaint("preempt_cost: 400d\n").find("at most a day"), std::string::npos);
}

// What is known of the machine decides unless somebody does.
TEST(LiveBeliefs, ByDefaultWhatTheClusterHasCounts) {
  const auto effects = [](const char* cluster, bool cores = false) {
    return to_string(*effects_of({}, *load_cluster(cluster), cores));
  };
  EXPECT_EQ(effects("1x4"), "sharing");
  EXPECT_EQ(effects("2x4"), "sharing,locality");
  EXPECT_EQ(effects("1x4:v100,1x4:k80"), "sharing,locality,device");
  EXPECT_EQ(effects("1x4", true), "sharing,cpu");
  EXPECT_EQ(to_string(*effects_of({.effects = "none"}, *load_cluster("2x4"), false)), "none");
}

}  // namespace
}  // namespace berth::test
